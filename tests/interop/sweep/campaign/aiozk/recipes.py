"""aiozk's recipes. Its client repeats requests by itself: by default for ever."""

import asyncio
import logging
import os
import sys
import traceback

from aiozk import ZKClient, exc

# A client notices that its connection is closed when a ping has not been answered, after about its session timeout: with
# `--tick-time 200` that may be 1 s. Unit: seconds.
SESSION_TIMEOUT = 1

# How long a program waits for what must happen. Unit: seconds.
PATIENCE = 5

logging.disable()


def fail(what):
    print(f"broken: {what}", flush=True)
    os._exit(1)


async def connect():
    zk = ZKClient(os.environ["MINIKEEPER_CONNECT"], session_timeout=SESSION_TIMEOUT)
    await zk.start()
    return zk


async def create(zk, path):
    """Creates a znode that may exist, as it does after a lost reply."""
    try:
        await zk.create(path, b"1")
    except exc.NodeExists:
        pass


async def tried(call, what):
    """Repeats a call that says that it has failed, and fails if none has returned in time."""

    async def again():
        while True:
            try:
                return await call()
            except (exc.TimeoutError, exc.ConnectError, exc.SessionLost):
                await asyncio.sleep(0.01)

    try:
        return await asyncio.wait_for(again(), PATIENCE)
    except asyncio.TimeoutError:
        fail(what)


async def until(condition, what):
    for _ in range(int(PATIENCE / 0.01)):
        if await condition():
            return
        await asyncio.sleep(0.01)
    fail(what)


async def lock():
    """A lock that nobody holds is acquired."""
    zk = await connect()
    lock = zk.recipes.Lock("/lock")
    await tried(lock.acquire, "acquire does not return, and nobody holds the lock")


async def two_locks():
    """A contender acquires the lock when the holder releases it."""
    one, other = await connect(), await connect()
    held, waiting = one.recipes.Lock("/lock"), other.recipes.Lock("/lock")
    await tried(held.acquire, "acquire does not return, and nobody holds the lock")
    acquiring = asyncio.create_task(waiting.acquire())
    await asyncio.sleep(0.1)
    try:
        await held.release()
    except (exc.TimeoutError, exc.ConnectError, exc.SessionLost):
        os._exit(0)  # there is no way to release it again
    try:
        await asyncio.wait_for(acquiring, PATIENCE)
    except asyncio.TimeoutError:
        fail("acquire does not return, and the lock was released")
    except (exc.TimeoutError, exc.ConnectError):
        pass


async def counter():
    """An increment that has succeeded is one."""
    zk = await connect()
    counter = zk.recipes.Counter("/counter")
    await tried(counter.start, "start does not return")
    try:
        await counter.incr()
    except (exc.TimeoutError, exc.ConnectError):
        return
    value = await tried(counter.get_value, "get_value does not return")
    if value != 1:
        fail(f"one incr has succeeded, and the counter is {value}")


async def request():
    """A request whose connection is closed by the server is answered or fails long before the session ends."""
    zk = ZKClient(os.environ["MINIKEEPER_CONNECT"], session_timeout=30)
    await zk.start()
    try:
        await asyncio.wait_for(zk.exists("/"), 2)
    except asyncio.TimeoutError:
        fail("exists neither returns nor raises in 2 s")
    except exc.ZKError:
        pass


async def barrier():
    """`wait` returns when the barrier is lifted."""
    one, other = await connect(), await connect()
    barriers = [zk.recipes.Barrier("/barrier") for zk in (one, other)]
    await tried(barriers[0].create, "create does not return")
    waiting = asyncio.create_task(barriers[1].wait())
    await asyncio.sleep(0.1)
    await tried(barriers[0].lift, "lift does not return")
    try:
        await asyncio.wait_for(waiting, PATIENCE)
    except asyncio.TimeoutError:
        fail("wait does not return, and the barrier is lifted")
    except (exc.TimeoutError, exc.ConnectError):
        pass


async def data_watcher():
    """The callback gets the last data."""
    watching, writing = await connect(), await connect()
    await tried(lambda: create(writing, "/data"), "create does not return")
    seen = []
    watcher = watching.recipes.DataWatcher()
    watcher.set_client(watching)
    watcher.add_callback("/data", seen.append)

    def sees(value):
        async def sees():
            return bool(seen) and seen[-1] == value

        return sees

    await until(sees(b"1"), "the callback is not called at first")
    await tried(lambda: writing.set_data("/data", b"2", force=True), "set_data does not return")
    await until(sees(b"2"), "changed, and the callback is not called")


SCENARIOS = (request, lock, two_locks, counter, barrier, data_watcher)

async def main(scenario):
    # Ends the program here: a task of a watcher does not end when it is cancelled, and `asyncio.run` would wait for it.
    try:
        await scenario()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


asyncio.run(main({scenario.__name__: scenario for scenario in SCENARIOS}[sys.argv[1]]))

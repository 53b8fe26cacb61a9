"""aiozk's recipes. Its client repeats requests by itself: by default for ever."""

import asyncio
import logging
import os
import sys
import traceback

from aiozk import ZKClient, exc
from aiozk.states import States

# How long a program waits for what must happen. Unit: seconds.
PATIENCE = 1.5

logging.disable()


def fail(what):
    print(f"broken: {what}", flush=True)
    os._exit(1)


async def connect(losses=None):
    zk = ZKClient(os.environ["MINIKEEPER_CONNECT"], session_timeout=5)
    await zk.start()
    if losses is not None:
        zk.session.state.wait_for(States.LOST).add_done_callback(lambda _: losses.append(zk))
    return zk


async def within(what, call):
    """Fails if a call does not return in time."""
    try:
        return await asyncio.wait_for(call, PATIENCE)
    except asyncio.TimeoutError:
        fail(what)


async def until(condition, what):
    for _ in range(int(PATIENCE / 0.01)):
        if await condition():
            return
        await asyncio.sleep(0.01)
    fail(what)


async def lock():
    """A lock that nobody holds is acquired, and gone when it is released."""
    zk = await connect()
    lock = zk.recipes.Lock("/lock")
    await within("acquire does not return, and nobody holds the lock", lock.acquire())
    await within("release does not return", lock.release())

    async def is_empty():
        return not await zk.get_children("/lock")

    await until(is_empty, "a contender's znode is there after release")


async def two_locks():
    """A contender acquires the lock when the holder releases it."""
    one, other = await connect(), await connect()
    held, waiting = one.recipes.Lock("/lock"), other.recipes.Lock("/lock")
    await within("acquire does not return, and nobody holds the lock", held.acquire())
    acquiring = asyncio.create_task(waiting.acquire())

    async def are_two():
        return len(await one.get_children("/lock")) >= 2

    await until(are_two, "the second contender is not there")
    await within("release does not return", held.release())
    await within("acquire does not return, and the lock was released", acquiring)


async def counter():
    zk = await connect()
    counter = zk.recipes.Counter("/counter")
    await counter.start()
    await counter.incr()
    value = await counter.get_value()
    if value != 1:
        fail(f"one incr has succeeded, and the counter is {value}")


async def election():
    """The only candidate leads; when it resigns, another one can lead."""
    one, other = await connect(), await connect()
    elections = [zk.recipes.LeaderElection("/election") for zk in (one, other)]
    await within("volunteer does not return", elections[0].volunteer())
    await within("the only candidate does not lead", elections[0].wait_for_leadership())
    await within("volunteer does not return", elections[1].volunteer())
    await within("resign does not return", elections[0].resign())
    await within("the other does not lead, and the leader has resigned", elections[1].wait_for_leadership())


async def barrier():
    """`wait` returns when the barrier is lifted."""
    one, other = await connect(), await connect()
    barriers = [zk.recipes.Barrier("/barrier") for zk in (one, other)]
    await barriers[0].create()
    waiting = asyncio.create_task(barriers[1].wait())
    await asyncio.sleep(0.05)
    await barriers[0].lift()
    await within("wait does not return, and the barrier is lifted", waiting)


async def double_barrier():
    losses = []
    clients = [await connect(losses) for _ in range(2)]
    barriers = [zk.recipes.DoubleBarrier("/barrier", 2) for zk in clients]

    async def both(name):
        calls = [asyncio.create_task(getattr(barrier, name)()) for barrier in barriers]
        done, _ = await asyncio.wait(calls, timeout=PATIENCE)
        if losses:
            os._exit(0)  # a client whose session is lost is not in the barrier
        if len(done) < 2:
            fail(f"{name} does not return, and both {name}")
        for call in calls:
            call.result()

    await both("enter")
    await both("leave")


async def data_watcher():
    """The callback gets the last data."""
    watching, writing = await connect(), await connect()
    await writing.create("/data", b"1")
    seen = []
    watcher = watching.recipes.DataWatcher()
    watcher.set_client(watching)
    watcher.add_callback("/data", seen.append)

    def sees(value):
        async def sees():
            return bool(seen) and seen[-1] == value

        return sees

    await until(sees(b"1"), "the callback is not called at first")
    await writing.set_data("/data", b"2", force=True)
    await until(sees(b"2"), "changed, and the callback is not called")


async def children_watcher():
    watching, writing = await connect(), await connect()
    await writing.create("/parent")
    seen = []
    watcher = watching.recipes.ChildrenWatcher()
    watcher.set_client(watching)
    watcher.add_callback("/parent", seen.append)

    def sees(value):
        async def sees():
            return bool(seen) and seen[-1] == value

        return sees

    await until(sees([]), "the callback is not called at first")
    try:
        await writing.create("/parent/a")
    except exc.NodeExists:
        pass  # its own, repeated
    await until(sees(["a"]), "a child was created, and the callback is not called")


async def tree_cache():
    watching, writing = await connect(), await connect()
    for path in ("/tree", "/tree/a"):
        try:
            await writing.create(path, b"1")
        except exc.NodeExists:
            pass
    cache = watching.recipes.TreeCache("/tree")
    await within("start does not return", cache.start())

    def is_now(expected):
        async def is_now():
            return cache.as_dict() == expected

        return is_now

    await until(is_now({"a": b"1"}), "the cache does not have the tree")
    await writing.set_data("/tree/a", b"2", force=True)
    await until(is_now({"a": b"2"}), "changed, and the cache does not know")


async def party():
    """Who has joined is a member."""
    losses = []
    one, other = await connect(losses), await connect(losses)
    parties = [zk.recipes.Party("/party", name) for zk, name in ((one, "one"), (other, "other"))]
    for party in parties:
        await within("join does not return", party.join())

    def are(*names):
        async def are():
            if losses:
                os._exit(0)
            return sorted(parties[0].members) == list(names)

        return are

    await until(are("one", "other"), "both have joined, and are not the members")
    await parties[1].leave()
    await until(are("one"), "one has left, and the other is not the only member")


SCENARIOS = (lock, two_locks, counter, election, barrier, double_barrier, data_watcher, children_watcher, tree_cache, party)

async def main(scenario):
    # Ends the program here: a task of a watcher does not end when it is cancelled, and `asyncio.run` would wait for it.
    try:
        await scenario()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


asyncio.run(main({scenario.__name__: scenario for scenario in SCENARIOS}[sys.argv[1]]))

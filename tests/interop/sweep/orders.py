"""Programs whose clients depend on the order of their requests: `orders.py PROGRAM [--sound]`.

The clients of a program are threads. All of them are connected before the first request that matters.
"""

import sys
import threading

from kazoo.exceptions import BadVersionError, NodeExistsError

from client import IS_SOUND, close, connect, fail


def together(*bodies):
    """Runs each body with a client of its own. Fails if one does."""
    clients = [connect() for _ in bodies]
    errors = []

    def run(body, zk):
        try:
            body(zk)
        except Exception as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=run, args=pair) for pair in zip(bodies, clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        fail(errors[0])
    return clients


def prepare(**data):
    zk = connect()
    for name, value in data.items():
        zk.create(f"/{name}", value)
    close(zk)


def check_create():
    """Creates a znode after a look whether it is there."""

    def body(zk):
        if not zk.exists("/a"):
            try:
                zk.create("/a")
            except NodeExistsError:
                if not IS_SOUND:
                    raise

    close(*together(body, body))


def lost_update():
    """Adds 1 to what was read, without the version that was read."""
    prepare(n=b"0")

    def body(zk):
        while True:
            data, stat = zk.get("/n")
            try:
                zk.set("/n", b"%d" % (int(data) + 1), stat.version if IS_SOUND else -1)
                return
            except BadVersionError:
                pass

    clients = together(body, body)
    if clients[0].get("/n")[0] != b"2":
        fail("an update is lost")
    close(*clients)


def read_watch():
    """Waits for a change with a watch that is set after the read."""
    prepare(n=b"0")

    def waits(zk):
        changed = threading.Event()
        data, _ = zk.get("/n", watch=(lambda _: changed.set()) if IS_SOUND else None)
        if data == b"1":
            return
        if not IS_SOUND:
            zk.get("/n", watch=lambda _: changed.set())
        if not changed.wait(2):
            fail("the change is missed")

    close(*together(waits, lambda zk: zk.set("/n", b"1")))


def late_write():
    """A leader that writes once more after it has resigned."""
    prepare(election=b"", state=b"")

    def body(zk):
        name = zk.create("/election/n-", ephemeral=True, sequence=True).rpartition("/")[2]
        while True:
            changed = threading.Event()
            before = [other for other in sorted(zk.get_children("/election")) if other < name]
            if not before:
                break
            if zk.exists(f"/election/{before[-1]}", watch=lambda _, changed=changed: changed.set()):
                changed.wait()
        zk.set("/state", name.encode())
        if IS_SOUND:
            zk.set("/state", name.encode())
        zk.delete(f"/election/{name}")
        if not IS_SOUND:
            zk.set("/state", name.encode())

    clients = together(body, body)
    state = clients[0].get("/state")[0]
    if state != b"n-0000000001":
        fail(f"{state} has written after its successor")
    close(*clients)


def lock():
    """kazoo's Lock with three contenders."""
    inside = []

    def body(zk):
        with zk.Lock("/lock", "it"):
            inside.append(zk)
            zk.get("/")
            if inside != [zk]:
                fail("two hold the lock")
            inside.remove(zk)

    close(*together(body, body, body))


if __name__ == "__main__":
    globals()[sys.argv[1]]()

"""Programs with a known bug each, and sound ones: `programs.py PROGRAM [sound]`.

Each connects to MINIKEEPER_CONNECT, checks its own invariant at the end, and exits with 1 if that is broken. Whatever else
goes wrong is handled: a program that fails for another reason than its bug would hide it.
"""

import os
import sys
import threading
import time
import uuid

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    CancelledError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    LockTimeout,
    NoNodeError,
    NodeExistsError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.recipe.lock import Lock

UNSURE = (ConnectionLoss, ConnectionClosedError, OperationTimeoutError, SessionExpiredError, CancelledError)

# Longer than it takes to reconnect, or to open a session after the last one expired.
PATIENCE_S = 2.0

SOUND = sys.argv[2:] == ["sound"]


def connect():
    client = KazooClient(os.environ["MINIKEEPER_CONNECT"], timeout=10)
    client.start(timeout=15)
    return client


def surely(operation, *arguments, **options):
    """Does what may be done twice, as often as it takes."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return operation(*arguments, **options)
        except UNSURE:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def parent(client, path):
    for end in [place for place, letter in enumerate(path) if letter == "/" and place > 0] + [len(path)]:
        try:
            surely(client.create, path[:end])
        except NodeExistsError:
            pass


def delete(client, path):
    try:
        surely(client.delete, path)
    except NoNodeError:
        pass


def broken(why):
    print(f"broken: {why}", flush=True)
    os._exit(1)


def queue(client, path):
    """The contenders of a lock, first come first."""
    return sorted(surely(client.get_children, path), key=lambda name: name[-10:])


def wait_until_first(client, path, own, what):
    """Waits until a contender is the first; returns False if it is gone with its session."""
    end = time.monotonic() + PATIENCE_S
    while True:
        names = queue(client, path)
        if own not in names:
            return False
        if names[0] == own:
            return True
        if time.monotonic() > end:
            broken(f"{what}: {own} waits for {names[0]}")
        time.sleep(0.02)


def naive_lock():
    """A lock that is created again after its reply was lost. The first znode stays, and nobody releases it."""
    client = connect()
    parent(client, "/locks/naive")

    def join():
        mark = uuid.uuid4().hex if SOUND else "n"
        while True:
            try:
                return client.create(f"/locks/naive/{mark}-", ephemeral=True, sequence=True).rsplit("/", 1)[1]
            except UNSURE:
                time.sleep(0.01)
            if SOUND:
                for name in surely(client.get_children, "/locks/naive"):
                    if name.startswith(mark):
                        return name

    for _ in range(2):
        own = join()
        while not wait_until_first(client, "/locks/naive", own, "lock"):
            own = join()
        delete(client, f"/locks/naive/{own}")


def go_lock():
    """go-zookeeper 229: the lock marks its znode and looks for it when the reply was lost, but if the connection is still down
    then, it reports the error and leaves the znode. Its caller tries again."""
    client = connect()
    parent(client, "/locks/go")

    def create(mark):
        path = f"/locks/go/_c_{mark}-lock-"
        for _ in range(3):
            try:
                return client.create(path, ephemeral=True, sequence=True).rsplit("/", 1)[1]
            except SessionExpiredError:
                surely(client.exists, "/")
            except UNSURE:
                names = surely(client.get_children, "/locks/go") if SOUND else client.get_children("/locks/go")
                for name in names:
                    if mark in name:
                        return name
        raise ConnectionLoss()

    def lock():
        while True:
            try:
                return create(uuid.uuid4().hex)
            except UNSURE:
                time.sleep(0.01)

    for _ in range(2):
        own = lock()
        while not wait_until_first(client, "/locks/go", own, "lock"):
            own = lock()
        delete(client, f"/locks/go/{own}")


class RetriesCleanup(Lock):
    """kazoo's lock with the change that 760 proposes."""

    def _best_effort_cleanup(self):
        def clean():
            node = self.node or self._find_node()
            if node:
                self._delete_node(node)

        try:
            surely(clean)
        except NoNodeError:
            pass


def kazoo_try_lock():
    """kazoo 732: a lock that is tried and not got removes its znode, and gives up if the connection is lost then. The znode
    becomes a holder that nobody releases."""
    kind = RetriesCleanup if SOUND else Lock
    holder, other = connect(), connect()
    parent(holder, "/locks/kazoo")
    # Clients are numbered by their first requests.
    surely(other.exists, "/locks/kazoo")
    lock = Lock(holder, "/locks/kazoo")
    try:
        if not lock.acquire(timeout=PATIENCE_S):
            return
    except (KazooException, LockTimeout):
        return
    tried = kind(other, "/locks/kazoo")
    try:
        if tried.acquire(blocking=False):
            return  # The holder's session has expired.
    except KazooException:
        pass
    try:
        surely(lock.release)
    except KazooException:
        return
    # Whoever tried has given up, and the holder has released: the lock is free.
    again = Lock(holder, "/locks/kazoo")
    try:
        got = again.acquire(timeout=PATIENCE_S)
    except LockTimeout:
        got = False
    except KazooException:
        return
    if not got and surely(holder.get_children, "/locks/kazoo"):
        broken("nobody holds the lock, and it cannot be acquired")


def counter():
    """A counter whose increment is done again after its reply was lost, though it was carried out."""
    client = connect()
    parent(client, "/counter")
    for number in range(3):
        mark = f" {number}".encode()
        while True:
            data, stat = surely(client.get, "/counter")
            count, done = int((data or b"0").split()[0]), data.endswith(mark)
            if SOUND and done:
                break
            try:
                client.set("/counter", str(count + 1).encode() + mark, version=stat.version)
                break
            except BadVersionError:
                pass
            except UNSURE:
                time.sleep(0.01)
    count = int(surely(client.get, "/counter")[0].split()[0])
    if count != 3:
        broken(f"3 increments made {count}")


class Leader:
    """A contender for /leader, an ephemeral znode."""

    def __init__(self):
        self.client = connect()
        self.leads = threading.Event()
        if SOUND:
            self.client.add_listener(self.changed)

    def changed(self, state):
        if state != KazooState.CONNECTED:
            self.leads.clear()

    def contend(self):
        try:
            self.client.create("/leader", ephemeral=True)
            self.leads.set()
        except UNSURE + (NodeExistsError,):
            pass
        return self.leads.is_set()


def latch():
    """A leader latch that ignores that its connection is suspended and its session lost: another leads meanwhile."""
    first, second = Leader(), Leader()
    parent(first.client, "/work")
    surely(second.client.exists, "/work")
    if not first.contend():
        return
    for _ in range(3):
        surely(first.client.set, "/work", b"")
    if second.contend():
        # What a leader is told by its connection may take a moment.
        time.sleep(0.3)
        if first.leads.is_set():
            broken("two leaders")


def leader_write():
    """A leader that writes after its session has expired, over what the next leader has written."""
    first, second = Leader(), Leader()
    parent(first.client, "/state")
    surely(second.client.exists, "/state")
    if not first.contend():
        return
    version = surely(first.client.get, "/state")[1].version
    is_replaced = second.contend()
    if is_replaced:
        surely(second.client.set, "/state", b"second")
    try:
        surely(first.client.set, "/state", b"first", version=version if SOUND else -1)
    except BadVersionError:
        pass
    if is_replaced and surely(second.client.get, "/state")[0] != b"second":
        broken("a former leader has written")


PROGRAMS = {
    "naive-lock": naive_lock,
    "go-lock": go_lock,
    "kazoo-try-lock": kazoo_try_lock,
    "counter": counter,
    "latch": latch,
    "leader-write": leader_write,
}

try:
    PROGRAMS[sys.argv[1]]()
except UNSURE as error:
    # The server is gone for longer than a program waits: no bug.
    print(f"gave up: {error!r}")
# Sessions end with the process, without a handshake of farewells.
os._exit(0)

"""The lock of go-zookeeper as of its issue 229.

The name of a contender's znode has a GUID, so that it is found after a lost reply. But if the connection is lost while the
children are read, or the predecessor, `lock` returns an error and forgets the znode; the next `lock` waits for it. The sound
version deletes the znode before it returns the error.
"""

import threading
import time
import uuid

from kazoo.exceptions import NoNodeError

from client import IS_SOUND, LOST, PATIENCE, close, connect, create, delete, fail

LOCK = "/lock"


def create_protected(zk, guid):
    """Creates a contender's znode, or finds it."""
    for _ in range(3):
        try:
            return zk.create(f"{LOCK}/_c_{guid}-lock-", ephemeral=True, sequence=True)
        except LOST:
            found = find(zk, guid)
            if found:
                return found
    raise SystemExit("the connection was lost three times")


def find(zk, guid):
    """Returns the path of the znode with a GUID. Like every read of this lock, it fails with its connection."""
    for child in zk.get_children(LOCK):
        if child.startswith(f"_c_{guid}-"):
            return f"{LOCK}/{child}"
    return None


def sequence(name):
    return int(name.rsplit("-", 1)[1])


def lock(zk):
    """Acquires the lock or raises. Returns the path of its znode."""
    guid = uuid.uuid4().hex
    try:
        path = create_protected(zk, guid)
        wait(zk, path)
        return path
    except Exception:
        if IS_SOUND:
            for child in zk.retry(zk.get_children, LOCK):
                if child.startswith(f"_c_{guid}-"):
                    delete(zk, f"{LOCK}/{child}")
        raise


def wait(zk, path):
    """Waits until there is no contender before the one at this path."""
    own = sequence(path)
    while True:
        earlier = [child for child in zk.get_children(LOCK) if sequence(child) < own]
        if not earlier:
            return
        before = max(earlier, key=sequence)
        changed = threading.Event()
        try:
            zk.get(f"{LOCK}/{before}", watch=lambda _: changed.set())
        except NoNodeError:
            continue
        if not changed.wait(PATIENCE):
            fail(f"{path} waits for {before}, and nobody holds the lock")


zk = connect()
create(zk, LOCK)
held = None
while not held:
    try:
        held = lock(zk)
    except LOST:
        time.sleep(0.01)
delete(zk, held)
close(zk)

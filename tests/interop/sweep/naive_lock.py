"""A lock whose contenders create their znodes again when a connection is lost.

The first znode exists if only the reply was lost. It belongs to the living session and nobody deletes it: an orphan, which
holds the lock. The sound version puts a UUID into the name, and looks for it before it creates another.
"""

import threading
import time
import uuid

from kazoo.exceptions import NoNodeError

from client import IS_SOUND, LOST, PATIENCE, close, connect, create, delete, fail

LOCK = "/lock"


def join(zk):
    """Creates a contender's znode. Returns its name."""
    name = f"{uuid.uuid4()}-n-" if IS_SOUND else "n-"
    while True:
        try:
            return zk.create(f"{LOCK}/{name}", ephemeral=True, sequence=True).rsplit("/", 1)[1]
        except LOST:
            time.sleep(0.01)
        if IS_SOUND:
            for child in zk.retry(zk.get_children, LOCK):
                if child.startswith(name):
                    return child


def sequence(name):
    return name[-10:]


def acquire(zk):
    """Acquires the lock. Returns the name of its znode."""
    me = join(zk)
    while True:
        children = sorted(zk.retry(zk.get_children, LOCK), key=sequence)
        if me not in children:
            # The session has expired.
            me = join(zk)
            continue
        if children[0] == me:
            return me
        before = children[children.index(me) - 1]
        changed = threading.Event()
        try:
            zk.retry(zk.get, f"{LOCK}/{before}", watch=lambda _: changed.set())
        except NoNodeError:
            continue
        if not changed.wait(PATIENCE):
            fail(f"{me} waits for {before}, and nobody holds the lock")


zk = connect()
create(zk, LOCK)
delete(zk, f"{LOCK}/{acquire(zk)}")
close(zk)

"""kazoo's Queue and LockingQueue."""

import sys

from client import LOST, connect, create, fail
from common import run
from kazoo.exceptions import NoNodeError

ENTRIES = "/queue/entries"


def queue():
    """`get` removes an entry and returns it. An entry that no call returned, though no call failed, is lost."""
    zk = connect()
    queue = zk.Queue("/queue")
    for value in (b"a", b"b", b"c"):
        zk.retry(queue.put, value)
    taken, failed = [], False
    while True:
        try:
            value = queue.get()
        except LOST:
            failed = True
            continue
        if value is None:
            break
        taken.append(value)
    # An entry may be there twice: `put` says nothing about a lost reply.
    if not failed and set(taken) != {b"a", b"b", b"c"}:
        fail(f"put a, b and c, and got {taken}")


def fill(zk):
    """Puts two entries, as `put` does, but never twice."""
    for path in ("/queue", "/queue/taken", ENTRIES):
        create(zk, path)
    for number, value in enumerate((b"a", b"b")):
        create(zk, f"{ENTRIES}/entry-100-{number:010}", value)


def get():
    """The only consumer repeats `get` until it is answered: it gets an entry that nobody has taken."""
    zk = connect()
    fill(zk)
    if zk.retry(zk.LockingQueue("/queue").get, 1.5) is None:
        fail(f"get returns nothing, with {zk.retry(zk.get_children, ENTRIES)} in the queue")


def consume():
    """The only consumer repeats what was lost, and makes a new queue if its lock is gone. What `consume` says is so."""
    zk = connect()
    fill(zk)
    queue = zk.LockingQueue("/queue")
    while entries := zk.retry(zk.get_children, ENTRIES):
        try:
            value = queue.get(1.5)
            if value is None:
                fail(f"get returns nothing, with {entries} in the queue")
            if not queue.consume():
                queue = zk.LockingQueue("/queue")
                continue
        except LOST:
            continue
        except NoNodeError:  # see holds_lock
            queue = zk.LockingQueue("/queue")
            continue
        left = [zk.retry(zk.get, f"{ENTRIES}/{entry}")[0] for entry in zk.retry(zk.get_children, ENTRIES)]
        if value in left:
            fail(f"consume returns True, and {value} is in the queue")


def holds_lock():
    """`holds_lock` returns True or False, whatever has become of the lock."""
    zk = connect()
    fill(zk)
    queue = zk.LockingQueue("/queue")
    while True:
        try:
            queue.get(1.5)
            break
        except LOST:
            queue = zk.LockingQueue("/queue")
    try:
        zk.retry(queue.holds_lock)
    except NoNodeError:
        fail("holds_lock raises NoNodeError")


run({scenario.__name__: scenario for scenario in (queue, get, consume, holds_lock)}, sys.argv[1])

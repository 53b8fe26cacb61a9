"""tooz with its driver for ZooKeeper."""

import os
import sys
import time

from client import LOST, PATIENCE, fail
from common import run
from tooz import ToozError, coordination

GROUP = b"group"


def connect(name):
    """Starts a coordinator, as the docs do it, whose client waits little before it connects again."""
    retry = {"max_tries": -1, "delay": 0.01, "max_delay": 0.05}
    coordinator = coordination.get_coordinator(
        f"zookeeper://{os.environ['MINIKEEPER_CONNECT']}",
        name,
        timeout="5",
        connection_retry=dict(retry),
        command_retry=dict(retry),
    )
    while True:
        try:
            coordinator.start()
            return coordinator
        except ToozError:
            coordinator = connect_again(coordinator)


def connect_again(coordinator):
    coordinator._coord.stop()  # `stop` wants a coordinator that has started
    return coordination.get_coordinator(
        f"zookeeper://{os.environ['MINIKEEPER_CONNECT']}", coordinator._member_id, timeout="5"
    )


def tried(call, *expected):
    """Repeats a call that says that it has failed. What it says of its own first try is expected."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return call()
        except expected:
            return None
        except (ToozError, *LOST):  # kazoo's errors: see errors
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def join(coordinator):
    tried(lambda: coordinator.create_group(GROUP).get(), coordination.GroupAlreadyExist)
    tried(lambda: coordinator.join_group(GROUP).get(), coordination.MemberAlreadyExist)


def until(condition, what, *coordinators):
    """As an application does: heartbeats and watchers run again and again."""
    deadline = time.monotonic() + PATIENCE
    while not tried(condition):
        if time.monotonic() > deadline:
            fail(what)
        for coordinator in coordinators:
            tried(coordinator.heartbeat)
            tried(coordinator.run_watchers)
        time.sleep(0.01)


def members():
    """A member that sends heartbeats "is still an active member of a group"."""
    one, other = connect(b"one"), connect(b"other")
    join(one)
    join(other)
    tried(one.heartbeat)
    tried(other.heartbeat)
    until(lambda: other.get_members(GROUP).get() == {b"one", b"other"}, "both have joined, and are not the members", one, other)
    tried(lambda: one.leave_group(GROUP).get(), coordination.MemberNotJoined)
    until(lambda: other.get_members(GROUP).get() == {b"other"}, "one has left, and the other is not the only member", other)


def watchers():
    """Each join and leave that a group has seen is an event, once."""
    one, other = connect(b"one"), connect(b"other")
    tried(lambda: one.create_group(GROUP).get(), coordination.GroupAlreadyExist)
    seen = []
    tried(lambda: one.watch_join_group(GROUP, lambda event: seen.append(f"{event.member_id} joined")))
    tried(lambda: one.watch_leave_group(GROUP, lambda event: seen.append(f"{event.member_id} left")))
    tried(lambda: other.join_group(GROUP).get(), coordination.MemberAlreadyExist)
    until(lambda: len(seen) >= 1, "the other has joined, and there is no event", one)
    tried(lambda: other.leave_group(GROUP).get(), coordination.MemberNotJoined)
    until(lambda: len(seen) >= 2, "the other has left, and there is no event", one)
    if seen != ["b'other' joined", "b'other' left"]:
        fail(f"the events are {seen}")


def leader():
    """A group with a candidate that runs its watchers has a leader."""
    one = connect(b"one")
    join(one)
    elected = []
    one.watch_elected_as_leader(GROUP, elected.append)
    until(lambda: elected, "the only candidate is not elected", one)
    until(lambda: one.get_leader(GROUP).get() == b"one", "the only candidate was elected, and there is no leader", one)
    tried(lambda: one.stand_down_group_leader(GROUP))


def lock():
    """A lock that is released can be acquired by another."""
    one, other = connect(b"one"), connect(b"other")
    held, wanted = one.get_lock(b"lock"), other.get_lock(b"lock")
    if not held.acquire():
        fail("nobody holds the lock, and acquire returns False")
    tried(lambda: wanted.acquire(blocking=False))
    if wanted.acquired:
        wanted.release()
    held.release()
    if not tried(lambda: wanted.acquire(timeout=1.5)):
        fail("the lock was released, and the other does not acquire it")


def errors():
    """What fails raises a ToozError."""
    one = connect(b"one")
    lock = one.get_lock(b"lock")
    try:
        join(one)
        one.watch_elected_as_leader(GROUP, lambda _: None)
        one.run_watchers()
        one.get_leader(GROUP).get()
        if lock.acquire():
            lock.is_still_owner()
            lock.release()
    except LOST as error:
        fail(f"raises {error!r}")
    except ToozError:
        pass


def leader_is_no_member():
    """The members of a group are those who have joined it."""
    one = connect(b"one")
    join(one)
    one.watch_elected_as_leader(GROUP, lambda _: None)
    tried(one.run_watchers)
    members = tried(lambda: one.get_members(GROUP).get())
    if members - {b"one"}:
        fail(f"one has joined, and the members are {members}")


def timeout():
    """`acquire` with a timeout returns False if another holds the lock."""
    one, other = connect(b"one"), connect(b"other")
    held, wanted = one.get_lock(b"lock"), other.get_lock(b"lock")
    held.acquire()
    if wanted.acquire(timeout=0.1):
        fail("two hold the lock")


run({scenario.__name__: scenario for scenario in (members, watchers, leader, lock, errors, leader_is_no_member, timeout)}, sys.argv[1])

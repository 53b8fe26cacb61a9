"""kazoo's SetPartitioner: "each set item will be given to a single member"."""

import sys
import threading
import time

from client import connect, fail
from common import run

ITEMS = ("a", "b", "c", "d")


class Member(threading.Thread):
    """A member that does what the docs' example does, and makes a new partitioner when it has failed, as they say."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.name, self.zk, self.owned = name, connect(), ()
        self.start()

    def partitioner(self):
        def partitioner():
            return self.zk.SetPartitioner(
                "/set", ITEMS, identifier=self.name, time_boundary=0.1, max_reaction_time=0.2
            )

        return self.zk.retry(partitioner)

    def run(self):
        partitioner = self.partitioner()
        while True:
            # What is owned is given up before it is released, and taken after it is acquired.
            self.owned = tuple(partitioner) if partitioner.acquired else ()
            if partitioner.failed:
                partitioner = self.partitioner()
            elif partitioner.release:
                partitioner.release_set()
            elif partitioner.allocating:
                partitioner.wait_for_acquire(0.1)
            time.sleep(0.01)


def partition():
    """Two members come to own the whole set between them."""
    members = [Member("one"), Member("other")]
    deadline = time.monotonic() + 10
    stable_since = None
    while time.monotonic() < deadline:
        owned = [member.owned for member in members]
        if all(owned) and sorted(owned[0] + owned[1]) == list(ITEMS):
            stable_since = stable_since or time.monotonic()
            if time.monotonic() > stable_since + 0.5:
                return
        else:
            stable_since = None
        time.sleep(0.01)
    zk = members[0].zk
    party = zk.retry(zk.get_children, "/set/party")
    locks = {item: len(zk.retry(zk.get_children, f"/set/locks/{item}")) for item in zk.retry(zk.get_children, "/set/locks")}
    fail(f"after 10 s the members own {owned}; the party is {party}, the contenders are {locks}")


run({"partition": partition}, sys.argv[1])

"""kazoo's Election and Semaphore."""

import sys
import threading

from client import fail, until
from common import Background, connect_with_loss, fixed_uuids, has_lost, run


class Term:
    """Counts who leads, or holds, at a time."""

    def __init__(self, losses, most=1):
        self.losses, self.most, self.now, self.total, self.lock = losses, most, 0, 0, threading.Lock()

    def __enter__(self):
        with self.lock:
            self.now, self.total = self.now + 1, self.total + 1
            if self.now > self.most and not has_lost(self.losses):
                fail(f"{self.now} at a time, and no session was lost")

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1


def election():
    """Each contender leads once, one at a time, and nothing is left of them."""
    fixed_uuids()
    losses = []
    one, other = connect_with_loss(losses), connect_with_loss(losses)
    term, leads, done = Term(losses), threading.Event(), threading.Event()

    def lead(first):
        with term:
            if first:
                leads.set()
                done.wait(1)

    first = Background(one.Election("/election", "one").run, lead, True)
    leads.wait(1.5)
    second = Background(other.Election("/election", "other").run, lead, False)
    until(lambda: len(one.retry(one.get_children, "/election")) == 2 or losses, "the second contender is not there")
    done.set()
    first.result("the first contender does not end")
    second.result("the second contender does not lead, though nobody leads")
    if term.total != 2:
        fail(f"two contenders, {term.total} terms")
    until(lambda: not one.retry(one.get_children, "/election"), "all contenders are done, and one is there")


def semaphore():
    """With one lease, two clients hold it one after the other."""
    fixed_uuids()
    losses = []
    one, other = connect_with_loss(losses), connect_with_loss(losses)
    term, holds, done = Term(losses), threading.Event(), threading.Event()

    def hold(zk, first):
        semaphore = zk.Semaphore("/semaphore", max_leases=1)
        with semaphore:
            with term:
                if first:
                    holds.set()
                    done.wait(1)

    first = Background(hold, one, True)
    holds.wait(1.5)
    second = Background(hold, other, False)
    until(lambda: one.retry(one.exists, "/semaphore-__lock__") or losses, "the second contender is not there")
    done.set()
    first.result("the first contender does not end")
    second.result("the second contender does not get the lease, though nobody has it")
    until(lambda: not one.retry(one.get_children, "/semaphore"), "all are done, and a lease is there")
    until(lambda: not one.retry(one.get_children, "/semaphore-__lock__"), "all are done, and a contender is there")


run({scenario.__name__: scenario for scenario in (election, semaphore)}, sys.argv[1])

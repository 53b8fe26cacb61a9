"""kazoo's Barrier and DoubleBarrier."""

import os
import sys

from client import LOST, connect, fail
from common import Background, called, connect_with_loss, fixed_uuids, has_lost, run


def barrier():
    """`wait` returns True when the barrier is removed, or raises ConnectionLoss."""
    remover, waiter = connect(), connect()
    barrier = remover.Barrier("/barrier")
    barrier.create()
    watched = called(waiter, "exists")
    waiting = Background(waiter.Barrier("/barrier").wait)
    while not watched.wait(0.01) and waiting.is_alive():
        pass
    barrier.remove()
    try:
        if not waiting.result("wait neither returns nor raises, and the barrier is gone"):
            fail("wait without a timeout returns False")
    except LOST:
        pass


def double_barrier():
    """`enter` returns when both have entered, and `leave` when both have left. A lost session is another matter, the docs say."""
    fixed_uuids()
    losses = []
    clients = [connect_with_loss(losses) for _ in range(2)]
    barriers = [zk.DoubleBarrier("/barrier", 2) for zk in clients]
    watched = called(clients[0], "get_children")

    def expect(what):
        if not has_lost(losses):
            fail(what)
        os._exit(0)

    def both(name, patience=1.5):
        calls = [Background(getattr(barriers[0], name))]
        # The second one comes when the first one waits.
        while name == "enter" and not watched.wait(0.01) and calls[0].is_alive():
            pass
        if name == "enter" and not calls[0].is_alive() and not calls[0].error:
            expect("enter returns, and the other has not entered")
        calls.append(Background(getattr(barriers[1], name)))
        for number, call in enumerate(calls):
            call.join(patience)
            if call.is_alive():
                expect(f"{name} of {'AB'[number]} does not return, though both {name}")
            if call.error and not has_lost(losses):
                raise call.error

    both("enter")
    if not all(barrier.participating for barrier in barriers):
        expect("enter returns, and the client has not entered")
    both("leave")
    left = clients[0].retry(clients[0].get_children, "/barrier")
    if left:
        expect(f"both have left, and there is {left}")


def leave():
    """`leave` blocks until all have left: the second client of two does not leave."""
    fixed_uuids()
    losses = []
    clients = [connect_with_loss(losses) for _ in range(2)]
    barriers = [zk.DoubleBarrier("/barrier", 2) for zk in clients]
    entering = [Background(barrier.enter) for barrier in barriers]
    for call in entering:
        call.join(1.5)
    if not all(barrier.participating for barrier in barriers):
        os._exit(0)  # see double_barrier
    leaving = Background(barriers[1].leave)
    leaving.join(0.5)
    if not leaving.is_alive() and not has_lost(losses):
        fail("leave returns, and the other client is in the barrier")


run({scenario.__name__: scenario for scenario in (barrier, double_barrier, leave)}, sys.argv[1])

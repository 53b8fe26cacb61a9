"""kazoo's Party and ShallowParty."""

import os
import sys

from client import fail
from common import connect_with_loss, has_lost, run


def check(kind):
    """Who has joined is a member, until it leaves or its session is lost."""
    losses = []
    one, other = connect_with_loss(losses), connect_with_loss(losses)
    parties = [getattr(zk, kind)("/party", name) for zk, name in ((one, "one"), (other, "other"))]

    def expect(*names):
        members = sorted(one.retry(lambda: list(parties[0])))
        if members != list(names):
            if has_lost(losses):
                os._exit(0)  # a member whose session is lost is none: it has to join again
            fail(f"expected the members {names}, and they are {members}")

    for party in parties:
        party.join()
    expect("one", "other")
    parties[1].leave()
    expect("one")
    parties[0].leave()
    expect()


run({"party": lambda: check("Party"), "shallow_party": lambda: check("ShallowParty")}, sys.argv[1])

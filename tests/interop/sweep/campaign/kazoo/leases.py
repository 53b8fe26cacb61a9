"""kazoo's NonBlockingLease: "only one client at a time owns the lease"; a client renews it "without losing it"."""

import datetime
import sys

from client import LOST, connect, fail
from common import run

HOUR = datetime.timedelta(hours=1)


def lease():
    """A client that obtains the lease for an hour and renews it meanwhile has it for an hour at least."""
    one, other = connect(), connect()

    def obtain(zk, name):
        return zk.NonBlockingLease("/lease", HOUR, identifier=name)

    if not one.retry(obtain, one, "one"):
        fail("nobody has the lease, and the first client does not obtain it")
    try:
        obtain(one, "one")
    except LOST:
        pass  # it has the lease of before: the next renewal is due long before that ends
    if other.retry(obtain, other, "other"):
        fail("both clients have obtained the lease for the next hour")


run({"lease": lease}, sys.argv[1])

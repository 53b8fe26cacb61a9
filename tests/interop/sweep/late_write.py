"""A leader that asks whether it leads and then writes, without a fencing token.

Its session can expire in between. The next leader writes, and then the former one, whose client repeats the request with a new
session. The sound version writes in a transaction that checks the znode of its candidate.
"""

import time

from client import IS_SOUND, LOST, close, connect, create, fail
from election import ELECTION, Candidate

STATE = "/state"


class Writer(Candidate):
    """A candidate that writes its epoch into the state when it leads."""

    def write(self):
        data = str(self.epoch()).encode()
        if not IS_SOUND:
            self.zk.retry(self.zk.set, STATE, data)
            return
        while True:
            transaction = self.zk.transaction()
            transaction.check(self.path, 0)
            transaction.set_data(STATE, data)
            try:
                # A failed check is a result, and means that another leads.
                return transaction.commit()
            except LOST:
                time.sleep(0.01)


def check():
    """The state was written by the last leader that has written."""
    global highest
    epoch = int(first.zk.retry(first.zk.get, STATE)[0] or -1)
    if epoch < highest:
        fail(f"the leader of epoch {epoch} has written after that of epoch {highest}")
    highest = epoch


highest = -1
clients = connect(), connect()
create(clients[0], ELECTION)
create(clients[0], STATE)
first, second = map(Writer, clients)
if first.is_first():
    # What the other does while the first works.
    if second.is_first():
        second.write()
        check()
    first.write()
    check()
first.resign()
if second.is_first():
    second.write()
    check()
close(*clients)

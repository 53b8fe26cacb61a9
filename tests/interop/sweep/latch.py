"""A leader latch that ignores the state of its connection.

A leader whose session has expired goes on leading, beside the next one. The sound version does not lead while it is
disconnected, and asks again whether it leads once it is connected.
"""

from kazoo.protocol.states import KazooState

from client import IS_SOUND, close, connect, create, until
from election import ELECTION, Candidate


class Latch(Candidate):
    """A candidate that says whether it leads without asking the server."""

    leads = False

    def __init__(self, zk):
        if IS_SOUND:
            zk.add_listener(self.changed)
        super().__init__(zk)
        self.update()

    def changed(self, state):
        if state != KazooState.CONNECTED:
            self.leads = False

    def update(self):
        """Asks the server, unless this is the leader as far as it knows."""
        if not self.leads:
            self.leads = self.is_first()

    def resign(self):
        self.leads = False
        super().resign()


def check():
    """Two may lead for as long as it takes the first to see that its session has expired."""
    until(lambda: not (first.leads and second.leads), "two clients lead")


clients = connect(), connect()
create(clients[0], ELECTION)
create(clients[0], "/work")
first, second = map(Latch, clients)
first.zk.retry(first.zk.get, "/work")
second.update()
check()
first.update()
check()
first.resign()
second.update()
check()
close(*clients)

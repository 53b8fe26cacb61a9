"""A leader that writes to a database right after the server has said that it leads.

If its process stands still before it has read that reply, its session expires, and the next leader has written when it goes
on. The database of the sound version refuses a write with an epoch below the last one (a fencing token).
"""

import threading
import time
import uuid

from kazoo.exceptions import NoNodeError

from common import IS_SOUND, LOST, PATIENCE_S, close, connect, create, fail

ELECTION = "/election"
JOB = "/job"


class Database:
    """Stands for a database outside of ZooKeeper."""

    epoch = -1

    def write(self, epoch):
        """Returns whether it accepts the write."""
        with mutex:
            if epoch < self.epoch:
                if IS_SOUND:
                    return False
                fail(f"the leader of epoch {epoch} writes after that of epoch {self.epoch}")
            self.epoch = epoch
            return True


def set_up(zk):
    create(zk, ELECTION)
    create(zk, JOB)


def lead(zk, joined=None, waits=lambda: None):
    """Waits until this client leads, writes once and ends its session. Calls `joined` and `waits` when it has come so far."""
    me = f"{uuid.uuid4()}-"
    while True:
        changed = threading.Event()
        try:
            zk.get(JOB)
            names = sorted(zk.get_children(ELECTION), key=lambda name: name[-10:])
            places = [place for place, name in enumerate(names) if name.startswith(me)]
            if not places:
                # Not joined yet, or the session has expired.
                zk.create(f"{ELECTION}/{me}", ephemeral=True, sequence=True)
            elif joined:
                joined()
                joined = None
            elif places[0] > 0:
                zk.get(f"{ELECTION}/{names[places[0] - 1]}", watch=lambda _: changed.set())
                waits()
                if not changed.wait(PATIENCE_S):
                    fail("no client leads")
            elif database.write(int(names[0][-10:])):
                return close(zk)
        except NoNodeError:
            set_up(zk)
        except LOST:
            time.sleep(0.01)


def meet():
    """Starts the second candidate when the first has joined, and returns when the second waits."""
    second.start()
    second_waits.wait(1.5)


mutex = threading.Lock()
database = Database()
clients = connect(), connect()
set_up(clients[0])
second_waits = threading.Event()
second = threading.Thread(target=lead, args=(clients[1], None, second_waits.set))
lead(clients[0], meet)
second.join()

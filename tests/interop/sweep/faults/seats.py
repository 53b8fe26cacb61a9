"""Workers that share a licence for one seat: each counts the workers in the pool, and joins if there is room.

Between the count and the join another worker can join. The sound version joins in a transaction that also sets the data of
the pool with the version that the count has shown, so that it fails if another has joined.
"""

import threading
import uuid

from kazoo.exceptions import BadVersionError, ConnectionLoss, NodeExistsError, NoNodeError

from common import IS_SOUND, LOST, back_off, close, connect, create, fail

POOL = "/pool"
SEATS = 1


def join(zk, back_off_s, counted=lambda: None):
    """Joins the pool if there is room. Starts with the count again if an answer is lost."""
    name = str(uuid.uuid4())
    while True:
        try:
            members, stat = zk.get_children(POOL, include_data=True)
            counted()
            if name in members or len(members) >= SEATS:
                return
            if not zk.connected:
                # The count may be old when the client is connected again.
                raise ConnectionLoss
            if IS_SOUND:
                transaction = zk.transaction()
                transaction.set_data(POOL, b"", version=stat.version)
                transaction.create(f"{POOL}/{name}", ephemeral=True)
                for result in transaction.commit():
                    if isinstance(result, (BadVersionError, NodeExistsError, NoNodeError)):
                        raise result
            else:
                zk.create(f"{POOL}/{name}", ephemeral=True)
        except (BadVersionError, NodeExistsError):
            pass
        except NoNodeError:
            create(zk, POOL)
        except LOST:
            back_off(zk, back_off_s)


def run_second():
    """The second worker, which starts while the first joins."""
    zk = connect()
    join(zk, 0.1)
    clients.append(zk)


clients = [connect()]
create(clients[0], POOL)
second = threading.Thread(target=run_second)
# Longer than the second takes, so that they do not begin again together.
join(clients[0], 0.3, lambda: second.ident or second.start())
second.join()
members = clients[0].retry(clients[0].get_children, POOL)
if len(members) > SEATS:
    fail(f"{len(members)} workers have {SEATS} seat")
close(*clients)

"""A thread that sends measurements to ZooKeeper, while the program waits until all are there.

kazoo's client closes itself when its `connection_retry` is used up, after half a second here. Then the thread dies of the next
request, and the program would wait without end. The client of the sound version connects for as long as the program runs; the
program stops waiting after six seconds, and says what it has kept.
"""

import threading
import time

from kazoo.exceptions import ConnectionClosedError, NodeExistsError, NoNodeError
from kazoo.retry import KazooRetry

from common import IS_SOUND, LOST, close, connect, create, end, fail

FOLDER = "/measurements"
NAMES = {"17.4", "18.1", "18.3"}
GIVE_UP_S = 6


def send():
    """Sends what is missing, until nothing is."""
    global unsent
    zk = connect(None if IS_SOUND else KazooRetry(max_tries=5, delay=0.05, backoff=1.5))
    while True:
        try:
            unsent = NAMES - set(zk.get_children(FOLDER))
            for name in sorted(unsent):
                zk.create(f"{FOLDER}/{name}")
            if not unsent:
                break
        except ConnectionClosedError:
            raise
        except NodeExistsError:
            pass
        except NoNodeError:
            create(zk, FOLDER)
        except LOST:
            time.sleep(0.01)
    done.set()
    close(zk)


unsent = NAMES
done = threading.Event()
sender = threading.Thread(target=send)
sender.start()
deadline = time.monotonic() + GIVE_UP_S
while not done.wait(0.01):
    if not sender.is_alive() and not done.is_set():
        fail(f"the sender has died, and {len(unsent)} measurements are not sent")
    if time.monotonic() > deadline:
        end(f"ZooKeeper does not answer: {len(unsent)} measurements stay here until the next start", 0)
sender.join(1.5)
end("all measurements are sent", 0)

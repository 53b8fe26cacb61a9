"""kazoo's lock, whose issue 732 is open in 2.11.0: an attempt that does not get the lock leaves its znode behind.

`acquire(blocking=False)` returns False, and swallows the error if its znode could not be deleted. The sound version deletes
until it has an answer, as proposed in kazoo's pull request 760.
"""

from kazoo.exceptions import NoNodeError
from kazoo.recipe.lock import Lock

from client import IS_SOUND, close, connect, create, delete, until

LOCK = "/lock"


class SoundLock(Lock):
    """A lock whose attempts leave nothing behind."""

    def _best_effort_cleanup(self):
        self.client.retry(self._clean_up)

    def _clean_up(self):
        node = self._find_node()
        if node:
            try:
                self._delete_node(node)
            except NoNodeError:
                pass


def main(attempt):
    """Attempts to acquire a lock that another client holds, and looks whether anything is left when both are done."""
    holder, other = connect(), connect()
    create(holder, LOCK)
    held = f"{LOCK}/holder__lock__0000000000"
    create(holder, held, ephemeral=True)
    lock = (SoundLock if IS_SOUND else Lock)(other, LOCK)
    # It gets the lock if the holder's session has expired.
    if attempt(lock):
        lock.release()
    delete(holder, held)
    until(lambda: not other.retry(other.get_children, LOCK), "nobody wants the lock, and it has a contender")
    close(holder, other)


if __name__ == "__main__":
    main(lambda lock: lock.acquire(blocking=False))

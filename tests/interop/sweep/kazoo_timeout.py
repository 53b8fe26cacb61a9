"""kazoo's lock with a time limit, which its pull request 760 repairs together with issue 732.

`acquire(timeout=...)` raises LockTimeout, and swallows the error if its znode could not be deleted.
"""

from kazoo.exceptions import LockTimeout

from kazoo_lock import main


def attempt(lock):
    try:
        return lock.acquire(timeout=0.1)
    except LockTimeout:
        return False


main(attempt)

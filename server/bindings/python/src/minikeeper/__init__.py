"""An in-memory ZooKeeper for tests that control time, sessions, faults and state.

`Server` starts one; the fixture `minikeeper` of the pytest plugin provides one to a test. Use any ZooKeeper client.
"""

from ._errors import MinikeeperError, WaitTimedOut
from ._faults import Fault
from ._kazoo import settle
from ._sessions import LastOperation, Session, Watch
from ._verbs import Now, Seeded, Story, Znode
from .server import Server
from .universe import Universe

__all__ = [
    "Fault",
    "LastOperation",
    "MinikeeperError",
    "Now",
    "Seeded",
    "Server",
    "Session",
    "Story",
    "Universe",
    "WaitTimedOut",
    "Watch",
    "Znode",
    "settle",
]

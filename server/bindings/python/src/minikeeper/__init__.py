"""An in-memory ZooKeeper for tests that control time, sessions, faults and state.

`Server` starts one; the fixture `minikeeper` of the pytest plugin provides one to a test. Use any ZooKeeper client.
"""

from . import _control, _faults, _kazoo, _program, _sessions, _values, _verbs, server, universe
from ._errors import MinikeeperError, NotVerified, WaitTimedOut
from ._faults import Fault, Hit
from ._kazoo import settle
from ._rules import Rule, allow, leave_out
from ._sessions import Client, SessionLike
from ._verbs import (
    Advice,
    ChangesSince,
    FindZnodes,
    Journal,
    LastOperation,
    ListChildren,
    Locks,
    Now,
    ResourceVerdict,
    Seeded,
    Session,
    Stat,
    Story,
    SweepFaults,
    SweepNext,
    TreeListing,
    Watch,
    Znode,
)
from .server import Server
from .universe import ResourceEntry, Universe

__all__ = [
    "Advice",
    "ChangesSince",
    "Client",
    "Fault",
    "FindZnodes",
    "Hit",
    "Journal",
    "LastOperation",
    "ListChildren",
    "Locks",
    "MinikeeperError",
    "NotVerified",
    "Now",
    "ResourceEntry",
    "ResourceVerdict",
    "Rule",
    "Seeded",
    "Server",
    "Session",
    "SessionLike",
    "Stat",
    "Story",
    "SweepFaults",
    "SweepNext",
    "TreeListing",
    "Universe",
    "WaitTimedOut",
    "Watch",
    "Znode",
    "allow",
    "leave_out",
    "settle",
]

# pytest leaves frames of these modules out of a traceback, which then ends in the line of the test. `--full-trace` shows
# them.
for _module in (_control, _faults, _kazoo, _program, _sessions, _values, _verbs, server, universe):
    vars(_module)["__tracebackhide__"] = True

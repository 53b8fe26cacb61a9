"""The verbs of the control API.

Generated from the table of verbs, server/src/control/verbs. To generate it again:
UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Union

from ._control import Control
from ._faults import Fault, fault_id
from ._sessions import Session, SessionLike, session_of, who
from ._values import data_of, given, tree_or_yaml

if TYPE_CHECKING:
    from .universe import Universe


@dataclass(frozen=True)
class Now:
    """The result of `now`."""

    elapsed_ms: int
    """Time since the start; it decides when sessions expire."""
    wall_ms: int
    """The time of day that stats show."""
    is_frozen: bool
    """Whether the clock is frozen."""


@dataclass(frozen=True)
class Znode:
    """The result of `get`.

    Fails (404) if there is no such znode.
    """

    data: Optional[bytes]
    """Its data, None if it has none."""
    stat: Mapping[str, Any]
    """Its metadata."""


@dataclass(frozen=True)
class Seeded:
    """The result of `seed`.

    Missing parents are created. A znode of the tree is its data, or an object with the fields `data`, `acl`,
    `container` and `ttl_ms`.
    """

    created: int
    """How many znodes were created."""
    changed: int
    """How many znodes got different data or a different ACL."""


class Verbs:
    """Every verb of a universe. Each raises MinikeeperError if the server refuses it."""

    _control: Control

    def _universe(self, name: str, connect_string: str) -> Universe:
        """The universe that a verb has created."""
        raise NotImplementedError

    def now(self) -> Now:
        """Read the server's clock: since the start, wall clock, and whether it is frozen."""
        answer = self._control.read("now")
        return Now(elapsed_ms=answer["elapsed_ms"], wall_ms=answer["wall_ms"], is_frozen=answer["is_frozen"])

    def advance(self, *, by_ms: int, strict: bool = False) -> None:
        """Advance the clock; returns when everything due has happened. Connected sessions live on.

        The clock moves from deadline to deadline. A connected session lives on however far the clock moves,
        because its client would have sent pings meanwhile. A session expires if it has no connection, is silenced,
        or a fault drops its pings.

        - `by_ms`: How far to advance, in milliseconds
        - `strict`: Whether connected sessions expire too, as if no client had sent anything meanwhile
        """
        self._control.do("advance", {"by_ms": by_ms, **given(strict=strict)})

    def freeze(self) -> None:
        """Freeze the clock.

        While the clock is frozen nothing expires, even if a client stops at a breakpoint.
        """
        self._control.do("freeze")

    def unfreeze(self) -> None:
        """Unfreeze the clock."""
        self._control.do("unfreeze")

    def auto_advance(self, *, idle_ms: Optional[int]) -> None:
        """Advance a frozen clock to the next deadline whenever all clients are idle.

        Connected sessions live on, as with `advance`. Off by default.

        - `idle_ms`: How long all clients must have been idle, in real time, in milliseconds; None disables it
        """
        self._control.do("auto_advance", {"idle_ms": idle_ms})

    def sessions(self) -> List[Session]:
        """List every session, connected or not.

        The first request with a path binds a session to a universe. Until then the session is unbound: every
        universe of the server finds it by its id, or by its address with the port. The server's own universe lists
        it, and so does a created universe if it is the only one.
        """
        return [session_of(one) for one in self._control.read("sessions")["sessions"]]

    def expire(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
    ) -> int:
        """Expire sessions; returns when their watchers have been notified.

        Returns how many sessions matched. Their ephemerals are deleted and the events are in the sockets of the
        watchers. No matching session is an error (404) unless `allow_none` is set.

        - `session`: A session's id, a `Session`, or a kazoo client. Give exactly one of these four arguments
        - `address`: The address of clients: "127.0.0.1:4711" or "127.0.0.1"
        - `identity`: An identity of clients: "digest:alice"
        - `owner`: The path of an ephemeral; selects its owner
        - `allow_none`: Whether to succeed even if no session matches
        """
        return self._control.do(
            "expire",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"]

    def disconnect(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
    ) -> int:
        """Close the connections of sessions; the sessions live on.

        Returns how many sessions were connected. No matching session is an error (404) unless `allow_none` is set.

        - `session`: A session's id, a `Session`, or a kazoo client. Give exactly one of these four arguments
        - `address`: The address of clients: "127.0.0.1:4711" or "127.0.0.1"
        - `identity`: An identity of clients: "digest:alice"
        - `owner`: The path of an ephemeral; selects its owner
        - `allow_none`: Whether to succeed even if no session matches
        """
        return self._control.do(
            "disconnect",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"]

    def silence(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
    ) -> int:
        """Ignore everything that sessions send, pings too, as in a long pause of their clients.

        Returns how many sessions matched. A silenced session expires unless `unsilence` comes first. No matching
        session is an error (404) unless `allow_none` is set.

        - `session`: A session's id, a `Session`, or a kazoo client. Give exactly one of these four arguments
        - `address`: The address of clients: "127.0.0.1:4711" or "127.0.0.1"
        - `identity`: An identity of clients: "digest:alice"
        - `owner`: The path of an ephemeral; selects its owner
        - `allow_none`: Whether to succeed even if no session matches
        """
        return self._control.do(
            "silence",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"]

    def unsilence(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
    ) -> int:
        """Serve silenced sessions again.

        Returns how many sessions matched. No matching session is an error (404) unless `allow_none` is set.

        - `session`: A session's id, a `Session`, or a kazoo client. Give exactly one of these four arguments
        - `address`: The address of clients: "127.0.0.1:4711" or "127.0.0.1"
        - `identity`: An identity of clients: "digest:alice"
        - `owner`: The path of an ephemeral; selects its owner
        - `allow_none`: Whether to succeed even if no session matches
        """
        return self._control.do(
            "unsilence",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"]

    def disconnect_all(self) -> None:
        """Close every client's connection; the sessions live on."""
        self._control.do("disconnect_all")

    def inject(
        self,
        *,
        action: Literal["refuse", "delay", "drop-request", "lose-reply", "never-answer", "error", "cut", "cut-reply", "hold-events"],
        op: Optional[str] = None,
        path: Optional[str] = None,
        session: Optional[str] = None,
        address: Optional[str] = None,
        skip: Optional[int] = None,
        count: Optional[int] = None,
        probability: Optional[float] = None,
        seed: Optional[int] = None,
        delay_ms: Optional[int] = None,
        error: Optional[str] = None,
        optional: bool = False,
    ) -> Fault:
        """Inject a fault, until `remove_fault` or `reset_faults`.

        - `action`: What the fault does to a matching operation
        - `op`: Operations that the fault applies to, separated by commas: create, connect, ping
        - `path`: Paths that the fault applies to: * matches within a name, ** across names
        - `session`: The session that the fault applies to
        - `address`: The client address that the fault applies to
        - `skip`: How many matching operations to skip first
        - `count`: How many times the fault acts; without a limit if absent
        - `probability`: The probability that the fault acts on a match, from 0 to 1
        - `seed`: The seed of the random numbers for probability
        - `delay_ms`: The delay, for the action delay, in milliseconds
        - `error`: The error, for the action error: NODEEXISTS
        - `optional`: Whether removing the fault succeeds even if it never acted
        """
        return Fault(self, self._control.do(
            "inject",
            {
                "action": action,
                **given(
                    op=op,
                    path=path,
                    session=session,
                    address=address,
                    skip=skip,
                    count=count,
                    probability=probability,
                    seed=seed,
                    delay_ms=delay_ms,
                    error=error,
                    optional=optional,
                ),
            },
        )["fault"])

    def faults(self) -> List[Dict[str, Any]]:
        """List the injected faults and how often each has acted."""
        return self._control.read("faults")["faults"]

    def remove_fault(self, fault: Union[Fault, int]) -> int:
        """Remove a fault and release what it holds back; fails if it never acted, unless it is optional.

        Returns how often it has acted. A fault that never acted has tested nothing: it is removed, and the verb
        fails (409). An unknown fault is an error (404).

        - `fault`: The fault that inject returned
        """
        return self._control.do("remove_fault", {"fault": fault_id(fault)})["hits"]

    def reset_faults(self) -> None:
        """Remove all faults and release what they hold back."""
        self._control.do("reset_faults")

    def until_hit(self, fault: Union[Fault, int], hits: int = 1, *, within_ms: int = 10000) -> int:
        """Wait until a fault has acted N times.

        Returns how often it has acted. Fails (408) if it times out.

        - `fault`: The fault that inject returned
        - `hits`: How many times; by default 1
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        return self._control.do("until_hit", {"fault": fault_id(fault), "hits": hits, "within_ms": within_ms})["hits"]

    def get(self, path: str) -> Znode:
        """Read the data and stat of a znode.

        Fails (404) if there is no such znode.

        - `path`: The znode's path
        """
        answer = self._control.read("get", {"path": path})
        return Znode(data=data_of(answer), stat=answer["stat"])

    def children(self, path: str) -> List[str]:
        """List the names of a znode's children, oldest first.

        Fails (404) if there is no such znode.

        - `path`: The znode's path
        """
        return self._control.read("children", {"path": path})["children"]

    def dump(self) -> str:
        """Print znodes, sessions and watches as text; equal trees give equal text."""
        return self._control.read("dump")["dump"]

    def export_tree(self, *, format: Literal["json", "yaml"] = "json") -> Any:
        """Export the tree in the format of `seed`, without /zookeeper; lists ephemerals separately.

        - `format`: Whether to return the tree as a JSON object or as YAML text; by default json
        """
        return self._control.read("export_tree", {"format": format})["tree"]

    def seed(self, tree: Optional[Mapping[str, Any]] = None, *, yaml: Optional[str] = None) -> Seeded:
        """Create the znodes of a tree that are missing and set those that differ, in one turn.

        Missing parents are created. A znode of the tree is its data, or an object with the fields `data`, `acl`,
        `container` and `ttl_ms`.

        - `tree`: Znodes by path, as `export_tree` returns them; data may be bytes
        - `yaml`: The tree in YAML. Give either `tree` or `yaml`
        """
        answer = self._control.do("seed", {**tree_or_yaml(tree, yaml)})
        return Seeded(created=answer["created"], changed=answer["changed"])

    def snapshot(self) -> int:
        """Take a snapshot of znodes, sessions and watches, for `restore`.

        Returns the number of the snapshot.
        """
        return self._control.do("snapshot")["snapshot"]

    def restore(self, snapshot: int) -> None:
        """Restore a snapshot, which can be restored again.

        - `snapshot`: The number that snapshot returned
        """
        self._control.do("restore", {"snapshot": snapshot})

    def drop_snapshot(self, snapshot: int) -> None:
        """Drop a snapshot and free its memory.

        - `snapshot`: The number that snapshot returned
        """
        self._control.do("drop_snapshot", {"snapshot": snapshot})

    def fork(self, name: str) -> Universe:
        """Create a universe as a copy of this one.

        - `name`: The name of the copy: one part of a path
        """
        return self._universe(name, self._control.do("fork", {"name": name})["connect_string"])

    def until_watched(self, path: str, *, within_ms: int = 10000) -> None:
        """Wait until a client watches a path.

        - `path`: The watched path, whatever the kind of watch
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        self._control.do("until_watched", {"path": path, "within_ms": within_ms})

    def until_exists(self, path: str, *, within_ms: int = 10000) -> None:
        """Wait until a znode exists.

        - `path`: The znode
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        self._control.do("until_exists", {"path": path, "within_ms": within_ms})

    def until_children(self, path: str, count: int, *, within_ms: int = 10000) -> None:
        """Wait until a znode has N children.

        - `path`: The znode
        - `count`: How many
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        self._control.do("until_children", {"path": path, "count": count, "within_ms": within_ms})

    def until_contenders(self, lock: str, count: int, *, within_ms: int = 10000) -> None:
        """Wait until N contenders hold a lock or queue for it.

        - `lock`: The path of the lock
        - `count`: How many
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        self._control.do("until_contenders", {"lock": lock, "count": count, "within_ms": within_ms})

    def until_sessions(self, count: int, *, within_ms: int = 10000) -> None:
        """Wait until there are N sessions, connected or not.

        - `count`: How many
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        self._control.do("until_sessions", {"count": count, "within_ms": within_ms})

    def until_idle(self, *, quiet_ms: int = 50, within_ms: int = 10000) -> None:
        """Wait until no client has sent a request for a while.

        - `quiet_ms`: How long no client may have sent a request, in real time, in milliseconds; by default 50
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        self._control.do("until_idle", {"quiet_ms": quiet_ms, "within_ms": within_ms})

    def import_data(self, dir: Union[str, os.PathLike[str]]) -> None:
        """Replace the state by that of a ZooKeeper data directory.

        Accepts directories of ZooKeeper 3.4 to 3.9 and only reads them.

        - `dir`: A directory on the server's machine
        """
        self._control.do("import_data", {"dir": os.path.abspath(dir)})

    def export_data(self, dir: Union[str, os.PathLike[str]]) -> str:
        """Write a data directory that ZooKeeper can start from.

        ZooKeeper 3.8 and 3.9 start from it. Returns the zxid of the state.

        - `dir`: A directory on the server's machine
        """
        return self._control.do("export_data", {"dir": os.path.abspath(dir)})["zxid"]

    def create_universe(self, name: str) -> Universe:
        """Create a universe with an empty tree behind the same port.

        Applies to the whole server: a created universe refuses it (400).

        - `name`: Its name: one part of a path
        """
        return self._universe(name, self._control.do("create_universe", {"name": name})["connect_string"])

    def universes(self) -> List[str]:
        """List the universes, without the server's own.

        Applies to the whole server: a created universe refuses it (400).
        """
        return self._control.read("universes")["universes"]

    def drop_universe(self, name: str) -> None:
        """Drop a universe: close its connections and delete its state.

        Applies to the whole server: a created universe refuses it (400).

        - `name`: Its name: one part of a path
        """
        self._control.do("drop_universe", {"name": name})

    def restart(self, *, keep: Literal["everything", "data", "nothing"] = "everything") -> None:
        """Restart the server on the same port.

        Applies to the whole server: a created universe refuses it (400).

        - `keep`: What the server keeps: sessions and znodes, only znodes, or nothing; by default everything
        """
        self._control.do("restart", {"keep": keep})

    def go_down(self) -> str:
        """Stop listening and close every connection; returns the address of control meanwhile.

        Connections are refused until `come_up`. Returns HOST:PORT.

        Applies to the whole server: a created universe refuses it (400).
        """
        return self._control.do("go_down")["control"]

    def come_up(self, *, keep: Literal["everything", "data", "nothing"] = "everything") -> None:
        """Listen again on the same port.

        Applies to the whole server: a created universe refuses it (400).

        - `keep`: What the server keeps: sessions and znodes, only znodes, or nothing; by default everything
        """
        self._control.do("come_up", {"keep": keep})

    def save(self) -> None:
        """Save the state to the data directory now.

        Applies to the whole server: a created universe refuses it (400).
        """
        self._control.do("save")

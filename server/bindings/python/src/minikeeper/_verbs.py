"""The verbs of the control API.

Generated from the table of verbs, server/src/control/verbs. To generate it again:
UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union, cast

from ._control import Control
from ._faults import Fault, fault_id
from ._sessions import SessionBase, SessionLike, signed, who
from ._values import data_field, data_of, given, tree_or_yaml

if TYPE_CHECKING:
    from .universe import Universe


@dataclass(frozen=True)
class Session(SessionBase):
    """A session as the server sees it."""

    id: int
    """Its id, as its client has it."""
    timeout_ms: int
    """Its negotiated timeout."""
    timeout_left_ms: Optional[int]
    """The time until it expires, by the universe's clock."""
    address: Optional[str]
    """HOST:PORT of its client; None without a TCP connection."""
    is_connected: bool
    """Whether it has a connection."""
    is_silenced: bool
    identities: Tuple[str, ...]
    """The identities of its connection as `scheme:id`, without passwords."""
    ephemerals: Tuple[str, ...]
    """The paths of its ephemerals, oldest first."""
    watches: Tuple[Watch, ...]
    """Its watches, by path."""
    last_operation: Optional[LastOperation]
    """Its last request; None without one."""
    is_unbound: bool = False
    """Whether its universe is unknown, because its client has not sent a request with a path yet."""

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Session:
        return cls(
            id=signed(answer["id"]),
            timeout_ms=answer["timeout_ms"],
            timeout_left_ms=answer.get("timeout_left_ms"),
            address=answer.get("address"),
            is_connected=bool(answer.get("is_connected")),
            is_silenced=bool(answer.get("is_silenced")),
            identities=tuple(answer.get("identities") or ()),
            ephemerals=tuple(answer.get("ephemerals") or ()),
            watches=tuple(Watch._of(one) for one in answer.get("watches") or ()),
            last_operation=LastOperation._of(answer["last_operation"]) if answer.get("last_operation") else None,
            is_unbound=bool(answer.get("is_unbound")),
        )


@dataclass(frozen=True)
class Watch:
    """A watch of a session."""

    path: str
    """The watched path."""
    kind: str

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Watch:
        return cls(
            path=answer["path"],
            kind=answer["kind"],
        )


@dataclass(frozen=True)
class LastOperation:
    """The last request of a session."""

    name: str
    """Its name in the protocol, such as `getData`."""
    at_ms: int
    """The time by the universe's clock, since the start."""

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> LastOperation:
        return cls(
            name=answer["name"],
            at_ms=answer["at_ms"],
        )


@dataclass(frozen=True)
class Stat:
    """The metadata of a znode."""

    czxid: str
    """The zxid of its creation."""
    mzxid: str
    """The zxid of the last change of its data."""
    pzxid: str
    """The zxid of the last change of its children."""
    ctime_ms: int
    """When it was created."""
    mtime_ms: int
    """When its data was changed last."""
    version: int
    """The number of changes of its data."""
    cversion: int
    """The number of changes of its children."""
    aversion: int
    """The number of changes of its access list."""
    ephemeral_owner: str
    """The session that owns it; 0x0 if it is not ephemeral."""
    data_length: int
    """The length of its data in bytes."""
    num_children: int
    """How many children it has."""

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Stat:
        return cls(
            czxid=answer["czxid"],
            mzxid=answer["mzxid"],
            pzxid=answer["pzxid"],
            ctime_ms=answer["ctime_ms"],
            mtime_ms=answer["mtime_ms"],
            version=answer["version"],
            cversion=answer["cversion"],
            aversion=answer["aversion"],
            ephemeral_owner=answer["ephemeral_owner"],
            data_length=answer["data_length"],
            num_children=answer["num_children"],
        )


@dataclass(frozen=True)
class Now:
    """The result of `now`."""

    elapsed_ms: int
    """Time since the start; it decides when sessions expire."""
    wall_ms: int
    """The time of day that stats show."""
    is_frozen: bool
    """Whether the clock is frozen."""
    has_journal: bool
    """Whether the server keeps a journal."""


@dataclass(frozen=True)
class Journal:
    """The result of `journal`.

    Returns the newest matching entries, oldest first, and in `next` the number that the next entry gets: pass it
    as `since` to read what follows. `text` is the entry in a line. Entries never contain data of znodes. The
    journal keeps what happened last, within the setting `journal_bytes`; `oldest` is the number of the oldest
    entry that it still has.
    """

    entries: List[Dict[str, Any]]
    next: int
    """The number of the next entry."""
    oldest: int
    """The number of the oldest entry."""


@dataclass(frozen=True)
class Advice:
    """The result of `advise`.

    Such as a sequential ephemeral that a lost reply orphans, polling, or a write that loses an update. Each
    finding has the numbers of the entries that show it. It is about what the journal still has; `first` is the
    number of the oldest entry read.
    """

    findings: List[Dict[str, Any]]
    """The mistakes, by rule."""
    entry_count: int
    """The number of entries that were read."""
    first: int
    """The number of the oldest entry."""
    text: str
    """The same for people."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Locks:
    """The result of `locks`.

    Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the Rust crates by their
    names. A deadlock is a cycle of sessions that wait for each other over several locks. Lists at most 1000 locks
    and 10000 contenders, 1000 of one lock.
    """

    locks: List[Dict[str, Any]]
    """The locks, by path."""
    deadlocks: List[Dict[str, Any]]
    """The deadlocks, each with its cycle."""
    is_truncated: bool
    """Whether there are more locks or contenders than listed."""
    text: str
    """The same for people."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Story:
    """The result of `story`.

    The fixtures of the packages print `text` when a test fails, and save `html` and `json`. A story has the newest
    10000 entries of the journal, and its text the last 50.
    """

    text: str
    """The story for people, about 100 lines at most."""
    html: str
    """A page with everything, which loads nothing."""
    json: str
    """Everything as JSON, as text."""
    file_name: str
    """The title as the name of a file, without an extension."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ResourceVerdict:
    """The result of `resource_verdict`.

    It was "safe" if no two holders were inside at a time, or the resource has refused the lower of their tokens.
    It is "undecided" if no holder has entered, or a holder that has not left may have been inside when another one
    entered.
    """

    verdict: str
    entries: int
    """The number of entries whose token it has accepted."""
    writes: int
    """The writes that it has accepted."""
    refused: int
    """How often it has refused a token."""
    text: str
    """The verdict for people, with the acts that decide it."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class SweepNext:
    """The result of `sweep_next`.

    Returns the number of the run, 0 if the sweep is over. The first runs have no faults. Several runs may be done
    at a time, each in a universe of its own, but not with `orders`: waits until one ends if that decides what is
    next.
    """

    run: int
    """The number of the run; 0 if the sweep is over."""
    points: str
    """Its points, or its order; empty for a run without faults."""
    sentence: str
    """What goes wrong, in a sentence."""


@dataclass(frozen=True)
class SweepFaults:
    """The result of `sweep_faults`.

    A test that expects an error of one fault asks so.
    """

    faults: List[str]
    """The faults; none in a run without faults, and without a sweep."""
    points: str
    """Its points."""
    sentence: str
    """What goes wrong, in a sentence."""


@dataclass(frozen=True)
class Znode:
    """The result of `get`.

    Fails (404) if there is no such znode.
    """

    data: Optional[bytes]
    """Its data, None if it has none."""
    stat: Stat
    """Its metadata."""


@dataclass(frozen=True)
class ListChildren:
    """The result of `list_children`.

    Pass the last name as `after` to read on. In another order the first ones are listed, and equal ones by name.
    `total` is the number of children that contain the text, and `is_truncated` says whether there are more after
    the last one. Fails (404) if there is no such znode.
    """

    children: List[Dict[str, Any]]
    """The children, in the order."""
    total: int
    """How many match, listed or not."""
    is_truncated: bool
    """Whether there are more."""


@dataclass(frozen=True)
class FindZnodes:
    """The result of `find_znodes`.

    Returns the paths, children by name below their parent. Upper and lower case differ. Fails (404) if there is no
    znode to begin at.
    """

    paths: List[str]
    is_truncated: bool
    """Whether there are more."""


@dataclass(frozen=True)
class TreeListing:
    """The result of `tree`.

    Children are sorted by name below their parent. `is_truncated` says whether znodes after the last one are
    omitted; paths of more than 4 MiB are omitted too. Fails (404) if there is no such znode.
    """

    znodes: List[Dict[str, Any]]
    """The znodes, parents before their children."""
    is_truncated: bool
    """Whether there are more."""


@dataclass(frozen=True)
class Seeded:
    """The result of `seed`.

    A tree of up to 1,000 znodes and 1 MiB is seeded in one turn, a larger one in several: clients are served in
    between and may see its first part. Missing parents are created. A znode of the tree is its data, or an object
    with the fields data, acl, container and ttl_ms.
    """

    created: int
    """How many znodes were created."""
    changed: int
    """How many znodes got different data or a different ACL."""


@dataclass(frozen=True)
class ChangesSince:
    """The result of `changes_since`.

    `change` is created, deleted or changed; `before` and `after` are znodes as in `export_tree`, or null. Compares
    data, lifetimes and access lists. Lists at most 4 MiB.
    """

    changes: List[Dict[str, Any]]
    """The differences, by path."""
    is_truncated: bool
    """Whether there are more."""


class Verbs:
    """Every verb of a universe. Each raises MinikeeperError if the server refuses it."""

    _control: Control

    def _universe(self, name: str, connect_string: str) -> Universe:
        """The universe that a verb has created."""
        raise NotImplementedError

    def now(self) -> Now:
        """Read the server's clock: since the start, wall clock, and whether it is frozen."""
        answer = self._control.read("now")
        return Now(elapsed_ms=answer["elapsed_ms"], wall_ms=answer["wall_ms"], is_frozen=answer["is_frozen"], has_journal=answer["has_journal"])

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
        return [Session._of(one) for one in self._control.read("sessions")["sessions"]]

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
        return cast("int", self._control.do(
            "expire",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"])

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
        return cast("int", self._control.do(
            "disconnect",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"])

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
        return cast("int", self._control.do(
            "silence",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"])

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
        return cast("int", self._control.do(
            "unsilence",
            {
                **who(session, address, identity, owner),
                **given(
                    allow_none=allow_none,
                ),
            },
        )["count"])

    def disconnect_all(self) -> None:
        """Close every client's connection; the sessions live on."""
        self._control.do("disconnect_all")

    def inject(
        self,
        *,
        action: Literal["refuse", "delay", "drop-request", "lose-reply", "never-answer", "error", "cut", "cut-reply", "hold-events", "delay-events", "delay-reply", "cut-after", "expire", "pause", "outage", "client-outage", "crash", "rollback", "trigger"],
        op: Optional[str] = None,
        path: Optional[str] = None,
        session: Optional[str] = None,
        client: Optional[int] = None,
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
        - `client`: The session that the fault applies to, by its number: sessions are numbered from 1 in the order of
          their first requests since there has been any fault
        - `address`: The client address that the fault applies to
        - `skip`: How many matching operations to skip first
        - `count`: How many times the fault acts; without a limit if absent
        - `probability`: The probability that the fault acts on a match, from 0 to 1
        - `seed`: The seed of the random numbers for probability
        - `delay_ms`: The delay, for the actions delay and delay-reply, in milliseconds; the longest delay for
          delay-events
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
                    client=client,
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
        return cast("List[Dict[str, Any]]", self._control.read("faults")["faults"])

    def remove_fault(self, fault: Union[Fault, int]) -> int:
        """Remove a fault and release what it holds back; fails if it never acted, unless it is optional.

        Returns how often it has acted. A fault that never acted has tested nothing: it is removed, and the verb
        fails (409). An unknown fault is an error (404).

        - `fault`: The fault that inject returned
        """
        return cast("int", self._control.do("remove_fault", {"fault": fault_id(fault)})["hits"])

    def reset_faults(self) -> None:
        """Remove all faults and release what they hold back."""
        self._control.do("reset_faults")

    def until_hit(self, fault: Union[Fault, int], hits: int = 1, *, within_ms: int = 10000) -> int:
        """Wait until a fault has acted N times.

        Returns how often it has acted. The JSON also has `last_hit`: the session, op, path and xid of what it
        acted on last, as `faults` has. Fails (408) if it times out.

        - `fault`: The fault that inject returned
        - `hits`: How many times; by default 1
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        return cast("int", self._control.do(
            "until_hit",
            {
                "fault": fault_id(fault),
                "hits": hits,
                "within_ms": within_ms,
            },
        )["hits"])

    def journal(
        self,
        *,
        path: Optional[str] = None,
        op: Optional[str] = None,
        result: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[Literal["request", "event", "deleted", "fault", "session", "session_opened", "session_resumed", "session_expired", "session_closed", "connection", "connection_opened", "connection_closed", "clock", "verb", "omitted"]] = None,
        since: Optional[int] = None,
        limit: int = 1000,
    ) -> Journal:
        """List what happened: requests and their results, events, deletions, faults, sessions, the clock.

        Returns the newest matching entries, oldest first, and in `next` the number that the next entry gets: pass
        it as `since` to read what follows. `text` is the entry in a line. Entries never contain data of znodes.
        The journal keeps what happened last, within the setting `journal_bytes`; `oldest` is the number of the
        oldest entry that it still has.

        - `path`: Only entries with a path that matches: `*` is any part of a name, `**` any part of a path
        - `op`: Only requests of this operation, such as `getData`; `create` is every kind of create
        - `result`: Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error, `NONE` for
          no reply
        - `session`: Only entries of this session, hexadecimal or decimal
        - `kind`: Only entries of this kind; `session` and `connection` are all kinds that begin so
        - `since`: Only entries from this number on
        - `limit`: The maximum number of entries; by default 1000
        """
        answer = self._control.read(
            "journal",
            {
                "limit": limit,
                **given(
                    path=path,
                    op=op,
                    result=result,
                    session=session,
                    kind=kind,
                    since=since,
                ),
            },
        )
        return Journal(entries=answer["entries"], next=answer["next"], oldest=answer["oldest"])

    def count(
        self,
        *,
        path: Optional[str] = None,
        op: Optional[str] = None,
        result: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[Literal["request", "event", "deleted", "fault", "session", "session_opened", "session_resumed", "session_expired", "session_closed", "connection", "connection_opened", "connection_closed", "clock", "verb", "omitted"]] = None,
        since: Optional[int] = None,
    ) -> int:
        """Count entries of the journal.

        An error (409) if entries that might match have been dropped.

        - `path`: Only entries with a path that matches: `*` is any part of a name, `**` any part of a path
        - `op`: Only requests of this operation, such as `getData`; `create` is every kind of create
        - `result`: Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error, `NONE` for
          no reply
        - `session`: Only entries of this session, hexadecimal or decimal
        - `kind`: Only entries of this kind; `session` and `connection` are all kinds that begin so
        - `since`: Only entries from this number on
        """
        return cast("int", self._control.read(
            "count",
            {
                **given(
                    path=path,
                    op=op,
                    result=result,
                    session=session,
                    kind=kind,
                    since=since,
                ),
            },
        )["count"])

    def verify(
        self,
        *,
        path: Optional[str] = None,
        op: Optional[str] = None,
        result: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[Literal["request", "event", "deleted", "fault", "session", "session_opened", "session_resumed", "session_expired", "session_closed", "connection", "connection_opened", "connection_closed", "clock", "verb", "omitted"]] = None,
        since: Optional[int] = None,
        exactly: Optional[int] = None,
        at_least: Optional[int] = None,
        at_most: Optional[int] = None,
        in_order: Optional[Sequence[str]] = None,
    ) -> int:
        """Verify what the journal contains.

        Give `exactly` (0 for none), `at_least` or `at_most`; without them at least one entry must match. Or give
        `in_order`: a list of filters such as `create /locks/** -> OK`, which entries must match in this order,
        with others between them. If the journal differs, the error (409) lists what matches or comes nearest; in
        Python, Java and Node it is an AssertionError. Returns how many entries match.

        - `path`: Only entries with a path that matches: `*` is any part of a name, `**` any part of a path
        - `op`: Only requests of this operation, such as `getData`; `create` is every kind of create
        - `result`: Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error, `NONE` for
          no reply
        - `session`: Only entries of this session, hexadecimal or decimal
        - `kind`: Only entries of this kind; `session` and `connection` are all kinds that begin so
        - `since`: Only entries from this number on
        - `exactly`: The number of entries that must match
        - `at_least`: The least number of entries that must match
        - `at_most`: The greatest number of entries that may match
        - `in_order`: Filters that entries must match in this order
        """
        return cast("int", self._control.do(
            "verify",
            {
                **given(
                    path=path,
                    op=op,
                    result=result,
                    session=session,
                    kind=kind,
                    since=since,
                    exactly=exactly,
                    at_least=at_least,
                    at_most=at_most,
                    in_order=in_order,
                ),
            },
        )["count"])

    def clear_journal(self) -> None:
        """Forget every entry of the journal; the numbers of entries continue."""
        self._control.do("clear_journal")

    def advise(self, *, ignore: Optional[str] = None) -> Advice:
        """Find known mistakes of clients in the journal: what, why it matters, what to do.

        Such as a sequential ephemeral that a lost reply orphans, polling, or a write that loses an update. Each
        finding has the numbers of the entries that show it. It is about what the journal still has; `first` is the
        number of the oldest entry read.

        - `ignore`: Rules such as `herd`, and paths such as `/config/**`, to leave out, separated by commas
        """
        answer = self._control.read(
            "advise",
            {
                **given(
                    ignore=ignore,
                ),
            },
        )
        return Advice(findings=answer["findings"], entry_count=answer["entry_count"], first=answer["first"], text=answer["text"])

    def locks(self) -> Locks:
        """List every lock, semaphore and election: who holds it, who waits for whom, what is wrong.

        Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the Rust crates by their
        names. A deadlock is a cycle of sessions that wait for each other over several locks. Lists at most 1000
        locks and 10000 contenders, 1000 of one lock.
        """
        answer = self._control.read("locks")
        return Locks(locks=answer["locks"], deadlocks=answer["deadlocks"], is_truncated=answer["is_truncated"], text=answer["text"])

    def story(self, *, title: Optional[str] = None, failure: Optional[str] = None) -> Story:
        """Show what helps to understand a failed test: locks, sessions, faults, the last requests.

        The fixtures of the packages print `text` when a test fails, and save `html` and `json`. A story has the
        newest 10000 entries of the journal, and its text the last 50.

        - `title`: Its title, such as the name of the test; cut after 200 characters
        - `failure`: Why the test failed, which the page shows; cut after 4000 characters
        """
        answer = self._control.read(
            "story",
            {
                **given(
                    title=title,
                    failure=failure,
                ),
            },
        )
        return Story(text=answer["text"], html=answer["html"], json=answer["json"], file_name=answer["file_name"])

    def start_recording(self, bytes_max: int = 67108864) -> None:
        """Record what clients send, and what follows, for `minikeeper replay`.

        The recording is in memory and ends at its limit. If there are sessions, this closes their connections, as
        a restart that keeps everything does: clients connect again, and the recording has their watches.

        - `bytes_max`: The size limit of the recording; by default 67108864
        """
        self._control.do("start_recording", {"bytes_max": bytes_max})

    def stop_recording(self) -> str:
        """Stop the recording and return it.

        `minikeeper ctl stop-recording | base64 -d >FILE` writes the file for `minikeeper replay FILE`. It contains
        the data of znodes, and what clients sent to authenticate.
        """
        return cast("str", self._control.do("stop_recording")["base64"])

    def resource_enter(
        self,
        resource: str,
        *,
        holder: Optional[str] = None,
        fencing_token: Optional[int] = None,
    ) -> int:
        """Enter a resource that a lock protects, until `resource_leave`.

        `resource_verdict` says whether two were inside at a time. Call it while the lock is held, and wait for the
        answer. A run of a sweep in which a resource is not safe fails.

        - `resource`: Its name, at most 200 characters
        - `holder`: Who enters, for the verdict
        - `fencing_token`: The fencing token of the lock: the resource refuses those that are lower than one that it
          has seen
        """
        return cast("int", self._control.do(
            "resource_enter",
            {
                "resource": resource,
                **given(
                    holder=holder,
                    fencing_token=fencing_token,
                ),
            },
        )["entry"])

    def resource_write(self, entry: int) -> bool:
        """Write to a resource, and say whether it accepts that.

        It does unless it has seen a higher token.

        - `entry`: The number that resource_enter returned
        """
        return cast("bool", self._control.do("resource_write", {"entry": entry})["is_accepted"])

    def resource_leave(self, entry: int) -> None:
        """Leave a resource, before the lock is released.

        - `entry`: The number that resource_enter returned
        """
        self._control.do("resource_leave", {"entry": entry})

    def resource_verdict(self, resource: str) -> ResourceVerdict:
        """Say whether what was done to a resource was safe.

        It was "safe" if no two holders were inside at a time, or the resource has refused the lower of their
        tokens. It is "undecided" if no holder has entered, or a holder that has not left may have been inside when
        another one entered.

        - `resource`: Its name, at most 200 characters
        """
        answer = self._control.read(
            "resource_verdict",
            {
                "resource": resource,
            },
        )
        return ResourceVerdict(verdict=answer["verdict"], entries=answer["entries"], writes=answer["writes"], refused=answer["refused"], text=answer["text"])

    def sweep_start(
        self,
        *,
        all: bool = False,
        depth: int = 1,
        seed: int = 0,
        runs: Optional[int] = None,
        time_ms: Optional[int] = None,
        faults: Optional[str] = None,
        outage_ms: Optional[int] = None,
        rollback: int = 1,
        allow: Optional[str] = None,
        leave_out: Optional[str] = None,
        first: bool = False,
        compare: bool = False,
        only: Optional[str] = None,
        orders: bool = False,
        changes: Optional[str] = None,
        more: Optional[int] = None,
        alike: bool = False,
        clients: Optional[int] = None,
        process: Optional[int] = None,
        allow_unreached: Optional[int] = None,
        allow_untried: Optional[int] = None,
        test: Optional[str] = None,
        tests_left: Optional[int] = None,
        repeat: Optional[str] = None,
    ) -> int:
        """Start a sweep: a test runs once for every fault at every place where it can happen.

        Then, until `sweep_next` returns run 0: call `sweep_next` on a universe that no client uses yet, run the
        test with it, and call `sweep_end`. The fixtures of the packages do so.

        - `all`: Whether to try equivalent points, too
        - `depth`: How many faults a run has; with 2, pairs are tried until a budget ends, or with `orders` one fault
          in an order; by default 1
        - `seed`: The order in which points are tried; by default 0
        - `runs`: The maximum number of runs
        - `time_ms`: The time after which no run begins, in milliseconds
        - `faults`: The faults to try, separated by commas, or `all`: reply-lost,session-expired; by default all but
          outage, client-outage, client-crash and rollback
        - `outage_ms`: How long an outage lasts, by the server's clock, in milliseconds; 0 if it does not end; by
          default 1,000
        - `rollback`: How many changes a rollback takes back; by default 1
        - `allow`: The failures that the test expects, a rule a line: session-expired:*:create raises SessionExpired
          because the caller asks again
        - `leave_out`: The points that are not tried, a rule a line: reply-late because the timeout is an hour
        - `first`: Whether to end with the first failure, once it is confirmed
        - `compare`: Whether a run also fails if it leaves other znodes, clients or watches than the runs without
          faults
        - `only`: The points of the only run, as a report names them, with + between two; or its order
        - `orders`: Whether to try the orders in which requests can be served, instead of faults
        - `changes`: With `orders`: up to how many unforced changes (of client, late events, with `depth` 2 a fault)
          all orders are tried, or `all`; by default 2
        - `more`: With `orders`: how many further orders are tried then, random ones among them; by default 1,000, or
          until a budget ends
        - `alike`: With `orders`: whether the clients that begin a run, up to 4, do the same, so that orders which
          differ only in which of them is which are equivalent
        - `clients`: With `orders`: the number of clients with which a run begins, if it is known; then their requests
          are served as soon as each of them has one
        - `process`: With `orders`: the number of the process, on the server's machine, that runs the test; then its
          threads tell when no further request is coming
        - `allow_unreached`: How many points may stay unreached in a sweep that is clean nevertheless; by default 0
        - `allow_untried`: How many points the budget may leave untried in a sweep that is clean nevertheless; by
          default 0
        - `test`: The name of the test, if it is one of a suite, whose options it takes in place of these: see
          `suite_start`
        - `tests_left`: With `test`: how many tests are still to come, this one included; it may take four equal
          shares of the time that is left
        - `repeat`: With `test`: the command that does a run of it again, with {} in place of its points
        """
        return cast("int", self._control.do(
            "sweep_start",
            {
                "depth": depth,
                "seed": seed,
                "rollback": rollback,
                **given(
                    all=all,
                    runs=runs,
                    time_ms=time_ms,
                    faults=faults,
                    outage_ms=outage_ms,
                    allow=allow,
                    leave_out=leave_out,
                    first=first,
                    compare=compare,
                    only=only,
                    orders=orders,
                    changes=changes,
                    more=more,
                    alike=alike,
                    clients=clients,
                    process=process,
                    allow_unreached=allow_unreached,
                    allow_untried=allow_untried,
                    test=test,
                    tests_left=tests_left,
                    repeat=repeat,
                ),
            },
        )["sweep"])

    def suite_start(
        self,
        *,
        faults: Optional[str] = None,
        outage_ms: Optional[int] = None,
        rollback: int = 1,
        all: bool = False,
        depth: int = 1,
        seed: int = 0,
        time_ms: Optional[int] = None,
        first: bool = False,
        compare: bool = False,
        allow: Optional[str] = None,
        leave_out: Optional[str] = None,
        allow_unreached: Optional[int] = None,
        allow_untried: Optional[int] = None,
    ) -> None:
        """Start a suite, whose tests share a budget, a report and equivalent points.

        Then call `sweep_start` with `test` for each test, and `suite_report` at the end. `minikeeper sweep
        --suite` does so.

        - `faults`: As in `sweep_start`
        - `outage_ms`: As in `sweep_start`, in milliseconds
        - `rollback`: As in `sweep_start`; by default 1
        - `all`: As in `sweep_start`
        - `depth`: As in `sweep_start`; by default 1
        - `seed`: As in `sweep_start`; by default 0
        - `time_ms`: The time of the whole suite, after which no run begins, in milliseconds
        - `first`: As in `sweep_start`, for each test
        - `compare`: As in `sweep_start`
        - `allow`: As in `sweep_start`
        - `leave_out`: As in `sweep_start`
        - `allow_unreached`: As in `sweep_start`, for each test and for all
        - `allow_untried`: As in `sweep_start`, for each test and for all
        """
        self._control.do(
            "suite_start",
            {
                "rollback": rollback,
                "depth": depth,
                "seed": seed,
                **given(
                    faults=faults,
                    outage_ms=outage_ms,
                    all=all,
                    time_ms=time_ms,
                    first=first,
                    compare=compare,
                    allow=allow,
                    leave_out=leave_out,
                    allow_unreached=allow_unreached,
                    allow_untried=allow_untried,
                ),
            },
        )

    def suite_report(self, *, title: Optional[str] = None) -> str:
        """Show what the sweeps of a suite have found so far.

        - `title`: The name of the suite
        """
        return cast("str", self._control.read("suite_report", {**given(title=title)})["text"])

    def sweep_next(self, sweep: int) -> SweepNext:
        """Inject the faults of a sweep's next run into this universe, which no client uses yet.

        Returns the number of the run, 0 if the sweep is over. The first runs have no faults. Several runs may be
        done at a time, each in a universe of its own, but not with `orders`: waits until one ends if that decides
        what is next.

        - `sweep`: The number that sweep_start returned
        """
        answer = self._control.do("sweep_next", {"sweep": sweep})
        return SweepNext(run=answer["run"], points=answer["points"], sentence=answer["sentence"])

    def sweep_faults(self) -> SweepFaults:
        """Show what the sweep tries in this run.

        A test that expects an error of one fault asks so.
        """
        answer = self._control.read("sweep_faults")
        return SweepFaults(faults=answer["faults"], points=answer["points"], sentence=answer["sentence"])

    def sometimes(self, goal: str, *, holds: bool = True) -> None:
        """Note a goal that some run of the sweep must reach, such as "the second contender waited".

        Call it where the goal may hold, in every run. If no run reaches it, the sweep is incomplete. Does nothing
        without a sweep.

        - `goal`: The goal, at most 200 characters
        - `holds`: Whether it is reached
        """
        self._control.do("sometimes", {"goal": goal, "holds": holds})

    def sweep_crashed(self, sweep: int, *, run: Optional[int] = None, within_ms: int = 10000) -> bool:
        """Wait until the clients of a sweep's run have died, by the fault `client-crash`.

        Then stop the test where it is, and begin it again in the same universe: the server serves nothing of the
        sessions from before. The outcome of the run is that of the second start. Returns false if it times out,
        the run ends, or has no such fault.

        - `sweep`: The number that sweep_start returned
        - `run`: The number of the run, if several are being done
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        return cast("bool", self._control.do(
            "sweep_crashed",
            {
                "sweep": sweep,
                "within_ms": within_ms,
                **given(
                    run=run,
                ),
            },
        )["is_crashed"])

    def sweep_end(
        self,
        sweep: int,
        *,
        run: Optional[int] = None,
        outcome: Literal["passed", "failed", "hung"],
        message: Optional[str] = None,
        place: Optional[str] = None,
        story: Optional[str] = None,
    ) -> bool:
        """End the run of a sweep with the outcome of the test, and remove its faults.

        - `sweep`: The number that sweep_start returned
        - `run`: The number of the run, if several are being done
        - `outcome`: How the test ended
        - `message`: Why it failed
        - `place`: Where in the program it failed, such as test_job.py:17; failures with the same message, place and
          first difference in the journal are one group
        - `story`: The page with the story of the failure, which the report names
        """
        return cast("bool", self._control.do(
            "sweep_end",
            {
                "sweep": sweep,
                "outcome": outcome,
                **given(
                    run=run,
                    message=message,
                    place=place,
                    story=story,
                ),
            },
        )["is_reached"])

    def sweep_report(self, sweep: int, *, repeat: Optional[str] = None, title: Optional[str] = None) -> str:
        """Show what a sweep has found so far.

        - `sweep`: The number that sweep_start returned
        - `repeat`: The command that does a run again, with {} in place of its points
        - `title`: The name of the test
        """
        return cast("str", self._control.read(
            "sweep_report",
            {
                "sweep": sweep,
                **given(
                    repeat=repeat,
                    title=title,
                ),
            },
        )["text"])

    def get(self, path: str) -> Znode:
        """Read the data and stat of a znode.

        Fails (404) if there is no such znode.

        - `path`: The znode's path
        """
        answer = self._control.read("get", {"path": path})
        return Znode(data=data_of(answer), stat=Stat._of(answer["stat"]))

    def children(self, path: str) -> List[str]:
        """List the names of a znode's children, oldest first.

        The root of an empty tree has the child zookeeper, as in ZooKeeper; `export_tree` leaves it out. Fails
        (404) if there is no such znode.

        - `path`: The znode's path
        """
        return cast("List[str]", self._control.read("children", {"path": path})["children"])

    def list_children(
        self,
        path: str,
        after: str = "",
        containing: str = "",
        max: int = 1000,
        *,
        sort_by: Literal["name", "newest", "children"] = "name",
    ) -> ListChildren:
        """List a znode's children sorted by name, some at a time.

        Pass the last name as `after` to read on. In another order the first ones are listed, and equal ones by
        name. `total` is the number of children that contain the text, and `is_truncated` says whether there are
        more after the last one. Fails (404) if there is no such znode.

        - `path`: The znode's path
        - `after`: Only children whose names are after this one; by default
        - `containing`: Only children whose names contain this text; by default
        - `max`: The limit of the znodes to list, at most 10000; by default 1000
        - `sort_by`: By name, the newest first, or those with the most children first; by default name
        """
        answer = self._control.read(
            "list_children",
            {
                "path": path,
                "after": after,
                "containing": containing,
                "max": max,
                "sort_by": sort_by,
            },
        )
        return ListChildren(children=answer["children"], total=answer["total"], is_truncated=answer["is_truncated"])

    def find_znodes(self, containing: str, path: str = "/", *, in_data: bool = False, max: int = 1000) -> FindZnodes:
        """Find znodes whose path contains a text, or whose data does.

        Returns the paths, children by name below their parent. Upper and lower case differ. Fails (404) if there
        is no znode to begin at.

        - `containing`: The text to find
        - `path`: The top of the subtree; by default /
        - `in_data`: Whether to search the data of znodes too
        - `max`: The limit of the znodes to list, at most 10000; by default 1000
        """
        answer = self._control.read(
            "find_znodes",
            {
                "containing": containing,
                "path": path,
                "max": max,
                **given(
                    in_data=in_data,
                ),
            },
        )
        return FindZnodes(paths=answer["paths"], is_truncated=answer["is_truncated"])

    def acl(self, path: str) -> List[str]:
        """Read the access list of a znode in ZooKeeper's notation, as in world:anyone:cdrwa.

        Fails (404) if there is no such znode.

        - `path`: The znode's path
        """
        return cast("List[str]", self._control.read("acl", {"path": path})["acl"])

    def tree(self, path: str = "/", max: int = 1000) -> TreeListing:
        """List a znode and everything below it, with data lengths and the owners of ephemerals.

        Children are sorted by name below their parent. `is_truncated` says whether znodes after the last one are
        omitted; paths of more than 4 MiB are omitted too. Fails (404) if there is no such znode.

        - `path`: The top of the subtree; by default /
        - `max`: The limit of the znodes to list, at most 10000; by default 1000
        """
        answer = self._control.read("tree", {"path": path, "max": max})
        return TreeListing(znodes=answer["znodes"], is_truncated=answer["is_truncated"])

    def create(
        self,
        path: str,
        data: Union[str, bytes] = "",
        *,
        sequential: bool = False,
        container: bool = False,
        ttl_ms: int = 0,
    ) -> str:
        """Create a znode outside of any session; returns its path.

        The parent must exist. Watches fire as after a client's create; access lists are not checked, and the znode
        is open to all clients. It cannot be ephemeral, because no session would own it. Fails (409) if it exists
        already, and (404) without a parent.

        - `path`: The znode's path
        - `data`: The data; empty by default
        - `sequential`: Whether to append a number to the name
        - `container`: Whether the znode ends some time after its last child
        - `ttl_ms`: The time to live without children and new data, in milliseconds; 0 for no limit; by default 0
        """
        return cast("str", self._control.do(
            "create",
            {
                "path": path,
                **data_field(data),
                "ttl_ms": ttl_ms,
                **given(
                    sequential=sequential,
                    container=container,
                ),
            },
        )["path"])

    def set(self, path: str, data: Union[str, bytes], *, version: int = -1) -> int:
        """Set the data of a znode outside of any session; returns its new version.

        Watches fire as after a client's setData; access lists are not checked. Fails (404) if there is no such
        znode, and (409) if it has another version.

        - `path`: The znode's path
        - `data`: The data
        - `version`: The version that the znode must have; -1 for any; by default -1
        """
        return cast("int", self._control.do("set", {"path": path, **data_field(data), "version": version})["version"])

    def delete(self, path: str, *, version: int = -1, recursive: bool = False) -> int:
        """Delete a znode outside of any session; returns how many znodes were deleted.

        Watches fire as after a client's delete; access lists are not checked. Fails (404) if there is no such
        znode, and (409) if it has another version, or has children and `recursive` is not set.

        - `path`: The znode's path
        - `version`: The version that the znode must have; -1 for any; by default -1
        - `recursive`: Whether to delete everything below it too; more than 1,000 znodes in several turns
        """
        return cast("int", self._control.do(
            "delete",
            {
                "path": path,
                "version": version,
                **given(
                    recursive=recursive,
                ),
            },
        )["deleted"])

    def dump(self, *, ids: bool = False) -> str:
        """Print znodes, sessions and watches as text; equal trees give equal text.

        Whatever depends on the time and order of changes is left out: sessions are numbered in the order of what
        they own. Children are sorted by name, data is quoted or escaped, and access lists that are open to all
        clients are omitted.

        - `ids`: Whether to print session ids, zxids, times and versions too
        """
        return cast("str", self._control.read("dump", {**given(ids=ids)})["dump"])

    def export_tree(self, *, format: Literal["json", "yaml"] = "json", path: str = "/") -> Any:
        """Export the tree in the format of `seed`, without /zookeeper; lists ephemerals separately.

        Fails (404) if there is no such znode.

        - `format`: Whether to return the tree as a JSON object or as YAML text; by default json
        - `path`: The top of the subtree; by default /
        """
        return self._control.read("export_tree", {"format": format, "path": path})["tree"]

    def seed(self, tree: Optional[Mapping[str, Any]] = None, *, yaml: Optional[str] = None) -> Seeded:
        """Create the znodes of a tree that are missing and set those that differ.

        A tree of up to 1,000 znodes and 1 MiB is seeded in one turn, a larger one in several: clients are served
        in between and may see its first part. Missing parents are created. A znode of the tree is its data, or an
        object with the fields data, acl, container and ttl_ms.

        - `tree`: Znodes by path, as `export_tree` returns them; data may be bytes
        - `yaml`: The tree in YAML. Give either `tree` or `yaml`
        """
        answer = self._control.do("seed", {**tree_or_yaml(tree, yaml)})
        return Seeded(created=answer["created"], changed=answer["changed"])

    def snapshot(self) -> int:
        """Take a snapshot of znodes, sessions and watches, for `restore`.

        Returns the number of the snapshot.
        """
        return cast("int", self._control.do("snapshot")["snapshot"])

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

    def snapshots(self) -> List[Dict[str, Any]]:
        """List the snapshots that `snapshot` has taken, oldest first.

        `is_there` is false for a snapshot that can no longer be restored: an older one was restored, the server
        was restarted, or more than 256 MiB of changes were made since.
        """
        return cast("List[Dict[str, Any]]", self._control.read("snapshots")["snapshots"])

    def changes_since(self, snapshot: int, max: int = 1000) -> ChangesSince:
        """List the znodes that differ from those in a snapshot.

        `change` is created, deleted or changed; `before` and `after` are znodes as in `export_tree`, or null.
        Compares data, lifetimes and access lists. Lists at most 4 MiB.

        - `snapshot`: The number that snapshot returned
        - `max`: The limit of the znodes to list, at most 10000; by default 1000
        """
        answer = self._control.read("changes_since", {"snapshot": snapshot, "max": max})
        return ChangesSince(changes=answer["changes"], is_truncated=answer["is_truncated"])

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

    def until_noticed(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        within_ms: int = 10000,
    ) -> None:
        """Wait until a client has noticed that its session has ended.

        It has when it asked for the session as it connected again, and was told that the session has expired; its
        callbacks run after that. Give the session's id: an ended session has no address, identity or ephemeral.
        The server remembers the newest 1,024 sessions that clients have asked for in vain.

        - `session`: A session's id, a `Session`, or a kazoo client. Give exactly one of these four arguments
        - `address`: The address of clients: "127.0.0.1:4711" or "127.0.0.1"
        - `identity`: An identity of clients: "digest:alice"
        - `owner`: The path of an ephemeral; selects its owner
        - `within_ms`: The limit of the wait, in real time, in milliseconds; by default 10000
        """
        self._control.do("until_noticed", {**who(session, address, identity, owner), "within_ms": within_ms})

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
        return cast("str", self._control.do("export_data", {"dir": os.path.abspath(dir)})["zxid"])

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
        return cast("List[str]", self._control.read("universes")["universes"])

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
        return cast("str", self._control.do("go_down")["control"])

    def come_up(self, *, keep: Literal["everything", "data", "nothing"] = "everything") -> None:
        """Listen again on the same port.

        Applies to the whole server: a created universe refuses it (400).

        - `keep`: What the server keeps: sessions and znodes, only znodes, or nothing; by default everything
        """
        self._control.do("come_up", {"keep": keep})

    def servers(self) -> List[Dict[str, Any]]:
        """List the servers of the ensemble, with their modes and sessions.

        There is one, unless the server was started with `--servers`.

        Applies to the whole server: a created universe refuses it (400).
        """
        return cast("List[Dict[str, Any]]", self._control.read("servers")["servers"])

    def set_server(self, server: int, *, mode: Literal["up", "down", "cut-off", "read-only"]) -> None:
        """Take a server of the ensemble down or up, cut it off, or make it read-only.

        A server that is down does not listen; one that is cut off accepts connections and answers nothing; one
        that is read-only serves reads, to clients that accept that. Clients fail over to the other servers, which
        serve the same state.

        Applies to the whole server: a created universe refuses it (400).

        - `server`: The number of the server, from 1
        - `mode`: What it does for its clients
        """
        self._control.do("set_server", {"server": server, "mode": mode})

    def set_leader(self, server: int) -> None:
        """Choose the server of the ensemble that says it is the leader.

        As all servers serve one state, only what `srvr`, `stat` and `mntr` say changes. While the chosen server is
        not up, the first one that is up leads.

        Applies to the whole server: a created universe refuses it (400).

        - `server`: The number of the server, from 1
        """
        self._control.do("set_leader", {"server": server})

    def save(self) -> None:
        """Save the state to the data directory now.

        Applies to the whole server: a created universe refuses it (400).
        """
        self._control.do("save")

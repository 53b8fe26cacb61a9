"""Verbs of a test: sessions and their connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from ._control import Control
from ._kazoo import settle

SessionLike = Union[int, str, "Session", Any]
"""A session's id, as a number or "0x...", a Session, or a client that has one, such as kazoo's."""


@dataclass(frozen=True)
class Watch:
    """What a session watches: `kind` as in the control API, for instance "data" or "child"."""

    path: str
    kind: str


@dataclass(frozen=True)
class LastOperation:
    """What a session asked last: `name` as in the protocol ("getData"), and when the universe's clock showed what."""

    name: str
    at_ms: int


@dataclass(frozen=True)
class Session:
    """A session as its server sees it. Times are in milliseconds of the universe's clock."""

    id: int
    timeout_ms: int
    timeout_left_ms: Optional[int]
    address: Optional[str]
    is_connected: bool
    is_silenced: bool
    identities: Tuple[str, ...]
    ephemerals: Tuple[str, ...]
    watches: Tuple[Watch, ...]
    last_operation: Optional[LastOperation]
    is_unbound: bool = False

    def __str__(self) -> str:
        return f"session {_hex(self.id)}"


class Sessions:
    """Sessions, ended, cut off and silenced on the server's side.

    Whoever is meant is named by exactly one of: a session, the address of its connection ("127.0.0.1:4711", or only
    "127.0.0.1"), an identity it has shown ("digest:alice"), the path of an ephemeral it owns. Each verb returns how
    many sessions it met. That it met none, or none that it could do anything to, raises MinikeeperError (404), unless
    `allow_none` says that this is fine.

    A client shows by its first request with a path which universe its session belongs to. Until then it is
    found by its id, or by its address with the port, from every universe of the server; and listed (`is_unbound`) in one
    that is the only one beside the server's own.
    """

    _control: Control

    def sessions(self) -> List[Session]:
        """Every session, connected or not."""
        return [_session(one) for one in self._control.read("sessions")["sessions"]]

    def expire(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
        seen_by: Iterable[Any] = (),
    ) -> int:
        """Ends sessions as if their time were up. Returns how many.

        When it returns, their ephemerals are gone and the events about it have been sent. Events still have to be
        read and handed to callbacks, in threads of the watching clients: for kazoo's clients named in `seen_by` that
        has happened too when this returns (see `settle`).
        """
        count = self._end("expire", session, address, identity, owner, allow_none)
        settle(*seen_by)
        return count

    def disconnect(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
    ) -> int:
        """Cuts the connections of sessions, which live on. Returns how many had one."""
        return self._end("disconnect", session, address, identity, owner, allow_none)

    def disconnect_all(self) -> None:
        """Cuts every connection of a client; all sessions live on."""
        self._control.do("disconnect_all")

    def silence(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
    ) -> int:
        """Stops serving sessions: they are not heard and get no answers, as in a long pause of a collector.

        Their time runs out unless `unsilence` comes before. Returns how many.
        """
        return self._end("silence", session, address, identity, owner, allow_none)

    def unsilence(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
    ) -> int:
        """Serves silenced sessions again. Returns how many."""
        return self._end("unsilence", session, address, identity, owner, allow_none)

    def _end(self, verb: str, session: Any, address: Any, identity: Any, owner: Any, allow_none: bool) -> int:
        body: Dict[str, Any] = dict(who(session, address, identity, owner))
        if allow_none:
            body["allow_none"] = True
        return int(self._control.do(verb, body)["count"])


def who(session: Any, address: Any, identity: Any, owner: Any) -> Dict[str, str]:
    """The one name given for whoever is meant, as the control API wants it."""
    named = {"session": session, "address": address, "identity": identity, "owner": owner}
    given = {name: value for name, value in named.items() if value is not None}
    if len(given) != 1:
        raise TypeError(f"name one of session, address, identity, owner; {len(given)} given")
    if session is not None:
        given["session"] = session_id(session)
    return given


def session_id(session: SessionLike) -> str:
    """A session's id as the control API wants it."""
    if isinstance(session, Session):
        session = session.id
    elif hasattr(session, "client_id"):
        # kazoo: id and password, None before the first connection and after the session's end.
        if session.client_id is None:
            raise ValueError("this client has no session now")
        session = session.client_id[0]
    if isinstance(session, int):
        return _hex(session)
    if isinstance(session, str):
        return session
    raise TypeError(f"a session is a number, a string, a Session, or a client: {session!r}")


def _hex(id: int) -> str:
    return f"0x{id & 0xFFFF_FFFF_FFFF_FFFF:x}"


def _last(last: Optional[Mapping[str, Any]]) -> Optional[LastOperation]:
    return None if last is None else LastOperation(last["name"], last["at_ms"])


def _session(one: Mapping[str, Any]) -> Session:
    id = int(one["id"], 0)
    return Session(
        # Signed, as clients know it.
        id=id - (1 << 64) if id >= 1 << 63 else id,
        timeout_ms=one["timeout_ms"],
        timeout_left_ms=one.get("timeout_left_ms"),
        address=one.get("address"),
        is_connected=one["is_connected"],
        is_silenced=one.get("is_silenced", False),
        identities=tuple(one.get("identities", ())),
        ephemerals=tuple(one.get("ephemerals", ())),
        watches=tuple(Watch(watch["path"], watch["kind"]) for watch in one.get("watches", ())),
        last_operation=_last(one.get("last_operation")),
        is_unbound=one.get("is_unbound", False),
    )

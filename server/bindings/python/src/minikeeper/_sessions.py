"""Sessions: how verbs select them, and how the server describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Protocol, Tuple, Union


class Client(Protocol):
    """A client with a session, such as kazoo's: `client_id` is its id and password, or None without a session."""

    @property
    def client_id(self) -> Optional[Tuple[int, Any]]: ...


SessionLike = Union[int, str, "Session", Client]
"""A session's id as a number or "0x...", a Session, or a client with a `client_id`, such as kazoo's."""


@dataclass(frozen=True)
class Watch:
    """A watch of a session. `kind` is as in the control API, for example "data" or "child"."""

    path: str
    kind: str


@dataclass(frozen=True)
class LastOperation:
    """The last request of a session: its `name` in the protocol ("getData"), and its time by the universe's clock."""

    name: str
    at_ms: int


@dataclass(frozen=True)
class Session:
    """A session as the server sees it. Times are in milliseconds of the universe's clock."""

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


def who(
    session: Optional[SessionLike], address: Optional[str], identity: Optional[str], owner: Optional[str]
) -> Dict[str, str]:
    """Returns the one argument given that selects sessions, as a field of the control API."""
    named = {"address": address, "identity": identity, "owner": owner}
    given = {name: value for name, value in named.items() if value is not None}
    count = len(given) + (session is not None)
    if count != 1:
        raise TypeError(f"give exactly one of session, address, identity, owner; {count} given")
    return given if session is None else {"session": session_id(session)}


def session_id(session: SessionLike) -> str:
    """Returns a session's id as the control API accepts it."""
    if isinstance(session, Session):
        session = session.id
    elif hasattr(session, "client_id"):
        # kazoo: id and password, None before the first connection and after the session's end.
        if session.client_id is None:
            raise ValueError("this client has no session at the moment")
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


def signed(session: str) -> int:
    """Returns a session's id as clients have it, which is signed."""
    id = int(session, 0)
    return id - (1 << 64) if id >= 1 << 63 else id


def session_of(one: Mapping[str, Any]) -> Session:
    return Session(
        id=signed(one["id"]),
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

"""Sessions: how verbs select them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Protocol, Tuple, Union

if TYPE_CHECKING:
    from ._verbs import Session


class Client(Protocol):
    """A client with a session, such as kazoo's: `client_id` is its id and password, or None without a session."""

    @property
    def client_id(self) -> Optional[Tuple[int, Any]]: ...


SessionLike = Union[int, str, "Session", Client]
"""A session's id as a number or "0x...", a Session, or a client with a `client_id`, such as kazoo's."""


class SessionBase:
    """What the generated class `Session` has besides its fields."""

    id: int

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
    if isinstance(session, SessionBase):
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


def signed(session: str) -> int:
    """Returns a session's id as clients have it, which is signed."""
    id = int(session, 0)
    return id - (1 << 64) if id >= 1 << 63 else id

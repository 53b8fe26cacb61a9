"""An injected fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from ._errors import MinikeeperError

if TYPE_CHECKING:
    from ._verbs import Verbs


@dataclass(frozen=True)
class Hit:
    """What a fault has acted on: an operation by its name in the protocol ("getData"), "connect" for a handshake."""

    session: Optional[str]
    """The session's id, "0x1a2b0000000001"."""
    op: str
    path: Optional[str]
    xid: Optional[int]
    """The number that the client gave the request."""


class Fault:
    """An injected fault. The end of its `with` block removes it.

    A fault that has never acted has tested nothing: then the end raises MinikeeperError (409), unless the fault was
    injected with `optional=True` or already removed, or the block raises another exception.
    """

    def __init__(self, universe: Verbs, id: int) -> None:
        self._universe, self.id = universe, id
        self._hits: Optional[int] = None

    def hits(self) -> int:
        """Returns how often it has acted so far. Raises MinikeeperError (404) if another caller has removed it."""
        if self._hits is not None:
            return self._hits
        return int(self._listed()["hits"])

    def last_hit(self) -> Optional[Hit]:
        """Returns what it has acted on last, or None if it has not acted. Raises MinikeeperError (404) if it was removed."""
        hit = self._listed()["last_hit"]
        return None if hit is None else Hit(hit["session"], hit["op"], hit["path"], hit["xid"])

    def _listed(self) -> Dict[str, Any]:
        for fault in self._universe.faults():
            if fault["fault"] == self.id:
                return fault
        raise MinikeeperError(f"fault {self.id}: unknown, or removed", 404)

    def until_hit(self, hits: int = 1, *, within_ms: int = 10_000) -> int:
        """Waits until it has acted `hits` times, and returns how often it has. Raises WaitTimedOut."""
        return self._universe.until_hit(self.id, hits, within_ms=within_ms)

    def remove(self) -> int:
        """Removes it. Returns how often it has acted.

        Raises MinikeeperError: 404 if it was already removed; 409 if it has never acted and is not optional, in which
        case it is removed anyway.
        """
        try:
            self._hits = self._universe.remove_fault(self.id)
        except MinikeeperError as error:
            if error.status == 409:
                self._hits = 0
            raise
        return self._hits

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, exception: object, *_: object) -> None:
        if self._hits is not None:
            return
        try:
            self.remove()
        except MinikeeperError as error:
            # An exception from the block tells more. A missing fault was removed on purpose.
            if exception is None and error.status != 404:
                raise

    def __repr__(self) -> str:
        return f"<Fault {self.id}>"


def fault_id(fault: Union[Fault, int]) -> int:
    """Returns the number of a fault, which may already be a number."""
    return fault.id if isinstance(fault, Fault) else fault

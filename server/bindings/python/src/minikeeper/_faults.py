"""Verbs of a test: faults."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._control import Control
from ._errors import MinikeeperError
from ._waiting import WITHIN_MS


class Fault:
    """A rule that is in force. At the end of a `with` it is removed.

    One that has never acted has tested nothing: its end raises MinikeeperError (409), unless it was injected with
    `optional=True`, was removed by hand before, or another exception is on its way.
    """

    def __init__(self, control: Control, id: Any) -> None:
        self._control, self.id = control, id
        self._hits: Optional[int] = None

    def hits(self) -> int:
        """How often it has acted so far. Raises MinikeeperError (404) if somebody else has removed it."""
        if self._hits is not None:
            return self._hits
        for fault in self._control.read("faults")["faults"]:
            if fault.get("fault", fault.get("id")) == self.id:
                return int(fault["hits"])
        raise MinikeeperError(f"fault {self.id}: unknown, or removed by somebody else", 404)

    def until_hit(self, hits: int = 1, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until it has been met so often. Raises WaitTimedOut after `within_ms` (10,000 by default)."""
        self._control.do("until_hit", {"fault": self.id, "hits": hits, "within_ms": within_ms})

    def remove(self) -> int:
        """Takes it back. Returns how often it has acted.

        Raises MinikeeperError: 404 if it is gone already, 409 if it has never acted and is not optional; it is taken
        back all the same.
        """
        try:
            self._hits = _remove(self._control, self.id)
        except MinikeeperError as error:
            if error.status == 409:
                self._hits = 0
            raise
        return self._hits

    def __enter__(self) -> "Fault":
        return self

    def __exit__(self, exception: object, *_: object) -> None:
        if self._hits is not None:
            return
        try:
            self.remove()
        except MinikeeperError as error:
            # What goes wrong already tells more, and who has removed it by hand knows.
            if exception is None and error.status != 404:
                raise

    def __repr__(self) -> str:
        return f"<Fault {self.id}>"


def _remove(control: Control, id: Any) -> int:
    return int(control.do("remove_fault", {"fault": id}).get("hits", 0))


class Faults:
    """Rules on what goes wrong, when, for whom."""

    _control: Control

    def inject(self, fault: Optional[Dict[str, Any]] = None, /, **fields: Any) -> Fault:
        """Adds a rule: the fields of a fault in the control API, as keywords or as one mapping.

        `with server.inject(...) as fault:` removes it at the end, which raises MinikeeperError if it has never acted;
        `optional=True` says that it need not. Raises MinikeeperError (400) if it makes no sense.
        """
        return Fault(self._control, self._control.do("inject", {**(fault or {}), **fields})["fault"])

    def faults(self) -> List[Dict[str, Any]]:
        """The rules in force, each with its id and its `hits`."""
        return list(self._control.read("faults")["faults"])

    def remove_fault(self, fault: Any) -> int:
        """Takes a rule back, given itself or its id: see `Fault.remove`."""
        return fault.remove() if isinstance(fault, Fault) else _remove(self._control, fault)

    def reset_faults(self) -> None:
        """Takes all rules back, whether they have acted or not."""
        self._control.do("reset_faults")

    def until_hit(self, fault: Any, hits: int = 1, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until a rule has been met so often. Raises WaitTimedOut after `within_ms` (10,000 by default)."""
        id = getattr(fault, "id", fault)
        self._control.do("until_hit", {"fault": id, "hits": hits, "within_ms": within_ms})

"""Verbs of a test: faults."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._control import Control
from ._waiting import WITHIN_MS


class Fault:
    """A rule that is in force. At the end of a `with` it is removed."""

    def __init__(self, control: Control, id: Any) -> None:
        self._control, self.id = control, id

    def hits(self) -> int:
        """How often it was met so far."""
        for fault in self._control.read("faults")["faults"]:
            if fault.get("fault", fault.get("id")) == self.id:
                return int(fault["hits"])
        return 0

    def until_hit(self, hits: int = 1, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until it has been met so often. Raises WaitTimedOut after `within_ms` (10,000 by default)."""
        self._control.do("until_hit", {"fault": self.id, "hits": hits, "within_ms": within_ms})

    def remove(self) -> None:
        """Takes it back. Raises MinikeeperError (404) if it is gone already."""
        self._control.do("remove_fault", {"fault": self.id})

    def __enter__(self) -> "Fault":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Fault {self.id}>"


class Faults:
    """Rules on what goes wrong, when, for whom."""

    _control: Control

    def inject(self, fault: Optional[Dict[str, Any]] = None, /, **fields: Any) -> Fault:
        """Adds a rule: the fields of a fault in the control API, as keywords or as one mapping.

        `with server.inject(...) as fault:` removes it at the end. Raises MinikeeperError (400) if it makes no sense.
        """
        return Fault(self._control, self._control.do("inject", {**(fault or {}), **fields})["fault"])

    def faults(self) -> List[Dict[str, Any]]:
        """The rules in force, each with its id and its `hits`."""
        return list(self._control.read("faults")["faults"])

    def remove_fault(self, fault: Any) -> None:
        """Takes a rule back, given itself or its id."""
        self._control.do("remove_fault", {"fault": getattr(fault, "id", fault)})

    def reset_faults(self) -> None:
        """Takes all rules back."""
        self._control.do("reset_faults")

    def until_hit(self, fault: Any, hits: int = 1, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until a rule has been met so often. Raises WaitTimedOut after `within_ms` (10,000 by default)."""
        id = getattr(fault, "id", fault)
        self._control.do("until_hit", {"fault": id, "hits": hits, "within_ms": within_ms})

"""Verbs of a test: waiting for what clients do, without sleeping."""

from __future__ import annotations

from ._control import Control

WITHIN_MS = 10_000


class Waiting:
    """Each waits at most `within_ms` milliseconds of real time (10,000 by default) and raises WaitTimedOut then, with
    a text that says what was seen instead."""

    _control: Control

    def until_watched(self, path: str, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until somebody watches a path."""
        self._control.do("until_watched", {"path": path, "within_ms": within_ms})

    def until_children(self, path: str, count: int, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until a znode has so many children."""
        self._control.do("until_children", {"path": path, "count": count, "within_ms": within_ms})

    def until_contenders(self, lock: str, count: int, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until so many contenders stand in the queue of a lock, its holder included."""
        self._control.do("until_contenders", {"lock": lock, "count": count, "within_ms": within_ms})

    def until_sessions(self, count: int, *, within_ms: int = WITHIN_MS) -> None:
        """Waits until there are exactly so many sessions, connected or not: those that `sessions` lists."""
        self._control.do("until_sessions", {"count": count, "within_ms": within_ms})

    def until_idle(self, *, quiet_ms: int = 50, within_ms: int = WITHIN_MS) -> None:
        """Waits until no client has asked anything but pings for `quiet_ms` milliseconds (50 by default)."""
        self._control.do("until_idle", {"quiet_ms": quiet_ms, "within_ms": within_ms})

"""Verbs of a test: time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from ._control import Control


@dataclass(frozen=True)
class Now:
    """What a universe's clock shows.

    `elapsed_ms` counts from its start and decides about expiry; `wall_ms` is the time of day that stats show, in
    milliseconds since 1970; `is_frozen` says that it stands still.
    """

    elapsed_ms: int
    wall_ms: int
    is_frozen: bool


class Time:
    """The clock on which sessions, times to live, containers and delays of faults live."""

    _control: Control

    def now(self) -> Now:
        """What the clock shows."""
        answer = self._control.read("now")
        return Now(answer["elapsed_ms"], answer["wall_ms"], answer["is_frozen"])

    def advance(self, *, by_ms: int, strict: bool = False) -> None:
        """Moves the clock ahead by so many milliseconds, deadline by deadline.

        Connected sessions live on, however far it moves: their clients would have sent pings on the way. Those without
        a connection, silenced, or whose pings a fault loses, expire. With `strict` connected ones do too, as if no client
        had said a word.

        When it returns, everything that was due has happened and been sent. Raises MinikeeperError if `by_ms` is
        negative.
        """
        self._control.do("advance", {"by_ms": by_ms, **({"strict": True} if strict else {})})

    def freeze(self) -> None:
        """Stops the clock: nothing expires, whoever sleeps or is stopped at a breakpoint."""
        self._control.do("freeze")

    def unfreeze(self) -> None:
        """Lets the clock go on from where it stands."""
        self._control.do("unfreeze")

    def auto_advance(self, *, idle_ms: Optional[int]) -> None:
        """Moves the clock to its next deadline whenever no client has asked anything for `idle_ms` milliseconds.

        Connected sessions live on, as with `advance`. None switches that off, which is the default.
        """
        self._control.do("auto_advance", {"idle_ms": idle_ms})

"""What the runs of a sweep are, and what they show."""

from __future__ import annotations

import dataclasses
from typing import List, Literal, Optional, Tuple

from .universe import Universe


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that has begun."""

    number: int
    points: str
    universe: Universe
    start: int = 1
    """2 after the death of its clients."""

    @property
    def words(self) -> str:
        """How reports call it."""
        return f"run with {self.points}" if self.points else "run without faults"

    @property
    def may_crash(self) -> bool:
        """Whether its clients can die by a fault, so that the test begins again."""
        return self.start == 1 and any(point.startswith("client-crash:") for point in self.points.split("+"))

    def again(self) -> Run:
        """Returns its second start, in the same universe."""
        return dataclasses.replace(self, start=self.start + 1)


@dataclasses.dataclass
class Result:
    """What a run has shown."""

    outcome: Literal["passed", "failed", "hung"] = "passed"
    failure: Optional[str] = None
    place: Optional[str] = None
    """The line of the test, FILE:LINE."""
    story: Optional[str] = None
    """The page with the story of the failure."""
    sections: List[Tuple[str, str]] = dataclasses.field(default_factory=list)
    """For the report of the test."""

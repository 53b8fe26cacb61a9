"""What goes wrong."""

from __future__ import annotations

from typing import Optional


class MinikeeperError(Exception):
    """A verb that did not do what was asked, or a program that did not run. Its text is a sentence for people.

    `status` is that of the HTTP answer: 400 for input that makes no sense, 401 and 403 for a caller without access,
    404 for something that is not there, 409 for something that cannot be done now; None without an answer.
    """

    def __init__(self, text: str, status: Optional[int] = None) -> None:
        super().__init__(text)
        self.status = status


class WaitTimedOut(MinikeeperError, TimeoutError):
    """An `until_...` whose time ran out. The text says what was seen instead."""

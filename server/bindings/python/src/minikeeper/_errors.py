"""The errors of this package."""

from __future__ import annotations

from typing import Optional


class MinikeeperError(Exception):
    """A verb failed, or the program could not run. The text is an explanation for humans.

    `status` is the HTTP status: 400 for invalid input, 401 and 403 for a caller without access, 404 for a missing
    object, 409 if the server's state does not allow the call; None without an answer.
    """

    # The name that users import, which tracebacks and pickles show.
    __module__ = "minikeeper"

    def __init__(self, text: str, status: Optional[int] = None) -> None:
        super().__init__(text)
        self.status = status


class WaitTimedOut(MinikeeperError, TimeoutError):
    """An `until_...` timed out. The text says what was seen instead."""

    __module__ = "minikeeper"


class NotVerified(MinikeeperError, AssertionError):
    """`verify` found that the journal differs, or is off or incomplete. Runners report a failure, not an error."""

    __module__ = "minikeeper"

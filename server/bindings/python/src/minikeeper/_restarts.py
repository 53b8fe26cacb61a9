"""Verbs of a test: going down, coming up again."""

from __future__ import annotations

from ._control import Control


class Restarts:
    """A restart as clients see it, on the same port, without a new process.

    `keep` is "everything" (the default): data and sessions; "data": no session, so no ephemeral either; or "nothing".

    They are about the whole server: on a universe that was created they raise MinikeeperError (400), which says so.
    """

    _control: Control

    def go_down(self) -> str:
        """Cuts every connection of a client and refuses new ones until `come_up`.

        The verbs of this object work meanwhile. Others reach the server at the HOST:PORT that is returned:
        `Universe(server.go_down()).come_up()`.
        """
        return self._control.do("go_down")["control"]

    def come_up(self, *, keep: str = "everything") -> None:
        """Serves again."""
        self._control.do("come_up", {"keep": keep})

    def restart(self, *, keep: str = "everything") -> None:
        """Goes down and comes up."""
        self._control.do("restart", {"keep": keep})

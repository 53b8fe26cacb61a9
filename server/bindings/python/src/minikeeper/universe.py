"""A universe: every verb of a test."""

from __future__ import annotations

from typing import Any, List, Optional

from ._control import Control
from ._faults import Faults
from ._restarts import Restarts
from ._sessions import Sessions
from ._state import State
from ._time import Time
from ._waiting import Waiting


class Universe(Time, Sessions, Faults, State, Restarts, Waiting):
    """A tree with its own sessions, clock and faults, and every verb of a test.

    A `Server` is its own first one. `Universe("127.0.0.1:2181")` is that of a server that somebody else has started
    with `--control`; `token` is that of its `--control-token`.
    """

    def __init__(self, connect_string: str, *, token: Optional[str] = None, name: Optional[str] = None) -> None:
        address = connect_string.partition("/")[0]
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"no address {address!r}; write it as HOST:PORT")
        self._connect_string = connect_string
        self._address = address
        self._token = token
        self.name = name
        self._control = Control(host.strip("[]"), int(port), token, name)

    @property
    def address(self) -> str:
        """Where its server listens: HOST:PORT."""
        return self._address

    @property
    def connect_string(self) -> str:
        """What a ZooKeeper client connects to: HOST:PORT, and the chroot of a universe that has one."""
        return self._connect_string

    def create_universe(self, name: str) -> "Universe":
        """Creates an isolated universe behind the same port. Raises MinikeeperError (409) if there is one."""
        answer = self._control.do("create_universe", {"name": name})
        return Universe(answer["connect_string"], token=self._token, name=name)

    def fork(self, name: str) -> "Universe":
        """Creates a universe that begins as a copy of this one."""
        answer = self._control.do("fork", {"name": name})
        return Universe(answer["connect_string"], token=self._token, name=name)

    def universes(self) -> List[Any]:
        """The universes created and not dropped yet, as the control API tells them."""
        return list(self._control.read("universes")["universes"])

    def drop_universe(self, name: Optional[str] = None) -> None:
        """Ends a universe with all its connections: the one of that name, or this one."""
        name = self.name if name is None else name
        if name is None:
            raise TypeError("a server's own universe ends with the server: give a name")
        # It may not be asked to end itself.
        Control(self._control.host, self._control.port, self._token, None).do("drop_universe", {"name": name})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._connect_string}>"

"""A server of one's own."""

from __future__ import annotations

import os
from typing import List, Optional, Sequence, Union

from ._control import Control
from ._errors import MinikeeperError
from ._program import Program, find_program
from .universe import Universe


class Server(Universe):
    """The program `minikeeper` as a child of this process, on a free loopback port, with every verb of a test.

    It is up after a few milliseconds, and ends with this process, also when that is killed.

    >>> with Server() as server:
    ...     server.seed({"/config": "on"})
    ...     server.get("/config").data
    b'on'

    Arguments, all by name:

    - `port`: the port to listen on; 0, the default, takes a free one.
    - `data_dir`: a folder to keep everything in, from one run to the next; by default nothing is kept.
    - `tick_time_ms`, `min_session_timeout_ms`, `max_session_timeout_ms`: milliseconds; by default 3,000, and 2 and 20
      ticks. Clients get no shorter and no longer session than these two.
    - `options`: more options of the program, as on its command line.
    - `program`: the program; by default MINIKEEPER_BIN, else the one in this package, else what PATH has.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        data_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
        tick_time_ms: Optional[int] = None,
        min_session_timeout_ms: Optional[int] = None,
        max_session_timeout_ms: Optional[int] = None,
        options: Sequence[str] = (),
        program: Optional[str] = None,
    ) -> None:
        self.name = None
        self._token = None
        self._port = port
        self._program_path = program
        self._program: Optional[Program] = None
        self._options: List[str] = []
        for option, value in (
            ("--data-dir", data_dir),
            ("--tick-time", tick_time_ms),
            ("--min-session-timeout", min_session_timeout_ms),
            ("--max-session-timeout", max_session_timeout_ms),
        ):
            if value is not None:
                self._options += [option, os.fspath(value) if option == "--data-dir" else str(value)]
        self._options += options

    def start(self) -> "Server":
        """Starts it, unless it runs; after `stop` on the port it had. Returns itself.

        Raises MinikeeperError if there is no program, or it cannot run, with its reason.
        """
        if self._program is not None and self._program.is_running():
            return self
        program = Program(find_program(self._program_path), ["--port", str(self._port), *self._options])
        super().__init__(program.address)
        self._program = program
        self._port = self._control.port
        return self

    def ensure_ready(self) -> "Server":
        """Undoes what a test may have left on the server itself, so that clients can connect. Returns itself.

        Starts the program if it does not run, or does not answer; brings the server up if it is down; takes back the
        faults of its own universe, and lets its clock run. Znodes, sessions and universes stay. The fixture `minikeeper`
        does so before each test.
        """
        self.start()
        try:
            self.come_up()
        except MinikeeperError as error:
            if error.status is not None:
                raise
            # Another caller has taken it down, and knows the address at which to bring it up.
            self.kill()
            self.start()
        self.reset_faults()
        self.auto_advance(idle_ms=None)
        self.unfreeze()
        return self

    def stop(self) -> None:
        """Stops it, as SIGTERM does, and waits until it has stopped; it saves before if it has a `data_dir`.

        Nothing happens if it does not run. Raises MinikeeperError if it failed, with its reason.
        """
        program, self._program = self._program, None
        if program is not None:
            program.stop()

    def kill(self) -> None:
        """Ends it as a crash does: what it keeps is its last save."""
        program, self._program = self._program, None
        if program is not None:
            program.kill()

    @property
    def address(self) -> str:
        self._require_started()
        return super().address

    @property
    def connect_string(self) -> str:
        self._require_started()
        return super().connect_string

    @property
    def log(self) -> str:
        """What it has written to stderr: with `options=["--log", "debug"]` every request."""
        self._require_started()
        assert self._program is not None
        return self._program.said()

    def _require_started(self) -> None:
        if self._program is None:
            raise MinikeeperError("the server does not run: call start()")

    def __getattr__(self, name: str) -> Control:
        # Only what is missing comes here: the control API, before the first start.
        if name == "_control":
            raise MinikeeperError("the server does not run: call start()")
        raise AttributeError(name)

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = self._connect_string if self._program is not None else "stopped"
        return f"<Server {state}>"

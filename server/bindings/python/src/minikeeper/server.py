"""A server that a test starts."""

from __future__ import annotations

import os
import weakref
from typing import List, Optional, Sequence, Union

from . import _story
from ._control import Control
from ._errors import MinikeeperError
from ._program import Program, find_program
from ._values import names_nearest
from .universe import Universe


def server_of_sweep() -> Optional[str]:
    """The address of the server of `minikeeper sweep`, if that runs this process."""
    return os.environ.get("MINIKEEPER_CONNECT") if os.environ.get("MINIKEEPER_SWEEP_RUN") else None


def server_of_suite() -> Optional[str]:
    """The address of the server of `minikeeper sweep --suite`, if that runs this process."""
    return os.environ.get("MINIKEEPER_SWEEP_SUITE")


_running: "weakref.WeakSet[Server]" = weakref.WeakSet()


def let_go_of_programs() -> None:
    """In a forked process: lets the programs of its parent end with the parent, and not with this process."""
    for server in _running:
        if server._program is not None:
            server._program.let_go()


class Server(Universe):
    """The program `minikeeper` as a child of this process, on a free loopback port, with every verb.

    It starts within a few milliseconds and exits with this process, even if that is killed.

    >>> with Server() as server:
    ...     server.seed({"/config": "on"})
    ...     server.get("/config").data
    b'on'

    Keyword arguments:

    - `port`: the port to listen on; 0, the default, takes a free one.
    - `data_dir`: a folder that keeps the state between runs; by default nothing is kept.
    - `tick_time_ms`: the unit of session timeouts, by default 3,000.
    - `min_session_timeout_ms`, `max_session_timeout_ms`: the limits of session timeouts, by default 2 and 20 ticks.
    - `servers`: how many servers of one ensemble it plays, by default 1; `set_server` takes them down, so that clients
      fail over.
    - `options`: more options of the program, as on its command line.
    - `program`: the program; by default MINIKEEPER_BIN, else the one in this package, else the one in PATH.
    """

    @names_nearest
    def __init__(
        self,
        *,
        port: int = 0,
        data_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
        tick_time_ms: Optional[int] = None,
        min_session_timeout_ms: Optional[int] = None,
        max_session_timeout_ms: Optional[int] = None,
        servers: Optional[int] = None,
        options: Sequence[str] = (),
        program: Optional[str] = None,
    ) -> None:
        self.name = None
        self._token = None
        self._port = port
        self._program_path = program
        self._program: Optional[Program] = None
        self._options: List[str] = []
        if data_dir is not None:
            self._options += ["--data-dir", os.fspath(data_dir)]
        for option, value in (
            ("--tick-time", tick_time_ms),
            ("--min-session-timeout", min_session_timeout_ms),
            ("--max-session-timeout", max_session_timeout_ms),
            ("--servers", servers),
        ):
            if value is not None:
                self._options += [option, str(value)]
        self._options += options

    def start(self) -> "Server":
        """Starts it unless it is running; after `stop`, on the same port. Returns itself.

        Raises MinikeeperError with the reason if there is no program, or it cannot run, and under `minikeeper sweep`.
        """
        if self._program is not None and self._program.is_running():
            return self
        swept = server_of_sweep()
        if swept is not None:
            raise MinikeeperError(
                f"minikeeper sweep tries faults on its own server alone, which is at MINIKEEPER_CONNECT, {swept}: connect to "
                "that, or use the fixture minikeeper; or use the mark: mark the test with minikeeper_sweep, and run pytest "
                "without minikeeper sweep"
            )
        program = Program(find_program(self._program_path), ["--port", str(self._port), *self._options])
        super().__init__(program.address)
        self._program = program
        self._port = self._control.hosts[0][1]
        self._started_in = _story.current.test
        _running.add(self)
        return self

    def ensure_ready(self) -> "Server":
        """Undoes changes of a test to the whole server, so that clients can connect. Returns itself.

        Starts the program if it is not running or does not answer, brings the server up if it is down, removes the
        faults of its own universe, brings the servers of an ensemble up, and unfreezes its clock. Znodes, sessions and universes remain. The fixture
        `minikeeper` calls this before each test.
        """
        self.start()
        try:
            self.come_up()
        except MinikeeperError as error:
            if error.status is not None:
                raise
            # Another caller has taken it down, and only that caller knows where to bring it up.
            self.kill()
            self.start()
        for one in self.servers():
            if one["mode"] != "up":
                self.set_server(one["id"], mode="up")
        self.reset_faults()
        self.auto_advance(idle_ms=None)
        self.unfreeze()
        return self

    def stop(self) -> None:
        """Stops it, like SIGTERM, and waits until it has exited. It saves first if it has a `data_dir`.

        Does nothing if it is not running. Raises MinikeeperError with the reason if it fails.
        """
        program, self._program = self._program, None
        if program is not None:
            program.stop()

    def kill(self) -> None:
        """Kills it, as in a crash: it keeps its last save."""
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
        """What it has written to stderr; with `options=["--log", "debug"]`, every request."""
        self._require_started()
        assert self._program is not None
        return self._program.said()

    def _require_started(self) -> None:
        if self._program is None:
            raise MinikeeperError("the server is not running: call start()")

    def __getattr__(self, name: str) -> Control:
        # Called for missing attributes only, such as the control API before the first start.
        if name == "_control":
            raise MinikeeperError("the server is not running: call start()")
        raise AttributeError(name)

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, _type: object, error: Optional[BaseException], _traceback: object) -> None:
        never: List[str] = []
        try:
            if error is None:
                never = self._faults_that_never_acted_anywhere()
            else:
                # The test may be failing, and its report comes after the end of the server.
                _story.current.keep(self, f"{type(error).__name__}: {error}")
        finally:
            self.stop()
        if never:
            raise MinikeeperError("\n".join(never), 409)

    def _faults_that_never_acted_anywhere(self) -> List[str]:
        """Those of all its universes. A server that does not answer, such as one that the test has killed, is not asked."""
        if self._program is None or not self._program.is_running():
            return []
        never: List[str] = []
        try:
            never += self._faults_that_never_acted()
            for name in self.universes():
                universe = self._universe(name, f"{self._connect_string}/{name}")
                # While the server is down, control is elsewhere.
                universe._control._side = self._control._side
                never += universe._faults_that_never_acted()
        except MinikeeperError as error:
            # With --control-token in the options, the test has the token, and not this server.
            if error.status not in (None, 401):
                raise
        return never

    @classmethod
    def _started_in_test(cls, test: Optional[str]) -> "List[Server]":
        """Returns the servers that run and were started by this test."""
        return [server for server in _running if server._program is not None and server._started_in == test]

    def __repr__(self) -> str:
        state = self._connect_string if self._program is not None else "stopped"
        return f"<Server {state}>"


class SuiteServer(Server):
    """The server of `minikeeper sweep --suite`, which runs this process and stops the server."""

    def __init__(self, address: str) -> None:
        super().__init__()
        Universe.__init__(self, address)

    def start(self) -> "Server":
        return self

    def ensure_ready(self) -> "Server":
        # Other processes use it.
        return self

    def stop(self) -> None:
        pass

    def _require_started(self) -> None:
        pass

    def __repr__(self) -> str:
        return f"<SuiteServer {self._connect_string}>"

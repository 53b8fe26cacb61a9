"""Runs of a sweep in forked processes, several at a time: the interpreter and its modules stay warm."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import Any, Callable, Dict, List, NoReturn, Optional

import pytest

from .server import let_go_of_programs

READ_BYTES = 1 << 16

# Of Linux's prctl.
PR_SET_PDEATHSIG = 1

# Threads get this time to end after the first run. So many of the others are named.
THREADS_END_S = 1.0
NAMES_MAX = 3

# From the end of the pipe of a process to the end of the process.
END_S = 1.0
END_TRIES = 100


def why_not(item: pytest.Item) -> Optional[str]:
    """Says why the process of pytest cannot fork runs of a test, if it cannot."""
    if not hasattr(os, "fork"):
        return "this system has no fork"
    if item.config.getoption("usepdb", False):
        return "of --pdb"
    if threading.current_thread() is not threading.main_thread():
        return "pytest does not run in the main thread"
    others = _other_threads()
    if others:
        # A forked process would wait for what only they do.
        names = sorted(thread.name for thread in others)
        more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
        return f"the process has other threads: {', '.join(names[:NAMES_MAX])}{more}"
    if "minikeeper_shared_server" in getattr(item, "fixturenames", ()):
        return "the test uses the server of all runs"
    return None


def _other_threads() -> List[threading.Thread]:
    """Returns the threads that do not end soon."""
    deadline = time.monotonic() + THREADS_END_S
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(deadline - time.monotonic(), 0))
    return [thread for thread in others if thread.is_alive()]


class Child:
    """A forked process that does one thing, and sends what comes of it, a JSON object."""

    def __init__(self, item: pytest.Item, act: Callable[[Callable[[Any], NoReturn]], Any], limit_s: float) -> None:
        """`act` gets a function that sends a result early, and ends the process."""
        self.deadline = time.monotonic() + limit_s
        self._received = bytearray()
        self._ended: Optional[str] = None
        parent, prctl = os.getpid(), _prctl()
        reader, writer = os.pipe()
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            # What is in a buffer would be written twice.
            with contextlib.suppress(Exception):
                stream.flush()  # type: ignore[union-attr]
        with warnings.catch_warnings():
            # Of Python 3.12, about threads. Those of xdist, which only send and receive for this process, do not matter.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                self.pid = os.fork()
            except OSError:
                os.close(reader)
                os.close(writer)
                raise
        if self.pid == 0:
            os.close(reader)
            if prctl is not None:
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == parent:
                _be_child(item, act, writer)
            os._exit(1)
        os.close(writer)
        os.set_blocking(reader, False)
        self._reader = reader

    def fileno(self) -> int:
        return self._reader

    def read(self) -> Optional[Dict[str, Any]]:
        """Reads what can be read. Returns the result if it is complete, or why there will be none as `died`."""
        while True:
            try:
                received = os.read(self._reader, READ_BYTES)
            except BlockingIOError:
                return None
            if not received:
                return {"died": self._end()}
            self._received += received
            if self._received.endswith(b"\n"):
                self.kill()
                result: Dict[str, Any] = json.loads(self._received)
                return result

    def poll(self) -> Optional[Dict[str, Any]]:
        """Like `read`, also if another process keeps the pipe open. Returns `hung` if the time is over."""
        ended = self._reap(os.WNOHANG)
        if ended is not None:
            return self.read() or {"died": ended}
        if time.monotonic() < self.deadline:
            return None
        self.kill()
        return {"hung": True}

    def _end(self) -> str:
        """Says how the process, which has closed its pipe, has ended."""
        for _ in range(END_TRIES):
            ended = self._reap(os.WNOHANG)
            if ended is not None:
                return ended
            time.sleep(END_S / END_TRIES)
        self.kill()
        return "closed its pipe to pytest"

    def kill(self) -> None:
        """Kills it, and waits for its end."""
        if self._ended is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._reap(0)

    def close(self) -> None:
        self.kill()
        os.close(self._reader)

    def _reap(self, options: int) -> Optional[str]:
        """Says how the process has ended, or returns None if it has not."""
        if self._ended is not None:
            return self._ended
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            # Another part of this process has waited for it, such as a handler of SIGCHLD.
            self._ended = "ended"
            return self._ended
        if pid == 0:
            return None
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            names = {one.value: one.name for one in signal.Signals}
            self._ended = f"was killed by {names.get(number, f'signal {number}')}"
        else:
            self._ended = f"exited with code {os.WEXITSTATUS(status)}"
        return self._ended


@functools.lru_cache(maxsize=None)
def _prctl() -> Optional[Callable[[int, int], Any]]:
    """Returns what lets the system kill a process when its parent dies. None but on Linux: there it ends with its run."""
    if not sys.platform.startswith("linux"):
        return None
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        function: Callable[[int, int], Any] = ctypes.CDLL(None).prctl
        return function
    return None


def _be_child(item: pytest.Item, act: Callable[[Callable[[Any], NoReturn]], Any], writer: int) -> NoReturn:
    """Sends what `act` returns, and ends the process without waiting for anything."""

    def send(result: Any) -> NoReturn:
        try:
            left = memoryview(json.dumps(result).encode() + b"\n")
            while left:
                left = left[os.write(writer, left) :]
        finally:
            os._exit(0)

    try:
        # A collection would touch, and so copy, the pages of every object of pytest.
        gc.freeze()
        let_go_of_programs()
        _keep_apart(item)
        send(act(send))
    except KeyboardInterrupt:
        send({"interrupted": True})
    except pytest.exit.Exception as error:
        send({"exit": error.msg, "code": error.returncode})
    except BaseException:
        send({"error": traceback.format_exc()})
    finally:
        os._exit(1)


def _keep_apart(item: pytest.Item) -> None:
    """Gives this process output of its own, and none of what pytest sends to other processes."""
    plugins = item.config.pluginmanager
    capturing: Any = getattr(plugins.getplugin("capturemanager"), "_global_capturing", None)
    for stream in ("out", "err"):
        file: Any = getattr(getattr(capturing, stream, None), "tmpfile", None)
        # An open file has one position for all processes. With sys.stdout alone captured, there is no file.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            shared = file.fileno()
            own = os.memfd_create("output") if hasattr(os, "memfd_create") else _temporary()
            os.dup2(own, shared, inheritable=False)
            os.close(own)
    for plugin in list(plugins.get_plugins()):
        # It sends to the main process of xdist.
        if type(plugin).__name__ == "WorkerInteractor":
            plugins.unregister(plugin)


def _temporary() -> int:
    import tempfile

    with tempfile.TemporaryFile(buffering=0) as file:
        return os.dup(file.fileno())

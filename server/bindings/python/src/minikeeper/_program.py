"""The program `minikeeper` as a child of this process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import selectors
import shutil
import subprocess
import tempfile
import time
from typing import IO, List, Optional, Sequence

from ._errors import MinikeeperError

START_S = 30.0
STOP_S = 10.0
BUNDLED = pathlib.Path(__file__).with_name("bin") / "minikeeper"


def find_program(named: Optional[str] = None, *, search_path: bool = True) -> str:
    """Finds the program: `named`, else MINIKEEPER_BIN, else the one in this package, else the one in PATH.

    Raises MinikeeperError if there is none.
    """
    named = named or os.environ.get("MINIKEEPER_BIN")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise MinikeeperError(f"no program at {named!r}")
        return os.path.abspath(named)
    if BUNDLED.is_file():
        return str(BUNDLED)
    found = shutil.which("minikeeper") if search_path else None
    if found is None:
        raise MinikeeperError("no program minikeeper: install the wheel that contains it, or set MINIKEEPER_BIN")
    return found


class Program:
    """One run of the program. It exits with this process, even if that is killed: its stdin is a pipe from here."""

    def __init__(self, program: str, options: Sequence[str]) -> None:
        # stderr goes to a file, because the program would block on a full pipe.
        self.stderr: IO[bytes] = tempfile.TemporaryFile()
        command: List[str] = [program, "serve", "--control", "--exit-on-stdin-eof", *options]
        try:
            self.child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, bufsize=0
            )
        except OSError as error:
            self.stderr.close()
            raise MinikeeperError(f"cannot run {program!r}: {error}") from None
        try:
            self.address = self._read_address()
        except BaseException:
            self.kill()
            raise

    def _read_address(self) -> str:
        """Reads the first line, `minikeeper VERSION listening on ADDRESS`, which is printed once it listens."""
        stdout = self.child.stdout
        assert stdout is not None
        line, deadline = b"", time.monotonic() + START_S
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in line:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise MinikeeperError(f"minikeeper did not listen within {START_S:.0f} s")
                piece = stdout.read(4096)
                if not piece:
                    code = self.child.wait()
                    raise MinikeeperError(f"minikeeper exited with code {code} at startup: {self.said()}")
                line += piece
        return line.split(b"\n", 1)[0].rsplit(b" ", 1)[-1].decode()

    def said(self) -> str:
        """Returns what it has written to stderr so far: its log, and why it exited."""
        # Does not seek: the program shares the file position and must continue to write at the end.
        size = os.fstat(self.stderr.fileno()).st_size
        return os.pread(self.stderr.fileno(), size, 0).decode(errors="replace").strip()

    def is_running(self) -> bool:
        return self.child.poll() is None

    def stop(self) -> None:
        """Stops it and waits until it has exited. Raises MinikeeperError with the reason if it fails."""
        assert self.child.stdin is not None
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        # A forked process may still hold the pipe open, so SIGTERM as well.
        with contextlib.suppress(OSError):
            self.child.terminate()
        try:
            code = self.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise MinikeeperError(f"minikeeper did not stop within {STOP_S:.0f} s and was killed") from None
        said = self.said()
        self._close()
        if code != 0:
            raise MinikeeperError(f"minikeeper exited with code {code}: {said}")

    def kill(self) -> None:
        """Kills it, as in a crash."""
        self.child.kill()
        self.child.wait()
        self._close()

    def _close(self) -> None:
        for stream in (self.child.stdin, self.child.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

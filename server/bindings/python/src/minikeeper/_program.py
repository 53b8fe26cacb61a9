"""The program `minikeeper` as a child of this process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
from typing import IO, List, Optional, Sequence

from ._errors import MinikeeperError

START_S = 30.0
STOP_S = 10.0
IS_WINDOWS = os.name == "nt"
BUNDLED = pathlib.Path(__file__).with_name("bin") / ("minikeeper.exe" if IS_WINDOWS else "minikeeper")


def find_program(named: Optional[str] = None, *, search_path: bool = True) -> str:
    """Finds the program: `named`, else MINIKEEPER_BIN, else the one in this package, else the one in PATH.

    Raises MinikeeperError if there is none.
    """
    named = named or os.environ.get("MINIKEEPER_BIN")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            # Unlike a shell, this looks for a bare name in no folder of PATH.
            is_name = os.path.basename(named) == named
            path = "; it must be a path, such as /usr/bin/minikeeper" if is_name else ""
            raise MinikeeperError(f"no program at {named!r}{path}")
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
        # stderr goes to a file, because the program would block on a full pipe. On Windows the file has a name, by which
        # `said` opens it again.
        self.stderr: IO[bytes] = tempfile.NamedTemporaryFile(delete=False) if IS_WINDOWS else tempfile.TemporaryFile()
        command: List[str] = [program, "serve", "--control", "--exit-on-stdin-eof", *options]
        try:
            self.child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, bufsize=0
            )
        except OSError as error:
            self._close_stderr()
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
        lines: List[bytes] = []
        # On a thread, because Windows cannot wait for a pipe with a limit.
        reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
        reader.start()
        reader.join(START_S)
        if not lines:
            raise MinikeeperError(f"minikeeper did not listen within {START_S:.0f} s")
        if not lines[0].endswith(b"\n"):
            code = self.child.wait()
            raise MinikeeperError(f"minikeeper exited with code {code} at startup: {self.said()}")
        return lines[0].split()[-1].decode()

    def said(self) -> str:
        """Returns what it has written to stderr so far: its log, and why it exited."""
        # Does not seek: the program shares the file position and must continue to write at the end.
        if IS_WINDOWS:  # without pread
            return pathlib.Path(self.stderr.name).read_bytes().decode(errors="replace").strip()
        size = os.fstat(self.stderr.fileno()).st_size
        return os.pread(self.stderr.fileno(), size, 0).decode(errors="replace").strip()

    def is_running(self) -> bool:
        return self.child.poll() is None

    def stop(self) -> None:
        """Stops it and waits until it has exited. Raises MinikeeperError with the reason if it fails."""
        assert self.child.stdin is not None
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        # A forked process may still hold the pipe open, so SIGTERM as well. Windows has neither, and would kill it.
        if not IS_WINDOWS:
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

    def let_go(self) -> None:
        """In a forked process: closes its copy of the pipe that keeps the program running."""
        if self.child.stdin is not None:
            self.child.stdin.close()

    def _close(self) -> None:
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._close_stderr()

    def _close_stderr(self) -> None:
        with contextlib.suppress(OSError):
            self.stderr.close()
            if IS_WINDOWS:
                os.unlink(self.stderr.name)

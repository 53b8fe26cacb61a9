"""The command `minikeeper`, also as `python -m minikeeper`: runs the program in the package with the same arguments."""

from __future__ import annotations

import os
import subprocess
import sys

from ._errors import MinikeeperError
from ._program import find_program


def main() -> int:
    """Runs the program and returns its exit code. On Unix the program takes the place of this process."""
    try:
        # Not the one in PATH, which may be this command.
        program = find_program(search_path=False)
        if os.path.realpath(program) == os.path.realpath(sys.argv[0]):
            raise MinikeeperError("MINIKEEPER_BIN names this command instead of the program")
        command = [program, *sys.argv[1:]]
        if os.name == "posix":
            os.execv(program, command)
        return subprocess.call(command)
    except (MinikeeperError, OSError) as error:
        print(f"minikeeper: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

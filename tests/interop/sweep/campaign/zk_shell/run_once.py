"""zk-shell in scripts: `--run-once` exits with 0 if the command has succeeded."""

import os
import subprocess
import sys
from pathlib import Path

from client import connect, create, fail
from common import run


def shell(command):
    """Runs a command, and returns whether it says that it has succeeded."""
    words = [Path(sys.executable).parent / "zk-shell", os.environ["MINIKEEPER_CONNECT"], "--run-once", command]
    return subprocess.run(words, stdin=subprocess.DEVNULL).returncode == 0


def copy():
    zk = connect()
    for path in ("/from", "/from/a"):
        create(zk, path, b"1")
    succeeded = shell("cp /from /to true")
    if succeeded and not zk.retry(zk.exists, "/to/a"):
        fail("cp exits with 0, and has not copied the tree")


def set_data():
    zk = connect()
    create(zk, "/data", b"1")
    succeeded = shell("set /data 2")
    if succeeded and zk.retry(zk.get, "/data")[0] != b"2":
        fail("set exits with 0, and has not set the data")


run({scenario.__name__: scenario for scenario in (copy, set_data)}, sys.argv[1])

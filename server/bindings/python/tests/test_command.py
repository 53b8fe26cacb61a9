"""The command `minikeeper`, and `python -m minikeeper`."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest
from conftest import PATIENCE_S, connected

from minikeeper import Universe

SCRIPT = pathlib.Path(sys.executable).with_name("minikeeper")
COMMANDS = [[str(SCRIPT)], [sys.executable, "-m", "minikeeper"]]


def run(command, *arguments, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, env=environment, stdin=subprocess.DEVNULL
    )


@pytest.fixture(params=COMMANDS, ids=["script", "module"])
def command(request):
    if not SCRIPT.exists():
        pytest.skip("minikeeper is not installed from its wheel")
    return request.param


def test_command_passes_on_arguments_and_exit_code(command):
    printed = run(command, "--version")
    assert printed.returncode == 0 and printed.stdout.startswith("minikeeper ") and printed.stderr == ""
    wrong = run(command, "--no-such-option")
    assert wrong.returncode == 2 and "--no-such-option" in wrong.stderr


def test_command_serves_as_this_process_and_stops_on_a_signal(command, tmp_path):
    address_file = tmp_path / "address"
    arguments = ["--port", "0", "--address-file", str(address_file)]
    with subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split()[-1]
            with connected(Universe(address)) as client:
                assert client.exists("/")
            # exec: no Python process stands between the caller and the program.
            assert os.readlink(f"/proc/{server.pid}/exe").endswith("/bin/minikeeper")
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE_S) == 0
        finally:
            server.kill()


def test_command_starts_the_shell(command, minikeeper):
    minikeeper.seed({"/config": "on"})
    printed = run(command, "cli", "-server", minikeeper.connect_string, "get", "/config", PATH="")
    assert (printed.returncode, printed.stdout.strip()) == (0, "on"), printed


def test_command_says_that_there_is_no_program(command):
    printed = run(command, "--version", MINIKEEPER_BIN="/no/such")
    assert (printed.returncode, printed.stderr) == (1, "minikeeper: no program at '/no/such'\n")


def test_command_does_not_run_itself():
    printed = run([str(SCRIPT)], "--version", MINIKEEPER_BIN=str(SCRIPT))
    assert printed.returncode == 1 and "names this command instead of the program" in printed.stderr, printed

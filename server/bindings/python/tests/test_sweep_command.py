"""pytest under `minikeeper sweep`: its fixtures use the server of the sweep, or say that they cannot."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import minikeeper
import pytest

PROGRAM = pathlib.Path(minikeeper.__file__).with_name("bin") / "minikeeper"
PATIENCE_S = 120

pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="the package has no program")


@pytest.fixture
def sweep(tmp_path):
    """Sweeps `pytest` over a test. Returns the exit code and what was printed."""

    def sweep(code, *options, conftest="", pytest_options=(), environment=None):
        (tmp_path / "test_it.py").write_text("import pytest\n" + code)
        (tmp_path / "conftest.py").write_text(conftest)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *pytest_options, "test_it.py"]
        others = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
        swept = subprocess.run(
            [PROGRAM, "sweep", "--fault", "reply-lost", *options, "--", *command],
            cwd=tmp_path,
            env={**others, "PYTEST_ADDOPTS": "", **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
        )
        return swept.returncode, swept.stdout

    return sweep


ORDERS = """
def place(client):
    client.retry(client.create, "/orders/n-", sequence=True)

def test_first(minikeeper, kazoo_client):
    minikeeper.seed({"/orders": ""})
    place(kazoo_client)
    assert len(minikeeper.children("/orders")) == 1, "an orphan"

def test_second(minikeeper, kazoo_client):
    assert minikeeper.children("/") == ["zookeeper"]
    minikeeper.seed({"/other": ""})
    kazoo_client.retry(kazoo_client.exists, "/other")
"""


def test_fixtures_use_the_server_of_the_sweep_and_its_tests_share_nothing(sweep):
    # They started a server of their own, on which no fault acted.
    code, printed = sweep(ORDERS)
    assert code == 1, printed
    assert "--only 'reply-lost:1:create:1:/orders/n-'" in printed and "an orphan" in printed, printed
    assert " 1 failed" in printed, printed
    sound = ORDERS.replace('client.create, "/orders/n-", sequence=True', 'client.ensure_path, "/orders/1"')
    code, printed = sweep(sound)
    assert code == 0, printed


def test_fault_of_a_test_is_its_own(sweep):
    code, printed = sweep(
        """
def test_first(minikeeper, kazoo_client):
    minikeeper.inject(action="error", error="NONODE", op="exists", path="/a", optional=True)
    kazoo_client.retry(kazoo_client.exists, "/b")

def test_second(minikeeper, kazoo_client):
    assert all(fault["action"] != "error" for fault in minikeeper.faults())
    kazoo_client.retry(kazoo_client.exists, "/c")
"""
    )
    assert code == 0, printed
    code, printed = sweep("def test_it(minikeeper): minikeeper.inject(action='cut', op='create')")
    assert code == 1 and "fault 1 (cut, op create): ended and never" in printed, printed


@pytest.mark.parametrize(
    "code",
    [
        "def test_it(minikeeper_server): pass",
        "def test_it(minikeeper, minikeeper_server): pass",
        "def test_it(minikeeper_shared_server): pass",
        "import minikeeper\ndef test_it(): minikeeper.Server().start()",
    ],
)
def test_test_with_a_server_of_its_own_is_told_to_use_the_mark(sweep, code):
    # It was green.
    code, printed = sweep(code)
    assert code == 1, printed
    assert "use the mark" in printed and "MINIKEEPER_CONNECT" in printed, printed


def test_processes_of_xdist_share_the_server_of_a_suite(sweep):
    # Their universes had the same names.
    if importlib.util.find_spec("xdist") is None:
        pytest.skip("pytest-xdist is not installed")
    tests = """
@pytest.mark.parametrize("number", range(4))
def test_it(kazoo_client, number):
    kazoo_client.retry(kazoo_client.ensure_path, f"/{number}")
"""
    code, printed = sweep(tests, "--suite", pytest_options=("-n", "2"))
    assert code == 0 and "4 passed" in printed and "4 tests swept, 4 of them clean" in printed, printed


def test_test_that_sweeps_by_itself_is_refused(sweep):
    code, printed = sweep("@pytest.mark.minikeeper_sweep\ndef test_it(kazoo_client): pass")
    assert code == 1 and "the test sweeps by itself: run pytest without minikeeper sweep" in printed, printed
    # The reason was there twice.
    assert "During handling" not in printed, printed


def test_options_and_processes_that_a_sweep_cannot_have_are_refused(sweep):
    options = "import pytest\n@pytest.fixture(scope='session')\ndef minikeeper_options(): return {'tick_time_ms': 200}"
    code, printed = sweep("def test_it(minikeeper): pass", conftest=options)
    assert code == 1 and "minikeeper_options cannot change its server" in printed, printed
    code, printed = sweep("def test_it(minikeeper): pass", environment={"PYTEST_XDIST_WORKER": "gw0"})
    assert code == 1 and "run pytest with -n 0" in printed, printed

"""The runs of a sweep, several at a time in forked processes of pytest."""

import importlib.util
import os
import pathlib
import re
import sys
import time
import xml.etree.ElementTree

import pytest
from test_sweep_mark import HEADER, ORPHAN, POINT, counted

pytest_plugins = ["pytester"]

pytestmark = [
    pytest.mark.needs("sweep_start", "sweep_next", "sweep_end", "sweep_report"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]

PATIENCE_S = 60


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("MINIKEEPER_STORIES", "off")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(code, *options):
        pytester.makepyfile(test_it=code)
        result = pytester.run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, timeout=PATIENCE_S)
        return result, result.stdout.str() + result.stderr.str()

    return run


# Each run leaves a file with the name of its process. `meet` waits for another run with a fault.
RUNS = (
    HEADER
    + """
import os, pathlib, time

FOLDER = pathlib.Path(__file__).with_name("runs")
FOLDER.mkdir(exist_ok=True)

def begin():
    (FOLDER / str(os.getpid())).touch()

def meet():
    end = time.monotonic() + 30
    while len(list(FOLDER.iterdir())) < 4:
        assert time.monotonic() < end, "no other run"
        time.sleep(0.01)
"""
)


def processes(pytester):
    return [int(file.name) for file in (pytester.path / "runs").iterdir()]


def test_runs_overlap_in_processes_of_their_own(run, pytester):
    result, printed = run(
        RUNS
        + """
@pytest.fixture(scope="module")
def of_module():
    began = os.getpid()
    yield []
    assert os.getpid() == began

@pytest.mark.minikeeper_sweep(faults=["reply-lost", "request-lost"])
def test_it(minikeeper, kazoo_client, of_module):
    begin()
    # A run sees what the first one has left.
    assert len(of_module) < 2
    of_module.append(os.getpid())
    kazoo_client.retry(kazoo_client.exists, "/a")
    if minikeeper.faults():
        meet()

def test_after_it(of_module, minikeeper):
    assert of_module == [os.getpid()]
""",
        "--junit-xml=junit.xml",
    )
    result.assert_outcomes(passed=2)
    counts = counted(printed)
    assert counts["passed"] == counts["points"] > 0, printed
    assert len(processes(pytester)) == counts["runs"], printed
    assert "one run at a time" not in printed, printed
    # One entry a test.
    cases = list(xml.etree.ElementTree.parse(pytester.path / "junit.xml").iter("testcase"))
    assert [case.get("name") for case in cases] == ["test_it", "test_after_it"]
    (sweep,) = cases[0].iter("property")
    assert "points tried" in sweep.get("value") and float(cases[0].get("time")) > 0


def test_failed_sweep_is_one_failure_for_junit(run, pytester):
    run(ORPHAN, "--junit-xml=junit.xml")
    suite = xml.etree.ElementTree.parse(pytester.path / "junit.xml").getroot().find("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2",
        "failures": "1",
        "errors": "0",
    }
    (failure,) = suite.iter("failure")
    assert POINT in failure.text


def test_output_of_a_run_is_its_own(run):
    result, printed = run(
        RUNS
        + """
import sys, uuid

@pytest.mark.minikeeper_sweep(faults=["reply-lost", "request-lost"])
def test_it(minikeeper, kazoo_client):
    begin()
    kazoo_client.retry(kazoo_client.exists, "/a")
    if minikeeper.faults():
        print("printed by", os.getpid())
        os.write(1, f"written by {os.getpid()}\\n".encode())
        meet()
        print("printed by", os.getpid())
        assert False, f"in {os.getpid()}"
"""
    )
    result.assert_outcomes(failed=1)
    shown = re.findall(r"^-+ Captured stdout call, run with \S+ -+$\n((?:(?:printed|written) by \d+\n)+)", printed, re.M)
    assert len(shown) == 3, printed
    for text in shown:
        assert [line.split()[0] for line in text.splitlines()] == ["printed", "written", "printed"], printed
        assert len({line.split()[-1] for line in text.splitlines()}) == 1, printed


# Only one place has this fault.
ENDS = (
    HEADER
    + """
import os, signal, threading

@pytest.mark.minikeeper_sweep(faults="reply-lost", run_time_s=1)
def test_it(minikeeper, kazoo_client):
    minikeeper.seed({{"/q": ""}})
    kazoo_client.retry(kazoo_client.create, "/q/n-", sequence=True)
    if len(minikeeper.children("/q")) != 1:
        {}

def test_after_it(minikeeper): pass
"""
)


@pytest.mark.parametrize(
    ("end", "message", "hung"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "The test fails: the process of the run was killed by SIGKILL", 0),
        ("os._exit(0)", "The test fails: the process of the run exited with code 0", 0),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); threading.Event().wait()",
         "The test hangs: the run did not end within 1 s, nor when it was interrupted: it was killed", 1),
        ("while True:\n            try: threading.Event().wait()\n            except BaseException: pass",
         "The test hangs: the run goes on after 1 interrupts: it was in line 11 of test_it.py, in test_it", 1),
    ],
    ids=["killed", "exited", "blocks-its-alarm", "catches-everything"],
)
def test_process_that_dies_or_does_not_end_is_a_finding(run, end, message, hung):
    result, printed = run(ENDS.format(end))
    result.assert_outcomes(failed=1, passed=1)
    counts = counted(printed)
    assert counts["hung"] == hung and counts["failed"] == 1 - hung and counts["passed"] > 0, printed
    assert message in printed, printed
    assert f"--minikeeper-only '{POINT}'" in printed, printed


@pytest.mark.parametrize(
    ("end", "code"),
    [("os.kill(os.getppid(), signal.SIGINT); threading.Event().wait()", 2), ("pytest.exit('enough', 7)", 7)],
    ids=["by-a-signal", "by-a-test"],
)
def test_interrupted_pytest_ends_with_the_processes_of_its_runs(run, pytester, end, code):
    result, printed = run(
        RUNS
        + f"""
import signal, threading

@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(minikeeper, kazoo_client):
    begin()
    kazoo_client.retry(kazoo_client.exists, "/a")
    if minikeeper.faults():
        {end}
"""
    )
    assert result.ret == code, printed
    assert len(processes(pytester)) > 1
    for process in processes(pytester):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere they end with their runs")
def test_processes_of_runs_end_with_a_pytest_that_is_killed(run, pytester):
    result, printed = run(
        RUNS
        + """
import signal, threading

@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(minikeeper, kazoo_client):
    begin()
    kazoo_client.retry(kazoo_client.exists, "/a")
    if minikeeper.faults():
        os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait()
"""
    )
    assert result.ret == -9, printed
    files = [f"/proc/{process}/cmdline" for process in processes(pytester)]
    end = time.monotonic() + 30
    # Those that nothing has waited for have no command line any more.
    while any(os.path.exists(file) and pathlib.Path(file).read_bytes() for file in files):
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("fixture", "reason"),
    [
        ("thread = threading.Thread(target=end.wait, name='busy'); thread.start()", "the process has other threads: busy"),
        ("del os.fork", "this system has no fork"),
        ("request.getfixturevalue('minikeeper_shared_server')", None),
    ],
    ids=["threads", "no-fork", "forks"],
)
def test_runs_are_done_in_the_process_of_pytest_where_they_cannot_be_forked(run, pytester, fixture, reason):
    result, printed = run(
        RUNS
        + f"""
import threading

@pytest.fixture(scope="module")
def of_module(request):
    end = threading.Event()
    {fixture}
    yield
    end.set()

@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(of_module, kazoo_client):
    begin()
    kazoo_client.retry(kazoo_client.exists, "/a")
"""
    )
    result.assert_outcomes(passed=1)
    assert counted(printed)["passed"] > 0, printed
    if reason is None:
        assert "one run at a time" not in printed and len(processes(pytester)) > 1, printed
    else:
        assert f"; one run at a time, in the process of pytest, because {reason}\n" in printed, printed
        assert len(processes(pytester)) == 1


def test_runs_are_done_in_the_process_of_pytest_with_a_debugger(run, pytester):
    result, printed = run(
        RUNS
        + """
@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(kazoo_client):
    begin()
    kazoo_client.retry(kazoo_client.exists, "/a")
""",
        "--pdb",
    )
    result.assert_outcomes(passed=1)
    assert "; one run at a time, in the process of pytest, because of --pdb\n" in printed, printed
    assert len(processes(pytester)) == 1


def test_runs_overlap_in_the_processes_of_xdist(run, pytester):
    if importlib.util.find_spec("xdist") is None:
        pytest.skip("pytest-xdist is not installed")
    other = ORPHAN.removeprefix(HEADER).replace("test_o", "test_other_o").replace("assert", "begin()\n    assert")
    result, printed = run(ORPHAN + RUNS + other, "-n", "2", "--junit-xml=junit.xml")
    result.assert_outcomes(passed=2, failed=2)
    for test in ("test_orphan", "test_other_orphan"):
        assert f"pytest test_it.py::{test} --minikeeper-only '{POINT}'" in printed, printed
    assert len(processes(pytester)) > 3
    cases = xml.etree.ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    assert len(list(cases)) == 4


# The process dies after its first create, and finds the znode when it begins again.
CRASH = (
    HEADER
    + """
@pytest.mark.minikeeper_sweep(faults="client-crash"{})
def test_it(minikeeper, kazoo_client):
    if kazoo_client.exists("/half"):
        {}
    kazoo_client.create("/half")
    kazoo_client.create("/done")
    assert sorted(minikeeper.children("/")) in (["done", "half"], ["done", "half", "zookeeper"])
"""
)


@pytest.mark.parametrize("jobs", ["", ", jobs=1"], ids=["forked", "in-the-process"])
def test_crashed_process_begins_again_in_its_universe(run, jobs):
    # The first start fails, and does not count.
    result, printed = run(CRASH.format(jobs, "kazoo_client.delete('/half')"))
    result.assert_outcomes(failed=1)
    counts = counted(printed)
    assert {name: counts[name] for name in ("points", "passed", "failed", "hung")} == {
        "points": 2,
        "passed": 1,
        "failed": 1,
        "hung": 0,
    }, printed
    # It died after the create of /done.
    assert "The test fails: kazoo.exceptions.NodeExistsError" in printed and "ConnectionLoss" not in printed, printed
    assert "--minikeeper-only 'client-crash:1:create:1:/done'" in printed, printed
    both = "[kazoo_client.delete(path) for path in ('/half', '/done') if kazoo_client.exists(path)]"
    result, printed = run(CRASH.format(jobs, both))
    result.assert_outcomes(passed=1)
    counts = counted(printed)
    assert counts["passed"] == counts["points"] == 2, printed


@pytest.mark.parametrize("jobs", ["", ", jobs=1"], ids=["forked", "in-the-process"])
def test_crash_ends_a_test_that_waits(run, jobs):
    result, printed = run(
        HEADER
        + f"""
import threading
from kazoo.exceptions import NodeExistsError

@pytest.mark.minikeeper_sweep(faults="client-crash", run_time_s=40{jobs})
def test_it(minikeeper, kazoo_client):
    try:
        kazoo_client.create("/lock")
    except NodeExistsError:
        pass
    except Exception:
        threading.Event().wait()
"""
    )
    result.assert_outcomes(passed=1)
    counts = counted(printed)
    assert counts["passed"] == counts["points"] == 1, printed

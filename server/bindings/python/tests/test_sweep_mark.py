"""The mark `minikeeper_sweep`: pytest in a process of its own sweeps tests, some of which fail on purpose."""

import importlib.util
import re
import shlex
import sys

import pytest
from kazoo.client import KazooClient

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.needs("sweep_start", "sweep_next", "sweep_end", "sweep_report")

PATIENCE_S = 60

HEADER = "import pytest\n"

# The reply to the create is lost, and the client creates another znode.
ORPHAN = (
    HEADER
    + """
@pytest.fixture
def client(kazoo_client):
    yield kazoo_client

@pytest.mark.minikeeper_sweep(faults="reply-lost,connection-cut")
def test_orphan(minikeeper, client):
    print("created by", client.client_id)
    minikeeper.seed({"/q": ""})
    client.retry(client.create, "/q/n-", sequence=True)
    assert len(minikeeper.children("/q")) == 1, "an orphan"

def test_of_its_own(minikeeper):
    pass
"""
)
POINT = "reply-lost:1:create:1:/q/n-"


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.delenv("MINIKEEPER_STORIES", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(code, *options, timeout=None):
        pytester.makepyfile(test_it=code)
        result = pytester.run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, timeout=timeout)
        return result, result.stdout.str() + result.stderr.str()

    return run


def counted(printed):
    """The counts of the first sweep in an output."""
    found = re.search(
        r"(\d+) of (\d+) points tried: (\d+) passed, (\d+) failed, (\d+) hung, (\d+) not reached; (\d+) runs", printed
    )
    assert found, printed
    names = ("tried", "points", "passed", "failed", "hung", "not_reached", "runs")
    return dict(zip(names, map(int, found.groups())))


def test_sweep_finds_the_point_of_a_planted_bug_and_its_command_repeats_it(run, pytester):
    result, printed = run(ORPHAN)
    result.assert_outcomes(passed=1, failed=1)
    counts = counted(printed)
    assert counts["failed"] == 1 and counts["passed"] == counts["tried"] - 1 > 0 and counts["hung"] == 0, printed
    assert "The test fails: AssertionError: an orphan" in printed, printed
    assert "when the reply to the 1st create of /q/n- by client 1 was lost" in printed, printed
    # Only the failed run shows its output.
    assert f"Traceback of the run with {POINT}" in printed, printed
    assert printed.count("created by") == printed.count('print("created by"') + 1, printed

    command = re.search(r"^ +pytest (.*--minikeeper-only .*)$", printed, re.M)
    assert command, printed
    options = shlex.split(command[1])
    assert options == ["test_it.py::test_orphan", "--minikeeper-only", POINT]
    result, printed = run(ORPHAN, *options)
    result.assert_outcomes(failed=1)
    assert counted(printed)["points"] == counted(printed)["failed"] == 1, printed
    assert "The test fails: AssertionError: an orphan" in printed, printed


def test_report_and_stories_of_failed_runs_are_saved(run, pytester):
    _, printed = run(ORPHAN)
    story = re.search(r"story: (\S+)", printed)
    report = re.search(r"saved in (\S*sweep-\S+\.html)", printed)
    assert story and report, printed
    folder = pytester.path / "minikeeper-stories"
    saved = sorted(file.name for file in folder.glob("*.html"))
    # The run that confirms the failure saves nothing.
    assert saved == sorted(path.rpartition("/")[2] for path in (story[1], report[1])), printed
    page = (folder / report[1].rpartition("/")[2]).read_text()
    assert POINT in page and story[1].rpartition("/")[2] in page
    for file in folder.iterdir():
        file.unlink()
    run(ORPHAN, "--minikeeper-stories", "off")
    run(ORPHAN.replace("@pytest.mark.mini", "@pytest.mark.xfail(strict=True)\n@pytest.mark.mini"))
    assert list(folder.iterdir()) == []


def test_sound_test_passes_and_is_reported_once(run, pytester):
    result, printed = run(
        HEADER
        + """
@pytest.fixture(scope="module")
def of_module():
    yield []

@pytest.fixture(params=["a", "b"])
def of_test(request, minikeeper, of_module):
    of_module.append(request.param)
    yield

class TestIt:
    seen = 0

    @pytest.mark.minikeeper_sweep(jobs=1)
    def test_sound(self, of_test, of_module, kazoo_client, minikeeper):
        assert self.seen == 0 and minikeeper.children("/") in ([], ["zookeeper"])
        self.seen = 1
        assert len(set(of_module)) == 1 or of_module[-1] == "b"
        kazoo_client.retry(kazoo_client.exists, "/")

def test_runs(of_module):
    assert of_module.count("a") == of_module.count("b") > 3
""",
        "-rP",
        "--junit-xml=junit.xml",
    )
    result.assert_outcomes(passed=3)
    counts = counted(printed)
    assert counts["tried"] == counts["passed"] == counts["points"] > 0, printed
    # With the counts for other reports.
    assert "points tried" in (pytester.path / "junit.xml").read_text()
    assert not (pytester.path / "minikeeper-stories").exists()


def test_larger_fixtures_end_once_after_the_sweep_and_before_the_next_module(run, pytester):
    pytester.makepyfile(test_next="from test_it import ends\ndef test_next(): assert ends == ['module']")
    result, _ = run(
        HEADER
        + """
ends = []

@pytest.fixture(scope="module")
def of_module():
    yield
    ends.append("module")

@pytest.mark.minikeeper_sweep(faults="session-expired")
def test_sound(of_module, kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/")
    assert ends == []
"""
    )
    result.assert_outcomes(passed=2)


def test_hang_is_found(run):
    result, printed = run(
        HEADER
        + """
import threading
from kazoo.exceptions import ConnectionLoss

@pytest.mark.minikeeper_sweep(faults=["reply-lost", "request-lost"], run_time_s=5)
def test_hangs(kazoo_client):
    try:
        kazoo_client.create("/a")
    except ConnectionLoss:
        if kazoo_client.retry(kazoo_client.exists, "/a"):
            threading.Event().wait()
"""
    )
    result.assert_outcomes(failed=1)
    counts = counted(printed)
    assert counts["hung"] == 1 and counts["failed"] == 0, printed
    assert "The test hangs: the run did not end within 5 s: it was in line 12 of test_it.py, in test_hangs" in printed
    assert "--minikeeper-only 'reply-lost:1:create:1:/a'" in printed, printed


def test_late_run_counts_as_hung_where_it_cannot_be_interrupted(run):
    result, printed = run(
        HEADER
        + """
import signal, time
del signal.SIGALRM

@pytest.mark.minikeeper_sweep(run_time_s=0.01)
def test_late(minikeeper):
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
"""
    )
    result.assert_outcomes(failed=1)
    assert "The test fails without any fault: the run took longer than 0.01 s" in printed, printed


def test_test_that_fails_without_faults_says_so(run):
    result, printed = run(
        HEADER
        + """
@pytest.mark.minikeeper_sweep
def test_fails(kazoo_client):
    assert kazoo_client.exists("/never")
"""
    )
    result.assert_outcomes(failed=1)
    assert "The test fails without any fault: AssertionError" in printed, printed
    assert "Traceback of the run without faults" in printed, printed


def test_failure_in_setup_and_teardown_counts(run):
    result, printed = run(
        HEADER
        + """
@pytest.fixture
def created(kazoo_client):
    kazoo_client.create("/in-setup")
    yield
    kazoo_client.delete("/in-setup")

@pytest.mark.minikeeper_sweep(faults="request-lost")
def test_passes(created): pass
"""
    )
    result.assert_outcomes(failed=1)
    for op in ("create", "delete"):
        assert f"--minikeeper-only 'request-lost:1:{op}:1:/in-setup'" in printed, printed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # The handshake is a point, too.
        ("faults='reply-lost'", {"points": 2, "tried": 2}),
        ("faults=('reply-lost', 'request-lost')", {"points": 3, "tried": 3}),
        ("faults=('reply-lost', 'request-lost'), all=True", {"points": 4, "tried": 4}),
        ("faults='reply-lost,connection-cut', depth=2, runs=9, seed=7, allow_untried=10_000", {}),
    ],
)
def test_options(run, options, expected):
    result, printed = run(
        HEADER
        + f"""
@pytest.mark.minikeeper_sweep({options})
def test_it(kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/a")
""",
    )
    result.assert_outcomes(passed=1)
    counts = counted(printed)
    assert {name: counts[name] for name in expected} == expected
    assert re.search(r"^test_it\.py::test_it: clean\b", printed, re.M), printed
    if "seed" in options:
        assert "seed 7" in printed


EXISTS = (
    HEADER
    + """
@pytest.mark.minikeeper_sweep({})
def test_it(kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/a")
"""
)


@pytest.mark.parametrize("budget", ["faults='reply-lost', runs=3", "faults='reply-lost', time_s=0"])
def test_sweep_that_its_budget_ended_fails_unless_the_test_allows_it(run, budget):
    # It was green.
    result, printed = run(EXISTS.format(budget))
    result.assert_outcomes(failed=1)
    assert re.search(r"^minikeeper sweep: incomplete\b", printed, re.M), printed
    assert re.search(r"^test_it\.py::test_it: incomplete\b", printed, re.M), printed
    counts = counted(printed)
    left = counts["points"] - counts["tried"]
    assert left > 0, printed
    result, printed = run(EXISTS.format(f"{budget}, allow_untried={left - 1}"))
    result.assert_outcomes(failed=1)
    if counts["tried"] > 0:
        result, printed = run(EXISTS.format(f"{budget}, allow_untried={left}"))
        result.assert_outcomes(passed=1)
        assert re.search(r"^test_it\.py::test_it: clean\b", printed, re.M), printed
    # Nor is it what a test is expected to find.
    xfail = "@pytest.mark.xfail(strict=True)\n@pytest.mark.mini"
    result, printed = run(EXISTS.format(budget).replace("@pytest.mark.mini", xfail))
    result.assert_outcomes(failed=1)
    assert re.search(r"^minikeeper sweep: incomplete\b", printed, re.M), printed


# The runs without faults send a request that no other does.
UNREACHED = (
    HEADER
    + """
@pytest.mark.minikeeper_sweep(faults="reply-lost"{})
def test_it(minikeeper, kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/a")
    if not minikeeper.faults():
        kazoo_client.retry(kazoo_client.exists, "/b")
"""
)


def test_sweep_with_points_that_are_not_reached_fails_unless_the_test_allows_it(run):
    # It was green.
    result, printed = run(UNREACHED.format(""))
    result.assert_outcomes(failed=1)
    assert re.search(r"^minikeeper sweep: incomplete\b.*not reached", printed, re.M), printed
    result, printed = run(UNREACHED.format(", allow_unreached=1"))
    result.assert_outcomes(passed=1)
    assert re.search(r"^test_it\.py::test_it: clean\b", printed, re.M), printed


def test_skip_under_a_fault_is_a_failure(run):
    # It counted as a run that had passed.
    result, printed = run(
        HEADER
        + """
@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(minikeeper, kazoo_client):
    minikeeper.seed({"/q": ""})
    kazoo_client.retry(kazoo_client.create, "/q/n-", sequence=True)
    if len(minikeeper.children("/q")) != 1:
        pytest.skip("not today")
"""
    )
    result.assert_outcomes(failed=1)
    assert "The test fails: Skipped: not today" in printed, printed


def test_thread_of_a_hung_run_does_not_keep_pytest_alive(run):
    # Python waited for it after the last test.
    result, printed = run(
        HEADER
        + """
import threading
import kazoo.client

@pytest.mark.minikeeper_sweep(faults="request-lost", run_time_s=5, jobs=1)
def test_hangs(minikeeper, kazoo_client):
    thread = threading.Thread(target=threading.Event().wait, name="stuck")
    kazoo_client.retry(kazoo_client.exists, "/a")
    if minikeeper.faults():
        thread.start()
        threading.Event().wait()
""",
        timeout=PATIENCE_S,
    )
    result.assert_outcomes(failed=1)
    assert result.ret == 1
    assert "minikeeper_sweep: threads of runs that failed still run: stuck" in printed, printed


def test_test_that_catches_its_interruption_ends_pytest(run):
    # It was interrupted for ever.
    result, printed = run(
        HEADER
        + """
import threading

@pytest.mark.minikeeper_sweep(run_time_s=1)
def test_never_ends(minikeeper):
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass
""",
        timeout=PATIENCE_S,
    )
    assert result.ret == 3
    assert "test_it.py::test_never_ends with no fault goes on after 3 interrupts: it was in line 9" in printed, printed
    assert "threading.Event().wait()" in printed, printed


def test_sweeps_with_similar_names_save_reports_of_their_own(run, pytester):
    # Those of these two were one file.
    _, printed = run(
        HEADER
        + """
@pytest.mark.parametrize("which", ["a b", "a/b", "x" * 300])
@pytest.mark.minikeeper_sweep
def test_it(minikeeper, which):
    assert False, which
"""
    )
    # A failure is printed twice: where it happened, and in the list of sweeps.
    saved = list(dict.fromkeys(re.findall(r"^saved in \S*?(sweep-\S+)$", printed, re.M)))
    assert len(saved) == 3, printed
    pages = [(pytester.path / "minikeeper-stories" / name).read_text() for name in saved]
    assert ["AssertionError: a b" in page for page in pages] == [True, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("faults='reply-losst'", 'fault "reply-losst": unknown; one of reply-lost, request-lost'),
        ("depth=3", "depth"),
        ("fault='reply-lost'", "the mark got an unexpected keyword argument 'fault'; did you mean 'faults'?"),
    ],
)
def test_invalid_options_are_errors(run, options, message):
    result, printed = run(
        HEADER
        + f"""
@pytest.mark.minikeeper_sweep({options})
def test_it(minikeeper): pass
"""
    )
    result.assert_outcomes(errors=1)
    assert "minikeeper_sweep: " in printed and message in printed, printed


def test_what_cannot_be_swept_is_an_error(run):
    result, printed = run(
        HEADER
        + """
@pytest.mark.minikeeper_sweep
def test_without_a_universe(): pass

@pytest.mark.minikeeper_sweep
def test_with_a_server_of_its_own(minikeeper_server, minikeeper): pass

@pytest.mark.minikeeper_sweep
def test_that_skips(minikeeper): pytest.skip("not here")

@pytest.mark.skip
@pytest.mark.minikeeper_sweep
def test_skipped(minikeeper): pass
"""
    )
    result.assert_outcomes(failed=1, errors=1, skipped=2)
    assert "minikeeper_sweep: the test must use the fixture minikeeper" in printed, printed
    assert "use minikeeper without minikeeper_server" in printed, printed


def test_point_that_is_not_reached_fails_and_other_tests_are_as_usual(run):
    result, printed = run(ORPHAN, "--minikeeper-only", "reply-lost:1:create:9:/q/n-")
    result.assert_outcomes(passed=1, failed=1)
    assert re.search(r"^minikeeper sweep: incomplete\b.*not reached", printed, re.M), printed
    assert "   reply-lost:1:create:9:/q/n-\n" in printed, printed


def test_expected_findings_are_expected(run):
    marked = ORPHAN.replace("@pytest.mark.mini", "@pytest.mark.xfail(strict=True)\n@pytest.mark.mini")
    result, _ = run(marked)
    result.assert_outcomes(passed=1, xfailed=1)
    result, _ = run(marked.replace("reply-lost,", ""))
    result.assert_outcomes(passed=1, failed=1)


def test_hand_written_sweep_finds_the_point_too(minikeeper, minikeeper_shared_server):
    server = minikeeper_shared_server
    sweep = server.sweep_start(faults="reply-lost")
    for number in range(1, 50):
        universe = server.create_universe(f"{minikeeper.name}-{number}")
        run = universe.sweep_next(sweep)
        if run.run == 0:
            break
        client = KazooClient(universe.connect_string)
        client.start_async().wait(30)
        universe.seed({"/q": ""})
        client.retry(client.create, "/q/n-", sequence=True)
        count = len(universe.children("/q"))
        client.stop()
        client.close()
        universe.sweep_end(sweep, outcome="passed" if count == 1 else "failed", message=f"{count} znodes")
        universe.drop_universe()
    universe.drop_universe()
    report = server.sweep_report(sweep, repeat="again {}")
    assert f"again {POINT}" in report and "2 znodes" in report, report


def test_test_may_drop_its_universe(run):
    result, _ = run(
        HEADER
        + """
@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(kazoo_client, minikeeper):
    kazoo_client.retry(kazoo_client.exists, "/a")
    minikeeper.drop_universe()
"""
    )
    result.assert_outcomes(passed=1)


def test_alarm_of_another_plugin_is_suspended_for_the_sweep(run, pytester):
    # pytest-timeout's alarm ended pytest, because it came between two runs.
    pytester.makeconftest(
        """
        import signal, pytest

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_protocol():
            signal.setitimer(signal.ITIMER_REAL, 1_000)
            yield
            assert signal.setitimer(signal.ITIMER_REAL, 0)[0] > 100

        def pytest_runtest_logstart():
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 100

        def pytest_fixture_post_finalizer():
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= 60
        """
    )
    result, _ = run(
        HEADER
        + """
import signal

@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/a")
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
"""
    )
    result.assert_outcomes(passed=1)


def test_sweep_that_tests_nothing_fails(run):
    result, printed = run(
        HEADER
        + """
@pytest.mark.minikeeper_sweep
def test_sends_nothing(minikeeper): pass
@pytest.mark.minikeeper_sweep(faults="event-late")
def test_has_no_events(kazoo_client): pass
"""
    )
    result.assert_outcomes(failed=2)
    assert len(re.findall("^minikeeper sweep: incomplete\\b.*has sent no request to which these faults apply", printed, re.M)) == 2, printed


# Two clients look whether a znode is there, and then each creates it.
RACE = (
    HEADER
    + """
import threading
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

@pytest.fixture
def others(minikeeper):
    client = KazooClient(minikeeper.connect_string)
    client.start()
    yield [client]
    client.stop()
    client.close()

@pytest.mark.minikeeper_sweep(orders=True)
def test_race(minikeeper, kazoo_client, others):
    minikeeper.seed({"/seen": ""})
    errors = []

    def body(client):
        try:
            if not client.exists("/a"):
                client.create("/a")
        except NodeExistsError as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(client,)) for client in (kazoo_client, *others)]
    for thread in threads:
        thread.start()
    # A request of the test itself does not wait.
    assert minikeeper.children("/seen") == []
    for thread in threads:
        thread.join()
    assert not errors and "a" in minikeeper.children("/"), "created twice"
"""
)


def of_orders(printed):
    """The counts of the first sweep of orders in an output."""
    found = re.search(r": (\d+) orders? of (\d+) clients tried.*?: (\d+) passed, (\d+) failed, (\d+) hung, (\d+) not followed", printed)
    assert found, printed
    return dict(zip(("tried", "clients", "passed", "failed", "hung", "not_followed"), map(int, found.groups())))


def test_sweep_of_orders_finds_a_race_and_its_command_repeats_it(run):
    result, printed = run(RACE)
    result.assert_outcomes(failed=1)
    counts = of_orders(printed)
    assert counts["clients"] == 2 and counts["failed"] > 0 and counts["passed"] > 0, printed
    assert counts["hung"] == counts["not_followed"] == 0, printed
    assert "The test fails: AssertionError: created twice" in printed, printed

    command = re.search(r"^ +pytest (.*--minikeeper-only .*)$", printed, re.M)
    assert command, printed
    options = shlex.split(command[1])
    assert options[:-1] == ["test_it.py::test_race", "--minikeeper-only"] and options[-1].startswith("order:"), printed
    result, printed = run(RACE, *options)
    result.assert_outcomes(failed=1)
    counts = of_orders(printed)
    assert counts["tried"] == counts["failed"] == 1, printed


def test_sweep_of_orders_finds_nothing_in_a_repaired_race(run):
    result, printed = run(RACE.replace("errors.append(error)", "pass"))
    result.assert_outcomes(passed=1)
    counts = of_orders(printed)
    assert counts["tried"] == counts["passed"] > 2, printed
    assert "all orders: " in printed, printed

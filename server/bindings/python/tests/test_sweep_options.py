"""What a test may say of its sweep: failures that it expects, points that are not tried, goals, and faults."""

import re
import sys

import pytest
from test_sweep_mark import HEADER, counted

import minikeeper

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.needs("sweep_start", "sweep_next", "sweep_end", "sweep_report", "sweep_faults", "sometimes")

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


def test_rules_have_the_text_of_the_command_line():
    rules = [
        minikeeper.allow("session-expired", raises="SessionExpired", reason="it asks again"),
        minikeeper.allow("reply-lost", raises=minikeeper.MinikeeperError, op="create", path="/a/*", client=2, reason="so"),
        minikeeper.allow("reply-lost", raises=AssertionError, reason="so"),
        minikeeper.leave_out("reply-late", path="/a/*", reason="the timeout is an hour"),
    ]
    assert [str(rule) for rule in rules] == [
        "session-expired raises SessionExpired because it asks again",
        "reply-lost:2:create:*:/a/* raises minikeeper.MinikeeperError because so",
        "reply-lost raises AssertionError because so",
        "reply-late:*:*:*:/a/* because the timeout is an hour",
    ]


def test_rules_without_a_reason_and_of_two_lines_are_errors():
    with pytest.raises(TypeError, match="reason"):
        minikeeper.allow("reply-lost", raises="A")
    for rule, why in (
        (lambda: minikeeper.allow("reply-lost", raises="A", reason=" "), "allow: the reason is empty"),
        (lambda: minikeeper.allow("reply-lost", raises="", reason="so"), "allow: raises is empty"),
        (lambda: minikeeper.leave_out("reply-lost", reason="a\nb"), "leave_out: a rule is one line"),
    ):
        with pytest.raises(ValueError, match=why):
            rule()


# Without a retry, each of these faults ends the test.
FRAGILE = (
    HEADER
    + """
import minikeeper as mk
from kazoo.exceptions import ConnectionLoss, KazooException, NoNodeError

@pytest.mark.minikeeper_sweep(faults="reply-lost,request-lost", {})
def test_it(minikeeper, kazoo_client):
    kazoo_client.create("/a")
"""
)


@pytest.mark.parametrize(
    "raises", ["ConnectionLoss", "KazooException", "'ConnectionLoss'"], ids=["a-class", "its-base", "a-text"]
)
def test_expected_failures_are_expected(run, raises):
    result, printed = run(FRAGILE.format("allow_unreached=9"))
    result.assert_outcomes(failed=1)
    rules = [f"mk.allow('{fault}', raises={raises}, reason='it has no retry')" for fault in ("reply-lost", "request-lost")]
    result, printed = run(FRAGILE.format(f"allow=[{', '.join(rules)}]"), "-rP")
    result.assert_outcomes(passed=1)
    assert "it has no retry" in printed, printed
    # Elsewhere they are not.
    for other in ("raises=NoNodeError", f"raises={raises}, path='/b'", f"raises={raises}, op='delete'"):
        rule = f"mk.allow('reply-lost', {other}, reason='it has no retry')"
        result, printed = run(FRAGILE.format(f"allow={rule}"))
        result.assert_outcomes(failed=1)


def test_points_are_left_out(run):
    rules = "[mk.leave_out('reply-lost', reason='so'), mk.leave_out('request-lost', op='create', reason='so')]"
    result, printed = run(FRAGILE.format(f"leave_out={rules}"))
    result.assert_outcomes(passed=1)
    counts = counted(printed)
    assert counts["tried"] == counts["passed"] > 0, printed


def test_first_failure_ends_the_sweep(run):
    result, printed = run(FRAGILE.format("first=True, jobs=1"))
    result.assert_outcomes(failed=1)
    counts = counted(printed)
    assert counts["failed"] == 1 and counts["tried"] < counts["points"], printed


def test_what_is_left_is_compared(run):
    code = (
        HEADER
        + """
@pytest.mark.minikeeper_sweep(faults="reply-lost", {})
def test_it(minikeeper, kazoo_client):
    minikeeper.seed({{"/q": ""}})
    kazoo_client.retry(kazoo_client.create, "/q/n-", sequence=True)
"""
    )
    result, printed = run(code.format("compare=False"))
    result.assert_outcomes(passed=1)
    result, printed = run(code.format("compare=True"))
    result.assert_outcomes(failed=1)
    assert "--minikeeper-only 'reply-lost:1:create:1:/q/n-'" in printed, printed


def test_outage_ends_or_does_not(run):
    code = (
        HEADER
        + """
@pytest.mark.minikeeper_sweep(faults="outage", run_time_s=5, {})
def test_it(minikeeper, kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/a")
"""
    )
    result, printed = run(code.format("outage_ms=50"))
    result.assert_outcomes(passed=1)
    assert counted(printed)["passed"] > 0, printed
    result, printed = run(code.format("outage_ms=0"))
    result.assert_outcomes(failed=1)
    assert counted(printed)["hung"] > 0, printed


def test_rollback_takes_changes_back(run):
    code = (
        HEADER
        + """
@pytest.mark.minikeeper_sweep(faults="rollback", rollback={})
def test_it(minikeeper, kazoo_client):
    minikeeper.seed({{"/a": ""}})
    for name in ("b", "c"):
        kazoo_client.create(f"/{{name}}")
    kazoo_client.retry(kazoo_client.exists, "/b")
    print("left:", *sorted(set(minikeeper.children("/")) - {{"zookeeper"}}))
    assert minikeeper.fault() is None or "c" in minikeeper.children("/")
"""
    )
    for count, left in ((1, "a b"), (2, "a")):
        result, printed = run(code.format(count))
        result.assert_outcomes(failed=1)
        assert f"left: {left}\n" in printed, printed


def test_test_asks_which_fault_is_tried(run, pytester):
    result, printed = run(
        HEADER
        + """
import pathlib

@pytest.mark.minikeeper_sweep(faults="reply-lost,session-expired")
def test_it(minikeeper, kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/a")
    tried = minikeeper.sweep_faults()
    assert tried.faults == ([] if minikeeper.fault() is None else [minikeeper.fault()])
    assert tried.points.startswith(minikeeper.fault() or "") and bool(tried.sentence) == bool(tried.faults)
    with pathlib.Path(__file__).with_name("faults").open("a") as file:
        file.write(f"{minikeeper.fault()}\\n")

def test_without_a_sweep(minikeeper):
    assert minikeeper.fault() is None and minikeeper.sweep_faults().faults == []
    minikeeper.sometimes("does nothing")
"""
    )
    result.assert_outcomes(passed=2)
    assert set((pytester.path / "faults").read_text().split()) == {"None", "reply-lost", "session-expired"}


def test_goal_must_be_reached_by_some_run(run):
    code = (
        HEADER
        + """
@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_it(minikeeper, kazoo_client):
    kazoo_client.retry(kazoo_client.exists, "/a")
    minikeeper.sometimes("a fault was tried", holds={})
"""
    )
    result, printed = run(code.format("minikeeper.fault() is not None"))
    result.assert_outcomes(passed=1)
    result, printed = run(code.format("False"))
    result.assert_outcomes(failed=1)
    assert re.search(r"^minikeeper sweep: incomplete\b", printed, re.M) and "a fault was tried" in printed, printed


def test_all_faults_are_tried(run, pytester):
    result, printed = run(
        HEADER
        + """
import pathlib

@pytest.mark.minikeeper_sweep(faults="all")
def test_it(minikeeper, kazoo_client):
    with pathlib.Path(__file__).with_name("faults").open("a") as file:
        file.write(f"{minikeeper.fault()}\\n")
    for _ in range(2):
        kazoo_client.retry(kazoo_client.ensure_path, "/a")
"""
    )
    result.assert_outcomes(passed=1)
    tried = set((pytester.path / "faults").read_text().split())
    # Not without "all".
    assert tried > {"reply-lost", "outage", "client-crash", "rollback"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("allow=[mk.leave_out('reply-lost', reason='so')]", "allow has a rule of minikeeper.leave_out"),
        ("leave_out=['reply-lost']", "no reason"),
        ("leave_out=[mk.leave_out('reply-losst', reason='so')]", "reply-losst"),
        ("jobs=0", "jobs is 0; the least is 1"),
    ],
)
def test_invalid_rules_are_errors(run, options, message):
    result, printed = run(FRAGILE.format(options))
    result.assert_outcomes(errors=1)
    assert "minikeeper_sweep: " in printed and message in printed, printed

"""Resources that a lock protects: who was inside, and whether that was safe."""

import pytest
from test_sweep_mark import HEADER

import minikeeper as package

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.needs("resource_enter", "resource_write", "resource_leave", "resource_verdict")


def test_two_at_a_time_are_unsafe_and_the_acts_that_decide_are_told(minikeeper):
    with minikeeper.resource("printer", holder="first") as first:
        with minikeeper.resource("printer", holder="second"):
            pass
        assert minikeeper.resource_verdict("printer").verdict == "undecided"
        assert first.write()
    verdict = minikeeper.resource_verdict("printer")
    assert verdict.verdict == "unsafe"
    acts = [line.split(" s ")[1] for line in verdict.text.splitlines()[1:]]
    assert acts == ["first entered", "second entered", "first wrote"]


def test_lower_token_is_refused(minikeeper):
    with minikeeper.resource("printer", token=1) as first, minikeeper.resource("printer", token=2) as second:
        assert second.write() and not first.write()
    verdict = minikeeper.resource_verdict("printer")
    assert (verdict.verdict, verdict.entries, verdict.writes, verdict.refused) == ("safe", 2, 1, 1)


def test_nobody_is_undecided_and_who_has_left_cannot_write(minikeeper):
    assert minikeeper.resource_verdict("nobody").verdict == "undecided"
    with minikeeper.resource("printer") as entry:
        pass
    with pytest.raises(package.MinikeeperError, match="entry [0-9]+: unknown"):
        entry.write()


def test_sweep_fails_where_a_resource_is_not_safe(pytester, monkeypatch):
    monkeypatch.setenv("MINIKEEPER_STORIES", "off")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    code = (
        HEADER
        + """
@pytest.mark.minikeeper_sweep(faults="session-expired")
def test_it(minikeeper, kazoo_client):
    tokens = {}
    kazoo_client.retry(kazoo_client.exists, "/a")
    with minikeeper.resource("r", token=tokens and 1) as first:
        # The second one takes the lock of a session that has expired.
        if minikeeper.fault():
            with minikeeper.resource("r", token=tokens and 2):
                pass
        first.write()
"""
    )
    pytester.makepyfile(code.format("None"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    assert "The test fails: resource \"r\" is unsafe: " in result.stdout.str(), result.stdout.str()
    pytester.makepyfile(code.format("True"))
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)

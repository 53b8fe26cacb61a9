"""The stories of failed tests: pytest in a process of its own runs tests that fail on purpose."""

import json
import os
import re

import pytest

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.needs("story")

# Two clients queue for a lock, a read is refused, and an assertion fails.
PRINTER = '''
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError


def start(universe):
    client = KazooClient(hosts=universe.connect_string)
    client.start()
    return client


def test_printer(minikeeper):
    minikeeper.seed({"/printer/paper": "A4"})
    first, second = start(minikeeper), start(minikeeper)
    held, wanted = first.Lock("/locks/printer", "anna"), second.Lock("/locks/printer", "bert")
    held.acquire()
    threading.Thread(target=wanted.acquire, daemon=True).start()
    minikeeper.until_contenders("/locks/printer", 2)
    minikeeper.inject(action="error", error="NOAUTH", op="getData", path="/printer/*")
    with pytest.raises(NoAuthError):
        first.get("/printer/paper")
    paper = None
    assert paper == "A4"
'''

DEADLOCK = '''
import threading

from kazoo.client import KazooClient


def test_transfer(minikeeper):
    clients = [KazooClient(hosts=minikeeper.connect_string) for _ in range(2)]
    for client in clients:
        client.start()
    accounts = "/accounts/a", "/accounts/b"
    for client, account in zip(clients, accounts):
        client.Lock(account).acquire()
    for client, account in zip(clients, reversed(accounts)):
        threading.Thread(target=client.Lock(account).acquire, daemon=True).start()
    for account in accounts:
        minikeeper.until_contenders(account, 2)
    assert False, "no transfer"
'''


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.delenv("MINIKEEPER_STORIES", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(code, *options, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        pytester.makepyfile(test_it=code)
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
        return result, result.stdout.str() + result.stderr.str()

    return run


def stories_in(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith(".")) if folder.exists() else []


def test_failed_test_prints_its_story_and_saves_a_bundle(run, pytester):
    result, printed = run(PRINTER)
    result.assert_outcomes(failed=1)
    folder = pytester.path / "minikeeper-stories"
    for part in (
        "minikeeper: story of test_it.py::test_printer\nserver 127.0.0.1:",
        "\nmutex /locks/printer (kazoo)\n  held by   session 0x",
        '"anna"',
        "\n  waits 1   session 0x",
        '"bert"',
        "\nsessions:\n  0x",
        ' fault 1 (error, op getData, path "/printer/*"): acted 1 time, matched 1\n',
        " fault 1: error getData /printer/paper\n",
        " connected\n",
        f"\nsaved in {folder}/test_it.py.test_printer.html\n",
    ):
        assert part in printed, f"{part!r} is missing in {printed}"
    assert printed.count("minikeeper: story") == 1
    assert stories_in(folder) == ["test_it.py.test_printer.html", "test_it.py.test_printer.json"]
    assert (folder / "test_it.py.test_printer.html").read_text().startswith("<!doctype html>")
    story = json.loads((folder / "test_it.py.test_printer.json").read_text())
    assert story["title"] == "test_it.py::test_printer" and story["failure"].startswith("AssertionError: assert None")
    (lock,) = story["locks"]["locks"]
    assert [len(lock[role]) for role in ("holders", "waiters")] == [1, 1]
    assert story["faults"][0]["hits"] == 1 and len(story["sessions"]) == 2 and story["entries"]


def test_deadlock_is_named(run):
    result, printed = run(DEADLOCK)
    result.assert_outcomes(failed=1)
    named = r"\ndeadlock: session (\w+) \(.*?\) waits for /accounts/., which session (\w+) \(.*?\) holds; session \2 .* waits"
    assert re.search(named, printed), printed


def test_nothing_is_printed_or_saved_unless_a_test_fails(run, pytester):
    result, printed = run(
        """
        import minikeeper as package, pytest
        def test_passes(minikeeper): pass
        def test_skips(minikeeper): pytest.skip("today")
        def test_raises():
            with pytest.raises(ValueError):
                with package.Server(): raise ValueError
        @pytest.mark.xfail
        def test_is_expected_to_fail(minikeeper): assert False
        def test_has_no_server(): assert False
        """
    )
    result.assert_outcomes(passed=2, skipped=1, xfailed=1, failed=1)
    assert "minikeeper:" not in printed and not stories_in(pytester.path / "minikeeper-stories")


def test_folder_comes_from_option_environment_or_ini(run, pytester):
    failing = "def test_fails(minikeeper): assert False"
    files = ["test_it.py.test_fails.html", "test_it.py.test_fails.json"]
    pytester.makeini("[pytest]\nminikeeper_stories = of-ini\n")
    assert "saved in " in run(failing)[1]
    assert stories_in(pytester.path / "of-ini") == files
    _, printed = run(failing, MINIKEEPER_STORIES="off")
    assert "minikeeper: story" in printed and "saved in" not in printed
    run(failing, MINIKEEPER_STORIES=str(pytester.path / "of-environment"))
    assert stories_in(pytester.path / "of-environment") == files
    run(failing, "--minikeeper-stories", "of-option")
    assert stories_in(pytester.path / "of-option") == files
    (pytester.path / "file").write_text("")
    _, printed = run(failing, "--minikeeper-stories", "file")
    assert "minikeeper: story" in printed and "not saved: " in printed


def test_each_server_of_a_test_tells_its_story(run, pytester):
    result, printed = run(
        """
        import minikeeper as package
        def test_within(minikeeper):
            with package.Server() as server:
                server.seed({"/other": ""})
                assert False
        def test_without_a_scope():
            server = package.Server().start()
            assert False
        """
    )
    result.assert_outcomes(failed=2)
    titles = re.findall(r"minikeeper: story of test_it.py::(.*)", printed)
    assert titles == ["test_within", "test_within 2", "test_without_a_scope"], printed
    assert len(stories_in(pytester.path / "minikeeper-stories")) == 6


def test_setup_and_teardown_tell_their_stories(run):
    result, printed = run(
        """
        import pytest
        @pytest.fixture
        def broken(minikeeper): raise ValueError("broken")
        def test_setup(broken): pass
        def test_teardown(minikeeper): minikeeper.inject(action="cut", path="/never")
        """
    )
    result.assert_outcomes(errors=2, passed=1)
    assert "minikeeper: story of test_it.py::test_setup\n" in printed, printed
    assert "minikeeper: story of test_it.py::test_teardown\n" in printed, printed
    assert ' fault 1 (cut, path "/never"): acted 0 times, matched 0\n' in printed


def test_server_that_is_gone_does_not_hide_the_failure(run):
    result, printed = run(
        """
        def test_fails(minikeeper, minikeeper_shared_server):
            minikeeper_shared_server.kill()
            assert 1 == 2
        """
    )
    result.assert_outcomes(failed=1)
    assert "assert 1 == 2" in printed and "no story of <Universe 127.0.0.1:" in printed, printed


def test_names_of_files_are_safe(run, pytester):
    run(
        """
        import pytest
        @pytest.mark.parametrize("value", ["../../x", "a b", "a/b", "\\ud800", "x" * 300])
        def test_fails(minikeeper, value): assert False, value
        """
    )
    names = stories_in(pytester.path / "minikeeper-stories")
    assert len(names) == 10, names
    assert all(re.fullmatch(r"test_it\.py\.test_fails-[\w.-]+", name) and len(name) < 110 for name in names), names

"""Errors as users see them: under their public name, with a traceback that ends in the user's line."""

import pickle
import re
import traceback

import pytest

import minikeeper as package
from minikeeper import MinikeeperError, Server, Universe, WaitTimedOut

pytest_plugins = ["pytester"]

FAILING = {
    "refused": ('minikeeper.get("/no")', "minikeeper.MinikeeperError: no znode"),
    "wait": ('minikeeper.until_exists("/no", within_ms=1)', "minikeeper.WaitTimedOut: "),
    "no session": ('minikeeper.expire("0x1")', "minikeeper.MinikeeperError: expire: no session"),
    "arguments": ("minikeeper.expire()", "TypeError: give exactly one of session"),
    "no connection": ('package.Universe("127.0.0.1:1").dump()', "minikeeper.MinikeeperError: dump: no answer"),
    "fault": (
        'with minikeeper.inject(action="cut", path="/no"): pass',
        "minikeeper.MinikeeperError: fault 1 (cut",
    ),
    "verify": ('minikeeper.verify(path="/no")', "minikeeper.NotVerified: "),
    "no program": ('package.Server(program="/no/such").start()', "minikeeper.MinikeeperError: no program at '/no/such'"),
    "bad option": ('package.Server(options=["--bogus"]).start()', "minikeeper.MinikeeperError: minikeeper exited with code 2"),
}


@pytest.mark.parametrize("line, message", FAILING.values(), ids=FAILING)
def test_traceback_ends_in_the_line_of_the_test(pytester, monkeypatch, line, message):
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("MINIKEEPER_STORIES", "off")
    pytester.makepyfile(test_it=f"import minikeeper as package\n\n\ndef test_fails(minikeeper):\n    {line}\n")
    printed = pytester.runpytest_subprocess("-p", "no:cacheprovider").stdout.str()
    # The locations that pytest prints, one a frame.
    assert re.findall(r"^\S+\.py:\d+: .*$", printed, re.MULTILINE) == [
        "test_it.py:5: " + message.partition(":")[0].rpartition(".")[2]
    ], printed
    # Later versions of Python mark a part of the line below it.
    shown = re.sub(r"^ +\^+\n", "", printed, flags=re.MULTILINE)
    assert f">       {line}\nE       {message}" in shown, printed


def test_hidden_frames_can_be_shown(pytester, monkeypatch):
    monkeypatch.setenv("MINIKEEPER_STORIES", "off")
    pytester.makepyfile(test_it='def test_fails(minikeeper): minikeeper.get("/no")')
    printed = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--full-trace").stdout.str()
    assert "_control.py:" in printed, printed


def test_errors_have_their_public_name_and_can_be_pickled(minikeeper):
    with pytest.raises(MinikeeperError) as refused:
        minikeeper.get("/no")
    lines = traceback.format_exception_only(type(refused.value), refused.value)
    assert lines[0].startswith('minikeeper.MinikeeperError: no znode "/no"')
    again = pickle.loads(pickle.dumps(refused.value))
    assert (type(again), str(again), again.status) == (MinikeeperError, str(refused.value), 404)
    for error in (MinikeeperError, WaitTimedOut):
        assert getattr(package, error.__name__) is error and error.__module__ == "minikeeper"


@pytest.mark.parametrize("name", ["tick_tme_ms", "tickTimeMs", "tick_time"])
def test_unknown_argument_of_a_server_names_the_nearest(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'; did you mean 'tick_time_ms'\\? They are port, "):
        Server(**{name: 200})


def test_name_of_a_program_that_is_no_path_says_so(monkeypatch):
    monkeypatch.setenv("MINIKEEPER_BIN", "minikeeper")
    with pytest.raises(MinikeeperError, match="^no program at 'minikeeper'; it must be a path, such as "):
        Server().start()


def test_error_without_a_server_is_one_traceback():
    with pytest.raises(MinikeeperError) as error:
        Universe("127.0.0.1:1").dump()
    assert "ConnectionRefusedError" in str(error.value) and "direct cause" not in "".join(
        traceback.format_exception(type(error.value), error.value, error.value.__traceback__)
    )
    with pytest.raises(MinikeeperError, match="is not running") as error:
        Server().dump()
    assert error.value.__cause__ is None

"""Fixtures for pytest: one server for the whole run, and one universe for each test. A failed test tells its story."""

from __future__ import annotations

import itertools
import os
from typing import Any, Dict, Iterator, List

import pytest

from . import _story, _sweep
from ._errors import MinikeeperError
from .server import Server, SuiteServer, server_of_suite, server_of_sweep
from .universe import Universe

# As in kazoo.
START_WITHIN_S = 15

# kazoo's own pause before it connects again is 0.06 to 0.14 s, which is most of the time of a test that loses a connection.
RECONNECTS = {"max_tries": -1, "delay": 0.005, "max_delay": 0.1}

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def minikeeper_options() -> Dict[str, Any]:
    """Arguments of `Server`, for a conftest.py to override."""
    return {}


@pytest.fixture(scope="session")
def minikeeper_shared_server(minikeeper_options: Dict[str, Any]) -> Iterator[Server]:
    """One server for the whole run, shared by all tests of this process, with the universes of `minikeeper`.

    Under `minikeeper sweep --suite` it is the one of the suite, to which `minikeeper_options` do not apply.
    """
    suite = server_of_suite()
    if suite is not None:
        yield SuiteServer(suite)
        return
    server = Server(**minikeeper_options).start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def minikeeper_server(minikeeper_options: Dict[str, Any]) -> Iterator[Server]:
    """A server for one test, for verbs that apply to a whole server: `go_down`, `restart`, `save`."""
    with Server(**minikeeper_options) as server:
        yield server


@pytest.fixture
def minikeeper(request: pytest.FixtureRequest, minikeeper_options: Dict[str, Any]) -> Iterator[Universe]:
    """A universe for one test: empty, without sessions and faults, with a running clock.

    It is on `minikeeper_server` if the test uses that too, else on the server of the whole run, and is dropped after
    the test. A remaining fault that has never acted is then an error, unless it is optional.

    Under `minikeeper sweep`, it is the server of the run, whose state is restored after the test.
    """
    if server_of_sweep() is not None:
        yield from _universe_of_sweep(request, minikeeper_options)
        return
    own = "minikeeper_server" in request.fixturenames
    server: Server = request.getfixturevalue("minikeeper_server" if own else "minikeeper_shared_server")
    sweep = _sweep.of(request.node)
    # Beside a forked run, others use the server.
    is_alone = sweep is None or not sweep.is_forked
    universe = None if sweep is None else sweep.universe
    if universe is None:
        # The previous test may have left the server down.
        server.ensure_ready()
        try:
            # Several processes use the server of a suite.
            which = "" if server_of_suite() is None else f"{os.getpid()}-"
            universe = server.create_universe(f"pytest-{which}{next(_numbers)}")
        except MinikeeperError as error:
            if error.status != 404:
                raise
            # An old program without universes: starts a server for each test, which takes milliseconds.
            with Server(**minikeeper_options) as old:
                yield old
            return
    _story.current.universes.append(universe)
    if sweep is not None:
        sweep.begin_run(server, universe)
    yield universe
    # `ensure_ready` removes those of the server itself.
    never = server._faults_that_never_acted_anywhere() if own else []
    if is_alone:
        # This test may have left it down, too.
        server.ensure_ready()
    try:
        never += universe._faults_that_never_acted()
        # A sweep drops it at the end of the run.
        if sweep is None:
            universe.drop_universe()
    except MinikeeperError as error:
        if error.status != 404:
            raise
        # The test has dropped it.
    _fail_for(never)


def _universe_of_sweep(request: pytest.FixtureRequest, options: Dict[str, Any]) -> Iterator[Universe]:
    if "minikeeper_server" in request.fixturenames:
        # It says that there is no other server.
        request.getfixturevalue("minikeeper_server")
    for is_wrong, why in (
        (options, "minikeeper_options cannot change its server: give it options, such as --tick-time, and return {} here"),
        ("PYTEST_XDIST_WORKER" in os.environ, "its server is for one process: run pytest with -n 0"),
    ):
        if is_wrong:
            pytest.fail(f"minikeeper sweep runs these tests, and {why}", pytrace=False)
    address = server_of_sweep()
    assert address is not None
    universe = Universe(address)
    # Those of the sweep.
    others = [fault["fault"] for fault in universe.faults()]
    before = universe.snapshot()
    _story.current.universes.append(universe)
    yield universe
    never = universe._faults_that_never_acted(others)
    for fault in universe.faults():
        if fault["fault"] not in others:
            universe.remove_fault(fault["fault"])
    universe.restore(before)
    universe.drop_snapshot(before)
    _fail_for(never)


def _fail_for(never: List[str]) -> None:
    if never:
        pytest.fail("\n".join(never), pytrace=False)


@pytest.fixture
def connect_string(request: pytest.FixtureRequest) -> str:
    """The connect string for ZooKeeper clients of this test: of `minikeeper`, or of `minikeeper_server` if the test
    uses only that.
    """
    names = request.fixturenames
    own = "minikeeper_server" in names and "minikeeper" not in names
    universe: Universe = request.getfixturevalue("minikeeper_server" if own else "minikeeper")
    return universe.connect_string


@pytest.fixture
def kazoo_client(connect_string: str) -> Iterator[Any]:
    """A started `KazooClient` for one test, at `connect_string`.

    It is stopped after the story of a failed test has been read, and before the universe and the server end.
    """
    try:
        from kazoo.client import KazooClient  # type: ignore[import-untyped]
    except ImportError as error:
        pytest.fail(f"the fixture kazoo_client needs kazoo: pip install kazoo ({error})", pytrace=False)
    client = KazooClient(connect_string, connection_retry=RECONNECTS)
    try:
        # Not `start`, which also asks whether the chroot exists, and fails if that request does.
        client.start_async().wait(START_WITHIN_S)
        if not client.connected:
            pytest.fail(f"kazoo_client: no connection to {connect_string} within {START_WITHIN_S} s", pytrace=False)
        yield client
    finally:
        client.stop()
        client.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    described = "the folder for the stories of failed tests; off saves none"
    group = parser.getgroup("minikeeper")
    group.addoption(
        "--minikeeper-only",
        metavar="POINTS",
        help="do a single run of a test that is marked minikeeper_sweep, with these faults, as its report names them",
    )
    group.addoption(
        "--minikeeper-unmarked",
        action="store_true",
        help="sweep tests without the mark minikeeper_sweep, too, as minikeeper sweep --suite does",
    )
    group.addoption(
        "--minikeeper-stories",
        metavar="DIR",
        help=f"{described} (default: MINIKEEPER_STORIES, the ini option minikeeper_stories, or minikeeper-stories)",
    )
    parser.addini("minikeeper_stories", f"{described} (default: minikeeper-stories, beside the ini file)")


def pytest_configure(config: pytest.Config) -> None:
    options = "faults, time_s, runs, depth=1, seed=0, all=False, run_time_s=60, jobs=8, allow_unreached=0, allow_untried=0"
    options += ", allow=(), leave_out=(), first=False, compare=False, outage_ms, rollback"
    options += ", orders=False, changes=2, more, alike=False, clients"
    described = "run the test once for every fault at every place where it can happen, or in many orders of requests"
    config.addinivalue_line("markers", f"{_sweep.MARK}({options}): {described}")
    config.pluginmanager.register(_sweep, "minikeeper-sweep")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _story.current.begin(item.nodeid)
    yield
    _story.current.test = None


# Outermost, because the plugins of pytest change the report of a test that is expected to fail.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = (yield).get_result()  # type: ignore[attr-defined]
    stories = _story.current.take()
    sweep = _sweep.of(item)
    if not (report.failed if sweep is None else sweep.is_failure(call)):
        return
    # After the teardown, only what was kept before is left.
    if report.when != "teardown":
        failure = call.excinfo.exconly() if call.excinfo else report.longreprtext
        stories += [_story.current.read(universe, failure) for universe in _universes(item)]
    folder = _story.folder(item.config) if sweep is None else sweep.folder
    saved = [_story.text(story, folder) for story in stories]
    if sweep is not None:
        sweep.note_failure(report, call, next((page for _, page in saved if page is not None), None))
        return
    report.sections += [("minikeeper", text) for text, _ in saved]


def _universes(item: pytest.Item) -> List[Universe]:
    """The universes of a test: those of its fixtures and attributes, and the servers that it has started."""
    values = [*getattr(item, "funcargs", {}).values(), *getattr(getattr(item, "instance", None), "__dict__", {}).values()]
    values += _story.current.universes
    found = {id(value): value for value in values if isinstance(value, Universe)}
    found.update((id(server), server) for server in Server._started_in_test(item.nodeid))
    # The server of the whole run has the stories of other tests.
    addresses = {universe._address for universe in found.values() if universe.name is not None}
    return [one for one in found.values() if one.name is not None or getattr(one, "_address", None) not in addresses]

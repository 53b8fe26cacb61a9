"""Fixtures for pytest: one server for the whole run, and one universe for each test."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator

import pytest

from ._errors import MinikeeperError
from .server import Server
from .universe import Universe

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def minikeeper_options() -> Dict[str, Any]:
    """Arguments of `Server`, for a conftest.py to override."""
    return {}


@pytest.fixture(scope="session")
def minikeeper_server(minikeeper_options: Dict[str, Any]) -> Iterator[Server]:
    """One server for the whole run, shared by all tests of this process."""
    with Server(**minikeeper_options) as server:
        yield server


@pytest.fixture
def minikeeper(minikeeper_server: Server, minikeeper_options: Dict[str, Any]) -> Iterator[Universe]:
    """A universe for one test: empty, without sessions and faults, with a running clock.

    It is on the server of the whole run, and is dropped after the test. A remaining fault that has never acted is then
    an error, unless it is optional.
    """
    # The previous test may have left the server down.
    minikeeper_server.ensure_ready()
    try:
        universe = minikeeper_server.create_universe(f"pytest-{next(_numbers)}")
    except MinikeeperError as error:
        if error.status != 404:
            raise
        # An old program without universes: starts a server for each test, which takes milliseconds.
        with Server(**minikeeper_options) as server:
            yield server
        return
    yield universe
    # This test may have left it down, too.
    minikeeper_server.ensure_ready()
    try:
        never = [fault for fault in universe.faults() if not (fault["hits"] or fault.get("optional"))]
        universe.drop_universe()
    except MinikeeperError as error:
        if error.status != 404:
            raise
        # The test has dropped it.
        return
    assert not never, f"faults that have never acted and are not optional: {never}"

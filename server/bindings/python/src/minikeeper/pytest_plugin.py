"""Fixtures for pytest: a server for the whole run, a world of its own for each test."""

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
    """A server for the whole run, shared by all tests of this process."""
    with Server(**minikeeper_options) as server:
        yield server


@pytest.fixture
def minikeeper(minikeeper_server: Server, minikeeper_options: Dict[str, Any]) -> Iterator[Universe]:
    """A world of its own for one test: empty, without sessions and faults, with a clock that goes.

    It is a universe on the server of the whole run, gone with the test. A fault that was left there and has never
    acted is an error then, unless it is optional.
    """
    # Whatever the last test did to the server itself.
    minikeeper_server.ensure_ready()
    try:
        universe = minikeeper_server.create_universe(f"pytest-{next(_numbers)}")
    except MinikeeperError as error:
        if error.status != 404:
            raise
        # A program without universes: it starts within milliseconds.
        with Server(**minikeeper_options) as server:
            yield server
        return
    yield universe
    # Or this one, while it is down.
    minikeeper_server.ensure_ready()
    try:
        never = [fault for fault in universe.faults() if not (fault["hits"] or fault.get("optional"))]
        universe.drop_universe()
    except MinikeeperError as error:
        if error.status != 404:
            raise
        # It has ended already.
        return
    assert not never, f"faults that have never acted, and are not optional: {never}"

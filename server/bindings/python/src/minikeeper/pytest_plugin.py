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

    It is a universe on the server of the whole run, gone with the test.
    """
    # Whatever the last test did to the server itself.
    minikeeper_server.start()
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
    universe.drop_universe()

"""Hours in milliseconds. `docs/testing/time-travel.md` explains it."""

import pytest
from kazoo.client import KazooClient

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@pytest.fixture
def worker(minikeeper):
    """The code under test: registers an ephemeral while it is alive."""
    minikeeper.freeze()  # no session expires while a debugger pauses the test
    client = KazooClient(minikeeper.connect_string)
    client.start()
    client.create("/workers/anna", ephemeral=True, makepath=True)
    yield client
    client.stop()
    client.close()


def test_result_is_kept_for_an_hour(minikeeper):
    minikeeper.seed({"/results/42": {"data": b"done", "ttl_ms": HOUR_MS}})

    minikeeper.advance(by_ms=HOUR_MS - MINUTE_MS)
    assert minikeeper.children("/results") == ["42"]
    minikeeper.advance(by_ms=2 * MINUTE_MS)  # the server checks once a minute

    assert minikeeper.children("/results") == []


def test_connected_worker_lives_on(minikeeper, worker):
    session = worker.client_id[0]

    minikeeper.advance(by_ms=HOUR_MS)

    assert worker.client_id[0] == session
    assert worker.exists("/workers/anna")


def test_hanging_worker_expires(minikeeper, worker):
    minikeeper.silence(worker)  # its connection stays open, but the server ignores everything it sends

    minikeeper.advance(by_ms=MINUTE_MS)

    assert minikeeper.children("/workers") == []

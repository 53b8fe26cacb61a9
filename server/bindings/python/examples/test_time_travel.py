"""What hours do, in milliseconds. `docs/testing/time-travel.md` explains it."""

import pytest
from kazoo.client import KazooClient

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@pytest.fixture
def worker(minikeeper):
    """What is tested: it is there as long as it lives."""
    minikeeper.freeze()  # a debugger may stop here for as long as it likes
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
    minikeeper.advance(by_ms=2 * MINUTE_MS)  # the server looks once a minute

    assert minikeeper.children("/results") == []


def test_connected_worker_lives_on(minikeeper, worker):
    session = worker.client_id[0]

    minikeeper.advance(by_ms=HOUR_MS)

    assert worker.client_id[0] == session
    assert worker.exists("/workers/anna")


def test_worker_that_hangs_is_gone(minikeeper, worker):
    minikeeper.silence(worker)  # its connection stands, and nothing is heard of it any more

    minikeeper.advance(by_ms=MINUTE_MS)

    assert minikeeper.children("/workers") == []

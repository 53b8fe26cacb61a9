"""Five short tests. `docs/python.md` explains them."""

import threading

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss

WITHIN_S = 30  # a limit for failures; nothing here takes that long
HOUR_MS = 3_600_000


# --8<-- [start:expire]
def test_lock_passes_on_when_its_holder_expires(minikeeper, kazoo_client):
    other = KazooClient(minikeeper.connect_string)
    other.start()
    assert kazoo_client.Lock("/lock").acquire()

    assert minikeeper.expire(kazoo_client) == 1  # returns when the znode of the lock is gone

    assert other.Lock("/lock").acquire(timeout=WITHIN_S)
    other.stop()
    other.close()


# --8<-- [end:expire]


# --8<-- [start:lost-reply]
def test_create_has_happened_though_its_reply_is_lost(minikeeper, kazoo_client):
    with minikeeper.inject(action="lose-reply", op="create", path="/job", count=1):
        with pytest.raises(ConnectionLoss):
            kazoo_client.create("/job", b"mine")

    # The server has created it, though the client does not know.
    assert kazoo_client.retry(kazoo_client.get, "/job")[0] == b"mine"


# --8<-- [end:lost-reply]


# --8<-- [start:outage]
def test_client_survives_an_outage(minikeeper_server, kazoo_client):
    suspended, connected = threading.Event(), threading.Event()
    kazoo_client.add_listener(lambda state: (connected if state == KazooState.CONNECTED else suspended).set())
    session = kazoo_client.client_id

    minikeeper_server.go_down()
    assert suspended.wait(WITHIN_S)
    minikeeper_server.come_up()

    assert connected.wait(WITHIN_S)
    assert kazoo_client.client_id == session


# --8<-- [end:outage]


# --8<-- [start:time]
def test_result_is_gone_after_an_hour(minikeeper):
    minikeeper.seed({"/results/42": {"data": b"done", "ttl_ms": HOUR_MS}})

    minikeeper.advance(by_ms=HOUR_MS + 60_000)  # the server looks for expired znodes once a minute

    assert minikeeper.children("/results") == []


# --8<-- [end:time]


# --8<-- [start:verify]
def test_job_writes_only_under_its_lock(minikeeper, kazoo_client):
    with kazoo_client.Lock("/locks/job"):
        kazoo_client.create("/results", b"done")

    minikeeper.verify(in_order=["create /locks/job/* -> OK", "create /results -> OK", "delete /locks/job/* -> OK"])
    minikeeper.verify(path="/results", op="setData", exactly=0)


# --8<-- [end:verify]

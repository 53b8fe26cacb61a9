"""My lock survives a lost reply. `docs/testing/lost-reply.md` explains it."""

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

WITHIN_S = 30  # a bound for when something is wrong; nothing here takes that long


@pytest.fixture
def connect(minikeeper):
    clients = []

    def connect():
        clients.append(KazooClient(minikeeper.connect_string))
        clients[-1].start()
        return clients[-1]

    yield connect
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def lose_reply(minikeeper):
    """Of the requests of this kind below this path, the first is carried out, and its reply is lost with the connection."""
    return lambda op, path: minikeeper.inject(action="lose-reply", op=op, path=f"{path}/*", count=1)


def test_lock_survives_a_lost_create(minikeeper, connect, lose_reply):
    lock = connect().Lock("/locks/printer")
    with lose_reply("create", "/locks/printer") as lost:
        assert lock.acquire(timeout=WITHIN_S)
        lost.until_hit()  # or this test has tested nothing

    # It has found its znode again, instead of queueing behind it with another one.
    assert len(minikeeper.children("/locks/printer")) == 1
    lock.release()
    assert connect().Lock("/locks/printer").acquire(timeout=WITHIN_S)


def test_lock_survives_a_lost_delete(minikeeper, connect, lose_reply):
    lock = connect().Lock("/locks/printer")
    assert lock.acquire(timeout=WITHIN_S)
    with lose_reply("delete", "/locks/printer") as lost:
        lock.release()
        lost.until_hit()  # or this test has tested nothing

    assert minikeeper.children("/locks/printer") == []
    assert connect().Lock("/locks/printer").acquire(timeout=WITHIN_S)


def test_queue_by_hand_does_not(minikeeper, connect, lose_reply):
    """What the fault does to a client that only tries again."""
    client = connect()
    client.create("/queue")
    with lose_reply("create", "/queue"):
        with pytest.raises(ConnectionLoss):
            client.create("/queue/n-", ephemeral=True, sequence=True)
        client.retry(client.create, "/queue/n-", ephemeral=True, sequence=True)

    # The first is nobody's. Everybody waits for it for as long as the session lasts.
    assert sorted(minikeeper.children("/queue")) == ["n-0000000000", "n-0000000001"]

"""My lock survives a lost reply. `docs/testing/lost-reply.md` explains it."""

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

WITHIN_S = 30  # a limit for failures; nothing here takes that long


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
    """Makes the server execute the next such request below a path, but close the connection instead of replying."""
    return lambda op, path: minikeeper.inject(action="lose-reply", op=op, path=f"{path}/*", count=1)


def test_lock_survives_a_lost_create(minikeeper, connect, lose_reply):
    lock = connect().Lock("/locks/printer")
    with lose_reply("create", "/locks/printer") as lost:
        assert lock.acquire(timeout=WITHIN_S)
        lost.until_hit()  # otherwise this test would test nothing

    # The lock has found its znode again, instead of queueing a second one behind it.
    assert len(minikeeper.children("/locks/printer")) == 1
    lock.release()
    assert connect().Lock("/locks/printer").acquire(timeout=WITHIN_S)


def test_lock_survives_a_lost_delete(minikeeper, connect, lose_reply):
    lock = connect().Lock("/locks/printer")
    assert lock.acquire(timeout=WITHIN_S)
    with lose_reply("delete", "/locks/printer") as lost:
        lock.release()
        lost.until_hit()  # otherwise this test would test nothing

    assert minikeeper.children("/locks/printer") == []
    assert connect().Lock("/locks/printer").acquire(timeout=WITHIN_S)


def test_queue_by_hand_does_not(minikeeper, connect, lose_reply):
    """A client that only retries leaves an orphaned znode."""
    client = connect()
    client.create("/queue")
    with lose_reply("create", "/queue"):
        with pytest.raises(ConnectionLoss):
            client.create("/queue/n-", ephemeral=True, sequence=True)
        client.retry(client.create, "/queue/n-", ephemeral=True, sequence=True)

    # The client does not know the first one. Every contender waits for it until the session ends.
    assert sorted(minikeeper.children("/queue")) == ["n-0000000000", "n-0000000001"]

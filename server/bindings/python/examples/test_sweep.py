"""The sweep tries every fault at every request of a test. `docs/python.md` explains it."""

import uuid

import pytest
from kazoo.exceptions import NoNodeError


# --8<-- [start:sweep]
def enqueue(client):
    """Joins the queue of a lock, and finds its own znode again if the reply is lost."""
    name = f"{uuid.uuid4()}-"

    def create():
        for child in client.get_children("/lock"):
            if child.startswith(name):
                return f"/lock/{child}"
        return client.create(f"/lock/{name}", ephemeral=True, sequence=True)

    return client.retry(create)


def leave(client, path):
    try:
        client.retry(client.delete, path)
    except NoNodeError:
        pass  # deleted by a request whose reply was lost, or with the session


@pytest.mark.minikeeper_sweep
def test_queue_is_empty_in_the_end(minikeeper, kazoo_client):
    minikeeper.seed({"/lock": ""})
    leave(kazoo_client, enqueue(kazoo_client))
    assert minikeeper.children("/lock") == []


# --8<-- [end:sweep]


# The sweep finds that a client that only repeats its request leaves a znode, which blocks the lock.
@pytest.mark.xfail(strict=True, reason="the reply to the create is lost")
# --8<-- [start:bug]
@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_queue_of_a_client_that_only_repeats_is_not(minikeeper, kazoo_client):
    minikeeper.seed({"/lock": ""})
    leave(kazoo_client, kazoo_client.retry(kazoo_client.create, "/lock/n-", ephemeral=True, sequence=True))
    assert minikeeper.children("/lock") == []
# --8<-- [end:bug]

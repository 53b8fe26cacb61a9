"""My client reconnects. `docs/testing/reconnect.md` explains it."""

import queue

import pytest
from kazoo.client import KazooClient, KazooState

from minikeeper import Server

WITHIN_S = 30  # a limit for failures; nothing here takes that long


class Announcement:
    """The code under test: an ephemeral that says "I am here", created again in every session."""

    def __init__(self, client, path, address):
        self.client, self.path, self.address = client, path, address
        self.is_lost = False
        client.add_listener(self.on_state)
        self.announce()

    def announce(self):
        self.client.create(self.path, self.address, ephemeral=True, makepath=True)

    def on_state(self, state):
        if state == KazooState.LOST:
            self.is_lost = True
        elif state == KazooState.CONNECTED and self.is_lost:
            self.is_lost = False
            # A listener must not wait for a reply: it blocks the thread that would receive it.
            self.client.handler.spawn(self.announce)


@pytest.fixture
def server():
    """A separate server instead of a universe on a shared one: `go_down` applies to a whole server."""
    with Server() as server:
        yield server


@pytest.fixture
def client(server):
    client = KazooClient(server.connect_string)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def states(client):
    seen = queue.Queue()
    client.add_listener(seen.put)
    return lambda count: [seen.get(timeout=WITHIN_S) for _ in range(count)]


def test_announcement_survives_a_closed_connection(server, client, states):
    Announcement(client, "/services/web", b"10.0.0.7:80")
    session = client.client_id[0]

    assert server.disconnect(client) == 1

    assert states(2) == [KazooState.SUSPENDED, KazooState.CONNECTED]
    assert client.client_id[0] == session
    assert server.children("/services") == ["web"]


def test_announcement_survives_a_server_outage(server, client, states):
    Announcement(client, "/services/web", b"10.0.0.7:80")
    session = client.client_id[0]

    server.go_down()
    assert states(1) == [KazooState.SUSPENDED]
    server.come_up()

    assert states(1) == [KazooState.CONNECTED]
    assert client.client_id[0] == session
    assert server.children("/services") == ["web"]


def test_announcement_is_created_again_in_a_new_session(server, client, states):
    Announcement(client, "/services/web", b"10.0.0.7:80")
    session = client.client_id[0]

    server.restart(keep="data")

    assert states(3) == [KazooState.SUSPENDED, KazooState.LOST, KazooState.CONNECTED]
    server.until_children("/services", 1)
    assert client.client_id[0] != session

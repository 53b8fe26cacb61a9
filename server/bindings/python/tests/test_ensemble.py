"""Unmodified kazoo clients fail over between the servers of an ensemble."""

from __future__ import annotations

import threading
from typing import Any, Iterator

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import NotReadOnlyCallError

from minikeeper import MinikeeperError, Server


@pytest.fixture
def ensemble() -> Iterator[Server]:
    with Server(servers=3) as server:
        yield server


@pytest.fixture
def client(ensemble: Server) -> Iterator[KazooClient]:
    client = KazooClient(ensemble.connect_string, timeout=4)
    client.start()
    yield client
    client.stop()
    client.close()


def server_of(ensemble: Server, client: KazooClient) -> int:
    """Returns the number of the server that the client is connected to."""
    session = hex(client.client_id[0])
    found = [one["id"] for one in ensemble.servers() if session in one["sessions"]]
    return found[0] if found else 0


def states_of(client: KazooClient) -> "list[str]":
    states: "list[str]" = []
    client.add_listener(states.append)
    return states


@pytest.mark.parametrize("mode", ["down", "cut-off"])
def test_client_fails_over_and_keeps_its_session(ensemble: Server, client: KazooClient, mode: Any) -> None:
    states = states_of(client)
    before, session = server_of(ensemble, client), client.client_id
    client.create("/owned", b"1", ephemeral=True)
    ensemble.set_server(before, mode=mode)
    assert client.retry(client.set, "/owned", b"2").version == 1
    assert server_of(ensemble, client) not in (0, before)
    assert client.client_id == session
    assert KazooState.SUSPENDED in states and KazooState.LOST not in states
    zxid = client.last_zxid
    ensemble.set_server(before, mode="up")
    assert client.set("/owned", b"3").mzxid > zxid


def test_watches_and_locks_survive_the_failover(ensemble: Server, client: KazooClient) -> None:
    lock = client.Lock("/locks/a", "me")
    assert lock.acquire(timeout=10)
    seen = threading.Event()
    client.create("/watched")
    client.get("/watched", watch=lambda event: seen.set())
    other = KazooClient(ensemble.connect_string, timeout=4)
    other.start()
    ensemble.set_server(server_of(ensemble, client), mode="down")
    other.retry(other.set, "/watched", b"changed")
    assert seen.wait(10)
    waiting = other.Lock("/locks/a", "other")
    assert waiting.contenders() == ["me"]
    client.retry(lock.release)
    assert waiting.acquire(timeout=10)
    other.stop()
    other.close()


def test_read_only_client_reads_while_no_server_serves_changes(ensemble: Server) -> None:
    client = KazooClient(ensemble.connect_string, timeout=4, read_only=True)
    client.start()
    client.create("/a", b"1")
    for one in ensemble.servers():
        ensemble.set_server(one["id"], mode="read-only")
    assert client.retry(client.get, "/a")[0] == b"1"
    with pytest.raises(NotReadOnlyCallError):
        client.set("/a", b"2")
    for one in ensemble.servers():
        ensemble.set_server(one["id"], mode="up")
    assert client.retry(client.set, "/a", b"2").version == 1
    client.stop()
    client.close()


def test_words_name_the_leader(ensemble: Server) -> None:
    def modes() -> "list[bytes]":
        found = []
        for host in ensemble.connect_string.split(","):
            client = KazooClient(host)
            client.start()
            found += [line for line in client.command(b"srvr").encode().splitlines() if line.startswith(b"Mode")]
            client.stop()
            client.close()
        return found

    assert modes() == [b"Mode: leader", b"Mode: follower", b"Mode: follower"]
    ensemble.set_leader(2)
    assert modes() == [b"Mode: follower", b"Mode: leader", b"Mode: follower"]


def test_control_is_reached_through_any_server(ensemble: Server) -> None:
    for number in (1, 2):
        ensemble.set_server(number, mode="down")
    assert [one["mode"] for one in ensemble.servers()] == ["down", "down", "up"]
    with pytest.raises(MinikeeperError, match="server 3 is the last one that listens"):
        ensemble.set_server(3, mode="down")
    ensemble.ensure_ready()
    assert [one["mode"] for one in ensemble.servers()] == ["up", "up", "up"]


def test_servers_start_again_at_the_same_addresses(ensemble: Server) -> None:
    before = ensemble.connect_string
    ensemble.stop()
    ensemble.start()
    assert ensemble.connect_string == before

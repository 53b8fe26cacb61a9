"""Start from production data. `docs/testing/production-data.md` explains it."""

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

from minikeeper import Server


def migrate(client):
    """The code under test: converts `/config/limit` from requests per second to requests per minute."""
    data, stat = client.get("/config/limit")
    client.set("/config/limit", str(int(data) * 60).encode(), version=stat.version)
    client.create("/config/unit", b"minute")


@pytest.fixture(scope="session")
def production(tmp_path_factory):
    """Imitates production: a directory as ZooKeeper 3.8 and 3.9 write it, with a session in it."""
    folder = tmp_path_factory.mktemp("production")
    with Server() as server:
        server.seed({"/config/limit": "100"})
        web = KazooClient(server.connect_string)
        web.start()
        web.create("/services/web", b"10.0.0.7:80", ephemeral=True, makepath=True)
        server.export_data(folder)
        web.stop()
        web.close()
    return folder


@pytest.fixture
def client(minikeeper, production):
    """A client of this test's copy of the data; the directory is only read."""
    minikeeper.import_data(production)
    client = KazooClient(minikeeper.connect_string)
    client.start()
    yield client
    client.stop()
    client.close()


def test_limit_is_migrated(minikeeper, client):
    migrate(client)

    assert minikeeper.get("/config/limit").data == b"6000"
    assert minikeeper.get("/config/unit").data == b"minute"


def test_limit_is_not_migrated_twice(minikeeper, client):
    """Each test starts with production's data again."""
    assert minikeeper.get("/config/limit").data == b"100"
    migrate(client)
    with pytest.raises(NodeExistsError):
        migrate(client)


def test_sessions_of_production_can_be_ended(minikeeper, client):
    """Their ephemerals remain until they end, as in production."""
    assert minikeeper.children("/services") == ["web"]

    assert minikeeper.expire(owner="/services/web") == 1

    assert client.get_children("/services") == []

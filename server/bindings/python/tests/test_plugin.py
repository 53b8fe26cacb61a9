"""The fixtures."""

from conftest import connected

from minikeeper import Universe


def test_world_of_a_test_is_empty(minikeeper):
    assert isinstance(minikeeper, Universe)
    assert minikeeper.children("/") in ([], ["zookeeper"])
    assert minikeeper.sessions() == []
    with connected(minikeeper) as client:
        client.create("/left-behind")


def test_world_of_the_next_test_is_empty_too(minikeeper):
    assert minikeeper.children("/") in ([], ["zookeeper"])


def test_server_of_the_run_stays(minikeeper, minikeeper_server):
    assert minikeeper_server.start() is minikeeper_server
    minikeeper_server.now()

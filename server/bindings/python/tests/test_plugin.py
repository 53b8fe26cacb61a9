"""The fixtures."""

from conftest import connected

from minikeeper import Universe


def test_universe_of_a_test_is_empty(minikeeper):
    assert isinstance(minikeeper, Universe)
    assert minikeeper.children("/") in ([], ["zookeeper"])
    assert minikeeper.sessions() == []
    with connected(minikeeper) as client:
        client.create("/left-behind")


def test_universe_of_the_next_test_is_empty_too(minikeeper):
    assert minikeeper.children("/") in ([], ["zookeeper"])


def test_server_may_be_left_down(minikeeper, minikeeper_server):
    minikeeper_server.go_down()


def test_server_left_down_is_up_for_the_next_test(minikeeper):
    with connected(minikeeper) as client:
        assert client.exists("/")


def test_server_may_be_left_down_by_another_caller(minikeeper, minikeeper_server):
    Universe(minikeeper_server.address).go_down()


def test_server_left_down_by_another_caller_is_up_too(minikeeper):
    with connected(minikeeper) as client:
        assert client.exists("/")


def test_server_may_be_left_frozen_and_refusing(minikeeper_server):
    minikeeper_server.freeze()
    minikeeper_server.inject(action="refuse")


def test_server_left_frozen_and_refusing_serves_the_next_test(minikeeper, minikeeper_server):
    assert minikeeper_server.faults() == [] and not minikeeper_server.now().is_frozen
    with connected(minikeeper) as client:
        assert client.exists("/")


def test_server_of_the_run_keeps_running(minikeeper, minikeeper_server):
    assert minikeeper_server.start() is minikeeper_server
    minikeeper_server.now()

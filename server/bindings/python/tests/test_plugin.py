"""The fixtures."""

import pytest
from conftest import connected

from minikeeper import Server, Universe

pytest_plugins = ["pytester"]


def test_universe_of_a_test_is_empty(minikeeper):
    assert isinstance(minikeeper, Universe)
    assert minikeeper.children("/") in ([], ["zookeeper"])
    assert minikeeper.sessions() == []
    with connected(minikeeper) as client:
        client.create("/left-behind")


def test_universe_of_the_next_test_is_empty_too(minikeeper):
    assert minikeeper.children("/") in ([], ["zookeeper"])


def test_server_may_be_left_down(minikeeper, minikeeper_shared_server):
    minikeeper_shared_server.go_down()


def test_server_left_down_is_up_for_the_next_test(minikeeper):
    with connected(minikeeper) as client:
        assert client.exists("/")


def test_server_may_be_left_down_by_another_caller(minikeeper, minikeeper_shared_server):
    Universe(minikeeper_shared_server.address).go_down()


def test_server_left_down_by_another_caller_is_up_too(minikeeper):
    with connected(minikeeper) as client:
        assert client.exists("/")


def test_server_may_be_left_frozen_and_refusing(minikeeper_shared_server):
    minikeeper_shared_server.freeze()
    minikeeper_shared_server.inject(action="refuse")


def test_server_left_frozen_and_refusing_serves_the_next_test(minikeeper, minikeeper_shared_server):
    assert minikeeper_shared_server.faults() == [] and not minikeeper_shared_server.now().is_frozen
    with connected(minikeeper) as client:
        assert client.exists("/")


def test_server_of_the_run_keeps_running(minikeeper, minikeeper_shared_server):
    assert minikeeper_shared_server.start() is minikeeper_shared_server
    minikeeper_shared_server.now()


def test_server_of_a_test_is_its_own(minikeeper_server, minikeeper_shared_server):
    assert isinstance(minikeeper_server, Server)
    assert minikeeper_server.address != minikeeper_shared_server.address
    minikeeper_server.seed({"/left-behind": ""})
    minikeeper_server.go_down()


def test_server_of_the_next_test_is_new(minikeeper_server):
    assert minikeeper_server.children("/") == ["zookeeper"]


def test_universe_is_on_the_server_of_the_test(minikeeper_server, minikeeper):
    assert minikeeper.address == minikeeper_server.address
    assert minikeeper.name in minikeeper_server.universes()


def test_kazoo_client_is_on_the_universe(minikeeper, kazoo_client, connect_string):
    assert connect_string == minikeeper.connect_string
    kazoo_client.create("/a", b"x")
    assert minikeeper.get("/a").data == b"x"


def test_kazoo_client_is_on_the_server_of_the_test(kazoo_client, minikeeper_server, connect_string):
    assert connect_string == minikeeper_server.address
    kazoo_client.create("/a", b"x")
    assert minikeeper_server.get("/a").data == b"x"


def test_kazoo_client_alone_is_on_an_empty_universe(kazoo_client):
    assert kazoo_client.get_children("/") in ([], ["zookeeper"])


def test_kazoo_client_stops_though_the_test_left_the_server_down(kazoo_client, minikeeper_server):
    minikeeper_server.go_down()


def test_kazoo_client_stops_though_its_session_has_expired(kazoo_client, minikeeper):
    minikeeper.expire(kazoo_client)


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("MINIKEEPER_STORIES", "off")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(code, *options):
        pytester.makepyfile(test_it=code)
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
        return result, result.stdout.str() + result.stderr.str()

    return run


@pytest.mark.parametrize("fixtures", ["kazoo_client", "minikeeper, kazoo_client", "kazoo_client, minikeeper_server"])
def test_story_is_read_before_kazoo_client_stops(run, fixtures):
    result, printed = run(
        f"""
        def test_fails({fixtures}):
            kazoo_client.create("/mine", ephemeral=True)
            assert False
        """
    )
    result.assert_outcomes(failed=1)
    assert printed.count("minikeeper: story of test_it.py::test_fails") == 1, printed
    assert "create /mine EPHEMERAL -> OK" in printed and "closeSession" not in printed, printed
    assert "\nsessions:\n  0x" in printed, printed


def test_fixtures_end_in_the_order_client_universe_server(run):
    result, printed = run(
        """
        import pytest
        from kazoo.client import KazooClient, KazooState
        from minikeeper import Server, Universe

        @pytest.fixture
        def ends(monkeypatch):
            ends = []
            for of, name in ((KazooClient, "stop"), (Universe, "drop_universe"), (Server, "stop")):
                def end(self, *args, end=getattr(of, name), name=f"{of.__name__}.{name}"):
                    ends.append(name)
                    return end(self, *args)
                monkeypatch.setattr(of, name, end)
            yield
            assert ends == ["KazooClient.stop", "Universe.drop_universe", "Server.stop"]

        def test_passes(ends, minikeeper_server, kazoo_client, minikeeper):
            pass
        """
    )
    result.assert_outcomes(passed=1)


def test_test_with_a_fault_that_never_acted_fails_with_a_sentence_for_each(run):
    # The error showed a dict, and was missing without the fixture `minikeeper`, or for faults of `minikeeper_server`.
    result, printed = run(
        """
        from minikeeper import Server

        NEVER = {"action": "lose-reply", "op": "create"}

        def test_universe(minikeeper):
            minikeeper.inject(**NEVER, path="/a")
            minikeeper.inject(**NEVER, path="/b")

        def test_own_server(minikeeper_server, minikeeper):
            minikeeper_server.inject(**NEVER, path="/c")
            minikeeper.inject(**NEVER, path="/d")

        def test_own_server_alone(minikeeper_server):
            minikeeper_server.create_universe("mine").inject(**NEVER, path="/e")

        def test_block():
            with Server() as server:
                server.inject(**NEVER, path="/f")
        """
    )
    result.assert_outcomes(passed=3, errors=3, failed=1)
    for path in "abcdef":
        sentence = f'(lose-reply, op create, path "/{path}"): ended and never acted; messages that matched it: 0; check its'
        assert sentence in printed, printed
        # The story was read while the server still had it.
        assert f'(lose-reply, op create, path "/{path}"): acted 0 times' in printed, printed
    assert "'action'" not in printed, printed


def test_kazoo_client_without_kazoo_says_what_to_install(run):
    result, printed = run(
        """
        import sys
        sys.modules["kazoo"] = sys.modules["kazoo.client"] = None
        def test_it(kazoo_client): pass
        """
    )
    result.assert_outcomes(errors=1)
    assert "the fixture kazoo_client needs kazoo: pip install kazoo" in printed, printed

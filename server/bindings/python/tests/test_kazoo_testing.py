"""The replacement for `kazoo.testing`, through the methods and attributes of kazoo's own classes."""

import inspect
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import KazooState
from kazoo.security import make_digest_acl

from minikeeper import MinikeeperError
from minikeeper.kazoo_testing import KazooTestCase, KazooTestHarness, get_global_cluster

pytest_plugins = ["pytester"]

# kazoo warns whenever a client creates its chroot, which KazooTestCase does.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")

WITHIN_S = 30


class CaseTest(KazooTestCase):
    def test_client_is_started_in_an_empty_chroot(self):
        assert isinstance(self.client, KazooClient) and self.client.connected
        assert self.client.get_children("/") == []
        servers, _, chroot = self.hosts.partition("/")
        assert servers == self.servers == self.cluster[0].address
        root = self._get_nonchroot_client()
        root.start()
        assert chroot in root.get_children("/")
        self.client.create("/mine")
        assert root.exists(f"/{chroot}/mine")

    def test_further_clients_share_the_chroot(self):
        self.client.create("/mine", b"x")
        other = self._get_client(timeout=5)
        assert not other.connected
        other.start()
        assert other.get("/mine")[0] == b"x"
        assert other._session_timeout == 5000 and self.client._session_timeout == 15000

    def test_lost_connection_keeps_the_session(self):
        self.client.create("/mine", ephemeral=True)
        session, states = self.client.client_id, []
        self.client.add_listener(states.append)
        self.lose_connection(threading.Event)
        assert states == [KazooState.SUSPENDED, KazooState.CONNECTED]
        assert self.client.client_id == session and self.client.exists("/mine")
        self.lose_connection(self.client.handler.event_object)

    def test_expired_session_is_another(self):
        self.client.create("/mine", ephemeral=True)
        session, states = self.client.client_id, []
        self.client.add_listener(states.append)
        self.expire_session(threading.Event)
        assert states == [KazooState.SUSPENDED, KazooState.LOST, KazooState.CONNECTED]
        assert self.client.client_id != session and not self.client.exists("/mine")
        self.expire_session(self.client.handler.event_object)

    def test_server_keeps_its_state_while_it_is_stopped(self):
        server = self.cluster[0]
        self.client.create("/mine", b"x", ephemeral=True)
        suspended, connected = threading.Event(), threading.Event()
        self.client.add_listener(lambda state: (connected if state == KazooState.CONNECTED else suspended).set())
        address = server.address
        server.stop()
        assert not server.running and suspended.wait(WITHIN_S)
        server.run()
        assert server.running and server.address == address and connected.wait(WITHIN_S)
        assert self.client.retry(self.client.get, "/mine")[0] == b"x"

    def test_verbs_work_on_the_server(self):
        with self.minikeeper.inject(action="error", error="NONODE", op="getData", count=1):
            with self.assertRaises(NoNodeError):
                self.client.get("/")

    def test_super_user_is_that_of_kazoo(self):
        self.client.create("/secret", acl=[make_digest_acl("anna", "a", all=True)])
        master = self._get_client(auth_data=[("digest", "super:test")])
        master.start()
        assert master.get("/secret")[0] == b""

    def test_words_are_open(self):
        assert self.client.command(b"ruok") == "imok" and "Mode: standalone" in self.client.command(b"srvr")

    def test_tls_says_that_there_is_none(self):
        with pytest.raises(MinikeeperError, match="has no TLS"):
            self.secure_servers  # noqa: B018


class HarnessTest(KazooTestHarness):
    def test_setup_and_teardown_by_hand(self):
        assert self.client is None
        self.setup_zookeeper(timeout=6)
        client = self.client
        assert client._session_timeout == 6000 and client.connected
        self.teardown_zookeeper()
        assert self.client is None and self._clients == [] and not client.connected
        self.cluster.reset()
        self.setup_zookeeper()
        assert self.client.get_children("/") == []
        assert isinstance(self.cluster.get_logs(), list)
        self.teardown_zookeeper()
        self.cluster.terminate()


def test_server_ends_after_the_class():
    assert not any(server.running for server in get_global_cluster())


def test_every_public_name_of_kazoo_is_there():
    # kazoo.testing itself needs pyOpenSSL to import, so its names are a list here: those of kazoo 2.11.0.
    harness = """DEFAULT_CLIENT_TIMEOUT cluster log servers secure_servers _get_nonchroot_client _get_client
        lose_connection expire_session setup_zookeeper teardown_zookeeper""".split()
    cluster = "start stop terminate reset get_logs get_ssl_client_configuration __getitem__ __iter__".split()
    server = "run address secure_address running client_port secure_client_port reset stop destroy get_logs".split()
    for of, names in (
        (KazooTestHarness, harness),
        (KazooTestCase, [*harness, "setUp", "tearDown", "tearDownClass"]),
        (type(get_global_cluster()), cluster),
        (type(get_global_cluster()[0]), server),
    ):
        assert [name for name in names if not hasattr(of, name)] == []
    assert list(inspect.signature(KazooTestHarness.lose_connection).parameters) == ["self", "event_factory"]


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("MINIKEEPER_STORIES", "off")
    for name in ("PYTEST_ADDOPTS", "ZOOKEEPER_VERSION", "ZOOKEEPER_PATH", "CI"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest("from minikeeper import kazoo_testing\nkazoo_testing.install()\n")

    def run(*arguments):
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q", *arguments, timeout=100)
        return result, result.stdout.str() + result.stderr.str()

    return run


def test_story_is_read_before_the_clients_stop(run, pytester):
    pytester.makepyfile(
        test_it="""
        from kazoo.testing import KazooTestCase

        class MyTest(KazooTestCase):
            def test_fails(self):
                self.client.create("/mine", ephemeral=True)
                self.fail("on purpose")

            def test_passes(self):
                pass
        """
    )
    result, printed = run()
    result.assert_outcomes(failed=1, passed=1)
    assert printed.count("minikeeper: story of test_it.py::MyTest::test_fails") == 1, printed
    assert "EPHEMERAL -> OK" in printed and "/mine" in printed and "closeSession" not in printed, printed
    assert "kazoo_testing.py" not in printed, printed


def test_users_of_jaas_are_those_of_kazoo(run, pytester, monkeypatch):
    monkeypatch.setenv("ZOOKEEPER_JAAS_AUTH", "digest")
    pytester.makepyfile(
        test_it="""
        from kazoo.testing import KazooTestHarness

        class SaslTest(KazooTestHarness):
            def test_digest(self):
                options = {"mechanism": "DIGEST-MD5", "username": "jaasuser", "password": "jaas_password"}
                self.setup_zookeeper(sasl_options=options)
                identities = [one for session in self.minikeeper.sessions() for one in session.identities]
                assert "sasl:jaasuser" in identities, identities
                self.teardown_zookeeper()
        """
    )
    result, printed = run()
    result.assert_outcomes(passed=1)


# Of the tests of locks, those that wait for real time are left out, and two that race with a fast server.
LOCKS = "(Semaphore or reconnect or cancel or unique or ephemeral or read) and not (timeout or threads)"


@pytest.mark.parametrize("module", ["barrier", "counter", "election", "lock", "party", "queue"])
def test_own_tests_of_kazoo_pass(run, record_property, module):
    result, printed = run("--pyargs", f"kazoo.tests.test_{module}", *(["-k", LOCKS] if module == "lock" else []))
    outcomes = result.parseoutcomes()
    record_property("detail", ", ".join(f"{count} {word}" for word, count in outcomes.items()))
    assert outcomes.get("passed") and not {"failed", "errors"} & set(outcomes), printed

"""A replacement for `kazoo.testing`: the same classes and methods on minikeeper, without Java and an installed ZooKeeper.

    from minikeeper.kazoo_testing import KazooTestCase

    class MyTest(KazooTestCase):
        def test_something(self):
            self.client.create("/something")        # a started client, in an empty chroot
            self.minikeeper.inject(action="lose-reply", op="create", count=1)
            ...

`install()` replaces `kazoo.testing` itself, for tests that import it.

It has the methods and attributes of kazoo 2.11. What differs:

- The cluster is one server. Its state survives `stop` and `run`, and is gone after `reset` and `destroy`.
- `expire_session` expires the session on the server, so that its ephemerals are deleted and other clients are notified.
  kazoo's own pretends to the client alone. `lose_connection` closes the connection on the server, too.
- `minikeeper` is the server with every verb.
- The variables ZOOKEEPER_* are ignored, except for ZOOKEEPER_JAAS_AUTH=digest. There is no Kerberos, and no TLS:
  `secure_servers` raises MinikeeperError.
"""

from __future__ import annotations

import atexit
import logging
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import KazooException  # type: ignore[import-untyped]
from kazoo.protocol.states import KazooState  # type: ignore[import-untyped]

from . import _story
from ._errors import MinikeeperError
from .server import Server

__all__ = ["KazooTestCase", "KazooTestHarness", "get_global_cluster", "install"]

log = logging.getLogger(__name__)

# pytest and unittest leave the frames of this module out of tracebacks.
__tracebackhide__ = True
__unittest = True

TICK_TIME_MS = 2_000
# The super user of kazoo's servers: super:test.
SUPER_DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
# The users of kazoo's servers with ZOOKEEPER_JAAS_AUTH=digest.
JAAS_DIGEST = """Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_super="super_secret"
    user_jaasuser="jaas_password";
};
"""
LOST_S = 5
RECONNECTED_S = 15


class ManagedServer:
    """The server of the cluster, with the methods of kazoo's `ManagedZooKeeper`."""

    host = "127.0.0.1"

    def __init__(self, jaas: Optional[str]) -> None:
        self.working_path = tempfile.mkdtemp(prefix="minikeeper-")
        options = ["--4lw-whitelist", "*", "--super-digest", SUPER_DIGEST]
        if jaas == "digest":
            users = pathlib.Path(self.working_path, "jaas.conf")
            users.write_text(JAAS_DIGEST)
            options += ["--jaas-config", str(users)]
        elif jaas:
            raise MinikeeperError(f"ZOOKEEPER_JAAS_AUTH={jaas}: minikeeper has digest only")
        self._data = os.path.join(self.working_path, "data")
        self.server = Server(data_dir=self._data, tick_time_ms=TICK_TIME_MS, options=options)
        self._running = False

    @property
    def running(self) -> bool:
        return self._running

    @property
    def address(self) -> str:
        return f"{self.host}:{self.client_port}"

    @property
    def client_port(self) -> int:
        # Known before the start too, as in kazoo, where ports are fixed.
        if not self.server._port:
            self.run()
        return self.server._port

    @property
    def secure_address(self) -> str:
        raise MinikeeperError("minikeeper.kazoo_testing has no TLS")

    @property
    def secure_client_port(self) -> int:
        raise MinikeeperError("minikeeper.kazoo_testing has no TLS")

    def run(self) -> None:
        """Starts it unless it is running, with the state of its last stop."""
        os.makedirs(self._data, exist_ok=True)
        self.server.start()
        # The test case reads its story.
        self.server._started_in = None
        self._running = True

    def stop(self) -> None:
        """Stops it; `run` continues with its state, on the same port."""
        self._running = False
        self.server.stop()

    def reset(self) -> None:
        """Stops it and deletes its state."""
        self.stop()
        shutil.rmtree(self._data, ignore_errors=True)

    def destroy(self) -> None:
        """Stops it and deletes its state."""
        self.reset()

    def get_logs(self, num_lines: int = 100) -> List[str]:
        return self.server.log.splitlines(keepends=True)[-num_lines:] if self._running else []


class Cluster:
    """A cluster of one server, with the methods of kazoo's `ZookeeperCluster`."""

    def __init__(self, jaas: Optional[str] = None) -> None:
        self._servers = [ManagedServer(jaas)]

    def __getitem__(self, number: int) -> ManagedServer:
        return self._servers[number]

    def __iter__(self) -> Iterator[ManagedServer]:
        return iter(self._servers)

    def start(self) -> None:
        for server in self:
            server.run()

    def stop(self) -> None:
        for server in self:
            server.stop()

    def terminate(self) -> None:
        for server in self:
            server.destroy()

    def reset(self) -> None:
        for server in self:
            server.reset()

    def get_logs(self) -> List[str]:
        return [line for server in self for line in server.get_logs()]

    def get_ssl_client_configuration(self) -> Dict[str, Any]:
        raise MinikeeperError("minikeeper.kazoo_testing has no TLS")


_clusters: Dict[Optional[str], Cluster] = {}


def get_global_cluster() -> Cluster:
    """Returns the cluster of this process, which ends with it."""
    jaas = os.environ.get("ZOOKEEPER_JAAS_AUTH") or None
    if jaas not in _clusters:
        cluster = _clusters[jaas] = Cluster(jaas)
        atexit.register(_remove, cluster)
    return _clusters[jaas]


def _remove(cluster: Cluster) -> None:
    cluster.terminate()
    for server in cluster:
        shutil.rmtree(server.working_path, ignore_errors=True)


class KazooTestHarness(unittest.TestCase):
    """A test case that calls `setup_zookeeper` and `teardown_zookeeper` itself."""

    DEFAULT_CLIENT_TIMEOUT = 15

    client: Any
    hosts: str

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.client = None
        self._clients: List[Any] = []

    @property
    def cluster(self) -> Cluster:
        return get_global_cluster()

    @property
    def minikeeper(self) -> Server:
        """The server, with every verb."""
        return self.cluster[0].server

    @property
    def servers(self) -> str:
        """The connect string without the chroot of the test."""
        return ",".join(server.address for server in self.cluster)

    @property
    def secure_servers(self) -> str:
        return ",".join(server.secure_address for server in self.cluster)

    def log(self, level: int, msg: str, *args: Any, **named: Any) -> None:
        log.log(level, msg, *args, **named)

    def _get_nonchroot_client(self) -> Any:
        """Returns a client at the root, which is stopped after the test. It is not started."""
        self._clients.append(KazooClient(self.servers))
        return self._clients[-1]

    def _get_client(self, **client_options: Any) -> Any:
        """Returns another client in the chroot, which is stopped after the test. It is not started."""
        client_options.setdefault("timeout", self.DEFAULT_CLIENT_TIMEOUT)
        self._clients.append(KazooClient(self.hosts, **client_options))
        return self._clients[-1]

    def setup_zookeeper(self, **client_options: Any) -> None:
        """Starts the server unless it is running, and a client in an empty chroot. The options are those of the client."""
        self.cluster.start()
        # An earlier test may have left it down, frozen or with faults.
        self.minikeeper.ensure_ready()
        servers = self.secure_servers if client_options.get("use_ssl") else self.servers
        self.hosts = f"{servers}/kazootests{uuid.uuid4().hex}"
        self.client = self._get_client(**client_options)
        self.client.start()
        self.client.ensure_path("/")

    def _callTestMethod(self, method: Any) -> None:
        # unittest calls this. pytest makes its report after the tear-down, so the story is read here, with every client
        # still connected.
        try:
            super()._callTestMethod(method)  # type: ignore[misc]
        except Exception as error:
            if self.cluster[0].running:
                _story.current.keep(self.minikeeper, f"{type(error).__name__}: {error}")
            raise

    def teardown_zookeeper(self) -> None:
        """Stops every client. The server keeps running."""
        while self._clients:
            client = self._clients.pop()
            try:
                client.stop()
            except KazooException:
                log.exception("cannot stop the client %s", client)
            finally:
                client.close()
        self.client = None

    def lose_connection(self, event_factory: Callable[[], Any]) -> None:
        """Closes the connection of the client, and waits until it is connected again."""
        self._break(KazooState.SUSPENDED, event_factory, self.minikeeper.disconnect)

    def expire_session(self, event_factory: Callable[[], Any]) -> None:
        """Expires the session of the client, and waits until it has a new one."""
        self._break(KazooState.LOST, event_factory, self.minikeeper.expire)

    def _break(self, expected: str, event_factory: Callable[[], Any], verb: Callable[[Any], int]) -> None:
        broken, connected = event_factory(), event_factory()

        def on_state(state: str) -> Optional[bool]:
            if state == expected:
                broken.set()
            elif state == KazooState.CONNECTED and broken.is_set():
                connected.set()
                # Ends the listener.
                return True
            return None

        self.client.add_listener(on_state)
        verb(self.client)
        for event, limit_s, what in ((broken, LOST_S, expected), (connected, RECONNECTED_S, KazooState.CONNECTED)):
            event.wait(limit_s)
            if not event.is_set():
                raise MinikeeperError(f"the client was not {what} within {limit_s} s")
        self.client.retry(self.client.get, "/")


class KazooTestCase(KazooTestHarness):
    """A test case with a started client in an empty chroot: `self.client`."""

    def setUp(self) -> None:
        self.setup_zookeeper()

    def tearDown(self) -> None:
        self.teardown_zookeeper()

    @classmethod
    def tearDownClass(cls) -> None:
        get_global_cluster().terminate()


def install() -> None:
    """Replaces `kazoo.testing` in this process, for tests that import it. Call it first, for example in a conftest.py."""
    import kazoo  # type: ignore[import-untyped]

    module = sys.modules[__name__]
    for name in ("kazoo.testing", "kazoo.testing.harness"):
        sys.modules[name] = module
    kazoo.testing = module

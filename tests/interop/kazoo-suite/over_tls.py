"""A pytest plugin: connects every client of kazoo's suite over TLS, to the server's TLS port.

The suite's certificates name no address, so a client verifies the server only if its test asks for it.
"""

import contextlib
import weakref

import pytest

clients = weakref.WeakSet()


def pytest_configure(config):
    from kazoo.client import KazooClient
    from kazoo.handlers import utils
    from kazoo.testing.common import ManagedZooKeeper

    plain_init = KazooClient.__init__
    plain_connect = utils.create_tcp_connection

    def init(self, *arguments, **options):
        if not options.get("use_ssl"):
            options.update(use_ssl=True, verify_certs=False)
        plain_init(self, *arguments, **options)
        clients.add(self)

    def connect(module, address, hostname=None, **options):
        # KazooClient.command() passes the port as the host name, which ssl rejects.
        if isinstance(hostname, int):
            hostname = address[0]
        return plain_connect(module, address, hostname=hostname, **options)

    # Some tests connect to one server by this address; the harness builds its list of servers from it.
    ManagedZooKeeper.address = ManagedZooKeeper.secure_address
    KazooClient.__init__ = init
    utils.create_tcp_connection = connect


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown():
    """Stops the clients that a test leaves behind."""
    try:
        return (yield)
    finally:
        while clients:
            client = clients.pop()
            # Some tests leave a client with half of its parts.
            with contextlib.suppress(Exception):
                client.stop()
                client.close()

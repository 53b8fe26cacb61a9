"""A plugin for pytest: every client of kazoo's suite goes over TLS, to the port for it.

The suite makes a certificate for each server, which names no address; so a client checks it only if its test says how.
"""

import ssl


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

    def connect(module, address, hostname=None, **options):
        # KazooClient.command() passes the port for the host's name, which ssl takes for a fault of type.
        if isinstance(hostname, int):
            hostname = address[0]
        return plain_connect(module, address, hostname=hostname, **options)

    # Some tests name one server by this; the harness makes its list of servers of it.
    ManagedZooKeeper.address = ManagedZooKeeper.secure_address
    KazooClient.__init__ = init
    utils.create_tcp_connection = connect
    # kazoo reads the system's certificates for every connection, which takes longer than the handshake, and the suite
    # leaves clients behind that all connect again when a server is back. No client here has a use for them.
    ssl.SSLContext.load_default_certs = lambda self, purpose=None: None

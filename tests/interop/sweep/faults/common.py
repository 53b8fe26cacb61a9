"""What the Python programs of this folder share: clients that connect again whatever happens, and a limit on each program."""

import os
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NodeExistsError, SessionExpiredError
from kazoo.retry import KazooRetry

# Errors that say nothing about a request: it may have been carried out or not.
LOST = (ConnectionLoss, SessionExpiredError)

# How long a program may take, with all its retries. Unit: seconds.
LIMIT_S = 30

# How long a program waits for what another client, or the end of a session, must cause. Unit: seconds.
PATIENCE_S = 8

# Whether the sound version of a program runs.
IS_SOUND = "--sound" in sys.argv


def connect(connection_retry=None):
    """Returns a connected client, whose `retry` repeats a request until it has been answered."""
    forever = KazooRetry(max_tries=-1, delay=0.01, max_delay=0.05)
    zk = KazooClient(
        os.environ["MINIKEEPER_CONNECT"],
        timeout=5,
        connection_retry=connection_retry or forever,
        command_retry=forever,
    )
    zk.start(timeout=LIMIT_S)
    return zk


def create(zk, path, data=b""):
    """Creates a znode that may exist, as it does after a lost reply or in a second start."""
    try:
        zk.retry(zk.create, path, data)
    except NodeExistsError:
        pass


def back_off(zk, seconds):
    """Waits after an error: until the client is connected again, and some time longer."""
    while not zk.connected:
        time.sleep(0.01)
    time.sleep(seconds)


def fail(what):
    """Ends the program: its invariant is broken."""
    end(f"broken: {what}", 1)


def end(line, code):
    """Ends the program. Threads of kazoo's clients do not end by themselves."""
    print(line, flush=True)
    os._exit(code)


def close(*clients):
    """Closes the sessions."""
    for zk in clients:
        zk.stop()
        zk.close()


limit = threading.Timer(LIMIT_S, fail, [f"not done within {LIMIT_S} s"])
limit.daemon = True
limit.start()

"""What the programs of this folder share: clients that wait little, and waits with a bound."""

import os
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NodeExistsError, NoNodeError, SessionExpiredError
from kazoo.retry import KazooRetry

# What says nothing about a request: it may have been carried out or not.
LOST = (ConnectionLoss, SessionExpiredError)

# How long a program waits for what must happen. Unit: seconds.
PATIENCE = 1.5

# Whether the sound version of a program runs.
IS_SOUND = "--sound" in sys.argv


def connect():
    """Returns a connected client, whose `retry` repeats a request until it has been answered."""
    zk = KazooClient(
        os.environ["MINIKEEPER_CONNECT"],
        timeout=5,
        connection_retry=KazooRetry(max_tries=-1, delay=0.01, max_delay=0.05),
        command_retry=KazooRetry(max_tries=-1, delay=0.01, max_delay=0.05),
    )
    zk.start(timeout=10)
    return zk


def create(zk, path, data=b"", ephemeral=False):
    """Creates a znode that may exist, as it does after a lost reply."""
    try:
        zk.retry(zk.create, path, data, ephemeral=ephemeral)
    except NodeExistsError:
        pass


def delete(zk, path):
    """Deletes a znode that may be gone, as it is after a lost reply and with its session."""
    try:
        zk.retry(zk.delete, path)
    except NoNodeError:
        pass


def until(condition, what):
    """Waits until a condition holds, or fails."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            fail(what)
        time.sleep(0.01)


def fail(what):
    """Ends the program: its invariant is broken."""
    # Threads of kazoo's clients do not end by themselves.
    print(f"broken: {what}", flush=True)
    os._exit(1)


def close(*clients):
    """Closes the sessions."""
    for zk in clients:
        zk.stop()
        zk.close()

"""What the programs of the campaign share, beside client.py of the folder above."""

import itertools
import logging
import os
import threading
import time
import traceback
import uuid

from client import PATIENCE, connect, fail
from kazoo.protocol.states import KazooState


def run(scenarios, name):
    """Runs a scenario. Threads of kazoo's clients would keep a program that raises from its end."""
    try:
        scenarios[name]()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def fixed_uuids():
    """Recipes choose roles by the order of random names: without this each run is another."""
    numbers = itertools.count(1)
    uuid.uuid4 = lambda: uuid.UUID(int=next(numbers) << 96)


def called(client, name):
    """Returns an event that is set when a method of a client has returned once."""
    done, method = threading.Event(), getattr(client, name)

    def hooked(*args, **kwargs):
        result = method(*args, **kwargs)
        done.set()
        return result

    setattr(client, name, hooked)
    return done


def connect_with_loss(losses):
    """Returns a connected client that adds its session to a list when it is lost."""
    zk = connect()
    zk.add_listener(lambda state: losses.append(zk) if state == KazooState.LOST else None)
    return zk


# What clients say of each lost connection is not what a program says.
logging.getLogger().addHandler(logging.NullHandler())


def has_lost(losses):
    """Whether a session is lost: a client notices that a moment after the server."""
    deadline = time.monotonic() + 0.5
    while not losses and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(losses)


class Background(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.function, self.args, self.error, self.value = function, args, None, None
        self.start()

    def run(self):
        try:
            self.value = self.function(*self.args)
        except Exception as error:
            self.error = error

    def result(self, what, patience=PATIENCE):
        """Returns what the call returns, or raises what it raises; fails if it does neither in time."""
        self.join(patience)
        if self.is_alive():
            fail(what)
        if self.error:
            raise self.error
        return self.value

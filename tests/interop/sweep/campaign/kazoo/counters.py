"""kazoo's Counter: "changes to the counter are done atomically"."""

import sys

from client import connect, fail
from common import run


def counter():
    zk = connect()
    counter = zk.Counter("/counter")
    counter += 1
    value = zk.retry(lambda: counter.value)
    if value != 1:
        fail(f"one change by 1 has succeeded, and the counter is {value}")


run({"counter": counter}, sys.argv[1])

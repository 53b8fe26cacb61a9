"""kombu's transport for ZooKeeper, which Celery uses."""

import os
import sys

from client import fail
from common import run
from kombu import Connection

RETRY = {"max_retries": 20, "interval_start": 0, "interval_step": 0.05, "interval_max": 0.2}


def messages():
    """Each message that was published is received, unless a call that receives has failed."""
    with Connection(f"zookeeper://{os.environ['MINIKEEPER_CONNECT']}/vhost") as connection:
        connection.ensure_connection(**RETRY)

        def publish(value):
            queue = connection.SimpleQueue("queue")
            queue.put(value, retry=True, retry_policy=RETRY)
            queue.close()

        for value in ("a", "b", "c"):
            connection.ensure(connection, publish, **RETRY)(value)
        received, failed = [], False
        queue = connection.ensure(connection, lambda: connection.SimpleQueue("queue"), **RETRY)()
        while True:
            try:
                message = queue.get(block=False)
            except queue.Empty:
                break
            except (*connection.connection_errors, *connection.channel_errors):
                failed = True
                continue
            received.append(message.payload)
            message.ack()
        if not failed and set(received) != {"a", "b", "c"}:
            fail(f"published a, b and c, and received {received}")


run({"messages": messages}, sys.argv[1])

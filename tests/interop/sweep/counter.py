"""A counter that adds again when the reply to an increment is lost.

The write has the version that was read, so no other client's increment is lost. But the increment of the lost reply was
applied, and the counter adds it once more. The sound version writes an id of the increment with the value, and looks for it
before it adds again.
"""

import json
import time
import uuid

from kazoo.exceptions import BadVersionError

from client import IS_SOUND, LOST, close, connect, create, fail

COUNTER = "/counter"


def increment(zk, client):
    """Adds 1."""
    id = str(uuid.uuid4())
    while True:
        data, stat = zk.retry(zk.get, COUNTER)
        value = json.loads(data)
        if IS_SOUND and value["last"].get(client) == id:
            return
        value["count"] += 1
        value["last"][client] = id
        try:
            zk.set(COUNTER, json.dumps(value).encode(), version=stat.version)
            return
        except (BadVersionError, *LOST):
            time.sleep(0.01)


clients = [connect(), connect()]
for zk in clients:
    create(zk, COUNTER, b'{"count": 0, "last": {}}')
for name, zk in enumerate(clients):
    increment(zk, str(name))
count = json.loads(clients[0].retry(clients[0].get, COUNTER)[0])["count"]
if count != len(clients):
    fail(f"{len(clients)} increments, and the counter is {count}")
close(*clients)

"""A consumer and a producer, two threads that connect in any order, and a job whose name is random: a naming scheme.

`naming.py TEMPLATE` takes the result of a job twice if the reply to a create is lost; with `--sound` it does not. The templates
are those of naming-schemes.json.
"""

import os
import random
import re
import string
import sys
import threading
import time
import uuid

from client import IS_SOUND, close, connect, create, fail

# How long a thread waits for the other. A wait that ends on a busy machine makes a run another than the others. Unit: seconds.
PATIENCE = 10

HEX = "0123456789abcdef"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ALPHABETS = {
    "hex": HEX,
    "HEX": HEX.upper(),
    "dec": string.digits,
    "lower": string.ascii_lowercase,
    "base32": string.ascii_uppercase + "234567",
    "base36": string.digits + string.ascii_lowercase,
    "base62": string.digits + string.ascii_letters,
    "base64url": string.digits + string.ascii_letters + "-_",
    "crockford": CROCKFORD,
}


def generated(match):
    kind, _, argument = match.group(1).partition(":")
    now = time.time()
    if kind in ALPHABETS:
        return "".join(random.choices(ALPHABETS[kind], k=int(argument)))
    if kind == "uuid":
        return str(uuid.uuid4())
    if kind == "iso":
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
    if kind == "epoch_ms":
        return str(int(now * 1000))
    if kind == "epoch_s":
        return str(int(now))
    if kind == "pid":
        return str(os.getpid())
    if kind == "pick":
        return random.choice(argument.split("|"))
    if kind == "int":
        return str(random.randint(*map(int, argument.split("-"))))
    if kind == "ulid":
        at = "".join(CROCKFORD[int(now * 1000) >> shift & 31] for shift in range(45, -1, -5))
        return at + "".join(random.choices(CROCKFORD, k=16))
    if kind == "snowflake":
        return str((int(now * 1000) - 1288834974657) << 22 | random.getrandbits(22))
    raise ValueError(match.group())


def produce(name):
    zk = connect()
    create(zk, "/jobs")
    # The order of the requests of both does not depend on who connects first.
    is_watched.wait(PATIENCE)
    parts = name.split("/")
    for end in range(1, len(parts) + 1):
        create(zk, "/jobs/" + "/".join(parts[:end]))
    job = "/jobs/" + name
    if IS_SOUND:
        create(zk, job + "/result")
    else:
        # The bug: again after a lost reply.
        zk.retry(zk.create, job + "/result-", sequence=True)
    zk.retry(zk.get, job)
    close(zk)


def consume(name):
    zk = connect()
    seen = threading.Event()
    while not zk.retry(zk.exists, "/jobs/" + name, watch=lambda event: seen.set()):
        is_watched.set()
        if not seen.wait(PATIENCE):
            fail("no job")
        seen.clear()
    close(zk)


template = sys.argv[1]
name = re.sub(r"\{(.*?)\}", generated, template)
is_watched = threading.Event()
threads = [threading.Thread(target=run, args=(name,)) for run in (produce, consume)]
random.shuffle(threads)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
zk = connect()
results = zk.retry(zk.get_children, "/jobs/" + name)
close(zk)
if len(results) != 1:
    fail(f"{len(results)} results")

"""A job queue in two processes: the command starts a worker, and a dispatcher that adds a job and waits for its result.

A worker claims a job with a persistent znode. Its id differs from start to start, so after a crash it takes its own claim for
another worker's, and no worker does the job. The claim of the sound version is ephemeral: it goes with the session of the
worker that has crashed.
"""

import subprocess
import sys
import threading
import time
import uuid

from kazoo.exceptions import NodeExistsError, NoNodeError

from common import IS_SOUND, LOST, PATIENCE_S, close, connect, create, fail

JOBS, CLAIMS, RESULTS = FOLDERS = "/jobs", "/claims", "/results"
JOB = "job-1"


def dispatch(zk):
    """Adds a job and waits for its result."""
    set_up(zk)
    while True:
        changed = threading.Event()
        try:
            # In this order: without a job, and without a result after that, it has to be added.
            job = zk.exists(f"{JOBS}/{JOB}")
            result = zk.exists(f"{RESULTS}/{JOB}", watch=lambda _: changed.set())
            if not job and not result:
                zk.create(f"{JOBS}/{JOB}")
            print("added", flush=True)
            if result:
                return close(zk)
            if not changed.wait(PATIENCE_S):
                fail(f"{JOB} has no result")
        except NodeExistsError:
            pass
        except NoNodeError:
            set_up(zk)
        except LOST:
            time.sleep(0.01)


def work(zk):
    """Does jobs until the command stops this process."""
    me = str(uuid.uuid4()).encode()
    while True:
        changed = threading.Event()
        try:
            for name in sorted(zk.get_children(JOBS, watch=lambda _: changed.set())):
                if claim(zk, name, me, changed):
                    finish(zk, name)
            changed.wait()
        except NoNodeError:
            set_up(zk)
        except LOST:
            time.sleep(0.01)


def claim(zk, name, me, changed):
    """Returns whether this worker has claimed a job."""
    path = f"{CLAIMS}/{name}"
    try:
        zk.create(path, me, ephemeral=IS_SOUND)
        return True
    except NodeExistsError:
        # After a lost reply the claim is our own. Another worker does its job, or its session ends.
        return zk.get(path, watch=lambda _: changed.set())[0] == me


def finish(zk, name):
    """Replaces a job and its claim by its result, all at once."""
    transaction = zk.transaction()
    transaction.create(f"{RESULTS}/{name}")
    transaction.delete(f"{JOBS}/{name}")
    transaction.delete(f"{CLAIMS}/{name}")
    for result in transaction.commit():
        # The claim has gone with the session, or a server that has lost its last change has lost a folder.
        if isinstance(result, NoNodeError):
            raise result


def set_up(zk):
    for path in FOLDERS:
        create(zk, path)


if "--worker" in sys.argv:
    work(connect())
elif "--dispatcher" in sys.argv:
    dispatch(connect())
else:
    dispatcher = subprocess.Popen([sys.executable, *sys.argv, "--dispatcher"], stdout=subprocess.PIPE, text=True)
    # A worker that starts with the job does the same each time.
    dispatcher.stdout.readline()
    worker = subprocess.Popen([sys.executable, *sys.argv, "--worker"])
    while dispatcher.poll() is None and worker.poll() is None:
        time.sleep(0.01)
    died = worker.poll() is not None
    for process in dispatcher, worker:
        process.kill()
    print(dispatcher.stdout.read(), end="")
    sys.exit(1 if died else dispatcher.wait())

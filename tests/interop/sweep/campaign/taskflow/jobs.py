"""taskflow's jobboard, conductor and persistence for ZooKeeper."""

import os
import sys
import threading
import time
import uuid

from client import connect, fail
from common import run
from taskflow import engines, exceptions, task
from taskflow.conductors import backends as conductors
from taskflow.jobs import backends as boards
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as persistences
from taskflow.persistence import models

RETRY = {"max_tries": -1, "delay": 0.01, "max_delay": 0.05}

done = threading.Event()


class Work(task.Task):
    def execute(self):
        done.set()


def make_flow():
    return linear_flow.Flow("flow").add(Work())


def conf(**more):
    """The configuration of a client, whose board or backend waits little before it connects again."""
    return {
        "hosts": os.environ["MINIKEEPER_CONNECT"],
        "timeout": 5,
        "connection_retry": dict(RETRY),
        "command_retry": dict(RETRY),
        **more,
    }


def tried(call, *expected):
    """Repeats a call that says that it has failed."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return call()
        except expected:
            return None
        except (exceptions.JobFailure, exceptions.StorageFailure):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def open_board(name, persistence=None):
    def opened():
        board = boards.fetch(name, conf(board="zookeeper", path="/jobs"), persistence=persistence)
        board.connect()
        return board

    return tried(opened)


def the_job(board):
    """Returns the job that was posted: while the client is not connected, a board lists none."""
    while True:
        jobs = tried(lambda: list(board.iterjobs(ensure_fresh=True)))
        if jobs:
            return jobs[0]
        time.sleep(0.01)


def conductor():
    """A job that was posted is done by the only conductor, sooner or later."""
    with persistences.backend({"connection": "memory"}) as persistence:
        book, flow = models.LogBook("book"), models.FlowDetail("flow", str(uuid.uuid4()))
        book.add(flow)
        engines.save_factory_details(flow, make_flow, [], {})
        persistence.get_connection().save_logbook(book)
        board = open_board("board", persistence)
        conductor = conductors.fetch(
            "blocking", "conductor", board, persistence=persistence, engine="serial", wait_timeout=0.05
        )
        conductor.REFRESH_PERIODICITY = 0.5  # 30 s else

        def work():
            while True:
                try:
                    conductor.run()
                except exceptions.JobFailure:
                    pass  # could not register: a supervisor starts it again

        threading.Thread(target=work, daemon=True).start()
        poster = open_board("poster", persistence)
        tried(lambda: poster.post("job", book=book, details={"flow_uuid": flow.uuid}))
        if not done.wait(5):
            jobs = [f"{job} of {poster.find_owner(job)}" for job in tried(lambda: list(poster.iterjobs(ensure_fresh=True)))]
            fail(f"the job is not done: {jobs}")


def claim():
    """A job whose claim has failed can be claimed by another."""
    board, other = open_board("board"), open_board("other")
    tried(lambda: board.post("job"))
    job = the_job(board)
    try:
        board.claim(job, "one")
        return
    except exceptions.JobFailure:
        pass
    owner = tried(lambda: other.find_owner(job))
    if owner:
        fail(f"claim has failed, and the job is claimed by {owner}")


def wait():
    """`wait` returns when a job is there."""
    board, poster = open_board("board"), open_board("poster")
    tried(lambda: poster.post("job"))
    try:
        board.wait(timeout=1.5)
    except exceptions.NotFound:
        fail("a job was posted, and wait does not find it")


def work():
    """Each job is claimed, done and consumed by one of its own kind: what says that it has succeeded has."""
    board = open_board("board")
    tried(lambda: board.post("job"))
    job = the_job(board)
    try:
        board.claim(job, "one")
        board.consume(job, "one")
    except (exceptions.JobFailure, exceptions.NotFound, exceptions.UnclaimableJob):
        return
    zk = connect()
    left = [name for name in zk.retry(zk.get_children, "/jobs") if name.startswith(job.path.rsplit("/")[-1])]
    if left:
        fail(f"the job is consumed, and there is {left}")


def persistence():
    """A logbook that was saved can be loaded."""

    def opened():
        backend = persistences.fetch(conf(connection="zookeeper", path="/taskflow"))
        return backend.get_connection()

    connection = tried(opened)
    tried(connection.upgrade)
    book, flow = models.LogBook("book"), models.FlowDetail("flow", str(uuid.uuid4()))
    book.add(flow)
    tried(lambda: connection.save_logbook(book))
    atom = models.TaskDetail("task", str(uuid.uuid4()))
    flow.add(atom)
    tried(lambda: connection.update_flow_details(flow))
    atom.state = "SUCCESS"
    tried(lambda: connection.update_atom_details(atom))
    loaded = tried(lambda: connection.get_logbook(book.uuid))
    if loaded is None or loaded.find(flow.uuid).find(atom.uuid).state != "SUCCESS":
        fail("the state that was saved is not there")


run({scenario.__name__: scenario for scenario in (conductor, claim, wait, work, persistence)}, sys.argv[1])

"""Patroni's class for ZooKeeper, as its high-availability loop uses it."""

import logging
import os
import subprocess
import sys
import threading
import time

from client import PATIENCE, fail
from common import Background, has_lost, run
from kazoo.protocol.states import KazooState
from patroni.dcs.zookeeper import ZooKeeper, ZooKeeperError
from patroni.postgresql.mpp import get_mpp

logging.disable()


def node(name):
    """Returns what Patroni's node of this name has, with its default times."""
    config = {
        "hosts": [os.environ["MINIKEEPER_CONNECT"]],
        "scope": "batman",
        "name": name,
        "ttl": 30,
        "retry_timeout": 10,
        "loop_wait": 10,
    }
    dcs = ZooKeeper(config, get_mpp({}))
    dcs.reload_config(config)
    return dcs


def loop(turn, what):
    """Does the turns of a node, as its loop does, until one says that it is done."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if turn():
                return
        except ZooKeeperError:
            pass  # "DCS is not accessible": the next turn tries again
        if time.monotonic() > deadline:
            fail(what)
        time.sleep(0.05)


def initialize():
    """The only node of a new cluster wins the race for its initialization: see `Ha.bootstrap`."""
    dcs = node("one")

    def turn():
        cluster = dcs.get_cluster()
        return cluster.initialize is None and dcs.initialize(create_new=True)

    loop(turn, "the only node does not win: waiting for leader to bootstrap")


def leader():
    """The only node that wants to lead leads: it has got the key, or finds that it has it."""
    dcs = node("one")

    def turn():
        cluster = dcs.get_cluster()
        if cluster.leader and cluster.leader.name == "one":
            return dcs.update_leader(cluster, None)
        return dcs.attempt_to_acquire_leader()

    loop(turn, "the only node does not lead")


def member():
    """A node that calls `touch_member` in each turn is a member."""
    dcs = node("one")

    def turn():
        cluster = dcs.get_cluster()
        dcs.touch_member({"state": "running"})
        return cluster.has_member("one")

    loop(turn, "the node is no member")
    dcs.touch_member({"state": "stopped"})

    def is_written():
        cluster = dcs.get_cluster()
        dcs.touch_member({"state": "stopped"})
        member = cluster.get_member("one", fallback_to_leader=False)
        return member and member.data.get("state") == "stopped"

    loop(is_written, "the node has written its state, and it is not there")


def sync_state():
    """`set_sync_state_value` with a version writes only if the version is this one: a compare-and-set."""
    one, other = node("one"), node("other")
    version = None
    while version is None:
        one.set_sync_state_value('{"leader":"one"}')
        version = one.get_cluster().sync.version
    other.set_sync_state_value('{"leader":"other"}', version=version)
    if other.get_cluster().sync.leader != "other":
        return
    if one.set_sync_state_value('{"leader":"one"}', version=version) is not False:
        fail(f"another has written version {version}, and writing it again succeeds")


def stale_leader():
    """A node that was restarted takes its leader key over, unless another leads: "relies on Compare-And-Set"."""
    before, after, other = node("one"), node("one"), node("other")
    loop(before.attempt_to_acquire_leader, "the only node does not lead")
    view = after.get_cluster()
    if not view.leader or view.leader.name != "one":
        return
    # Its former session ends, and another node leads.
    before._client.stop()
    loop(other.attempt_to_acquire_leader, "nobody leads, and the other does not")
    if other.get_cluster().leader.name != "other":
        return
    # The turn of the restarted node goes on with what it has read.
    if after.update_leader(view, None):
        fail("the other leads, and the restarted node has taken the leader key away from it")


def restarted():
    """The same when the node was killed, and its former session ends while it is paused: no step is made here but by the fault."""
    # The process ends without closing its session.
    subprocess.run([sys.executable, __file__, "leader"], check=True)
    after, other = node("one"), node("other")
    losses, is_over = [], threading.Event()
    other._client.add_listener(lambda state: losses.append(other) if state == KazooState.LOST else None)

    def turns():
        while not is_over.wait(0.02):
            try:
                if other.get_cluster().leader is None and other.attempt_to_acquire_leader():
                    return True
            except ZooKeeperError:
                pass
        return False

    leads = Background(turns)
    has_taken = False
    try:
        view = after.get_cluster()
        has_taken = bool(view.leader) and view.leader.name == "one" and after.update_leader(view, None)
    except ZooKeeperError:
        pass
    is_over.set()
    if leads.result("the turns of the other node do not end") and has_taken and not has_lost(losses):
        fail("the other leads, and the restarted node has taken the leader key away from it")


SCENARIOS = (initialize, leader, member, sync_state, stale_leader, restarted)
run({scenario.__name__: scenario for scenario in SCENARIOS}, sys.argv[1])

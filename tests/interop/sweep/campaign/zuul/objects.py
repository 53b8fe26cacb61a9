"""Zuul's classes for ZooKeeper: objects, components, queues of job requests; and nodepool's locks of nodes."""

import logging
import os
import sys
import time
import uuid
from types import SimpleNamespace

from client import LOST, connect, fail, until
from common import run
from kazoo.exceptions import KazooException
from nodepool.zk import ZooKeeperClient as NodepoolClient
from nodepool.zk import zookeeper as nodepool
from zuul.model import MergeRequest
from zuul.model_api import MODEL_API
from zuul.zk import ZooKeeperClient
from zuul.zk.components import COMPONENT_REGISTRY, ExecutorComponent
from zuul.zk.job_request_queue import JobRequestQueue
from zuul.zk.locks import SessionAwareLock
from zuul.zk.zkobject import ShardedZKObject, ZKContext, ZKObject

# Says which version of the data all components have: without it, no other component is asked.
COMPONENT_REGISTRY.registry = SimpleNamespace(model_api=MODEL_API)
ZKObject._retry_interval = 0.01  # 5 s else: Zuul's own tests change it, too
log = logging.getLogger("campaign")
log.setLevel(logging.CRITICAL)
logging.getLogger("zuul").setLevel(logging.CRITICAL)


def plain(hosts, timeout):
    """Returns nodepool's client, which wants TLS, without it."""
    nothing = os.devnull
    zk = NodepoolClient(hosts, timeout=timeout, tls_key=nothing, tls_cert=nothing, tls_ca=nothing)
    zk.tls_key = None
    return zk


def start(kind=ZooKeeperClient):
    """Starts a client. Its `connect` raises what its first requests raise: it is made anew then."""
    while True:
        zk = kind(os.environ["MINIKEEPER_CONNECT"], timeout=5)
        try:
            zk.connect()
            return zk
        except LOST:
            zk.client.stop()


class Value(ZKObject):
    def getPath(self):
        return "/zuul/value"

    def serialize(self, context):
        return str(self.value).encode()

    def deserialize(self, data, context, extra=None):
        return {"value": int(data)}


class Large(ShardedZKObject):
    truncate_on_create = True

    def getPath(self):
        return "/zuul/large"

    def serialize(self, context):
        return str(self.value).encode()

    def deserialize(self, data, context, extra=None):
        return {"value": int(data)}


def check_object(kind):
    """Under a lock an object has one writer, which repeats what the connection has lost. While the lock is held it can write."""
    zk = start()
    lock = SessionAwareLock(zk.client, "/zuul/lock")
    lock.acquire()
    try:
        with ZKContext(zk, lock, None, log) as context:
            written = kind.new(context, value=1)
            written.updateAttributes(context, value=2)
            written.updateAttributes(context, value=3)
    except Exception:
        deadline = time.monotonic() + 0.5
        while lock.is_still_valid():
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        return
    try:
        with ZKContext(start(), None, None, log) as context:
            found = kind.fromZK(context, written.getPath())
    except LOST:  # the reader's session
        return
    if found.value != 3:
        fail(f"the updates have succeeded, and the value is {found.value}")


def component():
    """A component that was registered is there again after its session was lost, once."""
    zk, other = start(), connect()
    component = ExecutorComponent(zk, "host")
    while True:
        try:
            component.register()
            break
        except LOST:
            continue

    def is_there():
        children = other.retry(other.get_children, "/zuul/components/executor")
        return len(children) == 1

    until(is_there, "the component is registered, and is not there once")


def request():
    """A request that could not be locked can be locked by another."""
    zk, other = start(), start()
    queue = other_queue = None
    while not other_queue:
        try:
            queue = JobRequestQueue(zk, "/zuul/merger", use_cache=False)
            queue.request_class = MergeRequest
            other_queue = JobRequestQueue(other, "/zuul/merger", use_cache=False)
            other_queue.request_class = MergeRequest
        except LOST:
            continue
    request = MergeRequest(
        uuid=uuid.UUID(int=1).hex, job_type=MergeRequest.MERGE, build_set_uuid=None, tenant_name=None,
        pipeline_name=None, event_id="1", span_info=None,
    )
    try:
        queue.submit(request, {})
    except (*LOST, KazooException):
        return  # it may be there or not
    try:
        found = queue.getRequest(request.uuid)
        same = other_queue.getRequest(request.uuid)
        is_locked = queue.lock(found, blocking=False)
    except LOST:
        is_locked = False
    if is_locked:
        return
    while True:
        try:
            same = other_queue.getRequest(request.uuid)
            if other_queue.lock(same, timeout=1.5):
                return
            fail("nobody has locked the request, and the other does not get its lock")
        except LOST:
            continue


def node():
    """A node of nodepool that could not be locked can be locked by another."""
    clients = [start(plain) for _ in range(2)]
    one = other = None
    while not other:
        try:
            one, other = [nodepool.ZooKeeper(zk, enable_cache=False) for zk in clients]
        except LOST:
            continue
    node = nodepool.Node()
    node.state = nodepool.READY
    node.provider = "provider"
    while not node.id:
        try:
            one.storeNode(node)
        except LOST:
            continue
    mine = theirs = None
    while not theirs:
        try:
            mine, theirs = one.getNode(node.id), other.getNode(node.id)
        except LOST:
            continue
    try:
        one.lockNode(mine, blocking=False)
        return
    except (*LOST, nodepool.npe.ZKLockException):
        pass
    while True:
        try:
            other.lockNode(theirs, timeout=1.5)
            return
        except nodepool.npe.TimeoutException:
            fail("nobody has locked the node, and the other does not get its lock")
        except LOST:
            theirs = other.getNode(node.id)


run(
    {
        "value": lambda: check_object(Value),
        "sharded": lambda: check_object(Large),
        "component": component,
        "request": request,
        "node": node,
    },
    sys.argv[1],
)

"""kazoo's DataWatch and ChildrenWatch, and its TreeCache: after a change they come to know the last state."""

import sys
import time

from client import LOST, connect, create, delete, fail, until
from common import run
from kazoo.exceptions import BadVersionError
from kazoo.recipe.cache import TreeCache, TreeEvent


def set_data(zk, path, value, version):
    """Sets data once: an own write whose reply was lost is not in the way."""
    try:
        zk.retry(zk.set, path, value, version=version)
    except BadVersionError:
        pass


def data_watch():
    watcher, writer = connect(), connect()
    seen = []
    watcher.DataWatch("/data", lambda data, stat: seen.append(data))
    until(lambda: seen, "the function is not called at first")
    create(writer, "/data", b"1")
    until(lambda: seen[-1] == b"1", "created, and the function is not called")
    set_data(writer, "/data", b"2", 0)
    until(lambda: seen[-1] == b"2", "changed, and the function is not called")
    delete(writer, "/data")
    until(lambda: seen[-1] is None, "deleted, and the function is not called")


def children_watch():
    watcher, writer = connect(), connect()
    create(writer, "/parent")
    seen = []
    watcher.ChildrenWatch("/parent", seen.append)
    until(lambda: seen, "the function is not called at first")
    create(writer, "/parent/a")
    until(lambda: seen[-1] == ["a"], "a child was created, and the function is not called")
    delete(writer, "/parent/a")
    until(lambda: seen[-1] == [], "a child was deleted, and the function is not called")


def start(zk, path, listener):
    """Starts a cache. One that could not be started says that it is `already started`: it takes another."""
    while True:
        cache = TreeCache(zk, path)
        cache.listen(listener)
        try:
            cache.start()
            return cache
        except LOST:
            cache.close()
            time.sleep(0.01)


def tree_cache():
    watcher, writer = connect(), connect()
    create(writer, "/tree")
    create(writer, "/tree/a", b"1")
    events = []
    cache = start(watcher, "/tree", events.append)

    def knows(**values):
        def data(name):
            node = cache.get_data(f"/tree/{name}")
            return node and node.data

        names = cache.get_children("/tree")
        return names == set(values) and all(data(name) == value for name, value in values.items())

    until(lambda: knows(a=b"1"), "the cache does not know the tree")
    set_data(writer, "/tree/a", b"2", 0)
    until(lambda: knows(a=b"2"), "changed, and the cache does not know")
    create(writer, "/tree/b", b"1")
    until(lambda: knows(a=b"2", b=b"1"), "created, and the cache does not know")
    delete(writer, "/tree/a")
    until(lambda: knows(b=b"1"), "deleted, and the cache does not know")


def initialized():
    """A cache that says that it is initialized has the tree."""
    zk = connect()
    create(zk, "/tree")
    create(zk, "/tree/a", b"1")
    seen = []

    def listener(event):
        if event.event_type == TreeEvent.INITIALIZED:
            seen.append(cache[0].get_children("/tree"))

    cache = []
    while not seen:
        cache[:] = [TreeCache(zk, "/tree")]
        cache[0].listen(listener)
        try:
            cache[0].start()
            until(lambda: seen, "the cache is never initialized")
        except LOST:
            cache[0].close()
    if seen[0] != {"a"}:
        fail(f"a cache that is initialized has the children {seen[0]}")


run({scenario.__name__: scenario for scenario in (data_watch, children_watch, tree_cache, initialized)}, sys.argv[1])

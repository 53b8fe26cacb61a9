"""The types of the package: complete for `mypy --strict`, and true for what a server returns."""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
from collections.abc import Mapping as MappingClass
from typing import Any, Dict, List, Literal, Mapping, Optional, Tuple, Union, get_args, get_origin, get_type_hints

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from typing_extensions import assert_type

import minikeeper as package
from minikeeper import (
    Advice,
    ChangesSince,
    Client,
    Fault,
    FindZnodes,
    Hit,
    Journal,
    LastOperation,
    ListChildren,
    Locks,
    MinikeeperError,
    NotVerified,
    Now,
    ResourceEntry,
    ResourceVerdict,
    Rule,
    Seeded,
    Server,
    Session,
    SessionLike,
    Stat,
    Story,
    SweepFaults,
    SweepNext,
    TreeListing,
    Universe,
    WaitTimedOut,
    Watch,
    Znode,
    allow,
    leave_out,
    settle,
)
from minikeeper._verbs import Verbs


class Named:
    """A client with a session, as type checkers see kazoo's if it has types."""

    def __init__(self, client_id: Optional[Tuple[int, bytes]]) -> None:
        self.client_id = client_id


def use_every_name(server: Server, universe: Universe, client: KazooClient, folder: pathlib.Path) -> None:
    now = universe.now()
    assert_type(now, Now)
    assert_type((now.elapsed_ms, now.wall_ms, now.is_frozen), Tuple[int, int, bool])
    universe.freeze()
    universe.unfreeze()
    universe.advance(by_ms=1, strict=False)
    universe.auto_advance(idle_ms=None)
    universe.clear_journal()
    assert_type(universe.address, str)
    assert_type(universe.connect_string, str)
    assert_type(universe.name, Optional[str])

    assert_type(universe.seed({"/a": "x", "/b": {"data": b"y"}}), Seeded)
    seeded = universe.seed(yaml="/a: x\n")
    assert_type((seeded.created, seeded.changed), Tuple[int, int])
    assert_type(universe.create("/c", b"", sequential=True), str)
    assert_type(universe.set("/a", "z", version=-1), int)
    znode = universe.get("/a")
    assert_type(znode, Znode)
    assert_type((znode.data, znode.stat), Tuple[Optional[bytes], Stat])
    assert_type((znode.stat.version, znode.stat.czxid), Tuple[int, str])
    assert_type(universe.children("/"), List[str])
    listed = universe.list_children("/", containing="a", max=9)
    assert_type(listed, ListChildren)
    assert_type((listed.children, listed.total, listed.is_truncated), Tuple[List[Dict[str, Any]], int, bool])
    found = universe.find_znodes("a", in_data=True)
    assert_type(found, FindZnodes)
    assert_type((found.paths, found.is_truncated), Tuple[List[str], bool])
    tree = universe.tree("/", 9)
    assert_type(tree, TreeListing)
    assert_type((tree.znodes, tree.is_truncated), Tuple[List[Dict[str, Any]], bool])
    assert_type(universe.acl("/a"), List[str])
    assert_type(universe.dump(ids=True), str)
    assert_type(universe.export_tree(), Dict[str, Any])
    assert_type(universe.export_tree(format="yaml", path="/a"), str)

    snapshot = universe.snapshot()
    assert_type(snapshot, int)
    assert_type(universe.snapshots(), List[Dict[str, Any]])
    assert_type(universe.delete("/b", recursive=True), int)
    changes = universe.changes_since(snapshot)
    assert_type(changes, ChangesSince)
    assert_type((changes.changes, changes.is_truncated), Tuple[List[Dict[str, Any]], bool])
    universe.drop_snapshot(snapshot)

    client.create("/mine", ephemeral=True)
    client.exists("/mine", watch=lambda event: None)
    client.Lock("/lock").acquire()
    universe.until_watched("/mine", within_ms=10_000)
    universe.until_exists("/mine")
    universe.until_children("/lock", 1)
    universe.until_contenders("/lock", 1)
    universe.until_sessions(1)
    universe.until_idle(quiet_ms=1)
    session = universe.sessions()[0]
    assert_type(session, Session)
    assert_type((session.id, session.timeout_ms, session.timeout_left_ms), Tuple[int, int, Optional[int]])
    assert_type((session.address, session.is_connected, session.is_silenced), Tuple[Optional[str], bool, bool])
    assert_type((session.identities, session.ephemerals), Tuple[Tuple[str, ...], Tuple[str, ...]])
    assert_type(session.is_unbound, bool)
    watch = session.watches[0]
    assert_type(watch, Watch)
    assert_type((watch.path, watch.kind), Tuple[str, str])
    last = session.last_operation
    assert_type(last, Optional[LastOperation])
    assert last is not None
    assert_type((last.name, last.at_ms), Tuple[str, int])
    locks = universe.locks()
    assert_type(locks, Locks)
    assert_type((locks.locks, locks.deadlocks), Tuple[List[Dict[str, Any]], List[Dict[str, Any]]])
    assert_type((locks.is_truncated, locks.text), Tuple[bool, str])

    with universe.inject(action="delay", op="exists", path="/a", delay_ms=1, count=1, probability=1.0) as fault:
        assert_type(fault, Fault)
        assert_type(fault.id, int)
        client.exists("/a")
        assert_type(fault.until_hit(within_ms=10_000), int)
        assert_type(universe.until_hit(fault, 1), int)
        assert_type(fault.hits(), int)
        hit = fault.last_hit()
        assert_type(hit, Optional[Hit])
        assert hit is not None
        assert_type((hit.session, hit.op, hit.path, hit.xid), Tuple[Optional[str], str, Optional[str], Optional[int]])
        assert_type(universe.faults(), List[Dict[str, Any]])
        assert_type(fault.remove(), int)
    try:
        universe.remove_fault(fault.id)
    except MinikeeperError as error:
        assert_type(error.status, Optional[int])
    try:
        universe.until_exists("/never", within_ms=1)
    except WaitTimedOut as error:
        assert_type(error.status, Optional[int])
    universe.reset_faults()

    journal = universe.journal(op="exists", kind="request", limit=9)
    assert_type(journal, Journal)
    assert_type((journal.entries, journal.next, journal.oldest), Tuple[List[Dict[str, Any]], int, int])
    assert_type(universe.count(path="/a"), int)
    assert_type(universe.verify(in_order=["create /mine -> OK", "exists /a -> OK"]), int)
    try:
        universe.verify(path="/never")
    except NotVerified as error:
        assert_type(error.status, Optional[int])
    universe.start_recording(bytes_max=1_000_000)
    assert_type(universe.stop_recording(), str)
    advice = universe.advise(ignore="polling,/config/**")
    assert_type(advice, Advice)
    assert_type((advice.findings, advice.entry_count), Tuple[List[Dict[str, Any]], int])
    assert_type((advice.first, advice.text), Tuple[int, str])
    story = universe.story(title="types")
    assert_type(story, Story)
    assert_type((story.text, story.html, story.json, story.file_name), Tuple[str, str, str, str])

    settle(client)
    named: Client = Named((session.id, b""))
    anyone: SessionLike = session
    for one in (anyone, named, session.id, f"0x{session.id:x}"):
        assert_type(universe.silence(one), int)
        assert_type(universe.unsilence(one), int)
    assert_type(universe.expire(address="127.0.0.9", allow_none=True, seen_by=[client]), int)
    assert_type(universe.expire(address="127.0.0.9", allow_none=True, seen_by=client), int)
    assert_type(universe.expire(owner="/mine"), int)
    universe.until_noticed(session)
    assert_type(universe.disconnect(identity="digest:alice", allow_none=True), int)
    universe.disconnect_all()

    assert_type(universe.fork("fork-of-types"), Universe)
    assert_type(universe.export_data(folder), str)
    universe.import_data(str(folder))
    other = server.create_universe("types")
    assert_type(other, Universe)
    assert_type(server.universes(), List[str])
    sweep = server.sweep_start(runs=1, faults="reply-lost,session-expired")
    assert_type(sweep, int)
    next = other.sweep_next(sweep)
    assert_type(next, SweepNext)
    assert_type((next.run, next.points, next.sentence), Tuple[int, str, str])
    tried = other.sweep_faults()
    assert_type(tried, SweepFaults)
    assert_type((tried.faults, tried.points, tried.sentence), Tuple[List[str], str, str])
    assert_type(other.fault(), Optional[str])
    other.sometimes("the types are right", holds=False)
    entry = other.resource_enter("printer", fencing_token=1, holder="a")
    assert_type(entry, int)
    assert_type(other.resource_write(entry), bool)
    other.resource_leave(entry)
    judged = other.resource_verdict("printer")
    assert_type(judged, ResourceVerdict)
    assert_type((judged.text, judged.entries, judged.writes, judged.refused), Tuple[str, int, int, int])
    with other.resource("printer", token=2) as inside:
        assert_type(inside, ResourceEntry)
        assert_type(inside.write(), bool)
    assert_type(other.sweep_crashed(sweep, run=next.run, within_ms=0), bool)
    rule = allow("reply-lost", raises=MinikeeperError, op="create", reason="so")
    assert_type(rule, Rule)
    assert_type((rule.text, leave_out("reply-lost", client=1, reason="so")), Tuple[str, Rule])
    assert_type(other.sweep_end(sweep, outcome="failed", message="because"), bool)
    assert_type(server.sweep_report(sweep, repeat="again {}", title="types"), str)
    server.suite_start(faults="reply-lost", time_ms=1_000)
    assert_type(server.suite_report(title="types"), str)
    other.drop_universe()
    server.drop_universe("fork-of-types")
    assert_type(server.log, str)
    snapshot = universe.snapshot()
    universe.restore(snapshot)
    server.save()
    assert_type(server.go_down(), str)
    server.come_up(keep="data")
    assert_type(server.servers(), List[Dict[str, Any]])
    server.set_server(1, mode="up")
    server.set_leader(1)
    server.restart(keep="nothing")
    assert_type(server.ensure_ready(), Server)
    server.kill()
    assert_type(server.start(), Server)
    server.stop()
    Universe("127.0.0.1:2181", token="secret", name=None)


def use_fixtures(
    minikeeper: Universe,
    minikeeper_server: Server,
    minikeeper_shared_server: Server,
    minikeeper_options: Dict[str, Any],
    connect_string: str,
    kazoo_client: KazooClient,
) -> None:
    """The types to write in tests."""


def is_of(value: object, hint: Any) -> bool:
    origin, of = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Union:
        return any(is_of(value, one) for one in of)
    if origin is Literal:
        return value in of
    if origin is list:
        return isinstance(value, list) and all(is_of(one, of[0]) for one in value)
    if origin is tuple:
        return isinstance(value, tuple) and all(is_of(one, of[0]) for one in value)
    if origin in (dict, MappingClass):
        return isinstance(value, MappingClass) and all(
            is_of(key, of[0]) and is_of(one, of[1]) for key, one in value.items()
        )
    if not isinstance(value, type(None) if hint is None else hint):
        return False
    # True is an int, but a count must not be True.
    if hint is int and isinstance(value, bool):
        return False
    fields = get_type_hints(type(value)) if hasattr(value, "__dataclass_fields__") else {}
    return all(is_of(getattr(value, name), of) for name, of in fields.items())


def methods(of: type) -> List[str]:
    return [name for name in vars(of) if not name.startswith("_")]


def test_every_verb_returns_what_its_type_says(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    called = set()

    def checked(name: str, verb: Any) -> Any:
        hints = get_type_hints(verb, {**vars(sys.modules[Verbs.__module__]), "Universe": Universe})

        def call(*args: Any, **named: Any) -> Any:
            result = verb(*args, **named)
            called.add(name)
            assert is_of(result, hints["return"]), f"{name} returned {result!r}, which is not {hints['return']}"
            return result

        return call

    for name in methods(Verbs):
        monkeypatch.setattr(Verbs, name, checked(name, getattr(Verbs, name)))
    with Server(data_dir=tmp_path / "data") as server:
        client = KazooClient(server.connect_string)
        client.start()
        try:
            use_every_name(server, server, client, tmp_path / "exported")
        finally:
            client.stop()
            client.close()
    assert set(methods(Verbs)) - called == set()


def test_every_public_name_is_used_above() -> None:
    source = inspect.getsource(use_every_name)
    names = set(package.__all__)
    for of in (Server, Universe, Fault):
        names.update(methods(of))
    missing = sorted(name for name in names if not re.search(rf"\b{name}\b", source))
    assert missing == []


def test_package_and_this_file_pass_mypy_strict(tmp_path: pathlib.Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    mypy = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", "--python-version"]
    for version, files in (("3.10", ["-p", "minikeeper"]), ("3.12", [__file__])):
        result = subprocess.run([*mypy, version, *files], capture_output=True, text=True, cwd=tmp_path, timeout=100)
        assert result.returncode == 0, result.stdout + result.stderr

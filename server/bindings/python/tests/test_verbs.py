"""Every verb, with kazoo as the client."""

import contextlib
import os
import select
import socket
import struct
import threading

import pytest
from conftest import PATIENCE_S, connected
from kazoo.client import KazooState
from kazoo.exceptions import CancelledError, ConnectionLoss, NoAuthError, NodeExistsError

from minikeeper import MinikeeperError, NotVerified, Server, Universe, WaitTimedOut, settle

COUNT = int(os.environ.get("MINIKEEPER_EXPIRE_COUNT", "1000"))


class States:
    """Records the states of a client, and waits for them."""

    def __init__(self, client):
        self.seen = []
        self.changed = threading.Condition()
        client.add_listener(self.note)

    def note(self, state):
        with self.changed:
            self.seen.append(state)
            self.changed.notify_all()

    def wait_for(self, *states):
        with self.changed:
            assert self.changed.wait_for(lambda: tuple(self.seen) == states, PATIENCE_S), self.seen


# Time.


def test_clock_runs(minikeeper):
    first, second = minikeeper.now(), minikeeper.now()
    assert not first.is_frozen
    assert first.elapsed_ms <= second.elapsed_ms
    assert first.wall_ms > 1_700_000_000_000


@pytest.mark.needs("freeze", "unfreeze")
def test_freeze_and_advance_expire_a_session_without_sleeping(minikeeper):
    with connected(minikeeper) as owner, connected(minikeeper) as witness:
        owner.create("/mine", ephemeral=True)
        minikeeper.freeze()
        assert minikeeper.now().is_frozen
        minikeeper.silence(owner)
        minikeeper.advance(by_ms=9_000)
        assert witness.exists("/mine")
        minikeeper.advance(by_ms=30_000)
        assert "/mine"[1:] not in minikeeper.children("/")
        minikeeper.unfreeze()
        assert not minikeeper.now().is_frozen


def test_connected_client_survives_an_advance_unless_it_is_strict(minikeeper, kazoo):
    kazoo.create("/mine", ephemeral=True)
    minikeeper.freeze()
    minikeeper.advance(by_ms=3_600_000)
    assert kazoo.exists("/mine")
    minikeeper.advance(by_ms=3_600_000, strict=True)
    assert "mine" not in minikeeper.children("/")


def test_running_clock_advances_or_refuses(minikeeper):
    before = minikeeper.now().elapsed_ms
    try:
        minikeeper.advance(by_ms=60_000)
    except MinikeeperError as error:
        assert error.status == 409
    else:
        assert minikeeper.now().elapsed_ms >= before + 60_000


@pytest.mark.needs("auto_advance", "freeze")
def test_auto_advance_moves_the_clock_when_clients_are_idle(minikeeper, kazoo):
    kazoo.create("/mine", ephemeral=True)
    minikeeper.freeze()
    before = minikeeper.now().elapsed_ms
    # A session that is not silenced would live on, however far the clock moves.
    minikeeper.silence(kazoo)
    minikeeper.auto_advance(idle_ms=100)
    minikeeper.until_children("/", 1)
    minikeeper.auto_advance(idle_ms=None)
    # On the frozen clock, the session would never have expired without auto_advance.
    assert minikeeper.now().elapsed_ms >= before + 9_000


# Sessions.


def test_sessions_are_listed(minikeeper, kazoo):
    kazoo.create("/mine", ephemeral=True)
    (session,) = minikeeper.sessions()
    assert session.id == kazoo.client_id[0]
    assert session.timeout_ms == 10_000
    assert session.is_connected
    assert not session.is_silenced and not session.is_unbound
    assert session.last_operation.name in ("create", "create2")
    assert session.last_operation.at_ms <= minikeeper.now().elapsed_ms


@pytest.mark.parametrize("form", ["client", "number", "text", "session"])
def test_expire_takes_a_session_in_every_form(minikeeper, kazoo, form):
    (session,) = minikeeper.sessions()
    id = kazoo.client_id[0]
    given = {"client": kazoo, "number": id, "text": f"0x{id:x}", "session": session}[form]
    assert minikeeper.expire(given) == 1
    with pytest.raises(MinikeeperError, match="no session matches"):
        minikeeper.expire(id)
    assert minikeeper.expire(id, allow_none=True) == 0


def test_expired_client_is_lost_and_reconnects_with_a_new_session(minikeeper, kazoo):
    states, first = States(kazoo), kazoo.client_id[0]
    kazoo.create("/mine", ephemeral=True)
    assert minikeeper.expire(kazoo) == 1
    assert "mine" not in minikeeper.children("/")
    states.wait_for(KazooState.SUSPENDED, KazooState.LOST, KazooState.CONNECTED)
    assert kazoo.client_id[0] != first


def by_name(minikeeper, verb, **who):
    """Calls a verb with a selector that an older program may lack; skips the test if it does."""
    try:
        return getattr(minikeeper, verb)(**who)
    except MinikeeperError as error:
        if error.status == 409 and "yet" in str(error) and not os.environ.get("MINIKEEPER_ALL_VERBS"):
            pytest.skip(str(error))
        raise


def test_verb_without_a_match_is_an_error(minikeeper):
    fault = minikeeper.inject(action="cut", path="/never")
    missing = [
        *(lambda verb=verb, who=who: getattr(minikeeper, verb)(**who)
          for verb in ("expire", "disconnect", "silence", "unsilence")
          for who in ({"session": 1}, {"address": "127.0.0.1:1"}, {"identity": "digest:x"}, {"owner": "/x"})),
        lambda: minikeeper.get("/never"),
        lambda: minikeeper.children("/never"),
        lambda: minikeeper.restore(999),
        lambda: minikeeper.drop_snapshot(999),
        lambda: minikeeper.remove_fault(999),
        lambda: minikeeper.until_hit(999),
        lambda: minikeeper.drop_universe("nobodys"),
    ]
    for verb in missing:
        with pytest.raises(MinikeeperError) as refused:
            verb()
        assert refused.value.status == 404, refused.value
    for verb in ("expire", "disconnect", "silence", "unsilence"):
        assert getattr(minikeeper, verb)(1, allow_none=True) == 0
    with pytest.raises(MinikeeperError, match="never acted") as never:
        fault.remove()
    assert never.value.status == 409
    with pytest.raises(MinikeeperError, match="never acted"):
        with minikeeper.inject(action="cut", path="/never"):
            pass
    with minikeeper.inject(action="cut", path="/never", optional=True):
        pass


def test_misuse_says_what_to_do(minikeeper):
    for call, words in [
        (lambda: minikeeper.inject(action="drop"), "drop-request"),
        (lambda: minikeeper.inject(action="error", error="NOSUCH"), "NONODE"),
        (lambda: minikeeper.inject(action="cut", op="getdata"), "getData"),
        (lambda: minikeeper.inject(action="cut", path="/q/"), "/q/\\*"),
        (lambda: minikeeper.inject(action="refuse"), "server's own universe"),
        (lambda: minikeeper.until_children("/q/", 0), "slash"),
        (lambda: minikeeper.go_down(), "the whole server"),
        (lambda: minikeeper.come_up(), "the whole server"),
        (lambda: minikeeper.restart(), "the whole server"),
        (lambda: minikeeper.save(), "the whole server"),
    ]:
        with pytest.raises(MinikeeperError, match=words) as refused:
            call()
        assert refused.value.status == 400, refused.value


def test_session_that_has_sent_no_path_is_found(minikeeper):
    host, port = minikeeper.address.split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as bare:
        hello = struct.pack(">iqiqi16sb", 0, 0, 10_000, 0, 16, bytes(16), 0)
        bare.sendall(struct.pack(">i", len(hello)) + hello)
        minikeeper.until_sessions(1)
        (session,) = minikeeper.sessions()
        assert session.is_unbound
        assert minikeeper.expire(session) == 1
    minikeeper.until_sessions(0)


def test_expire_by_owner(minikeeper, kazoo):
    kazoo.create("/locks/mine", ephemeral=True, makepath=True)
    assert by_name(minikeeper, "expire", owner="/locks/mine") == 1
    assert minikeeper.children("/locks") == []


def test_expire_by_identity(minikeeper, kazoo):
    kazoo.add_auth("digest", "alice:secret")
    kazoo.create("/mine", ephemeral=True)
    assert by_name(minikeeper, "expire", identity="digest:alice") == 1
    assert "mine" not in minikeeper.children("/")


def test_disconnect_by_address(minikeeper, kazoo):
    states = States(kazoo)
    assert by_name(minikeeper, "disconnect", address="127.0.0.1") == 1
    states.wait_for(KazooState.SUSPENDED, KazooState.CONNECTED)


def test_disconnected_client_keeps_its_session(minikeeper, kazoo):
    states, first = States(kazoo), kazoo.client_id[0]
    kazoo.create("/mine", ephemeral=True)
    assert minikeeper.disconnect(kazoo) == 1
    states.wait_for(KazooState.SUSPENDED, KazooState.CONNECTED)
    assert kazoo.client_id[0] == first
    assert kazoo.exists("/mine")


def test_disconnect_all_disconnects_every_client(minikeeper):
    with connected(minikeeper) as one, connected(minikeeper) as two:
        states = [States(one), States(two)]
        minikeeper.disconnect_all()
        for each in states:
            each.wait_for(KazooState.SUSPENDED, KazooState.CONNECTED)


@pytest.mark.needs("silence", "unsilence")
def test_silenced_client_is_served_again(minikeeper, kazoo):
    assert minikeeper.silence(kazoo) == 1
    assert minikeeper.sessions()[0].is_silenced
    # Sends nothing while silenced: the server would drop it, and kazoo would close its connection.
    assert minikeeper.unsilence(kazoo) == 1
    assert not minikeeper.sessions()[0].is_silenced
    assert kazoo.exists("/")


class BareSession:
    """A session with an ephemeral, on a plain socket: a thousand kazoo clients would take two minutes."""

    def __init__(self, universe, path):
        host, port = universe.address.split(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        hello = struct.pack(">iqiqi16sb", 0, 0, 10_000, 0, 16, bytes(16), 0)
        answer = self.exchange(hello)
        (self.id,) = struct.unpack(">q", answer[8:16])
        self.chroot = universe.connect_string[len(universe.address) :]
        name = (self.chroot + path).encode()
        world = struct.pack(">ii", 1, 31) + b"".join(struct.pack(">i", len(t)) + t for t in (b"world", b"anyone"))
        # xid 1, operation create, the path, no data, the access list, ephemeral.
        create = struct.pack(">iii", 1, 1, len(name)) + name + struct.pack(">i", 0) + world + struct.pack(">i", 1)
        xid, _, error = struct.unpack(">iqi", self.exchange(create)[:16])
        assert (xid, error) == (1, 0)

    def exchange(self, frame):
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self.read()

    def read(self):
        # Unbuffered, so that later data stays in the socket, where select() sees it.
        with self.socket.makefile("rb", buffering=0) as stream:
            length, frame = struct.unpack(">i", stream.read(4))[0], b""
            while len(frame) < length:
                frame += stream.read(length - len(frame))
            return frame

    def watch(self, path):
        """Sends an exists with a watch. Returns whether the znode exists."""
        name = (self.chroot + path).encode()
        return self.exchange(struct.pack(">iii", 2, 3, len(name)) + name + b"\1")[12:16] == bytes(4)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def count_seen(minikeeper, rounds, seen_by):
    seen_before = 0
    with connected(minikeeper) as watcher:
        for number in range(rounds):
            path, seen = f"/e-{number}", threading.Event()
            with BareSession(minikeeper, path) as victim:
                assert watcher.exists(path, watch=lambda event, seen=seen: seen.set())
                assert minikeeper.expire(victim.id, seen_by=[watcher] if seen_by else ()) == 1
                seen_before += seen.is_set()
                assert not watcher.exists(path)
                assert seen.wait(PATIENCE_S)
    return seen_before


def test_watchers_have_seen_every_expiry_when_it_returns(minikeeper, record_property):
    """With `seen_by`, an unmodified kazoo client has run its callbacks when `expire` returns."""
    seen = count_seen(minikeeper, COUNT, seen_by=True)
    record_property("detail", f"{seen} of {COUNT}")
    assert seen == COUNT


def test_events_are_on_the_wire_when_an_expiry_returns(minikeeper, record_property):
    """Without `seen_by`, the event has been sent; the client decides when to read it."""
    sent = 0
    with BareSession(minikeeper, "/watcher") as watcher:
        for number in range(COUNT):
            path = f"/e-{number}"
            with BareSession(minikeeper, path) as victim:
                assert watcher.watch(path)
                assert minikeeper.expire(victim.id) == 1
                sent += bool(select.select([watcher.socket], [], [], 0)[0])
                assert path.encode() in watcher.read()
    record_property("detail", f"{sent} of {COUNT}")
    assert sent == COUNT


@pytest.mark.needs("until_noticed")
def test_expired_client_has_noticed_when_it_returns(minikeeper):
    """`settle` failed for the client that was expired: it had no connection."""
    states = []
    with connected(minikeeper) as client:
        client.add_listener(states.append)
        for number in range(min(COUNT, 20)):
            session = client.client_id[0]
            client.create(f"/e-{number}", ephemeral=True)
            assert minikeeper.expire(client, seen_by=client) == 1
            assert client.client_id[0] != session
            assert not client.exists(f"/e-{number}")
            assert states == ["SUSPENDED", "LOST", "CONNECTED"]
            states.clear()


@pytest.mark.needs("until_noticed")
def test_wait_for_a_client_that_has_not_noticed_says_so(minikeeper, kazoo):
    with pytest.raises(WaitTimedOut, match="the session has not ended"):
        minikeeper.until_noticed(kazoo, within_ms=1)
    with pytest.raises(MinikeeperError, match="by its id"):
        minikeeper.until_noticed(address="127.0.0.1")


def test_watchers_see_every_expiry(minikeeper, record_property):
    """Also without `seen_by`; how often before `expire` returns depends on the threads of this process."""
    rounds = min(COUNT, 200)
    seen = count_seen(minikeeper, rounds, seen_by=False)
    record_property("detail", f"{rounds} of {rounds}, {seen} of them before it returned")


# State.


def test_empty_tree_has_the_znode_of_the_server_and_exports_nothing(minikeeper):
    assert minikeeper.children("/") == ["zookeeper"]
    assert minikeeper.export_tree() == {}


def test_locks_and_advice_print_as_text(minikeeper, kazoo):
    with kazoo.Lock("/locks/printer"):
        locks = minikeeper.locks()
    kazoo.create("/lock-", ephemeral=True, sequence=True)
    advice = minikeeper.advise()
    assert str(locks).startswith("mutex /locks/printer (kazoo)\n") and f"{locks}" == locks.text
    assert str(advice) == advice.text and advice.findings[0]["rule"] in str(advice)
    assert repr(locks).startswith("Locks(")


def test_journal_that_differs_is_a_failed_assertion(minikeeper, kazoo):
    kazoo.create("/a")
    with pytest.raises(AssertionError, match="/a") as differs:
        minikeeper.verify(path="/a", exactly=3)
    assert isinstance(differs.value, NotVerified) and differs.value.status == 409
    with pytest.raises(MinikeeperError) as wrong:
        minikeeper.verify(exactly=1, at_most=2)
    assert not isinstance(wrong.value, AssertionError)


def test_get_children_and_dump_need_no_client(minikeeper, kazoo):
    kazoo.create("/a", b"\xff\x00")
    kazoo.create("/a/b", "ä".encode())
    assert minikeeper.get("/a").data == b"\xff\x00"
    stat = minikeeper.get("/a").stat
    assert (stat.num_children, stat.version, stat.data_length, stat.ephemeral_owner) == (1, 0, 2, "0x0")
    assert minikeeper.get("/a/b").data == "ä".encode()
    assert minikeeper.children("/a") == ["b"]
    assert "/a/b" in minikeeper.dump()
    with pytest.raises(MinikeeperError) as missing:
        minikeeper.get("/none")
    assert missing.value.status == 404


def test_save_without_a_directory_says_what_to_do(minikeeper_server):
    with pytest.raises(MinikeeperError, match="--data-dir") as refused:
        minikeeper_server.save()
    assert refused.value.status == 409


@pytest.mark.needs("seed", "export_tree")
def test_seeded_tree_is_exported_the_same(minikeeper, kazoo):
    minikeeper.seed({"/app/config": "on"})
    assert kazoo.get("/app/config")[0] == b"on"
    exported = minikeeper.export_tree()
    kazoo.delete("/app", recursive=True)
    minikeeper.seed(exported)
    assert kazoo.get("/app/config")[0] == b"on"
    minikeeper.seed(yaml=minikeeper.export_tree(format="yaml"))


def test_bytes_are_seeded_and_dumped(minikeeper, minikeeper_server):
    tree = {"/raw": b"\xff\x00", "/box": {"data": b"\xfe", "container": True}, "/text": "x"}
    minikeeper.seed(tree)
    assert minikeeper.get("/raw").data == b"\xff\x00"
    assert minikeeper.get("/box").data == b"\xfe"
    other = minikeeper_server.create_universe("equal")
    for path in sorted(tree):
        other.seed({path: tree[path]})
    assert other.dump() == minikeeper.dump()
    assert 'znode /raw bytes "\\xff\\x00"\n' in other.dump()
    other.drop_universe()


@pytest.mark.needs("snapshot", "restore", "drop_snapshot")
def test_restore_goes_back_to_a_snapshot(minikeeper, kazoo):
    kazoo.create("/kept")
    mark = minikeeper.snapshot()
    kazoo.delete("/kept")
    kazoo.create("/new")
    minikeeper.restore(mark)
    assert "kept" in minikeeper.children("/") and "new" not in minikeeper.children("/")
    minikeeper.drop_snapshot(mark)
    with pytest.raises(MinikeeperError):
        minikeeper.restore(mark)


@pytest.mark.needs("fork")
def test_fork_is_an_independent_copy(minikeeper, kazoo):
    kazoo.create("/both")
    fork = minikeeper.fork("copy")
    with connected(fork) as client:
        assert client.exists("/both")
        client.create("/there")
        assert not kazoo.exists("/there")


@pytest.mark.needs("export_data", "import_data")
def test_exported_data_is_imported_again(minikeeper, kazoo, tmp_path):
    kazoo.create("/kept", b"x")
    minikeeper.export_data(tmp_path)
    kazoo.delete("/kept")
    minikeeper.import_data(tmp_path)
    assert minikeeper.get("/kept").data == b"x"


# Faults.


@pytest.mark.needs("inject", "remove_fault", "faults", "until_hit")
def test_lost_reply_leaves_the_created_znode(minikeeper, kazoo):
    with minikeeper.inject(action="lose-reply", op="create", path="/naive/*", count=1) as fault:
        kazoo.create("/naive")
        with pytest.raises(ConnectionLoss):
            kazoo.create("/naive/n-", sequence=True)
        fault.until_hit()
        assert fault.hits() == 1
        # The client does not know of this znode.
        assert len(minikeeper.children("/naive")) == 1
    assert minikeeper.faults() == []


@pytest.mark.needs("inject", "faults")
def test_last_hit_says_what_a_fault_acted_on(minikeeper, kazoo):
    with minikeeper.inject(action="trigger", op="request", skip=1) as fault:
        kazoo.exists("/a")
        assert fault.last_hit() is None
        kazoo.exists("/b")
        hit = fault.last_hit()
        assert (hit.session, hit.op, hit.path) == (f"0x{kazoo.client_id[0]:x}", "exists", "/b") and hit.xid > 0
        assert minikeeper.faults()[0]["last_hit"]["path"] == "/b"
    with pytest.raises(MinikeeperError, match="unknown, or removed") as gone:
        fault.last_hit()
    assert gone.value.status == 404


@pytest.mark.needs("inject", "faults")
def test_request_is_every_request_but_pings_and_handshakes(minikeeper):
    with minikeeper.inject(action="trigger", op="request") as fault:
        with connected(minikeeper) as client:
            first = fault.hits()
            client.create("/a")
            client.get("/a")
        assert fault.hits() == first + 2


@pytest.mark.needs("inject")
def test_expire_ends_the_session_after_the_reply(minikeeper, kazoo):
    session = kazoo.client_id
    with minikeeper.inject(action="expire", op="create", path="/mine", count=1):
        assert kazoo.create("/mine", ephemeral=True) == "/mine"
    assert kazoo.retry(kazoo.exists, "/mine") is None
    assert kazoo.client_id != session


@pytest.mark.needs("inject")
def test_cut_after_closes_the_connection_after_the_reply(minikeeper, kazoo):
    lost = threading.Event()
    kazoo.add_listener(lambda state: lost.set() if state == KazooState.SUSPENDED else None)
    session = kazoo.client_id
    with minikeeper.inject(action="cut-after", op="create", count=1):
        assert kazoo.create("/a") == "/a"
        assert lost.wait(PATIENCE_S)
    assert kazoo.retry(kazoo.exists, "/a") and kazoo.client_id == session


@pytest.mark.needs("inject", "freeze", "advance")
def test_delay_reply_carries_out_now_and_answers_later(minikeeper, kazoo):
    minikeeper.freeze()
    with minikeeper.inject(action="delay-reply", delay_ms=1_000, op="create", count=1) as fault:
        reply = kazoo.create_async("/a")
        fault.until_hit()
        assert minikeeper.get("/a").data is not None and not reply.ready()
        minikeeper.advance(by_ms=1_000)
        assert reply.get(timeout=PATIENCE_S) == "/a"


@pytest.mark.needs("inject")
def test_delay_events_holds_an_event_past_the_next_reply(minikeeper, kazoo):
    minikeeper.freeze()
    events = []
    kazoo.exists("/a", watch=lambda event: events.append(kazoo.last_zxid))
    with minikeeper.inject(action="delay-events", delay_ms=60_000, count=1) as fault:
        minikeeper.seed({"/a": ""})
        fault.until_hit()
        # The reply to the first request after the change comes before the event.
        assert kazoo.exists("/a") and events == []
        kazoo.exists("/a")
        settle(kazoo)
        assert len(events) == 1


@pytest.mark.needs("inject")
def test_fault_for_a_client_by_its_number(minikeeper):
    with connected(minikeeper) as first, connected(minikeeper) as second:
        with minikeeper.inject(action="error", error="NOAUTH", op="create", client=2, count=1) as fault:
            first.create("/first")
            with pytest.raises(NoAuthError):
                second.create("/second")
            assert fault.last_hit().session == f"0x{second.client_id[0]:x}"


@pytest.mark.needs("inject", "reset_faults")
def test_reset_removes_all_faults(minikeeper, kazoo):
    minikeeper.inject(action="error", error="NODEEXISTS", op="create")
    with pytest.raises(NodeExistsError):
        kazoo.create("/a")
    minikeeper.reset_faults()
    kazoo.create("/a")


@pytest.mark.needs("inject", "faults", "remove_fault")
def test_one_fault_of_two_is_removed(minikeeper, kazoo):
    first = minikeeper.inject(action="error", error="NOAUTH", op="exists", optional=True)
    second = minikeeper.inject(action="error", error="NODEEXISTS", op="create")
    minikeeper.remove_fault(first)
    assert [fault["fault"] for fault in minikeeper.faults()] == [second.id]
    kazoo.exists("/")
    with pytest.raises(NodeExistsError):
        kazoo.create("/a")
    minikeeper.remove_fault(second.id)
    kazoo.create("/a")
    with pytest.raises(MinikeeperError) as gone:
        minikeeper.remove_fault(first)
    assert gone.value.status == 404


# Restart.


@pytest.fixture
def own():
    """A separate server, because `go_down` affects every universe of a server."""
    with Server() as server:
        yield server


@pytest.mark.needs("restart")
@pytest.mark.parametrize("keep", ["everything", "data", "nothing"])
def test_restart_keeps_what_the_argument_says(own, keep):
    with connected(own) as kazoo:
        check_restart(own, kazoo, keep)


def check_restart(minikeeper, kazoo, keep):
    kazoo.create("/data")
    kazoo.create("/mine", ephemeral=True)
    states = States(kazoo)
    minikeeper.restart(keep=keep)
    lost = () if keep == "everything" else (KazooState.LOST,)
    states.wait_for(KazooState.SUSPENDED, *lost, KazooState.CONNECTED)
    kept = {"everything": {"data", "mine"}, "data": {"data"}, "nothing": set()}
    assert set(minikeeper.children("/")) - {"zookeeper"} == kept[keep]


@pytest.mark.needs("go_down", "come_up")
def test_server_that_is_down_serves_no_clients(own):
    with connected(own) as kazoo:
        states = States(kazoo)
        own.go_down()
        states.wait_for(KazooState.SUSPENDED)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(own.address.rpartition(":")[2])))
        assert "zookeeper" in own.children("/")
        own.come_up()
        states.wait_for(KazooState.SUSPENDED, KazooState.CONNECTED)


@pytest.mark.needs("go_down", "come_up")
def test_server_that_is_down_is_brought_up_by_another_caller(own):
    control = own.go_down()
    with pytest.raises(MinikeeperError, match="no answer from the control API"):
        Universe(own.address).now()
    Universe(control).come_up()
    own.now()
    with pytest.raises(MinikeeperError, match="no answer from the control API"):
        Universe(control).now()


# Universes.


@pytest.mark.needs("create_universe", "universes", "drop_universe")
def test_universes_share_nothing(minikeeper_server):
    names = ["one", "other"]
    one, other = (minikeeper_server.create_universe(name) for name in names)
    with connected(one) as first, connected(other) as second:
        first.create("/here")
        assert not second.exists("/here")
    one.drop_universe()
    minikeeper_server.drop_universe("other")
    assert not set(names) & {str(universe) for universe in minikeeper_server.universes()}


# Waiting.


@pytest.mark.needs("until_watched", "until_children", "until_contenders", "until_idle")
def test_waits_return_when_their_condition_holds(minikeeper, kazoo):
    minikeeper.until_sessions(1)
    kazoo.get_children("/", watch=lambda event: None)
    minikeeper.until_watched("/")
    kazoo.create("/a")
    minikeeper.until_children("/", 2)
    with kazoo.Lock("/lock"):
        minikeeper.until_contenders("/lock", 1)
    minikeeper.until_idle(quiet_ms=1)


@pytest.mark.needs("until_children")
def test_wait_that_times_out_says_what_was_seen(minikeeper):
    with pytest.raises(WaitTimedOut, match="/"):
        minikeeper.until_children("/", 100, within_ms=1)


# Locks.


@contextlib.contextmanager
def acquiring(*locks):
    """Acquires kazoo's locks, each in a thread of its own, and gives up at the end."""
    def acquire(lock):
        with contextlib.suppress(CancelledError):
            lock.acquire()

    threads = [threading.Thread(target=acquire, args=(lock,), daemon=True) for lock in locks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for lock in locks:
            lock.cancel()
        for thread in threads:
            thread.join(PATIENCE_S)


@pytest.mark.needs("locks")
def test_deadlock_of_two_kazoo_clients_over_two_locks_is_named(minikeeper):
    with connected(minikeeper) as one, connected(minikeeper) as two:
        held = one.Lock("/a", "one"), two.Lock("/b", "two")
        for lock in held:
            assert lock.acquire()
        report = minikeeper.locks()
        assert report.deadlocks == []
        with acquiring(one.Lock("/b", "one"), two.Lock("/a", "two")):
            for lock in held:
                minikeeper.until_watched(f"{lock.path}/{lock.node}")
            report = minikeeper.locks()
            ids = {name: hex(client.client_id[0]) for name, client in (("one", one), ("two", two))}
            (deadlock,) = report.deadlocks
            assert sorted(deadlock["sessions"]) == sorted(ids.values())
            steps = {(step["session"], step["lock"], step["waits_for"]) for step in deadlock["cycle"]}
            assert steps == {(ids["one"], "/b", ids["two"]), (ids["two"], "/a", ids["one"])}
            assert report.text.startswith("deadlock: session 0x")
            for lock, path, holder, waiter in zip(report.locks, ("/a", "/b"), ("one", "two"), ("two", "one")):
                assert (lock["path"], lock["kind"], lock["family"]) == (path, "mutex", "kazoo")
                (first,), (second,) = lock["holders"], lock["waiters"]
                assert (first["session"], first["data"]) == (ids[holder], holder)
                assert (second["session"], second["data"]) == (ids[waiter], waiter)
                assert second["waits_for"] == [first["path"]]
                assert second["is_watching"]
                assert lock["warnings"] == []
        assert minikeeper.locks().deadlocks == []


@pytest.mark.needs("locks")
def test_semaphore_and_read_write_lock_of_kazoo_are_recognised(minikeeper):
    with connected(minikeeper) as one, connected(minikeeper) as two:
        lease = one.Semaphore("/pool", "one", max_leases=1)
        readers = [client.ReadLock("/rw", "reader") for client in (one, two)]
        for lock in (lease, *readers):
            assert lock.acquire()
        with acquiring(two.Semaphore("/pool", "two", max_leases=1), two.WriteLock("/rw", "writer")):
            minikeeper.until_contenders("/rw", 3)
            minikeeper.until_watched("/pool")
            minikeeper.until_watched(f"/rw/{readers[1].node}")
            pool, rw = minikeeper.locks().locks
            assert (pool["path"], pool["kind"], pool["max_leases"]) == ("/pool", "semaphore", 1)
            assert (rw["path"], rw["kind"], rw["family"]) == ("/rw", "read_write", "kazoo")
            assert [holder["data"] for holder in rw["holders"]] == ["reader", "reader"]
            # The data of the inner lock: kazoo converts bytes to text.
            for lock, holder, waiter in ((pool, "one", "b'two'"), (rw, "reader", "writer")):
                assert lock["holders"][0]["data"] == holder
                assert [contender["data"] for contender in lock["waiters"]] == [waiter]
                assert lock["waiters"][0]["is_watching"]
                assert lock["warnings"] == []

"""The request that each verb sends, and how it converts the answer. The server is a fake that records requests."""

import http.server
import json
import threading
import types

import pytest

from minikeeper import LastOperation, MinikeeperError, Now, Seeded, Session, Stat, Universe, WaitTimedOut, Watch, Znode


class Fake:
    """Answers every request with `status` and `answer`, and records the last request."""

    def __init__(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fake.asked = (self.command, self.path, json.loads(content) if content else None)
                fake.token = self.headers.get("Authorization")
                answer = fake.answer if isinstance(fake.answer, bytes) else json.dumps(fake.answer).encode()
                self.send_response(fake.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.status, self.answer, self.asked = 200, {}, None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def server():
    fake = Fake()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


@pytest.fixture
def fake(server):
    server.status, server.answer, server.asked = 200, {}, None
    return server


STAT_JSON = {
    "czxid": "0x1",
    "mzxid": "0x2",
    "pzxid": "0x3",
    "ctime_ms": 4,
    "mtime_ms": 5,
    "version": 1,
    "cversion": 6,
    "aversion": 7,
    "ephemeral_owner": "0x0",
    "data_length": 2,
    "num_children": 0,
}

SESSION_JSON = {
    "id": "0x1000a2b3c0001",
    "timeout_ms": 4000,
    "timeout_left_ms": 3999,
    "address": "127.0.0.1:4711",
    "is_connected": True,
    "is_silenced": False,
    "identities": ["digest:alice"],
    "ephemerals": ["/e"],
    "watches": [{"path": "/w", "kind": "data"}],
    "last_operation": {"name": "exists", "at_ms": 5},
}
SESSION = Session(
    0x1000A2B3C0001,
    4000,
    3999,
    "127.0.0.1:4711",
    True,
    False,
    ("digest:alice",),
    ("/e",),
    (Watch("/w", "data"),),
    LastOperation("exists", 5),
)
KAZOO = types.SimpleNamespace(client_id=(0x1000A2B3C0001, b"password"))
WITHIN = {"within_ms": 10_000}
SEEDED = {"created": 1, "changed": 0}

CASES = [
    # call, request, answer, returned value
    (
        lambda u: u.now(),
        ("GET", "/v1/now", None),
        {"elapsed_ms": 5, "wall_ms": 9, "is_frozen": True, "has_journal": False},
        Now(5, 9, True, False),
    ),
    (lambda u: u.advance(by_ms=10_000), ("POST", "/v1/advance", {"by_ms": 10_000}), {}, None),
    (
        lambda u: u.advance(by_ms=5, strict=True),
        ("POST", "/v1/advance", {"by_ms": 5, "strict": True}),
        {},
        None,
    ),
    (lambda u: u.freeze(), ("POST", "/v1/freeze", {}), {}, None),
    (lambda u: u.unfreeze(), ("POST", "/v1/unfreeze", {}), {}, None),
    (lambda u: u.auto_advance(idle_ms=5), ("POST", "/v1/auto_advance", {"idle_ms": 5}), {}, None),
    (lambda u: u.auto_advance(idle_ms=None), ("POST", "/v1/auto_advance", {"idle_ms": None}), {}, None),
    (lambda u: u.sessions(), ("GET", "/v1/sessions", None), {"sessions": [SESSION_JSON]}, [SESSION]),
    (lambda u: u.expire(255), ("POST", "/v1/expire", {"session": "0xff"}), {"count": 1}, 1),
    (lambda u: u.expire(-1), ("POST", "/v1/expire", {"session": "0x" + 16 * "f"}), {"count": 0}, 0),
    (lambda u: u.expire(KAZOO), ("POST", "/v1/expire", {"session": "0x1000a2b3c0001"}), {"count": 1}, 1),
    (lambda u: u.expire(SESSION), ("POST", "/v1/expire", {"session": "0x1000a2b3c0001"}), {"count": 1}, 1),
    (lambda u: u.expire(owner="/e"), ("POST", "/v1/expire", {"owner": "/e"}), {"count": 1}, 1),
    (
        lambda u: u.expire(1, allow_none=True),
        ("POST", "/v1/expire", {"session": "0x1", "allow_none": True}),
        {"count": 0},
        0,
    ),
    (lambda u: u.disconnect("0x1"), ("POST", "/v1/disconnect", {"session": "0x1"}), {"count": 1}, 1),
    (lambda u: u.disconnect_all(), ("POST", "/v1/disconnect_all", {}), {"count": 3}, None),
    (
        lambda u: u.silence(address="127.0.0.1"),
        ("POST", "/v1/silence", {"address": "127.0.0.1"}),
        {"count": 2},
        2,
    ),
    (
        lambda u: u.unsilence(identity="digest:alice"),
        ("POST", "/v1/unsilence", {"identity": "digest:alice"}),
        {"count": 1},
        1,
    ),
    (
        lambda u: u.inject(action="cut", path="/a").id,
        ("POST", "/v1/inject", {"action": "cut", "path": "/a"}),
        {"fault": 7},
        7,
    ),
    (
        lambda u: u.inject(action="delay", delay_ms=5, optional=True).id,
        ("POST", "/v1/inject", {"action": "delay", "delay_ms": 5, "optional": True}),
        {"fault": 7},
        7,
    ),
    (lambda u: u.faults(), ("GET", "/v1/faults", None), {"faults": [{"fault": 7, "hits": 1}]}, [{"fault": 7, "hits": 1}]),
    (lambda u: u.remove_fault(7), ("POST", "/v1/remove_fault", {"fault": 7}), {"hits": 2}, 2),
    (lambda u: u.reset_faults(), ("POST", "/v1/reset_faults", {}), {}, None),
    (lambda u: u.until_hit(7), ("POST", "/v1/until_hit", {"fault": 7, "hits": 1, **WITHIN}), {"hits": 2}, 2),
    (lambda u: u.get("/a b"), ("GET", "/v1/get?path=%2Fa+b", None), {"data": "ä", "stat": STAT_JSON},
     Znode("ä".encode(), Stat(**STAT_JSON))),
    (lambda u: u.get("/").data, ("GET", "/v1/get?path=%2F", None), {"data": None, "stat": STAT_JSON}, None),
    (lambda u: u.get("/").data, ("GET", "/v1/get?path=%2F", None), {"data_base64": "/w==", "stat": STAT_JSON}, b"\xff"),
    (lambda u: u.children("/"), ("GET", "/v1/children?path=%2F", None), {"children": ["a"]}, ["a"]),
    (lambda u: u.dump(), ("GET", "/v1/dump", None), {"dump": "text"}, "text"),
    (lambda u: u.dump(ids=True), ("GET", "/v1/dump?ids=true", None), {"dump": "text"}, "text"),
    (lambda u: u.export_tree(), ("GET", "/v1/export_tree?format=json&path=%2F", None), {"tree": {"a": "1"}}, {"a": "1"}),
    (lambda u: u.export_tree(format="yaml"), ("GET", "/v1/export_tree?format=yaml&path=%2F", None), {"tree": "a: 1"}, "a: 1"),
    (lambda u: u.seed({"a": "1"}), ("POST", "/v1/seed", {"tree": {"a": "1"}}), SEEDED, Seeded(1, 0)),
    (
        lambda u: u.seed({"/a": b"\xff", "/b": {"data": b"", "container": True}}),
        ("POST", "/v1/seed", {"tree": {"/a": {"data_base64": "/w=="}, "/b": {"data_base64": "", "container": True}}}),
        SEEDED,
        Seeded(1, 0),
    ),
    (lambda u: u.seed(yaml="a: 1"), ("POST", "/v1/seed", {"yaml": "a: 1"}), SEEDED, Seeded(1, 0)),
    (lambda u: u.snapshot(), ("POST", "/v1/snapshot", {}), {"snapshot": 3}, 3),
    (lambda u: u.restore(3), ("POST", "/v1/restore", {"snapshot": 3}), {}, None),
    (lambda u: u.drop_snapshot(3), ("POST", "/v1/drop_snapshot", {"snapshot": 3}), {}, None),
    (lambda u: u.fork("f").connect_string, ("POST", "/v1/fork", {"name": "f"}), {"connect_string": "h:1/f"}, "h:1/f"),
    (lambda u: u.save(), ("POST", "/v1/save", {}), {}, None),
    (lambda u: u.export_data("/d"), ("POST", "/v1/export_data", {"dir": "/d"}), {"zxid": "0x5"}, "0x5"),
    (lambda u: u.import_data("/d"), ("POST", "/v1/import_data", {"dir": "/d"}), {}, None),
    (lambda u: u.go_down(), ("POST", "/v1/go_down", {}), {"control": "h:1"}, "h:1"),
    (lambda u: u.come_up(keep="data"), ("POST", "/v1/come_up", {"keep": "data"}), {}, None),
    (lambda u: u.restart(), ("POST", "/v1/restart", {"keep": "everything"}), {}, None),
    (
        lambda u: u.create_universe("one").address,
        ("POST", "/v1/create_universe", {"name": "one"}),
        {"connect_string": "h:1/one"},
        "h:1",
    ),
    (lambda u: u.universes(), ("GET", "/v1/universes", None), {"universes": []}, []),
    (lambda u: u.drop_universe("one"), ("POST", "/v1/drop_universe", {"name": "one"}), {}, None),
    (lambda u: u.until_watched("/a"), ("POST", "/v1/until_watched", {"path": "/a", **WITHIN}), {}, None),
    (
        lambda u: u.until_children("/a", 2, within_ms=1),
        ("POST", "/v1/until_children", {"path": "/a", "count": 2, "within_ms": 1}),
        {},
        None,
    ),
    (
        lambda u: u.until_contenders("/lock", 2),
        ("POST", "/v1/until_contenders", {"lock": "/lock", "count": 2, **WITHIN}),
        {},
        None,
    ),
    (
        lambda u: u.until_sessions(2),
        ("POST", "/v1/until_sessions", {"count": 2, **WITHIN}),
        {},
        None,
    ),
    (
        lambda u: u.until_noticed(5, within_ms=1),
        ("POST", "/v1/until_noticed", {"session": "0x5", "within_ms": 1}),
        {},
        None,
    ),
    (lambda u: u.until_idle(), ("POST", "/v1/until_idle", {"quiet_ms": 50, **WITHIN}), {}, None),
]


@pytest.mark.parametrize("call, asked, answer, returned", CASES, ids=[f"{case[1][1]}-{n}" for n, case in enumerate(CASES)])
def test_verb(fake, call, asked, answer, returned):
    fake.answer = answer
    assert call(Universe(fake.address)) == returned
    assert fake.asked == asked


def test_cases_name_existing_verbs():
    # The verbs are generated; the cases cover each way to send a parameter and to convert an answer.
    verbs = {asked[1].split("/")[2].split("?")[0] for _, asked, _, _ in CASES}
    assert verbs <= {name for name in dir(Universe) if not name.startswith("_")}


def test_request_of_a_named_universe_has_its_name_in_the_path(fake):
    fake.answer = {"dump": ""}
    Universe(fake.address + "/one", name="one/ä", token="secret").dump()
    assert fake.asked == ("GET", "/v1/universes/one%2F%C3%A4/dump", None)
    assert fake.token == "Bearer secret"


def test_fault_is_removed_at_the_end_of_with(fake):
    fake.answer = {"fault": 7, "faults": [{"fault": 7, "hits": 2}], "hits": 2}
    with Universe(fake.address).inject(action="cut", path="/a") as fault:
        assert fault.hits() == 2
    assert fake.asked == ("POST", "/v1/remove_fault", {"fault": 7})


def test_fault_that_never_acted_is_an_error_at_the_end_of_with(fake):
    universe = Universe(fake.address)
    fake.answer = {"fault": 7}
    with pytest.raises(MinikeeperError, match="never acted"):
        with universe.inject(action="cut", path="/a") as fault:
            fake.status, fake.answer = 409, {"error": "fault 7 (cut): ended and never acted"}
    assert fault.hits() == 0
    # The exception of the block tells more.
    fake.status, fake.answer = 200, {"fault": 7}
    with pytest.raises(KeyError):
        with universe.inject(action="cut", path="/a"):
            fake.status, fake.answer = 409, {"error": "fault 7 (cut): ended and never acted"}
            raise KeyError
    # A fault that was removed by hand is not removed again.
    fake.status, fake.answer = 200, {"fault": 7, "hits": 3}
    with universe.inject(action="cut", path="/a") as fault:
        assert fault.remove() == 3
        fake.asked = None
    assert fake.asked is None and fault.hits() == 3


def test_refusal_is_an_error_with_the_message_of_the_server(fake):
    fake.status, fake.answer = 404, {"error": 'no znode at "/a"'}
    with pytest.raises(MinikeeperError, match='^no znode at "/a"$') as refused:
        Universe(fake.address).get("/a")
    assert refused.value.status == 404


def test_wait_that_times_out_raises_wait_timed_out(fake):
    fake.status, fake.answer = 408, {"error": "waited 1 ms for a watch on \"/a\"; watched are: nothing"}
    with pytest.raises(WaitTimedOut, match="watched are: nothing") as timed_out:
        Universe(fake.address).until_watched("/a", within_ms=1)
    assert isinstance(timed_out.value, (MinikeeperError, TimeoutError))


def test_answer_that_is_not_json_is_shown(fake):
    fake.answer = b"<html>"
    with pytest.raises(MinikeeperError, match="status 200.*<html>"):
        Universe(fake.address).dump()


def test_error_without_a_server_says_what_to_do():
    with pytest.raises(MinikeeperError, match=r"dump: no answer .*; is a server running there\?$"):
        # No unprivileged process can listen on this port.
        Universe("127.0.0.1:1").dump()


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", ":2181", "localhost:x/a"])
def test_address_without_a_port_is_refused(address):
    with pytest.raises(ValueError, match="HOST:PORT"):
        Universe(address)


def test_who_is_exactly_one(fake):
    universe = Universe(fake.address)
    with pytest.raises(TypeError, match="0 given"):
        universe.expire()
    with pytest.raises(TypeError, match="2 given"):
        universe.expire(1, owner="/e")
    with pytest.raises(ValueError, match="no session"):
        universe.expire(types.SimpleNamespace(client_id=None))
    with pytest.raises(TypeError, match="a session is"):
        universe.expire(1.5)

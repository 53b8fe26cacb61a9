"""The program as a child process: start, stop, restart, and exit with its parent."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import PATIENCE_S, connected

from minikeeper import MinikeeperError, Server, Universe, _program


def listens(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:
        # It closed the port while this connected; the next call is refused.
        pass
    return True


def test_server_serves_a_stock_client():
    with Server() as server:
        assert server.connect_string == server.address
        with connected(server) as client:
            client.create("/a", b"x")
            assert server.get("/a").data == b"x"


def test_stopped_server_starts_again_on_its_port():
    server = Server()
    server.start()
    address = server.address
    assert server.start() is server
    server.stop()
    server.stop()
    assert not listens(address)
    with server:
        assert server.address == address
        assert listens(address)


def test_end_of_the_block_fails_for_a_fault_that_never_acted():
    # It was green.
    never = {"action": "cut", "path": "/orders"}
    sentence = r'^fault 1 \(cut, path "/orders"\): ended and never acted; messages that matched it: 0; check its [^\n]*$'

    def use(act):
        with Server() as server:
            act(server)
        assert not server._program

    def go_down(server):
        server.create_universe("mine")
        server.go_down()
        server.inject(**never)

    for act in (
        lambda server: server.inject(**never),
        lambda server: server.create_universe("mine").inject(**never),
        go_down,
    ):
        with pytest.raises(MinikeeperError, match=sentence) as failed:
            use(act)
        assert failed.value.status == 409

    def fail(server):
        server.inject(**never)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use(fail)
    use(lambda server: server.inject(**never, optional=True))
    use(lambda server: (server.inject(**never), server.reset_faults()))
    use(lambda server: server.inject(action="refuse"))
    use(lambda server: (server.inject(**never), server.kill()))
    use(lambda server: server.stop())


def test_stopped_server_says_so():
    server = Server()
    for ask in (lambda: server.address, server.dump, lambda: server.connect_string):
        with pytest.raises(MinikeeperError, match=r"is not running: call start\(\)"):
            ask()
    assert repr(server) == "<Server stopped>"


def test_data_dir_keeps_data_and_sessions(tmp_path):
    with Server(data_dir=tmp_path) as server, connected(server) as client:
        session = client.client_id[0]
        client.create("/mine", ephemeral=True)
        server.stop()
        server.start()
        assert client.retry(client.exists, "/mine").ephemeralOwner == session
        assert client.client_id[0] == session


@pytest.mark.needs("save")
def test_killed_server_keeps_its_last_save(tmp_path):
    with Server(data_dir=tmp_path) as server:
        with connected(server) as client:
            client.create("/saved")
            server.save()
            client.create("/lost")
        server.kill()
        server.start()
        assert set(server.children("/")) == {"saved", "zookeeper"}


def test_options_reach_the_program():
    with Server(tick_time_ms=100, max_session_timeout_ms=900, options=["--log", "info"]) as server:
        with connected(server) as client:
            assert [one.timeout_ms for one in server.sessions()] == [900]
            assert client.connected
        assert "session opened" in server.log


def test_what_windows_needs_works_elsewhere_too(monkeypatch, tmp_path):
    monkeypatch.setattr(_program, "IS_WINDOWS", True)
    monkeypatch.setattr(_program.tempfile, "tempdir", str(tmp_path))
    with Server(options=["--log", "info"]) as server:
        assert [file.read_text().strip() for file in tmp_path.iterdir()] == [server.log]
        assert "listening" in server.log
    assert not listens(server._connect_string)
    assert list(tmp_path.iterdir()) == []


def test_wrong_option_is_reported():
    with pytest.raises(MinikeeperError, match="exited with code 2 at startup: error: unexpected argument '--bogus'"):
        Server(options=["--bogus"]).start()


def test_taken_port_is_reported():
    with Server() as server:
        with pytest.raises(MinikeeperError, match=f"cannot listen on {server.address}"):
            Server(port=int(server.address.split(":")[1])).start()


def test_missing_program_is_reported():
    with pytest.raises(MinikeeperError, match="no program at '/no/such'"):
        Server(program="/no/such").start()


def test_universe_of_a_running_server_needs_its_token():
    with Server(options=["--control-token", "secret"]) as server:
        with pytest.raises(MinikeeperError) as refused:
            Universe(server.address).dump()
        assert refused.value.status == 401
        assert "znode /" in Universe(server.address, token="secret").dump()


PARENT = "from minikeeper import Server; import sys; s = Server().start(); print(s.address, flush=True); sys.stdin.read()"


def test_server_exits_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    address = parent.stdout.readline().strip()
    assert listens(address)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + PATIENCE_S
    while listens(address):
        assert time.monotonic() < deadline, "the server outlives its parent"
        time.sleep(0.01)
    parent.stdin.close()
    parent.stdout.close()

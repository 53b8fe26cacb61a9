"""Servers that are not what they seem: one that names files elsewhere, and answers that do not end."""

import json
import pathlib
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import minikeeper
import pytest
from minikeeper import _control, _story


@pytest.fixture
def endless():
    """Starts servers that answer any request with a head, and then with a piece again and again."""
    listeners = []

    def start(head, piece):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve():
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(head)
                    while True:
                        connection.sendall(piece)
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()
        return "127.0.0.1:%d" % listener.getsockname()[1]

    yield start
    for listener in listeners:
        listener.close()


PIECE = b"x" * 65536


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", PIECE),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + PIECE + b"\r\n"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", PIECE),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    ],
    ids=["without a length", "chunks", "error", "continue"],
)
def test_answer_that_does_not_end_is_refused(endless, head, piece):
    # It was read until there was no memory.
    address = endless(head, piece)
    with pytest.raises(minikeeper.MinikeeperError) as refused:
        minikeeper.Universe(address).dump()
    wanted = f"dump: the answer of {address} is longer than the limit of 268435456 bytes; is it a minikeeper?"
    assert str(refused.value) == wanted and refused.value.status is None


def test_answer_that_takes_for_ever_is_refused(endless, monkeypatch):
    # A byte within the patience for each read was enough.
    monkeypatch.setattr(_control, "ANSWER_S_MAX", -_control.PATIENCE_S)
    address = endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x")
    with pytest.raises(minikeeper.MinikeeperError, match="dump: the answer of .* did not end within"):
        minikeeper.Universe(address).dump()


def test_no_name_of_a_server_leads_out_of_the_folder_for_stories(tmp_path):
    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self):
            story = {"text": "", "html": "owned", "json": "owned", "file_name": "../../package"}
            content = json.dumps(story).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stories = _story.Stories()
    stories.begin("../../a test")
    folder = tmp_path / "a" / "stories"
    try:
        told = stories.read(minikeeper.Universe("127.0.0.1:%d" % server.server_address[1]), "on purpose")
        _, page = _story.text(told, folder)
    finally:
        server.shutdown()
        server.server_close()
    assert page is not None and page.parent == folder
    files = [file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.parent for file in files} == {pathlib.Path("a/stories")}
    assert sorted(file.suffix for file in files) == ["", ".html", ".json"]


def test_names_of_files_are_those_that_the_server_gives(minikeeper):
    for title in ["test_a.py::test_b", "a/b", "../../package", "..", "", "a\0b", "ä", "a--b c", "x" * 300, "test[a b] run 3"]:
        # The server takes no longer titles.
        assert _story.file_name(title[:200]) == minikeeper.story(title=title[:200] or None).file_name or not title


def test_names_of_long_titles_differ():
    one, other = (_story.file_name("x" * 300 + end) for end in "ab")
    assert one != other and len(one) == len(other) == 100 and re.fullmatch(r"x+-[0-9a-f]{8}", one)

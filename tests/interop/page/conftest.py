"""A server, a browser and kazoo clients for each story.

Every story also fails if the page throws, breaks its content security policy, opens a dialog, or sends a request to
another address than the server's.
"""

import json
import os
import pathlib
import subprocess
import urllib.request

import pytest
from kazoo.client import KazooClient
from playwright.sync_api import expect, sync_playwright

PROGRAM = os.environ["MINIKEEPER_BIN"]
CHROMIUM = "/usr/bin/chromium"

# The limit of each wait for a condition. Unit: seconds.
PATIENCE = 15

expect.set_options(timeout=PATIENCE * 1_000)


class Server:
    """A running server."""

    def __init__(self, folder: pathlib.Path, *options: str):
        address_file = folder / f"address{len(list(folder.iterdir()))}"
        self.process = subprocess.Popen(
            [PROGRAM, *(() if "--port" in options else ("--port", "0")), "--address-file", address_file, *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        # The first line says where it listens.
        self.banner = self.process.stdout.readline()
        self.address = address_file.read_text().strip()
        # Several servers have several addresses.
        self.url = f"http://{self.address.split(',')[0]}/"

    def call(self, verb: str, _universe: str = "", **fields):
        """Calls a verb that changes something."""
        place = f"universes/{_universe}/{verb}" if _universe else verb
        request = urllib.request.Request(f"{self.url}v1/{place}", json.dumps(fields).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def read(self, verb: str, query: str = ""):
        """Calls a verb that reads."""
        with urllib.request.urlopen(f"{self.url}v1/{verb}?{query}", timeout=PATIENCE) as answer:
            return json.load(answer)

    def ctl(self, line: str) -> str:
        """Runs a command as the page shows it, in a shell. Returns what it prints."""
        assert line.startswith("minikeeper ctl "), line
        command = f'"$MINIKEEPER_BIN"{line.removeprefix("minikeeper")}'
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout

    def stop(self):
        if self.process.stdout.closed:
            return
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


@pytest.fixture
def servers(tmp_path):
    """Starts servers with options, and stops them at the end."""
    started = []

    def start(*options: str) -> Server:
        started.append(Server(tmp_path, *options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def server(servers):
    return servers("--control")


@pytest.fixture
def clients(server):
    """Connects kazoo clients, and stops them at the end."""
    connected = []

    def connect(chroot: str = "", **options) -> KazooClient:
        client = KazooClient(server.address + chroot, timeout=10, **options)
        client.start(PATIENCE)
        connected.append(client)
        return client

    yield connect
    for client in connected:
        client.stop()
        client.close()


@pytest.fixture
def client(clients):
    return clients()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        # A container's root user has no user namespaces for the sandbox.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visits(browser):
    """Opens pages of a browser without memory of earlier stories."""
    faults, contexts = [], []

    def visit(url: str, width: int = 1200, height: int = 800, scheme: str = "light", context=None, origin: str = ""):
        if context is None:
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, color_scheme=scheme, accept_downloads=True)
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            contexts.append(context)
        page = context.new_page()
        origin = origin or "/".join(url.split("/")[:3]) + "/"
        allowed = (origin, "data:", f"blob:{origin}")
        page.on("request", lambda it: it.url.startswith(allowed) or faults.append(f"request to {it.url}"))
        page.on("pageerror", lambda it: faults.append(f"error: {it}"))
        page.on("dialog", lambda it: faults.append(f"dialog: {it.message}"))
        # The browser logs each answer that is an error too, and those are part of the stories.
        page.on("console", lambda it: "Content Security" in it.text and faults.append(it.text))
        page.goto(url)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert faults == []

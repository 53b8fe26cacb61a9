"""kazoo clients, and the verbs of the program under test."""

import contextlib
import json
import logging
import os
import urllib.request

import pytest
from kazoo.client import KazooClient

# kazoo logs every connection that closes; these tests close many on purpose.
logging.getLogger("kazoo").setLevel(logging.CRITICAL)

PATIENCE_S = 30


@contextlib.contextmanager
def connected(universe, timeout=10.0):
    client = KazooClient(hosts=universe.connect_string, timeout=timeout)
    client.start(timeout=PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@pytest.fixture
def kazoo(minikeeper):
    """A client of this test's universe."""
    with connected(minikeeper) as client:
        yield client


@pytest.fixture(scope="session")
def verbs(minikeeper_shared_server):
    with urllib.request.urlopen(f"http://{minikeeper_shared_server.address}/v1/openapi.json", timeout=PATIENCE_S) as answer:
        return {path.rpartition("/")[2] for path in json.load(answer)["paths"]}


@pytest.fixture(autouse=True)
def needed_verbs(request):
    """Skips `@pytest.mark.needs("seed")` if the program lacks the verb, unless MINIKEEPER_ALL_VERBS is set."""
    for mark in request.node.iter_markers("needs"):
        missing = set(mark.args) - request.getfixturevalue("verbs")
        if missing and not os.environ.get("MINIKEEPER_ALL_VERBS"):
            pytest.skip(f"the program has no verb {', '.join(sorted(missing))}")


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*verbs): verbs the program must have for this test")


def pytest_terminal_summary(terminalreporter):
    """Prints a line for each test, like the other suites of the repository, and where it stands."""
    counts = {"passed": 0, "failed": 0}
    for outcome, word in (("passed", "ok"), ("xfailed", "ok"), ("skipped", "skip"), ("failed", "FAIL"), ("error", "FAIL")):
        for report in terminalreporter.stats.get(outcome, ()):
            name = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
            reason = "".join(f": {value}" for key, value in report.user_properties if key == "detail")
            if outcome == "skipped":
                reason = ": " + report.longrepr[2].removeprefix("Skipped: ")
            elif word == "FAIL":
                reason = ": " + str(report.longrepr).strip().rpartition("\n")[2]
            terminalreporter.write_line(f"{word} python {name}{reason}")
            if word != "skip":
                terminalreporter.write_line(f"ran {report.nodeid}")
                counts["passed" if word == "ok" else "failed"] += 1
    terminalreporter.write_line(f"python: {counts['passed']} passed, {counts['failed']} failed")

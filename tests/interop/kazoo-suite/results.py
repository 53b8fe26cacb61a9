"""A pytest plugin: writes one line per test as it ends, so that an interrupted run keeps its results.

The line is outcome, seconds, test, reason, separated by tabs. SUITE_RESULTS names the file.

Each process of a run gets its own ports, counted from SUITE_PORT. With minikeeper, the plugin slows the server down for a
test that expects a slow one.
"""

import json
import os
import urllib.request

import pytest

PORTS_OF_A_SERVER = 10


def pytest_configure(config):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    port = int(os.environ["SUITE_PORT"]) + PORTS_OF_A_SERVER * int(worker)
    os.environ["ZOOKEEPER_PORT_OFFSET"] = str(port)
    # Workers report to the process that started them.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Results(os.environ["SUITE_RESULTS"]))


# The test sends 1 MB, drops the connection, and expects the reply to be lost, but kazoo still reads a reply that arrives
# before the request is fully sent. ZooKeeper takes milliseconds to reply, minikeeper does not.
EXPECTS_A_SLOW_REPLY = "TestConnectionDrop::test_connection_dropped"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if item.nodeid.endswith(EXPECTS_A_SLOW_REPLY) and "MINIKEEPER_BIN" in os.environ:
        # The test's setUp starts the server.
        case, set_up = item.instance, item.instance.setUp

        def set_up_and_delay():
            set_up()
            delay_a_set(case.cluster[0].address)

        case.setUp = set_up_and_delay
    return (yield)


def delay_a_set(address):
    fault = {"action": "delay", "op": "setData", "count": 1, "delay_ms": 1000}
    request = urllib.request.Request(f"http://{address}/v1/inject", json.dumps(fault).encode(), method="POST")
    urllib.request.urlopen(request, timeout=10).close()


class Results:
    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8", buffering=1)
        self.parts = {}

    def pytest_runtest_logreport(self, report):
        outcome, seconds, reason = self.parts.get(report.nodeid, ("passed", 0.0, ""))
        # The first failure of setup, call and teardown counts.
        if outcome == "passed" and report.outcome != "passed":
            outcome, reason = report.outcome, first_line(report)
        self.parts[report.nodeid] = (outcome, seconds + report.duration, reason)
        # xdist reports a test whose process ended with the phase "???".
        if report.when in ("teardown", "???"):
            outcome, seconds, reason = self.parts.pop(report.nodeid)
            name = report.nodeid.rpartition("kazoo/tests/")[2]
            print(outcome, f"{seconds:.2f}", name, reason, sep="\t", file=self.file)


def first_line(report):
    if isinstance(report.longrepr, tuple):
        text = report.longrepr[2].removeprefix("Skipped: ")
    else:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else str(report.longrepr)
    lines = text.split("\n")
    return lines[0].replace("\t", " ")[:160]

"""A pytest plugin: writes one line per test as it ends, so that an interrupted run keeps its results.

The line is outcome, seconds, test, reason, separated by tabs. SUITE_RESULTS names the file.

Each process of a run gets its own ports, counted from SUITE_PORT.
"""

import os

PORTS_OF_A_SERVER = 10


def pytest_configure(config):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    port = int(os.environ["SUITE_PORT"]) + PORTS_OF_A_SERVER * int(worker)
    os.environ["ZOOKEEPER_PORT_OFFSET"] = str(port)
    # Workers report to the process that started them.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Results(os.environ["SUITE_RESULTS"]))


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

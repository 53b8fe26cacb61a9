"""Compares runs of kazoo's suite with the results on ZooKeeper.

    judge.py [--some] EXPECTED EXCEPTIONS RESULTS [AGAIN...]   exit code 0 only if every test passes that passes on
                                                               ZooKeeper, except known gaps; --some: of those that ran;
                                                               AGAIN: the results of further tries
    judge.py --again [--some] (the same)                       the races that still fail, for a further try
    judge.py --table RUN=RESULTS ...                           every test that does not pass everywhere, one column per run
    judge.py --expect RUN,RUN,... ...                          the text of EXPECTED, one word for the runs of each version
"""

import sys
from collections import Counter

# Limits the list for an interrupted run.
FAIL_LINES_MAX = 50


def read(path):
    """Outcome, seconds and reason of each test, in the order they ended in."""
    tests = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            outcome, seconds, name, reason = line.rstrip("\n").split("\t")
            tests[name] = (outcome, float(seconds), reason)
    return tests


def read_expected(path):
    """Outcome and reason of each test on ZooKeeper."""
    expected = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                outcome, name, *reason = line.rstrip("\n").split(" ", 2)
                expected[name] = (outcome, "".join(reason))
    return expected


def read_exceptions(path):
    """Kind and reason of each exception."""
    exceptions = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                kind, name, reason = line.strip().split(" ", 2)
                exceptions[name] = (kind, reason)
    return exceptions


def counts(tests):
    outcomes = Counter(outcome for outcome, *_ in tests.values())
    return ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))


class Verdict:
    """The report on every test whose result differs from the one on ZooKeeper."""

    def __init__(self, is_whole, expected_path, exceptions_path, results_path, *again_paths):
        expected, exceptions = read_expected(expected_path), read_exceptions(exceptions_path)
        self.tests, again = read(results_path), [read(path) for path in again_paths]
        self.passed, self.failed, self.races, self.notes = 0, [], [], []
        for name, (outcome, reason) in expected.items():
            if not is_whole and name not in self.tests:
                continue
            here, _, reason_here = self.tests.get(name, ("missing", 0, "did not end"))
            tries = [run[name][0] for run in again if name in run]
            kind, exception = exceptions.get(name, (None, None))
            if outcome != "passed":
                if (here, reason_here) != (outcome, reason):
                    self.note(name, f"{here} here: {reason_here or '-'}; {outcome} on ZooKeeper: {reason}")
            elif "passed" in [here, *tries]:
                self.passed += 1
                if kind == "gap":
                    self.note(name, "passes; remove this gap from exceptions.txt")
                elif here != "passed":
                    self.note(name, f"passes at try {len(tries) + 1}: {exception}")
            elif kind == "gap":
                self.note(name, f"known gap: {exception}")
            else:
                self.failed.append(f"FAIL {name}: {here} here: {reason_here}")
                if kind == "race":
                    self.races.append(name)
        for name in self.tests.keys() - expected.keys():
            self.note(name, f"{self.tests[name][0]} here, unknown on ZooKeeper")

    def note(self, name, text):
        self.notes.append(f"# {name}: {text}")

    def print(self):
        for line in [*self.notes, *self.failed[:FAIL_LINES_MAX]]:
            print(line)
        if len(self.failed) > FAIL_LINES_MAX:
            print(f"FAIL and {len(self.failed) - FAIL_LINES_MAX} more")
        print(f"# all tests: {counts(self.tests)}")
        print(f"kazoo-suite: {self.passed} passed, {len(self.failed)} failed")


def table(runs):
    columns = {name: read(path) for name, path in (run.split("=", 1) for run in runs)}
    for name, tests in columns.items():
        seconds = sum(seconds for _, seconds, _ in tests.values())
        print(f"{name}: {counts(tests)}, {seconds:.0f} s of tests")
    names = dict.fromkeys(name for tests in columns.values() for name in tests)
    missing = ("missing", 0, "")
    rows = {name: [tests.get(name, missing) for tests in columns.values()] for name in names}
    print("\n" + " ".join(f"{name:>9}" for name in columns))
    for name, row in rows.items():
        if any(outcome != "passed" for outcome, *_ in row):
            reasons = dict.fromkeys(reason for *_, reason in row if reason)
            print(" ".join(f"{outcome:>9}" for outcome, *_ in row), f" {name}  ({'; '.join(reasons)})")


def expect(paths):
    """Prints the expected results. A test passes on ZooKeeper if it passes in every run of one version."""
    versions = [[read(path) for path in version.split(",")] for version in paths]
    for name in versions[0][0]:
        outcomes = [{run[name][0] for run in version} for version in versions]
        if {"passed"} in outcomes:
            print("passed", name)
        else:
            outcome, _, reason = versions[0][0][name]
            print(outcome, name, reason)


def verdict(arguments):
    is_whole = arguments[:1] != ["--some"]
    paths = arguments if is_whole else arguments[1:]
    return Verdict(is_whole, *paths) if len(paths) >= 3 else sys.exit(__doc__)


match sys.argv[1:]:
    case ["--table", *runs]:
        table(runs)
    case ["--expect", *paths]:
        expect(paths)
    case ["--again", *arguments]:
        for race in verdict(arguments).races:
            print(race)
    case arguments:
        judged = verdict(arguments)
        judged.print()
        sys.exit(1 if judged.failed else 0)

"""Compares runs of kazoo's suite with what an original does.

    judge.py EXPECTED GAPS RESULTS     exit code 0 only if every test passes that passes on an original, known gaps aside
    judge.py --some EXPECTED GAPS RESULTS   the same for the tests that ran
    judge.py --table RUN=RESULTS ...   every test that does not pass everywhere, a column a run
    judge.py --expect RESULTS ...      writes the text of EXPECTED, from runs against originals
"""

import sys
from collections import Counter

# What a run that broke off lacks need not be listed whole.
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
    """Outcome and reason of each test on an original."""
    expected = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                outcome, name, *reason = line.rstrip("\n").split(" ", 2)
                expected[name] = (outcome, "".join(reason))
    return expected


def read_gaps(path):
    """Reason of each known gap."""
    with open(path, encoding="utf-8") as lines:
        return dict(line.strip().split(" ", 1) for line in lines if not line.startswith("#"))


def counts(tests):
    outcomes = Counter(outcome for outcome, *_ in tests.values())
    return ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))


def judge(expected_path, gaps_path, results_path, is_whole):
    expected, gaps, tests = read_expected(expected_path), read_gaps(gaps_path), read(results_path)
    if not is_whole:
        expected = {name: value for name, value in expected.items() if name in tests}
    passed = red = open_gaps = 0
    for name, (outcome, reason) in expected.items():
        here, _, reason_here = tests.get(name, ("missing", 0, "it did not end"))
        if outcome != "passed":
            if (here, reason_here) != (outcome, reason):
                print(f"# {name}: {here} here: {reason_here or '-'}; {outcome} on an original: {reason}")
        elif here == "passed":
            passed += 1
            if name in gaps:
                print(f"# {name}: passes here, and is no gap any more")
        elif name in gaps:
            open_gaps += 1
            print(f"# {name}: known gap: {gaps[name]}")
        else:
            red += 1
            if red <= FAIL_LINES_MAX:
                print(f"FAIL {name}: {here} here: {reason_here}")
    if red > FAIL_LINES_MAX:
        print(f"FAIL and {red - FAIL_LINES_MAX} more")
    for name in tests.keys() - expected.keys():
        print(f"# {name}: {tests[name][0]} here, unknown on an original")
    print(f"# all tests: {counts(tests)}; of those that pass on an original {open_gaps} in known gaps")
    print(f"kazoo-suite: {passed} passed, {red} failed")
    return red == 0


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
    """A test passes on an original if it does so in every run of one version: RUNS,RUNS ..."""
    versions = [[read(path) for path in version.split(",")] for version in paths]
    for name in versions[0][0]:
        outcomes = [{run[name][0] for run in version} for version in versions]
        if {"passed"} in outcomes:
            print("passed", name)
        else:
            outcome, _, reason = versions[0][0][name]
            print(outcome, name, reason)


match sys.argv[1:]:
    case ["--table", *runs]:
        table(runs)
    case ["--expect", *paths]:
        expect(paths)
    case ["--some", *paths] if len(paths) == 3:
        sys.exit(0 if judge(*paths, is_whole=False) else 1)
    case [_, _, _] as paths:
        sys.exit(0 if judge(*paths, is_whole=True) else 1)
    case _:
        sys.exit(__doc__)

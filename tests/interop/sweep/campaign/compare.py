"""Sweeps the scenarios of expected.json, and compares what breaks with what is expected there.

By `PROJECT/PROGRAM` and scenario, expected.json has a list of findings. A finding has a pattern of the points that break, and
what the program says then. Each failing point must be one of a finding, and each finding must be found. A finding without a
pattern is one without any fault, and a finding with `sometimes` need not be found: it is a race.
Of a scenario with null, what breaks is printed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

SUMMARY = re.compile(
    r"minikeeper sweep: (\w+).*?: (\d+) of (\d+) points? tried: .* (\d+) not reached; (\d+) runs? in ([0-9.]+) s"
)
ROW = "{:<36} {:<10} {:>6} {:>6} {:>6} {:>8} {:>12}"

# Options of `minikeeper sweep`, by program: see there.
OPTIONS = {"aiozk/recipes": ["--tick-time", 200]}

problems = []


def problem(name, what):
    problems.append(name)
    print(f"FAIL {name}: {what}", flush=True)


def command(program, scenario):
    if program == "go/locks":
        return [work / "go-locks", scenario]
    if program == "node/examples":
        return ["node", f"{HERE / program}.js", scenario]
    return [sys.executable, f"{HERE / program}.py", scenario]


def sweep_in_jvm(scenario, options):
    """As `sweep`, of a scenario that sweeps itself, with all runs in one JVM: a JVM for each would take a second."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", action="append")
    parser.add_argument("--only")
    parser.add_argument("--seed")
    given = parser.parse_args(options)
    words = ["jobs=8", f"faults={','.join(given.fault)}" if given.fault else ""]
    words += [f"{name}={value}" for name, value in (("only", given.only), ("seed", given.seed)) if value]
    done = subprocess.run(
        [*(work / "curator.command").read_text().split("\n"), scenario, *filter(None, words)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "MINIKEEPER_BIN": minikeeper},
    )
    (work / f"curator-{scenario}.txt").write_text(done.stdout + done.stderr)
    lines = [line.removeprefix("breaks ").split("\t", 1) for line in done.stdout.splitlines() if line.startswith("breaks ")]
    return [(None if point == "no fault" else point, message) for point, message in lines], done


def sweep(program, scenario, options):
    """Sweeps a scenario. Prints its row. Returns what has broken, as pairs of point and output, and the report."""
    name = f"{program} {scenario}"
    if program == "curator/Recipes":
        broken, done = sweep_in_jvm(scenario, options)
        report = done.stdout + done.stderr
        return row(name, broken, SUMMARY.search(report), report, done.returncode), report
    out = work / re.sub(r"\W+", "-", name)
    shutil.rmtree(out, ignore_errors=True)
    words = [minikeeper, "sweep", "--out", out, "--run-time", 20, *OPTIONS.get(program, ()), *options, "--", *command(program, scenario)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE.parent)))}
    done = subprocess.run(map(str, words), capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    report = done.stdout + done.stderr
    summary = SUMMARY.search(report)
    if not summary:
        return row(name, [], summary, report, done.returncode), report
    stories = {json.loads(story.read_text())["title"]: story.with_suffix(".out") for story in sorted(out.glob("*.json"))}
    if "without any fault" in report:
        broken = [(None, output.read_text()) for output in stories.values()]
    else:
        lines = [line.split(" ", 1) for line in (out / "tried").read_text().splitlines()]
        how = {point: how for how, point in lines}
        failing = [point for point in how if how[point] in ("failed", "hung")]
        # A point that failed once and has no output passed when it was repeated.
        broken = [(point, stories[point].read_text() if point in stories else "") for point in failing]
    return row(name, broken, summary, report, done.returncode), report


def row(name, broken, summary, report, code):
    """Prints the row of a scenario. Returns what has broken, or None if there is no report."""
    if not summary:
        problem(name, f"no report; exit code {code}\n{report}")
        return None
    state, tried, points, unreached, runs, seconds = summary.groups()
    print(ROW.format(name, state, points, len(broken), runs, seconds, unreached), flush=True)
    return broken


def main():
    patterns, options = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        patterns, options = arguments[:at], arguments[at + 1 :]
    is_compared = not any(option.startswith(("--fault", "--only", "--depth", "--orders")) for option in options)
    expected = json.loads((HERE / "expected.json").read_text())
    print(ROW.format("scenario", "", "points", "broken", "runs", "seconds", "not reached"), flush=True)
    begun = time.monotonic()
    for program, scenarios in expected.items():
        for scenario, findings in scenarios.items():
            name = f"{program} {scenario}"
            if patterns and not any(pattern in name for pattern in patterns):
                continue
            broken, report = sweep(program, scenario, options)
            if broken is None:
                continue
            if not is_compared or findings is None:
                for point, output in broken:
                    print(f"  {point}: {last_line(output)}", flush=True)
                continue
            left = list(findings)
            for point, output in broken:
                found = [finding for finding in findings if is_finding(finding, point, output)]
                if not found:
                    problem(name, f"unexpected: {point}: {last_line(output)}")
                left = [finding for finding in left if finding not in found]
            for finding in left:
                if finding.get("sometimes"):
                    continue
                problem(name, f"not found: {finding}")
    print(f"campaign: {len(problems)} problems, {time.monotonic() - begun:.0f} s", flush=True)
    sys.exit(bool(problems))


def is_finding(finding, point, output):
    pattern = finding.get("points")
    return (not pattern if point is None else pattern and re.fullmatch(pattern, point)) and finding["says"] in output


def last_line(output):
    lines = output.strip().splitlines()
    return lines[-1] if lines else "nothing"


if __name__ == "__main__":
    minikeeper, work, arguments = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    main()

"""Sweeps the programs of this folder, and checks what `minikeeper sweep` finds.

In a program with a bug every finding must be the bug, at the request where it is; the printed command must show one again. In
the sound version of the program nothing may be found, and in Curator's recipes nothing but known limits.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# By program: a point that must be found. What else is found must be the same bug, as the program says it: where depends on when
# a client sees that its connection is cut.
BUGS = {
    "naive_lock": "reply-lost:1:create:1:/lock/n-",
    "go_lock": "reply-lost:1:getChildren:1:/lock",
    "kazoo_lock": "request-lost:2:delete:1:/lock/*__lock__*",
    "kazoo_timeout": "request-lost:2:delete:1:/lock/*__lock__*",
    "counter": "reply-lost:1:setData:1:/counter",
    "latch": "session-expired:1:getData:1:/work",
    "late_write": "session-expired:1:getChildren:1:/election",
}

# Those that the gate tries.
QUICK = ["naive_lock", "kazoo_lock", "counter", "late_write"]

# The recipes of Curator.
RECIPES = ["mutex", "read-write", "semaphore", "latch", "counter"]

# Known limits of Curator, by recipe, or version and recipe: a point that must be found, a pattern of all that may be found,
# and what the program says then.
LIMITS = {
    # CURATOR-724, solved in 5.8: the session has expired, the server has deleted the container of the latch, which was empty, and
    # `LeaderLatch.getChildren` ignores the NONODE after that. The latch never creates its znode again.
    "5.4 latch": ("reply-late:1:getChildren2:1:/recipe", r"reply-late:.*:/recipe\b.*", "does not lead"),
    # `DistributedAtomicValue.tryOnce` takes the BADVERSION or NODEEXISTS of its own repeated request for another client's
    # write, and adds again.
    "counter": (
        "reply-lost:2:setData:1:/counter",
        r"(reply-lost|reply-late|server-restarted):(1:create2|2:setData):1:/counter",
        "2 increments succeeded, and the counter is 3",
    ),
}

# Those of RecipeOrders.java. With -3 there are three clients instead of two. Left out are semaphore-3 and double-barrier-3: they
# have thousands of orders with two changes.
RECIPES_IN_ORDERS = [
    *("mutex", "mutex-3", "read-write", "read-write-3", "downgrade", "semaphore"),
    *("latch", "latch-3", "latch-resign", "barrier", "double-barrier", "double-barrier-twice", "cache", "shared-count"),
]

# Scenarios that must fail, and what they say then: a lock that is none, and a known bug of Curator.
RECIPES_THAT_FAIL = {"planted": "hold it together", "double-barrier-slow": "left when 1 of 2 were leaving"}

# Programs of orders.py whose clients go wrong in some orders.
RACES = ["check_create", "lost_update", "read_watch", "late_write"]

# How long a sweep may take. Unit: seconds.
BUDGET_S = 60

SUMMARY = re.compile(
    r"minikeeper sweep: .*?: (\d+) of (\d+) points? tried: (\d+) passed, (\d+) failed, (\d+) hung, (\d+) not reached; (\d+) runs?"
)
ORDERS = re.compile(
    r"minikeeper sweep: (\w+).*?: (\d+) orders? of \d+ clients? tried, .*: (\d+) passed, (\d+) failed, (\d+) hung, "
    r"(\d+) not followed; (\d+) runs?"
)
RECIPE_ROW = "{:<20} {:>7} {:>9} {:>7} {:>7} {:>12} {:>5} {:>7} {:>7} {:>7}"
ROW = "{:<24} {:>6} {:>6} {:>5} {:>7}  {:<46} {}"

problems = []


def sweep(name, command, jobs=3, budget=BUDGET_S, run_time=20, faults=(), options=()):
    """Sweeps a command. Prints its row. Returns the points that fail and the report."""
    out = work / name
    shutil.rmtree(out, ignore_errors=True)
    options = ["--jobs", jobs, "--time", budget, "--run-time", run_time, *(f"--fault={fault}" for fault in faults), *options]
    words = [minikeeper, "sweep", "--out", out, *options, "--", *command]
    begun = time.monotonic()
    done = subprocess.run(map(str, words), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    (work / f"{name}.txt").write_text(done.stdout + done.stderr)
    summary = SUMMARY.search(done.stdout)
    if not summary:
        problem(name, f"no report; exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return None
    tried, points, _, _, hung, unreached, runs = map(int, summary.groups())
    if tried != points:
        problem(name, f"{tried} of {points} points tried within {budget} s")
    lines = [line.split(" ", 1) for line in (out / "tried").read_text().splitlines()]
    # A point that was not reached is tried again.
    lines = [*{point: (how, point) for how, point in lines}.values()]
    failing = sorted({point for how, point in lines if how in ("failed", "hung")})
    places = {point.split(":", 1)[1] for _, point in lines}
    # The failed runs: each has a story, whose title is the point, and its output beside it.
    stories = {json.loads(story.read_text())["title"]: story.with_suffix(".out") for story in out.glob("*.json")}
    again = re.search(r"^ *(minikeeper sweep .*--only '(.*?)' -- .*|sh \S+/again '(.*?)')$", done.stdout, re.M)
    return {
        "name": name,
        "figures": (len(places), tried, runs, f"{seconds:.1f} s"),
        "failing": failing,
        "outputs": {point: stories[point].read_text() for point in failing},
        "hung": hung,
        "unreached": unreached and [point for how, point in lines if how == "unreached"],
        # The printed command, with {} in place of its point: a group of failures has one.
        "again": again and again[1].replace(again[2] or again[3], "{}"),
        "code": done.returncode,
        "report": done.stdout,
    }


def sweep_orders(name, command, *options):
    """Sweeps the orders of a command. Prints a row. Returns the state, the counts and the report."""
    out = work / re.sub(r"\W+", "-", f"orders {name}")
    shutil.rmtree(out, ignore_errors=True)
    words = [minikeeper, "sweep", "--orders", "--out", out, "--run-time", 20, *options, "--", *command]
    begun = time.monotonic()
    done = subprocess.run(map(str, words), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    summary = ORDERS.search(done.stdout)
    if not summary:
        problem(name, f"no report; exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return "none", {}, done.stdout
    names = "tried", "passed", "failed", "hung", "not_followed", "runs"
    counts = dict(zip(names, map(int, summary.groups()[1:])))
    rate = f"{counts['runs'] / seconds:.1f}"
    failing = counts["failed"] + counts["hung"]
    print(f"{name:<28} {counts['tried']:>6} {failing:>7} {counts['not_followed']:>13} {rate:>9}", flush=True)
    return summary[1], counts, done.stdout


def finds_order(name, command, *options):
    """The program fails in some order, and the printed order shows it again."""
    state, counts, report = sweep_orders(name, command, *options)
    only = re.search(r"--only '(order:[^']+)'", report)
    if state != "failed" or not only or "broken: " not in report or counts["not_followed"]:
        return problem(name, f"not found\n{report}")
    _, counts, report = sweep_orders(f"{name} again", command, "--only", only[1])
    if counts.get("failed") != 1:
        problem(name, f"{only[1]} does not show it again\n{report}")


def finds_no_order(name, command, *options):
    """No order breaks the program. With a budget, some are left."""
    state, counts, report = sweep_orders(name, command, *options)
    if state == "failed" or counts.get("not_followed") or not counts.get("passed") or (state != "clean" and not options):
        problem(name, report)


def orders():
    print(f"{'program':<28} {'orders':>6} {'failing':>7} {'not followed':>13} {'runs/s':>9}", flush=True)
    kazoo, node = [sys.executable, HERE / "orders.py"], ["node", work.parent / "node" / "orders.js"]
    # After the orders with two changes, random ones: a program with locks has thousands.
    some = ["--time", 10, "--allow-untried", 1_000_000]
    for name in RACES:
        finds_order(f"kazoo {name}", [*kazoo, name], *some)
        finds_no_order(f"kazoo {name} sound", [*kazoo, name, "--sound"], *some)
    finds_no_order("kazoo lock", [*kazoo, "lock"], *some)
    for name in ["checkCreate", "takeTwice"]:
        finds_order(f"node {name}", [*node, name], *some)
        finds_no_order(f"node {name} sound", [*node, name, "--sound"], *some)
    finds_no_order("node lock", [*node, "lock"], *some)
    for version in versions:
        java = [*(work / f"java-{version}").read_text().splitlines(), "Orders"]
        finds_order(f"Curator {version} check", [*java, "check-create"], *some)
        finds_no_order(f"Curator {version} check sound", [*java, "check-create", "--sound"], *some)
        finds_no_order(f"Curator {version} mutex", [*java, "mutex"], *some)


def recipe_orders(version, recipe, seconds, changes, fields):
    """Sweeps the orders of a scenario of RecipeOrders.java, with all runs in one JVM. Prints a row."""
    command = (work / f"java-{version}").read_text().splitlines()
    # A latch that is closed while it begins logs errors that are none.
    command += ["-Dorg.apache.logging.log4j.level=OFF", "RecipeOrders", recipe]
    begun = time.monotonic()
    words = [*command, f"seconds={seconds}", f"changes={changes}", *fields]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "MINIKEEPER_BIN": minikeeper})
    seconds = time.monotonic() - begun
    (work / f"recipes-{recipe}.txt").write_text(done.stdout + done.stderr)
    summary = ORDERS.search(done.stdout)
    if not summary:
        return problem(recipe, f"no report; exit code {done.returncode}\n{done.stdout}{done.stderr}")
    tried, _, failed, hung, not_followed, runs = map(int, summary.groups()[1:])
    line = summary[0]

    def number(pattern, otherwise=0):
        found = re.search(pattern, done.stdout)
        return int(found[1]) if found else otherwise

    if "all orders:" in line:
        complete = "all"
    elif "all orders without" in line:
        complete = 0
    else:
        complete = number(r"all orders with at most (\d+)", "-")
    late = number(r"(\d+) requests? came later")
    different, random = number(r"(\d+) of them different"), number(r" (\d+) random one")
    figures = tried, different, complete, random, not_followed, late, failed + hung
    print(RECIPE_ROW.format(recipe, *figures, f"{runs / seconds:.1f}", f"{seconds:.0f} s"), flush=True)
    is_only = any(field.startswith("only=") for field in fields)
    is_complete = is_only and not not_followed and not late or complete == "all" or complete != "-" and complete >= int(changes)
    if recipe in RECIPES_THAT_FAIL:
        messages = re.findall(r"^\d+\. (.*)$", done.stdout, re.M)
        if not messages or not all(RECIPES_THAT_FAIL[recipe] in message for message in messages):
            problem(recipe, f"not found, or something else\n{done.stdout}")
    elif failed + hung or "not deterministic" in done.stdout:
        problem(recipe, done.stdout)
    elif not is_complete:
        problem(recipe, f"not every order with at most {changes} changes was tried\n{done.stdout}")


def recipes_in_orders(arguments):
    fields = [argument for argument in arguments if "=" in argument]
    words = [argument for argument in arguments if "=" not in argument]
    seconds, changes, *named = [*words, *["10", "2"][len(words) :]]
    header = "orders", "different", "changes", "random", "not followed", "late", "failing", "runs/s", "time"
    print(RECIPE_ROW.format("recipe", *header), flush=True)
    for version in versions:
        for recipe in named or [*RECIPES_THAT_FAIL, *RECIPES_IN_ORDERS]:
            recipe_orders(version, recipe, seconds, changes, fields)


def row(result, found, reproduced):
    left = f"  not reached: {', '.join(result['unreached'])}" if result["unreached"] else ""
    print(ROW.format(result["name"], *result["figures"], found, reproduced) + left, flush=True)


def problem(name, what):
    problems.append(name)
    print(f"FAIL {name}: {what}", flush=True)


def finds_bug(name, command, point, is_bug, **limits):
    """`is_bug` tells from a point and the output of the run whether it shows the bug."""
    result = sweep(name, command, **limits)
    if not result:
        return
    if point not in result["failing"]:
        problem(name, f"not found: {point}\n{result['report']}")
    for failing, output in result["outputs"].items():
        if not is_bug(failing, output):
            problem(name, f"found what is not the bug: {failing}\n{output}")
    reproduced = "no"
    if shows_again(result, point):
        reproduced = "yes"
    if reproduced == "no":
        problem(name, f"the printed command does not show {point} again")
    others = len(result["failing"]) - 1
    row(result, point + (f" +{others}" if others > 0 else ""), reproduced)


def finds_nothing(name, command, **limits):
    result = sweep(name, command, **limits)
    if not result:
        return
    row(result, ", ".join(result["failing"]) or "-", "-")
    if result["code"] != 0:
        problem(name, f"exit code {result['code']}\n{result['report']}")


def faults(wanted):
    """Sweeps the programs that only one fault breaks, each with that fault and with those that were known before."""
    known = ["reply-lost", "request-lost", "connection-cut", "session-expired", "reply-late", "server-restarted", "event-late"]
    commands = {
        "python": [sys.executable],
        "node": ["node"],
        "java": (work / f"java-{versions[-1]}").read_text().splitlines(),
    }
    folders = {"python": HERE / "faults", "node": work.parent / "node", "java": ""}
    limits = {"budget": 900, "run_time": 40, "jobs": 4}
    for program in json.loads((HERE / "faults" / "programs.json").read_text()):
        name, language, fault = program["name"], program["language"], program["fault"]
        if wanted and name not in wanted:
            continue
        file, *rest = program["command"]
        command = [*commands[language], str(Path(folders[language]) / file), *rest]
        is_bug = lambda _, output: "broken: " in output
        result = sweep(name, command, faults=[fault], options=["--outage-ms", 2_000], **limits)
        if result:
            found = result["failing"]
            row(result, ", ".join(found), "yes" if found and shows_again(result, found[0]) else "no")
            if not found or not all(is_bug(None, output) for output in result["outputs"].values()):
                problem(name, f"not found, or not as it should be\n{result['report']}")
        finds_nothing(f"{name} before", command, faults=known, **limits)
        finds_nothing(f"{name} sound", [*command, "--sound"], faults=["all"], options=["--outage-ms", 2_000], **limits)
        # The others wait for their server for as long as it takes.
        if program.get("gives_up"):
            forever = {"faults": ["outage"], "options": ["--outage-ms", "forever"], **limits}
            finds_nothing(f"{name} forever", [*command, "--sound"], **forever)


def names(rounds, wanted):
    """Prints for each naming scheme how often its bug is found, the printed command shows it, and the sound version is clean."""
    print("| scheme | template | bug found | by its command | sound and all reached |", flush=True)
    for scheme in json.loads((HERE / "naming-schemes.json").read_text()):
        name, template = scheme["name"], scheme["template"]
        if wanted not in name:
            continue
        command = [sys.executable, HERE / "naming.py", template]
        limits = {"faults": ["reply-lost", "event-late"], "budget": 300}
        folder = "names-" + re.sub(r"\W+", "-", name)
        found = again = clean = 0
        for _ in range(rounds):
            result = sweep(folder, command, **limits)
            # What it says then is the bug, and nothing else.
            bugs = [point for point in result["failing"] if point.endswith("/result-")] if result else []
            is_found = bool(bugs) and not result["unreached"] and result["code"] == 1
            is_again = is_found and shows_again(result, bugs[0])
            found, again = found + is_found, again + is_again
            if not is_again:
                problem(name, f"not found or not shown again\n{result and result['report']}")
            result = sweep(f"{folder}-sound", [*command, "--sound"], **limits)
            is_clean = bool(result) and result["code"] == 0 and not result["unreached"]
            clean += is_clean
            if not is_clean:
                problem(name, f"sound, and not clean\n{result and result['report']}")
        print(f"| {name} | `{template}` | {found} of {rounds} | {again} of {rounds} | {clean} of {rounds} |", flush=True)


def shows_again(result, point):
    """Runs the printed command as a person does: the line is pasted into a shell."""
    if not result["again"]:
        return False
    path = f"{Path(minikeeper).parent}{os.pathsep}{os.environ['PATH']}"
    again = subprocess.run(
        result["again"].replace("{}", point),
        shell=True,
        cwd=work,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return again.returncode == 1 and point in again.stdout


def main():
    if mode == "names":
        names(int(recipes[0]) if recipes else 1, recipes[1] if len(recipes) > 1 else "")
        print(f"sweep: {len(problems)} problems", flush=True)
        sys.exit(bool(problems))
    if mode == "orders":
        orders()
        print(f"sweep: {len(problems)} problems", flush=True)
        sys.exit(bool(problems))
    if mode == "faults":
        print(ROW.format("program", "points", "faults", "runs", "time", "found", "reproduced"), flush=True)
        faults(recipes)
        print(f"sweep: {len(problems)} problems", flush=True)
        sys.exit(bool(problems))
    if mode == "recipes":
        recipes_in_orders(recipes)
        print(f"sweep: {len(problems)} problems", flush=True)
        sys.exit(bool(problems))
    print(ROW.format("program", "points", "faults", "runs", "time", "found", "reproduced"), flush=True)
    if mode != "curator":
        for name in QUICK if mode == "gate" else BUGS:
            command = [sys.executable, HERE / f"{name}.py"]
            finds_bug(name, command, BUGS[name], lambda _, output: "\nbroken: " in f"\n{output}")
            finds_nothing(f"{name} sound", [*command, "--sound"])
    for version in versions if mode != "gate" else ():
        command = [*(work / f"java-{version}").read_text().splitlines(), "Recipes"]
        for recipe in ["mutex"] if mode == "bugs" else recipes or RECIPES:
            name, words = f"Curator {version} {recipe}", [*command, recipe]
            limit = LIMITS.get(f"{version} {recipe}") or LIMITS.get(recipe)
            # A run mostly waits: ZooKeeper's client connects again after up to a second.
            if limit:
                point, pattern, message = limit
                is_limit = lambda found, output: re.fullmatch(pattern, found) and message in output
                finds_bug(name, words, point, is_limit, jobs=8, budget=1200, run_time=60)
            else:
                finds_nothing(name, words, jobs=8, budget=1200, run_time=60)
    print(f"sweep: {len(problems)} problems", flush=True)
    sys.exit(bool(problems))


if __name__ == "__main__":
    minikeeper, work, mode, versions = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4].split()
    recipes = sys.argv[5:]
    main()

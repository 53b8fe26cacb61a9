"""The rule of sweeps: whatever the names of znodes look like that a program makes, the points behind them are tried.

A planted bug behind such a name is found, and a sound program has every point tried. MINIKEEPER_SWEEP_NAMES=5 does each
naming scheme five times.
"""

import json
import os
import pathlib
import re

import pytest

pytest_plugins = ["pytester"]

PATIENCE_S = 1_200
FILE = pathlib.Path(__file__).parents[4] / "tests" / "interop" / "sweep" / "naming-schemes.json"
ROUNDS = int(os.environ.get("MINIKEEPER_SWEEP_NAMES", 0))
SCHEMES = json.loads(FILE.read_text())
if not ROUNDS:
    SCHEMES = [one for one in SCHEMES if one["name"] in ("uuid behind node-", "worker-62", "random parent and child")]

CODE = r'''
import json, os, random, re, string, time, uuid
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

SCHEMES = json.loads(os.environ["SCHEMES"])
HEX, CROCKFORD = "0123456789abcdef", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LETTERS = {
    "hex": HEX, "HEX": HEX.upper(), "dec": string.digits, "lower": string.ascii_lowercase,
    "base32": string.ascii_uppercase + "234567", "base36": string.digits + string.ascii_lowercase,
    "base62": string.digits + string.ascii_letters, "base64url": string.digits + string.ascii_letters + "-_",
    "crockford": CROCKFORD,
}

def made(kind, argument=""):
    ms = time.time_ns() // 1_000_000
    some = lambda letters, count: "".join(random.choices(letters, k=int(count)))
    if kind in LETTERS:
        return some(LETTERS[kind], argument)
    return str({
        "uuid": uuid.uuid4,
        "iso": lambda: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03}Z",
        "epoch_ms": lambda: ms,
        "epoch_s": lambda: ms // 1000,
        "pid": os.getpid,
        "pick": lambda: random.choice(argument.split("|")),
        "int": lambda: random.randint(*map(int, argument.split("-"))),
        "ulid": lambda: "".join(CROCKFORD[ms >> shift & 31] for shift in range(45, -1, -5)) + some(CROCKFORD, 16),
        "snowflake": lambda: ms - 1288834974657 << 22 | random.getrandbits(22),
    }[kind]())

def work(minikeeper, number, is_sound):
    name = re.sub(r"\{(.*?)\}", lambda match: made(*match[1].split(":", 1)), SCHEMES[number]["template"])
    minikeeper.seed({"/jobs": ""})
    again = {"max_tries": -1, "delay": 0.01}
    client = KazooClient(minikeeper.connect_string, connection_retry=again, command_retry=again)
    client.start_async().wait(15)

    def create(path, **options):
        try:
            client.retry(client.create, path, **options)
        except NodeExistsError:
            pass

    try:
        job = "/jobs/" + name
        if "/" in name:
            create("/jobs/" + name.partition("/")[0])
        client.retry(client.exists, job, watch=lambda event: None)
        create(job)
        if is_sound:
            create(job + "/result")
        else:
            # The bug: again after a lost reply.
            create(job + "/result-", sequence=True)
        assert len(minikeeper.children(job)) == 1, "two results"
        client.retry(client.get, job)
    finally:
        client.stop()
        client.close()

@pytest.mark.parametrize("number", range(len(SCHEMES)))
@pytest.mark.minikeeper_sweep(faults="reply-lost")
def test_planted(minikeeper, number):
    work(minikeeper, number, False)

@pytest.mark.parametrize("number", range(len(SCHEMES)))
@pytest.mark.minikeeper_sweep(faults="reply-lost,event-late")
def test_sound(minikeeper, number):
    work(minikeeper, number, True)
'''


@pytest.mark.parametrize("round", range(ROUNDS or 1))
def test_points_behind_names_of_every_scheme_are_tried(pytester, monkeypatch, round):
    monkeypatch.setenv("SCHEMES", json.dumps(SCHEMES))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(test_it=CODE)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q", "--minikeeper-stories", "off", timeout=PATIENCE_S)
    printed = result.stdout.str()
    missed = []
    for number, scheme in enumerate(SCHEMES):
        test = rf"test_it\.py::test_planted\[{number}\]"
        summaries = re.findall(rf"^test_it\.py::test_(?:planted|sound)\[{number}\]: .*$", printed, re.M)
        if not re.search(rf"pytest '{test}' --minikeeper-only 'reply-lost:1:create:\d+:/jobs/\S*/result-", printed):
            missed.append((scheme["name"], "the bug was not found", *summaries))
        clean = rf"^test_it\.py::test_sound\[{number}\]: clean: (\d+) of \1 points tried: \1 passed, "
        if not re.search(clean, printed, re.M):
            missed.append((scheme["name"], "not every point was tried", *summaries))
    print(*re.findall(r"^test_it.*$", printed, re.M), sep="\n")
    assert not missed, "\n".join(map(str, missed))

"""Compares the answers of two AdminServers, and the metrics of minikeeper with the kinds that ZooKeeper registers.

compare.py CLIENTS_OF_ZOOKEEPER ADMIN_SERVER_OF_ZOOKEEPER MINIKEEPER [-v]
"""

import http.client
import json
import re
import sys

from kazoo.client import KazooClient
from prometheus_client.parser import text_string_to_metric_families

COMMANDS = {
    "configuration": ["conf", "config"],
    "connection_stat_reset": ["crst"],
    "connections": ["cons"],
    "dirs": [],
    "dump": [],
    "environment": ["env", "envi"],
    "get_trace_mask": ["gtmk"],
    "hash": [],
    "initial_configuration": ["icfg"],
    "is_read_only": ["isro"],
    "last_snapshot": ["lsnp"],
    "leader": ["lead"],
    "monitor": ["mntr"],
    "observer_connection_stat_reset": ["orst"],
    "observers": ["obsr"],
    "restore": ["rest"],
    "ruok": [],
    "server_stats": ["srvr"],
    "set_trace_mask": ["stmk"],
    "set_trace_mask?traceMask=306": ["stmk?traceMask=306"],
    "set_trace_mask?traceMask=x": [],
    "snapshot": ["snap"],
    "stats": ["stat"],
    "stat_reset": ["srst"],
    "system_properties": ["sysp"],
    "voting_view": [],
    "watch_summary": ["wchs"],
    "watches": ["wchc"],
    "watches_by_path": ["wchp"],
    "zabstate": [],
    "nope": [],
    "nope%22%20x": [],
    "ruok/": [],
    "RUOK": [],
}

# Requests with other methods: method and command.
METHODS = [
    ("HEAD", "ruok"),
    ("POST", "ruok"),
    ("POST", "restore"),
    ("POST", "nope"),
    ("PUT", "ruok"),
    ("DELETE", "ruok"),
    ("OPTIONS", "ruok"),
    ("TRACE", "ruok"),
]

# Where minikeeper differs on purpose: a pattern of "REQUEST: KEY", and the reason.
DELIBERATE = [
    (r"(system_properties|sysp): .*", "there is no JVM; only the properties of the host"),
    (
        r"(monitor|mntr): [a-z]+_(a|zookeeper)_(read|write)_per_namespace",
        "sizes of reads and writes by child of the root are not measured",
    ),
    (r"POST ruok: status", "ZooKeeper fails with status 500, a null pointer; here 405"),
    (r"OPTIONS ruok: status", "no web page of another site is served; 405"),
    (r"TRACE ruok: status", "405 like every other method; ZooKeeper 403"),
]

failed = []
equal = 0
deliberate = {}


def differs(where, what):
    for pattern, reason in DELIBERATE:
        if re.fullmatch(pattern, where):
            deliberate.setdefault(reason, []).append(f"{where}: {what}")
            return
    failed.append(f"{where}: {what}")


def check(where, theirs, ours):
    global equal
    if theirs == ours:
        equal += 1
    else:
        differs(where, f"ZooKeeper {theirs}, minikeeper {ours}")


def ask(address, method, path):
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("Content-Type", ""), body


def type_of(value):
    if value is None:
        return "null"
    return {bool: "boolean", int: "integer", float: "double", str: "string"}[type(value)]


def keys(value, prefix=""):
    """Yields each key path of a JSON value with its type. Ids, times and paths as keys count as one."""
    if isinstance(value, dict):
        yield prefix or ".", "object"
        for key, inner in value.items():
            key = "NUMBER" if re.fullmatch(r"-?\d+", key) else "PATH" if key.startswith("/") else key
            yield from keys(inner, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, list):
        yield prefix, "array"
        for inner in value:
            yield from keys(inner, f"{prefix}[]")
    else:
        yield prefix, type_of(value)


def load(address):
    """Makes the same load on a server. Returns its clients, whose sessions are still open."""
    clients = []
    for _ in range(2):
        client = KazooClient(hosts=address, timeout=10)
        client.start(timeout=10)
        clients.append(client)
    one, two = clients
    one.create("/a", b"x")
    one.create("/a/ephemeral", b"1", ephemeral=True)
    two.create("/a/sequential-", b"2", sequence=True)
    one.ensure_path("/zookeeper/quota/a")
    one.create("/zookeeper/quota/a/zookeeper_limits", b"count=100,bytes=10000")
    one.create("/zookeeper/quota/a/zookeeper_stats", b"count=0,bytes=0")
    for number in range(300):
        one.set("/a", b"%d" % number)
        two.get("/a")
    for client in clients:
        client.get("/a", watch=lambda event: None)
        client.exists("/absent", watch=lambda event: None)
        client.get_children("/a", watch=lambda event: None)
    return clients


def compare_commands(theirs, ours):
    kinds = {}
    requests = [(name, "GET", f"/commands/{name}") for main, others in COMMANDS.items() for name in [main, *others]]
    requests += [(f"{method} {name}", method, f"/commands/{name}") for method, name in METHODS]
    for name, method, path in requests:
        (their_status, their_type, their_body), (our_status, our_type, our_body) = (
            ask(address, method, path) for address in (theirs, ours)
        )
        check(f"{name}: status", their_status, our_status)
        if their_status != our_status or method == "HEAD" or their_type != "application/json":
            continue
        check(f"{name}: Content-Type", their_type, our_type)
        their_keys, our_keys = (dict(keys(json.loads(body))) for body in (their_body, our_body))
        for key in list(their_keys):
            if key.startswith("kind of "):
                kinds[key.removeprefix("kind of ")] = json.loads(their_body)[key]
                del their_keys[key]
        for key in sorted(their_keys.keys() | our_keys.keys()):
            check(f"{name}: {key}", their_keys.get(key, "absent"), our_keys.get(key, "absent"))
        for key in ("command", "error"):
            their_text, our_text = (json.loads(body).get(key) for body in (their_body, our_body))
            check(f"{name}: value of {key}", their_text, our_text)
    for path in ("/commands", "/commands/"):
        their_list, our_list = (ask(address, "GET", path)[2].splitlines() for address in (theirs, ours))
        check(f"{path}: lines", their_list, our_list)
    return kinds


# What ZooKeeper's PrometheusMetricsProvider makes of each kind: type, quantiles, whether there is the label `key`.
EXPOSED = {
    "gauge": ("gauge", [], False),
    "gauge with labels": ("gauge", [], True),
    "counter": ("counter", [], False),
    "counter with labels": ("counter", [], True),
    "summary": ("summary", ["0.5"], False),
    "summary with labels": ("summary", ["0.5"], True),
    "summary with quantiles": ("summary", ["0.5", "0.9", "0.99"], False),
    "summary with quantiles and labels": ("summary", ["0.5", "0.9", "0.99"], True),
}


def compare_metrics(kinds, ours):
    status, content_type, text = ask(ours, "GET", "/metrics")
    check("/metrics: status", 200, status)
    check("/metrics: Content-Type", "text/plain; version=0.0.4; charset=utf-8", content_type)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample.labels)
    own = {name for name in types if name.startswith("process_")}
    for name in sorted(kinds.keys() | types.keys() - own):
        if name not in kinds:
            differs(f"/metrics: {name}", "ZooKeeper does not register it")
            continue
        kind, quantiles, has_label = EXPOSED[kinds[name]]
        check(f"/metrics: type of {name}", kind, types.get(name, "absent"))
        if has_label:
            labels = {tuple(labels) for labels in samples.get(name, [])} - {("key",)}
            check(f"/metrics: labels of {name}", set(), labels)
        elif kind == "summary":
            found = [labels.get("quantile") for labels in samples.get(name, [])]
            check(f"/metrics: quantiles of {name}", quantiles, found)
            check(f"/metrics: count of {name}", [{}], samples.get(f"{name}_count"))
            check(f"/metrics: sum of {name}", [{}], samples.get(f"{name}_sum"))
        else:
            # The parser gives counters the suffix of OpenMetrics.
            check(f"/metrics: samples of {name}", [{}], samples.get(name) or samples.get(f"{name}_total"))
    return len(kinds), len(own)


def compare_values(theirs, ours):
    """Figures that the same load determines."""
    their_monitor, our_monitor = (json.loads(ask(address, "GET", "/commands/monitor")[2]) for address in (theirs, ours))
    metrics = {
        sample.name: sample.value
        for family in text_string_to_metric_families(ask(ours, "GET", "/metrics")[2])
        for sample in family.samples
        if not sample.labels
    }
    for name in (
        "znode_count", "watch_count", "ephemerals_count", "approximate_data_size", "global_sessions", "num_alive_connections",
        "a_quota_count_limit_per_namespace", "a_quota_bytes_limit_per_namespace",
        "a_quota_count_usage_per_namespace", "a_quota_bytes_usage_per_namespace",
    ):
        check(f"value of {name}", their_monitor.get(name), our_monitor.get(name))
        if name in metrics:
            check(f"/metrics: value of {name}", float(our_monitor[name]), metrics[name])


def main():
    clients_of_theirs, theirs, ours = sys.argv[1:4]
    clients = load(clients_of_theirs) + load(ours)
    compare_values(theirs, ours)
    kinds = compare_commands(theirs, ours)
    names, own = compare_metrics(kinds, ours)
    for client in clients:
        client.stop()
        client.close()
    for reason, places in deliberate.items():
        print(f"# {len(places)} deliberate differences: {reason}")
        if "-v" in sys.argv:
            for place in places:
                print(f"#   {place}")
    for _, reason in DELIBERATE:
        if reason not in deliberate:
            failed.append(f"no longer differs: {reason}")
    for line in failed:
        print(f"FAIL admin {line}")
    count = sum(len(places) for places in deliberate.values())
    print(f"admin: {names} metrics of ZooKeeper, {own} of the process")
    print(f"admin: {equal} equal, {count} different on purpose, {len(failed)} different")
    sys.exit(1 if failed else 0)


main()

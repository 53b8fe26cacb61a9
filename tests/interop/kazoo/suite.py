"""kazoo's client and recipes against the server at HOST:PORT, the only argument."""

import contextlib
import logging
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
)
from kazoo.security import make_acl, make_digest_acl

CONTENDERS = 8
WAIT_S = 60
CONNECT_S = 20
# More than the maximum of any server in these tests.
SESSION_TIMEOUT_S = 10.0
# Short enough to wait for, long enough not to expire by accident on a busy machine.
VICTIM_TIMEOUT_S = 1.0
# How much later than its deadline a session may expire: a tick, and the delays of a busy machine.
EXPIRY_SLACK_S = 3.0
# Leaves out every lock, to show that the checks notice.
PLANT_NOLOCK = os.environ.get("INTEROP_PLANT") == "nolock"
# Lets the victim close its session, to show that the check of the killed holder notices.
PLANT_GOODBYE = os.environ.get("INTEROP_PLANT") == "goodbye"

# The folder of the certificates, if the server serves TLS only.
TLS = os.environ.get("INTEROP_TLS")
SUITE = "kazoo-tls" if TLS else "kazoo"
CLIENT_OPTIONS = {
    "use_ssl": True,
    "verify_certs": True,
    "ca": f"{TLS}/ca.pem",
    "certfile": f"{TLS}/client.pem",
    "keyfile": f"{TLS}/client.key",
} if TLS else {}
# The number of concurrent reads, and the time limit for them. When several frames came in one TLS record, kazoo waited for
# its next ping between any two.
READS_AT_ONCE = 200
READS_S = 3

address = ""


class CheckFailed(Exception):
    """A failed check. Its text is printed."""


def require(holds, text):
    if not holds:
        raise CheckFailed(text)


@contextlib.contextmanager
def client(timeout=SESSION_TIMEOUT_S):
    one = KazooClient(hosts=address, timeout=timeout, **CLIENT_OPTIONS)
    one.start(timeout=CONNECT_S)
    try:
        yield one
    finally:
        one.stop()
        one.close()


@contextlib.contextmanager
def clients(count):
    with contextlib.ExitStack() as stack:
        all_clients = [stack.enter_context(client()) for _ in range(count)]
        sessions = {one.client_id[0] for one in all_clients}
        require(len(sessions) == count, f"contenders share a session: {len(sessions)} ids")
        yield all_clients


def fresh_path():
    """Returns a path that no other check and no earlier run against the same server has used."""
    return f"/interop/kazoo/{uuid.uuid4()}"


def wait_for(what, condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        require(time.monotonic() < deadline, f"waited {WAIT_S} s for {what}")
        time.sleep(0.005)


def next_of(events, what):
    try:
        return events.get(timeout=WAIT_S)
    except queue.Empty:
        raise CheckFailed(f"waited {WAIT_S} s for {what}") from None


def together(bodies, waiting_for):
    """Runs all bodies at once and raises the first failure of any."""
    failures = queue.SimpleQueue()

    def guarded(body):
        try:
            body()
        except Exception as failure:  # the check reports any failure
            failures.put(failure)

    threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + WAIT_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if not failures.empty():
            raise failures.get()
        require(not thread.is_alive(), f"waited {WAIT_S} s for {waiting_for}")


class Section:
    """A critical section that detects too many holders."""

    def __init__(self):
        self.gauge = threading.Lock()
        self.inside = 0
        self.inside_max = 0
        self.entries = 0
        # Read and written in two steps with a round trip between them: only the recipe under test makes them atomic.
        self.counter = 0

    def visit(self, one, round_trips=1):
        with self.gauge:
            self.inside += 1
            self.entries += 1
            self.inside_max = max(self.inside_max, self.inside)
        read = self.counter
        for _ in range(round_trips):
            one.exists("/")
        self.counter = read + 1
        with self.gauge:
            self.inside -= 1

    def verdict(self, entries, holders_max):
        require(self.entries == entries, f"{self.entries} entries of {entries}")
        require(
            self.inside_max <= holders_max,
            f"{self.inside_max} holders at once, counter {self.counter} of {entries}",
        )
        if holders_max == 1:
            require(self.counter == entries, f"counter {self.counter} of {entries}")
        return f"counter {self.counter if holders_max == 1 else self.entries}, max holders {self.inside_max}"


def connection():
    with client() as one:
        return f"session {one.client_id[0]:#x}"


def basics():
    path = fresh_path()
    with client() as one:
        require(one.create(path, b"first", makepath=True) == path, "create returned another path")
        data, stat = one.get(path)
        require((data, stat.version, stat.ephemeralOwner) == (b"first", 0, 0), f"get: {data} {stat}")
        stat = one.set(path, b"second", version=0)
        require((stat.version, stat.dataLength) == (1, 6), f"set: {stat}")
        expect(BadVersionError, lambda: one.set(path, b"third", version=0))
        expect(NodeExistsError, lambda: one.create(path, b""))
        one.create(f"{path}/child", b"")
        expect(NotEmptyError, lambda: one.delete(path))
        require(one.exists(path).numChildren == 1, "a parent without its child")
        _, stat = one.create(f"{path}/with-stat", b"abc", include_data=True)
        require((stat.version, stat.dataLength) == (0, 3), f"create with stat: {stat}")
        one.delete(path, recursive=True)
        expect(NoNodeError, lambda: one.get(path))
        require(one.exists(path) is None, "exists after delete")
        one.sync("/")
        return "create, get, set, delete, recursive delete and their errors"


def expect(error, body):
    try:
        body()
    except error:
        return
    raise CheckFailed(f"no {error.__name__}")


def reads_at_once():
    path = fresh_path()
    with client() as one:
        one.ensure_path(path)
        one.set(path, b"x" * 100)
        began = time.monotonic()
        reads = [one.get_async(path) for _ in range(READS_AT_ONCE)]
        for read in reads:
            read.get(timeout=WAIT_S)
        took = time.monotonic() - began
        require(took < READS_S, f"{READS_AT_ONCE} reads took {took:.1f} s of {READS_S}")
        return f"{READS_AT_ONCE} replies"


def sequential():
    path = fresh_path()
    with client() as one:
        one.ensure_path(path)
        names = [one.create(f"{path}/n-", b"", sequence=True) for _ in range(3)]
        wanted = [f"{path}/n-{i:010d}" for i in range(3)]
        require(names == wanted, f"names {names}")
        one.delete(names[-1])
        after = one.create(f"{path}/n-", b"", sequence=True)
        require(after == f"{path}/n-{3:010d}", f"a deleted suffix came back: {after}")
        return "suffixes 0 to 3, none reused"


def ephemeral_close():
    path = fresh_path()
    with client() as watcher:
        watcher.ensure_path(path)
        with client() as owner:
            owner.create(f"{path}/e", b"", ephemeral=True)
            stat = watcher.exists(f"{path}/e")
            require(stat.ephemeralOwner == owner.client_id[0], f"owner {stat.ephemeralOwner:#x}")
            gone = queue.Queue()
            watcher.exists(f"{path}/e", watch=gone.put)
        event = next_of(gone, "the deletion event of a closed session's ephemeral")
        require((event.type, event.path) == ("DELETED", f"{path}/e"), f"event {event}")
        return "owner is the session, gone with a deletion event when it closes"


def transaction():
    path = fresh_path()
    with client() as one:
        one.create(path, b"0", makepath=True)
        good = one.transaction()
        good.check(path, version=0)
        good.create(f"{path}/a", b"a")
        good.set_data(path, b"1", version=0)
        good.delete(f"{path}/a", version=0)
        good.create(f"{path}/b-", b"", sequence=True)
        results = good.commit()
        require(results[0] is True and results[3] is True, f"results {results}")
        require(results[1] == f"{path}/a" and results[2].version == 1, f"results {results}")
        require(results[4].startswith(f"{path}/b-000"), f"results {results}")

        bad = one.transaction()
        bad.create(f"{path}/never", b"")
        bad.check(path, version=77)
        bad.create(f"{path}/after", b"")
        results = bad.commit()
        kinds = [type(result).__name__ for result in results]
        require(
            kinds == ["RolledBackError", "BadVersionError", "RuntimeInconsistency"],
            f"failed transaction: {kinds}",
        )
        require(isinstance(results[0], RolledBackError), f"results {results}")
        require(one.exists(f"{path}/never") is None, "a failed transaction left a node")
        return "5 operations together; a failed check rolls back the one before it"


def access_lists():
    path = fresh_path()
    with client() as owner, client() as stranger:
        owner.add_auth("digest", "bob:secret")
        mine = make_digest_acl("bob", "secret", all=True)
        owner.create(path, b"d", acl=[mine], makepath=True)
        require(owner.get(path)[0] == b"d", "the owner may read")
        expect(NoAuthError, lambda: stranger.get(path))
        expect(NoAuthError, lambda: stranger.set(path, b"x"))
        stranger.add_auth("digest", "bob:wrong")
        expect(NoAuthError, lambda: stranger.get(path))
        stranger.add_auth("digest", "bob:secret")
        require(stranger.get_acls(path)[0] == [mine], "the list is returned unchanged")
        owner.set_acls(path, [make_acl("world", "anyone", read=True), mine])
        with client() as reader:
            require(reader.get(path)[0] == b"d", "all clients may read now")
            shown = reader.get_acls(path)[0]
            require(shown[1].id.id == "bob:x", f"a stranger sees {shown[1].id.id}")
    return "a digest list keeps others out until they log in, and hides its hash from them"


def four_letter_words():
    with client() as one:
        answer = one.command(b"ruok")
        require(answer == "imok", f"ruok: {answer!r}")
        version = one.server_version()
        require(version >= (3, 4), f"server_version {version}")
        return f"ruok, server_version {'.'.join(map(str, version))} from envi"


def session_resumed():
    path = fresh_path()
    with client() as one, client() as other:
        one.create(path, b"before", makepath=True)
        session = one.client_id[0]
        seen = queue.Queue()
        states = queue.Queue()
        one.DataWatch(path, lambda data, stat: seen.put(data))
        require(next_of(seen, "the first value") == b"before", "another first value")
        one.add_listener(states.put)
        # The client loses its connection and resumes its session. It does not register its watches again: the recipe
        # reads again instead.
        one._connection._socket.shutdown(socket.SHUT_RDWR)
        require(next_of(states, "the loss of the connection") == "SUSPENDED", "not suspended")
        other.set(path, b"after")
        require(next_of(states, "the reconnect") == "CONNECTED", "session lost")
        while (value := next_of(seen, "the change made while disconnected")) != b"after":
            require(value == b"before", f"value {value}")
        require(one.client_id[0] == session, "another session after the reconnect")
        return "same session after a lost connection, DataWatch reports the change missed meanwhile"


def lock():
    path, acquisitions, section = fresh_path(), 25, Section()
    with clients(CONTENDERS) as contenders:

        def contend(one):
            mutex = one.Lock(path, "contender")
            for _ in range(acquisitions):
                if PLANT_NOLOCK:
                    section.visit(one)
                    continue
                require(mutex.acquire(timeout=WAIT_S), f"waited {WAIT_S} s for the lock")
                section.visit(one)
                mutex.release()

        together([lambda one=one: contend(one) for one in contenders], "all contenders to finish")
    verdict = section.verdict(CONTENDERS * acquisitions, 1)
    return f"{CONTENDERS} contenders x {acquisitions} acquisitions, {verdict}"


def lock_order():
    path = fresh_path()
    order = queue.Queue()
    with clients(4) as contenders:
        locks = [one.Lock(path, f"contender-{i}") for i, one in enumerate(contenders)]
        require(locks[0].acquire(timeout=WAIT_S), "the first contender has no rival")

        def contend(i):
            require(locks[i].acquire(timeout=WAIT_S), f"waited {WAIT_S} s for the lock")
            order.put(i)
            locks[i].release()

        threads = []
        for i in range(1, 4):
            threads.append(threading.Thread(target=contend, args=(i,), daemon=True))
            threads[-1].start()
            # One after the other, since the order of the queue would otherwise be random.
            wait_for(f"contender {i} to queue", lambda i=i: len(locks[0].contenders()) == i + 1)
        listed = locks[0].contenders()
        require(listed == [f"contender-{i}" for i in range(4)], f"contenders {listed}")
        require(not contenders[1].Lock(path).acquire(blocking=False), "taken without waiting while held")
        locks[0].release()
        taken = [next_of(order, "the next contender") for _ in range(3)]
        require(taken == [1, 2, 3], f"taken in the order {taken}")
        for thread in threads:
            thread.join(WAIT_S)
        return "contenders listed and served in order of arrival"


def semaphore():
    path, acquisitions, leases, section = fresh_path(), 10, 3, Section()
    with clients(CONTENDERS) as contenders:

        def contend(one):
            permits = one.Semaphore(path, "contender", max_leases=leases)
            for _ in range(acquisitions):
                if PLANT_NOLOCK:
                    section.visit(one)
                    continue
                require(permits.acquire(timeout=WAIT_S), f"waited {WAIT_S} s for a lease")
                # Holds long enough for others to enter: acquiring a lease takes many round trips.
                section.visit(one, round_trips=30)
                permits.release()

        together([lambda one=one: contend(one) for one in contenders], "all contenders to finish")

        held = [contenders[i].Semaphore(path, f"holder-{i}", max_leases=leases) for i in range(leases)]
        for one in held:
            require(one.acquire(timeout=WAIT_S), f"waited {WAIT_S} s for a lease")
        holders = sorted(held[0].lease_holders())
        require(holders == [f"holder-{i}" for i in range(leases)], f"lease holders {holders}")
        fourth = contenders[leases].Semaphore(path, "fourth", max_leases=leases)
        require(not fourth.acquire(blocking=False), f"a lease beyond {leases}")
        held[0].release()
        require(fourth.acquire(timeout=WAIT_S), "a returned lease is not passed on")
    verdict = section.verdict(CONTENDERS * acquisitions, leases)
    return f"{CONTENDERS} contenders x {acquisitions} acquisitions, {verdict}, a fourth lease refused"


def election():
    path, terms, section = fresh_path(), 5, Section()
    with clients(CONTENDERS) as contenders:

        def stand(i, one):
            race = one.Election(path, f"candidate-{i}")
            for _ in range(terms):
                if PLANT_NOLOCK:
                    section.visit(one)
                else:
                    race.run(section.visit, one)

        together(
            [lambda i=i, one=one: stand(i, one) for i, one in enumerate(contenders)],
            "all candidates to have led",
        )
    verdict = section.verdict(CONTENDERS * terms, 1)
    return f"{CONTENDERS} candidates x {terms} terms, {verdict}"


def counter():
    path = fresh_path()
    with clients(4) as contenders:

        def increment(one):
            shared = one.Counter(path)
            for _ in range(25):
                shared += 1

        together([lambda one=one: increment(one) for one in contenders], "all increments")
        value = contenders[0].Counter(path).value
    require(value == 100, f"value {value} of 100")
    return "4 clients x 25 increments, value 100"


def data_watch():
    path = fresh_path()
    seen = queue.Queue()
    with client() as one, client() as other:
        other.ensure_path("/interop/kazoo")
        one.DataWatch(path, lambda data, stat, event: seen.put((data, event and event.type)))
        steps = [
            ((None, None), None),
            ((b"0", "CREATED"), lambda: other.create(path, b"0")),
            ((b"1", "CHANGED"), lambda: other.set(path, b"1")),
            ((b"2", "CHANGED"), lambda: other.set(path, b"2")),
            ((None, "DELETED"), lambda: other.delete(path)),
            ((b"3", "CREATED"), lambda: other.create(path, b"3")),
        ]
        for wanted, change in steps:
            if change:
                change()
            got = next_of(seen, f"the watch to report {wanted}")
            require(got == wanted, f"watch reported {got} for {wanted}")
        require(seen.empty(), "more events than changes")
    return "absence, creation, 2 changes, deletion, new creation"


def children_watch():
    path = fresh_path()
    seen = queue.Queue()
    with client() as one, client() as other:
        other.ensure_path(path)
        one.ChildrenWatch(path, lambda children: seen.put(sorted(children)))
        steps = [
            ([], None),
            (["a"], lambda: other.create(f"{path}/a", b"")),
            (["a", "b"], lambda: other.create(f"{path}/b", b"", ephemeral=True)),
            (["b"], lambda: other.delete(f"{path}/a")),
            ([], other.stop),
        ]
        for wanted, change in steps:
            if change:
                change()
            got = next_of(seen, f"the watch to list {wanted}")
            require(got == wanted, f"watch listed {got} for {wanted}")
    return "2 creations, a deletion, an ephemeral gone with its session"


def barriers():
    path = fresh_path()
    inside = queue.Queue()
    with clients(3) as members:
        gate = members[0].Barrier(f"{path}/gate")
        gate.create()
        require(not members[1].Barrier(f"{path}/gate").wait(0.2), "through a closed barrier")

        def walk(one):
            require(one.Barrier(f"{path}/gate").wait(WAIT_S), f"waited {WAIT_S} s for the barrier to open")
            double = one.DoubleBarrier(f"{path}/double", 2)
            double.enter()
            inside.put(one)
            double.leave()

        opener = threading.Thread(target=gate.remove, daemon=True)
        opener.start()
        together([lambda one=one: walk(one) for one in members[1:]], "both members to pass")
        opener.join(WAIT_S)
    require(inside.qsize() == 2, f"{inside.qsize()} members passed")
    return "Barrier opens for 2, DoubleBarrier of 2 entered and left"


def killed_holder():
    """Kills a process that holds a lock and an ephemeral: the kernel closes its connection, without a closeSession."""
    path = fresh_path()
    with client() as heir:
        heir.ensure_path(path)
        victim = subprocess.Popen(
            [sys.executable, __file__, "--hold", address, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            words = queue.Queue()
            threading.Thread(
                target=lambda: [words.put(line.strip()) for line in victim.stdout], daemon=True
            ).start()
            next_of(words, "the victim to take the lock")
            # The timeout that the client requests. kazoo does not report the granted one; the checks below catch a server
            # that grants more.
            timeout = VICTIM_TIMEOUT_S
            passed_on = queue.Queue()

            def inherit():
                if PLANT_NOLOCK or heir.Lock(f"{path}/lock", "heir").acquire(timeout=WAIT_S):
                    passed_on.put(time.monotonic())

            deleted = queue.Queue()
            require(heir.exists(f"{path}/e", watch=lambda event: deleted.put(time.monotonic())), "no ephemeral")
            threading.Thread(target=inherit, daemon=True).start()
            if not PLANT_NOLOCK:
                wait_for("the heir to queue", lambda: len(heir.get_children(f"{path}/lock")) == 2)
            # The last request before the kill. The server counts the timeout from after `before`, so the lock must not
            # pass on within a timeout of `before`.
            before = time.monotonic()
            victim.stdin.write("touch\n")
            victim.stdin.flush()
            next_of(words, "the victim to touch its session")
            if PLANT_GOODBYE:
                # Its loop over the lines ends, and its client closes the session.
                victim.stdin.close()
            else:
                victim.kill()
            for what, times in [("lock passed on", passed_on), ("ephemeral deleted", deleted)]:
                elapsed = next_of(times, f"the expiry: {what}") - before
                require(elapsed >= timeout, f"{what} after {elapsed:.3f} s, session timeout {timeout} s")
                require(elapsed <= timeout + EXPIRY_SLACK_S, f"{what} only after {elapsed:.3f} s of {timeout} s")
        finally:
            victim.kill()
            victim.wait(WAIT_S)
    return f"session timeout {timeout:.1f} s, lock passed on and ephemeral deleted after {elapsed:.2f} s"


def hold(path):
    """The victim: takes the lock and the ephemeral, reports that, and touches its session on request."""
    with client(VICTIM_TIMEOUT_S) as one:
        one.create(f"{path}/e", b"", ephemeral=True)
        require(one.Lock(f"{path}/lock", "victim").acquire(timeout=WAIT_S), "the victim has no rival")
        print("held", flush=True)
        for _ in sys.stdin:
            one.exists("/")
            print("touched", flush=True)


CHECKS = [
    ("connection", connection),
    ("create, get, set, delete", basics),
    ("reads at once", reads_at_once),
    ("sequential", sequential),
    ("ephemeral", ephemeral_close),
    ("transaction", transaction),
    ("access lists", access_lists),
    # Over TLS kazoo's command() passes the port as the host name, and fails before it connects.
    *([] if TLS else [("four-letter words", four_letter_words)]),
    ("session resumed", session_resumed),
    ("Lock", lock),
    ("Lock order", lock_order),
    ("Semaphore", semaphore),
    ("Election", election),
    ("Counter", counter),
    ("DataWatch", data_watch),
    ("ChildrenWatch", children_watch),
    ("Barrier, DoubleBarrier", barriers),
    ("holder killed", killed_holder),
]


def main():
    global address
    # kazoo logs every lost connection; several checks cause one on purpose.
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "--hold":
        address = sys.argv[2]
        hold(sys.argv[3])
        return 0
    address = sys.argv[1]
    passed = failed = 0
    for name, check in CHECKS:
        try:
            print(f"ok {SUITE} {name}: {check()}", flush=True)
            passed += 1
        except Exception as failure:  # the next check still runs
            reason = failure if isinstance(failure, CheckFailed) else repr(failure)
            print(f"FAIL {SUITE} {name}: {reason}", flush=True)
            failed += 1
            if check is connection:
                # Every other check would fail after the same wait.
                break
    print(f"{SUITE}: {passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    # Not sys.exit: a thread that still waits after a failed check must not keep the process alive.
    code = main()
    sys.stdout.flush()
    os._exit(code)

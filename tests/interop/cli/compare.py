"""Runs the same command lines through zkCli and `minikeeper cli`, and compares what they print.

compare.py PROGRAM ADDRESS_OF_MINIKEEPER ADDRESS_OF_ZOOKEEPER [-v]

Both shells read their lines from a pipe. Behind each case stands a read of a znode that does not exist: its error
ends the output of the case, and the round trip lets the events of the case arrive. Each shell works below a znode of
its own, so that one does not see what the other did.
"""

import os
import re
import subprocess
import sys

PROGRAM, OURS, ORIGINAL = sys.argv[1:4]
IS_VERBOSE = "-v" in sys.argv[4:]
CLASS_PATH = ":".join(f"/usr/share/java/{jar}.jar" for jar in ("zookeeper", "commons-cli", "slf4j-simple"))
ZKCLI = [
    "java",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    "-cp",
    CLASS_PATH,
    "org.apache.zookeeper.ZooKeeperMain",
]
SECONDS_MAX = 60

# B stands for the znode of the shell.
CASES = """
create B
create B data
create B/none/child data
create B/a hello
create B/null
create B/empty ""
create B/quoted "two words"
create B/single 'two "words"'
create B/inner a"b c" d
create B/open "never closed
create -s B/seq- x
create -s B/seq- x
create -e B/e x
create B/e/child x
create -e -s B/es- x
create -es B/es- x
create -c B/container
create -c B/container/child x
create -c -e B/wrong
create -c -s B/wrong
create -t 100000 B/ttl x
create -s -t 100000 B/ttl- x
create -t 0 B/wrong
create -t -5 B/wrong
create -t x B/wrong
create -t 1099511627776 B/wrong
create -t 5 -e B/wrong
create -t 5 -c B/wrong
create -t
create -x B/wrong
create
create -s
create wrong x
create /
create B/ x
create B//x x
create B/./x x
create B/../x x
create B/.../x x
create "" x
create B/acl x world:anyone:r
create B/acl2 x world:anyone:r,ip:127.0.0.1:cdrwa
create B/acl3 x digest:user:hash=:cdrwa
create B/acl4 x world:anyone:rx
create B/acl5 x nonsense
create B/acl6 x none:id:r
create B/acl7 x auth::cdrwa
create B/acl8 x world:anyone
create B/acl9 x world:anyone:r,
create B/utf8 äöü€
create B/ünicode x
create B/-dash x
create -- B/--dash -x
get B
get B/a
get -s B/a
get B/a -s
get B/null
get -s B/null
get -s B/empty
get B/quoted
get B/single
get B/inner
get B/open
get B/utf8
get B/ünicode
get B/none
get -w B/none
get wrong
get
get -q B/a
get B/acl3
get B/acl
get B/a true
get -s B/a true
set B/a bye
set -s B/a bye
set B/a
set
set B/none x
set -v 1 B/a x
set -v 0 B/a x
set -v2 B/a x
set -v=3 B/a x
set -v -1 B/a x
set -v
set B/a -5
set B/a "with  blanks"
set B/a x y z
set wrong x
set B/acl x
set B/acl3 x
get B/a
stat B
stat B/a
stat B/none
stat
stat wrong
stat B/ttl
stat B/container
stat B/e
stat B/a 1
stat -x B/a
ls B
ls -s B
ls -R B
ls -s -R B
ls B/none
ls -R B/none
ls
ls wrong
ls B/a
ls B/acl3
ls B 1
ls -z B
ls -R B/acl3
ls -R /zookeeper/config
getAcl B
getAcl -s B
getAcl B/acl
getAcl B/acl2
getAcl B/acl3
getAcl B/none
getAcl
getAcl wrong
setAcl B/a world:anyone:cdrw
getAcl B/a
setAcl -s B/a world:anyone:cdrwa
setAcl B/a world:anyone:cdrwa
setAcl B/null ip:127.0.0.1:cdrwa
getAcl B/null
setAcl -v 7 B/null world:anyone:cdrwa
setAcl -v 1 B/null world:anyone:cdrwa
setAcl B/null
setAcl
setAcl B/none world:anyone:r
setAcl B/a nonsense
setAcl B/a wrong:id:r
setAcl B/acl world:anyone:cdrwa
setAcl wrong world:anyone:r
create B/tree
create B/tree/b
create B/tree/b/c
create B/tree/b/d
create B/tree/a
create B/tree/a/c
setAcl -R B/tree world:anyone:cdrw
getAcl B/tree/b/c
getAcl B/tree
setAcl -R B/none world:anyone:r
ls -R B/tree
getAllChildrenNumber B/tree
getAllChildrenNumber B/none
getAllChildrenNumber
getAllChildrenNumber wrong
getEphemerals
getEphemerals B/e
getEphemerals B/none
getEphemerals wrong
getEphemerals B
sync B
sync B/none
sync
sync wrong
whoami
whoami with arguments
addauth digest user:password
whoami
addauth
create B/mine x auth::cdrwa
create B/mine2 x digest:user:tpUq/4Pn5A64fVZyQ0gOJ8ZWqkY=:r
getAcl B/mine
getAcl B/mine2
get B/mine
config
config -s
config -c
config -c -s
config -x
reconfig
reconfig -add server.9=127.0.0.1:2888:3888;2181
reconfig -remove 9
reconfig -members server.9=127.0.0.1:2888:3888;2181
reconfig -members 9 -add 8
reconfig -v xyz -remove 1
reconfig -file /none -members x
reconfig -file /none -add 1
version with arguments
printwatches
printwatches off
printwatches
printwatches on
setquota -n 5 B/tree
listquota B/tree
setquota -b 100 B/tree
listquota B/tree
setquota -N 9 B/tree
setquota -B 1000 B/tree
listquota B/tree
setquota -n 1 B/tree
setquota -b 0 B/tree
setquota -n 0 B/tree
setquota -n -1 B/tree
setquota -b -1 B/tree
setquota -n x B/tree
setquota -B x B/tree
setquota -n 5 -b 5 B/tree
setquota B/tree
setquota -n 5
setquota -n
setquota -n 5 B/none
setquota -n 5 wrong
setquota -n 5 /
setquota -n 5 /zookeeper/quota/x
setquota -n 5 B/tree/b
setquota -n 5 B
listquota B/tree/b
listquota B/none
listquota
listquota wrong
delquota -n B/tree
listquota B/tree
delquota -n -b B/tree
delquota -N B/tree
delquota -B B/tree
delquota -b B/tree
listquota B/tree
delquota B/tree
delquota B/tree
listquota B/tree
delquota
delquota wrong
ls /zookeeper/quota
setquota -N 2 B/a
create B/a/one
create B/a/two
delquota B/a
get -w B/a
set B/a changed
set B/a again
stat -w B/later
create B/later x
ls -w B/later
create B/later/child x
delete B/later/child
get -w B/later
stat -w B/later
ls -w B/later
delete B/later
ls -w -R B/tree
create B/tree/a/e x
create B/tree/b/c/e x
set B/tree x
removewatches B/tree -c
removewatches B/tree/b -d
removewatches B/tree/b -c
removewatches B/none
removewatches B/none -l
removewatches
removewatches wrong
removewatches B/a -z
addWatch B/tree
create B/tree/b/x x
set B/tree/b/x y
delete B/tree/b/x
removewatches B/tree
create B/tree/b/y x
addWatch -m persistent B/a
set B/a 1
set B/a 2
create B/a/c x
removewatches B/a -a
addWatch -m PERSISTENT_RECURSIVE B/a
set B/a/c y
removewatches B/a
set B/a/c z
addWatch -m wrong B/a
addWatch
addWatch B/a B/b
addWatch -m
addWatch B/none
create B/none x
delete B/none
get -w B/a
removewatches B/a -c
removewatches B/a -d
set B/a 3
config -w
delete B/a
delete B/none
delete -v 9 B/null
delete -v 0 B/null
delete -v 0 B/null
delete
delete wrong
delete /zookeeper
delete B/quoted 5
delete -v
deleteall B/tree -b x
deleteall B/tree -b 2
deleteall B/tree
deleteall
deleteall wrong
deleteall B/a -b 1
redo 0
redo 9999
redo
history
unknown
unknown command line
LS /
quitt
   ls   B/acl  
\tls\tB/acl
help
version
deleteall B
""".strip("\n").replace("\\t", "\t").split("\n")

# Below a chroot, which both shells share.
CHROOT_CASES = """
ls /
create /x data
create /x data
get /none
get -w /x
set /x more
create -e /e
getEphemerals
getEphemerals /
getEphemerals /e
sync /
config
config -s
ls -R /
stat -w /later
create /later
getAllChildrenNumber /
addWatch /
create /x/y
removewatches /
setquota -n 5 /x
deleteall /x
delete /later
get /../x
""".strip("\n").split("\n")

# Each in a process of its own, with its exit code.
ONE_SHOTS = [
    (["ls", "/zookeeper"], {}),
    (["get", "/none"], {}),
    (["create", "-q", "/x"], {}),
    (["set", "/zookeeper", "two words"], {}),
    (["unknown"], {}),
    (["stat", "/"], {"TZ": "Europe/Berlin"}),
    (["stat", "/"], {"TZ": "America/New_York"}),
    (["stat", "/"], {"TZ": "UTC"}),
]

OLD_OPTIONS = "minikeeper names the options of 3.9 too"
NULL = "zkCli says null instead of the path"
CHROOT = "zkCli asks for the path without the chroot, and prints paths with it"
INTENDED_BELOW_CHROOT = {
    "getEphemerals": CHROOT,
    "getEphemerals /": CHROOT,
    "getEphemerals /e": CHROOT,
}
INTENDED = {
    "get": OLD_OPTIONS,
    "set": OLD_OPTIONS,
    "set B/a": OLD_OPTIONS,
    "removewatches": OLD_OPTIONS,
    'create B/inner a"b c" d': NULL,
    'create B/open "never closed': NULL,
    "create B/acl5 x nonsense": NULL,
    "create B/acl8 x world:anyone": NULL,
    "setAcl B/a nonsense": NULL,
    "unknown": "the list of commands begins with the program's name and has help",
    "unknown command line": "see unknown",
    "LS /": "see unknown",
    "quitt": "see unknown",
    "help": "a command of minikeeper only",
    "version": "each prints its own",
}

passed = failed = intended = 0


def report(name, line, theirs, mine, reasons=INTENDED):
    global passed, failed, intended
    is_same = theirs == mine
    if is_same and line not in reasons:
        passed += 1
        if IS_VERBOSE:
            print(f"ok cli: {name}: {line}")
    elif is_same:
        failed += 1
        print(f"FAIL cli: {name}: {line}: listed as an intended difference, but both print the same")
    elif line in reasons:
        intended += 1
        if IS_VERBOSE:
            print(f"ok cli: {name}: {line}: differs: {reasons[line]}")
    else:
        failed += 1
        print(f"FAIL cli: {name}: {line}")
        for who, lines in (("zkCli", theirs), ("minikeeper", mine)):
            for text in lines or ["(nothing)"]:
                print(f"  {who}: {text}")


def run(command, text, **environment):
    environment = {"TZ": "UTC", "LC_ALL": "C.UTF-8"} | environment
    done = subprocess.run(
        command,
        input=text.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS_MAX,
        env={**os.environ, **environment},
        check=False,
    )
    return done.stdout.decode(errors="replace"), done.returncode


def normal(line, base):
    """Takes out of a line what differs from run to run."""
    line = line.replace(base, "B")
    # The class of an exception of Java.
    line = re.sub(r"^org\.apache\.commons\.cli\.\w+: ", "", line)
    line = re.sub(r"\b0x[1-9a-f][0-9a-f]*\b", "0xN", line)
    day = r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC (?!1970)\d{4}"
    return re.sub(rf"^([cm]time) = {day}$", r"\1 = TIME", line)


def is_noise(line):
    # The state of the connection changes at times that nothing determines.
    return line in ("", "WATCHER::") or "type:None path:null" in line


def session(command, cases, base):
    """Returns the output of each case, and all events in order."""
    lines = ["get /marker-start"]
    for number, case in enumerate(cases):
        # An event is printed by a thread of its own; two round trips give it time.
        lines += [case.replace("B", base), f"sync /marker-{number}", f"get /marker-{number}"]
    text, _ = run(command, "\n".join(lines) + "\nclose\nls /\nquit\nls /\n")
    outputs, events, current, number = [], [], None, 0
    for line in text.splitlines():
        if line == "Node does not exist: /marker-start":
            current = []
        elif line == f"Node does not exist: /marker-{number}":
            # Behind the case comes the answer to the sync.
            assert current.pop() == "Sync is OK", current
            outputs.append(current)
            current, number = [], number + 1
        elif current is not None and not is_noise(line):
            if line.startswith("WatchedEvent"):
                events.append(normal(line, base))
            else:
                current.append(normal(line, base))
    assert number == len(cases), f"{command} ended at case {number}: {text[-2000:]}"
    outputs.append(current)
    return outputs, events


def compare_sessions(name, cases, reasons, theirs, mine):
    for line, one, other in zip([*cases, "close, ls, quit"], theirs[0], mine[0]):
        report(name, line, one, other, reasons)
    report(name, "all events", theirs[1], mine[1], reasons)


def compare_one_shots(name, server, cases):
    for args, environment in cases:
        results = []
        for command in (ZKCLI, [PROGRAM, "cli"]):
            text, code = run([*command, "-server", server, *args], "", **environment)
            lines = [normal(line, "B") for line in text.splitlines()]
            lines = [line for line in lines if not is_noise(line) and not line.startswith("Connecting to ")]
            results.append([*lines, f"exit code {code}"])
        title = " ".join([*(f"{key}={value}" for key, value in environment.items()), *args])
        report(f"{name}, one command", title, *results)


def main():
    for name, server in (("minikeeper", OURS), ("ZooKeeper 3.8", ORIGINAL)):
        shells = [*ZKCLI, "-server"], [PROGRAM, "cli", "-server"]
        theirs = session([*shells[0], server], CASES, "/zkcli")
        mine = session([*shells[1], server], CASES, "/minik")
        compare_sessions(name, CASES, INTENDED, theirs, mine)
        below = []
        for shell in shells:
            run([*shells[1], server], "deleteall /chroot\ncreate /chroot\n")
            below.append(session([*shell, f"{server}/chroot"], CHROOT_CASES, "/none-of-these"))
        compare_sessions(f"{name}, chroot", CHROOT_CASES, INTENDED_BELOW_CHROOT, *below)
    compare_one_shots("minikeeper", OURS, ONE_SHOTS)
    compare_one_shots("ZooKeeper 3.8", ORIGINAL, ONE_SHOTS[:3])
    print(f"# {intended} intended differences", file=sys.stderr)
    print(f"cli: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()

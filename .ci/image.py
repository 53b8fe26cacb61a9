#!/usr/bin/env python3
"""Writes the container image, and tries it.

    .ci/image.py build FOLDER VERSION ARCHITECTURE REVISION IMAGE   from the folder of the archive
    .ci/image.py test IMAGE SCRATCH                                 as root, with skopeo, umoci, crun and kazoo

The image is a tar file that is an OCI layout and, with manifest.json, what `docker load` reads. Every time in it is
SOURCE_DATE_EPOCH. The test runs containers in namespaces of its own: nothing is left, and no address of the machine is
used.
"""

import contextlib
import datetime
import gzip
import hashlib
import http.client
import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import time

TITLE = "minikeeper"
DESCRIPTION = "An in-memory server that speaks the ZooKeeper protocol, for development and tests"
LICENCES = "MIT OR Apache-2.0"
PORT = 2181
# Of the user "nonroot" in other images without a distribution.
USER = 65532
SECOND_NS = 1_000_000_000
COMPRESSED_BYTES_MAX = 6_000_000
# The addresses of the test, on the two ends of a cable between its namespaces.
OUTSIDE, INSIDE = "192.0.2.1", "192.0.2.2"
# The limit of every wait of the test, never a delay.
PATIENCE_S = 30


def build(folder, version, architecture, revision, out):
    mtime = int(os.environ["SOURCE_DATE_EPOCH"])
    layer = archive(root_directory(pathlib.Path(folder)), mtime)
    # Level 9 of zlib; neither a name nor a time in the header.
    packed = gzip.compress(layer, mtime=0)
    created = datetime.datetime.fromtimestamp(mtime, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = to_json(
        {
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": settings(version, revision, created),
            "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
            "history": [{"created": created, "created_by": ".ci/image.py"}],
        }
    )
    manifest = to_json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", packed)],
        }
    )
    reference = {
        **descriptor("application/vnd.oci.image.manifest.v1+json", manifest),
        "annotations": {
            "org.opencontainers.image.ref.name": version,
            # Docker with containerd's store takes the name from this one.
            "io.containerd.image.name": f"docker.io/library/{TITLE}:{version}",
        },
        "platform": {"architecture": architecture, "os": "linux"},
    }
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [reference]}
    loaded = [{"Config": blob(config), "RepoTags": [f"{TITLE}:{version}"], "Layers": [blob(packed)]}]
    files = {
        "oci-layout": to_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": to_json(index),
        "manifest.json": to_json(loaded),
        **{blob(content): content for content in (config, manifest, packed)},
    }
    entries = {name: (stat.S_IFREG | 0o644, content) for name, content in files.items()}
    entries |= {name: (stat.S_IFDIR | 0o755, b"") for name in ("blobs", "blobs/sha256")}
    pathlib.Path(out).write_bytes(archive(entries, mtime))


def root_directory(folder):
    """Returns the mode and the content of every path in the image."""
    entries = {
        # Empty unless the user mounts trees there.
        "seed": (stat.S_IFDIR | 0o755, b""),
        # A new volume takes over this mode, so that any user can write to it.
        "data": (stat.S_IFDIR | 0o1777, b""),
        "licenses": (stat.S_IFDIR | 0o755, b""),
    }
    for path in sorted((folder / "bin").iterdir()):
        entries[path.name] = (stat.S_IFREG | 0o755, path.read_bytes())
    for path in sorted([*folder.glob("LICENSE-*"), folder / "THIRD-PARTY-LICENCES.txt"]):
        entries[f"licenses/{path.name}"] = (stat.S_IFREG | 0o644, path.read_bytes())
    return entries


def settings(version, revision, created):
    """Returns the settings of a container, with Docker's extension for health checks."""
    return {
        "User": f"{USER}:{USER}",
        "ExposedPorts": {f"{PORT}/tcp": {}},
        # PATH lets `docker exec` find the programs by their names.
        "Env": ["PATH=/", "MINIKEEPER_LISTEN=0.0.0.0", "MINIKEEPER_SEED_PATH=/seed"],
        "Entrypoint": ["/minikeeper"],
        "WorkingDir": "/",
        "Healthcheck": {
            "Test": ["CMD", "/minikeeper", "healthcheck"],
            "Interval": 2 * SECOND_NS,
            "Timeout": 3 * SECOND_NS,
            "Retries": 3,
            # Docker 25 and later check each second at first.
            "StartPeriod": 10 * SECOND_NS,
            "StartInterval": SECOND_NS,
        },
        "Labels": {
            "org.opencontainers.image.created": created,
            "org.opencontainers.image.description": DESCRIPTION,
            "org.opencontainers.image.licenses": LICENCES,
            "org.opencontainers.image.revision": revision,
            "org.opencontainers.image.title": TITLE,
            "org.opencontainers.image.version": version,
        },
    }


def archive(entries, mtime):
    """Returns a tar file of these paths, sorted, which belong to root."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (mode, content) in sorted(entries.items()):
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.DIRTYPE if stat.S_ISDIR(mode) else tarfile.REGTYPE
            entry.mode, entry.mtime, entry.size = stat.S_IMODE(mode), mtime, len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def to_json(value):
    return json.dumps(value, indent=2, sort_keys=True).encode() + b"\n"


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def blob(content):
    return f"blobs/{digest(content).replace(':', '/')}"


def descriptor(media_type, content):
    return {"mediaType": media_type, "digest": digest(content), "size": len(content)}


def test(image, scratch):
    """Looks at the image, and runs it in namespaces of its own."""
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    layout = look_at(image, scratch)
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        print("SKIPPED running the image: this machine permits no new namespaces")
        return
    os.execvp(command[0], [*command, sys.executable, __file__, "test-inside", layout, scratch])


def test_inside(layout, scratch):
    # crun keeps its state and ip its names in /run. Without the control groups of the machine, which it may not change,
    # crun runs the same everywhere.
    for folder in "/run", "/sys/fs/cgroup":
        run("mount", "-t", "tmpfs", "tmpfs", folder)
    run("ip", "netns", "add", "inside")
    run("ip", "link", "add", "outside", "type", "veth", "peer", "name", "inside", "netns", "inside")
    for name, address, namespace in [("outside", OUTSIDE, []), ("inside", INSIDE, ["-n", "inside"])]:
        run("ip", *namespace, "address", "add", f"{address}/30", "dev", name)
        for device in "lo", name:
            run("ip", *namespace, "link", "set", device, "up")
    bundle = scratch / "bundle"
    run("umoci", "unpack", "--image", layout, bundle)
    as_the_image_says(bundle, scratch)
    as_any_user_with_control(bundle)
    with_a_token(bundle)
    with_a_volume(bundle, scratch)


def look_at(image, scratch):
    """Checks what other tools read from the file. Returns the layout in it, with its tag."""
    layout = scratch / "layout"
    with tarfile.open(image) as tar:
        tar.extractall(layout)
    index = json.loads((layout / "index.json").read_text())
    version = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
    run("skopeo", "copy", "--quiet", f"docker-archive:{image}:{TITLE}:{version}", f"dir:{scratch}/from-docker")
    run("skopeo", "copy", "--quiet", f"oci:{layout}:{version}", f"docker-archive:{scratch}/docker.tar:{TITLE}:{version}")
    seen = json.loads(run("skopeo", "inspect", f"oci-archive:{image}"))
    check(seen["Labels"]["org.opencontainers.image.version"] == version, seen)
    config = json.loads(run("skopeo", "inspect", "--config", "--raw", f"oci-archive:{image}"))["config"]
    check(config["Entrypoint"] == ["/minikeeper"] and config["User"] == f"{USER}:{USER}", config)
    check(config["ExposedPorts"] == {f"{PORT}/tcp": {}}, config)
    check(config["Healthcheck"]["Test"] == ["CMD", "/minikeeper", "healthcheck"], config)
    size = os.path.getsize(image)
    check(size <= COMPRESSED_BYTES_MAX, f"the image has {size} bytes, more than the limit of {COMPRESSED_BYTES_MAX}")
    print(f"image: {size} bytes compressed")
    return f"{layout}:{version}"


def as_the_image_says(bundle, scratch):
    from kazoo.client import KazooClient

    seed = scratch / "seed"
    seed.mkdir()
    (seed / "1.yaml").write_text("/services/web: 127.0.0.1:80\n")
    (seed / "2.json").write_text('{"/services/db": "127.0.0.1:5432"}')
    with container(bundle, mounts=[bind(seed, "/seed", "ro")]) as server:
        check("is healthy" in server.execute("healthcheck"), "healthcheck")
        # The names are found too.
        check(server.execute("cli", "get", "/services/db") == "127.0.0.1:5432\n", "cli")
        client = KazooClient(f"{INSIDE}:{PORT}", timeout=10)
        client.start(PATIENCE_S)
        check(client.get("/services/web")[0] == b"127.0.0.1:80", "seed")
        client.create("/a", b"x", ephemeral=True)
        # Neither another machine nor a process in the container controls it.
        check(get("/v1/now") is None, "control is on")
        check(server.execute("ctl", "now", code=1) == "", "control is on")
        check(server.processes() == 1, f"{server.processes()} processes")
        uids = server.status("Uid")
        check(uids == [str(USER)] * 4, uids)
        # With a client that is connected.
        server.stop()
        client.stop()
        client.close()


def as_any_user_with_control(bundle):
    variables = ["MINIKEEPER_CONTROL=true"]
    with container(bundle, "--tick-time", "100", user=4_711, variables=variables) as server:
        check('"elapsed_ms"' in server.execute("ctl", "now"), "ctl")
        status, answer = get("/v1/now")
        check(status == 403 and "set a token" in answer, answer)
        check(get("/")[0] == 403 and get("/metrics")[0] == 403, "the page and the metrics")
        server.stop()


def with_a_token(bundle):
    variables = ["MINIKEEPER_CONTROL=true", "MINIKEEPER_CONTROL_TOKEN=s3cret"]
    with container(bundle, variables=variables) as server:
        check(get("/v1/now")[0] == 401, "no token")
        check(get("/v1/now", "s3cret")[0] == 200 and get("/metrics", "s3cret")[0] == 200, "a token")
        check('"elapsed_ms"' in server.execute("ctl", "now"), "ctl reads the variable too")
        server.stop()


def with_a_volume(bundle, scratch):
    """The state survives in a volume, which has the mode of the folder in the image."""
    volume = scratch / "volume"
    shutil.copytree(bundle / "rootfs/data", volume)
    mounts = [bind(volume, "/data", "rw")]
    for words, answer in [("create /kept x", "/kept\n"), ("get /kept", "x\n")]:
        with container(bundle, "--data-dir", "/data", mounts=mounts) as server:
            check(server.execute("cli", *words.split()) == answer, words)
            server.stop()


class Container:
    """A server in a container, which must be alone."""

    def __init__(self, process, pid):
        self.process = process
        self.pid = pid

    def execute(self, *args, code=0):
        """Runs the program in the container, as `docker exec` does. Returns its stdout."""
        return run(*CRUN, "exec", NAME, "minikeeper", *args, code=code)

    def status(self, key):
        """Returns the values of a line of the server's status."""
        lines = pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(line.split()[1:] for line in lines if line.startswith(f"{key}:"))

    def processes(self):
        """Returns the number of processes in the container, dead ones included."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = 0
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(FileNotFoundError):
                found += os.readlink(folder / "ns/pid") == own
        return found

    def stop(self):
        """Sends SIGTERM, which process 1 of a container only gets if it asks for it."""
        run(*CRUN, "kill", NAME, "TERM")
        code = self.process.wait(PATIENCE_S)
        check(code == 0, f"exit code {code} after SIGTERM")


# The name of the container; there is one at a time.
NAME = "server"
CRUN = ["crun", "--cgroup-manager=disabled"]


@contextlib.contextmanager
def container(bundle, *options, user=USER, variables=(), mounts=()):
    """Runs a container of the image whose root directory is read-only, and waits until it is healthy."""
    described = bundle / "config.json"
    original = described.read_text()
    settings = json.loads(original)
    process = settings["process"]
    check(process["user"] == {"uid": USER, "gid": USER} and process["args"] == ["/minikeeper"], process)
    process.update(terminal=False, user={"uid": user, "gid": 0 if user != USER else USER}, capabilities={})
    process["args"] += options
    process["env"] += variables
    settings["root"]["readonly"] = True
    settings["mounts"] = [it for it in settings["mounts"] if it["type"] != "cgroup"] + list(mounts)
    (network,) = (it for it in settings["linux"]["namespaces"] if it["type"] == "network")
    network["path"] = "/run/netns/inside"
    described.write_text(json.dumps(settings))
    child = subprocess.Popen([*CRUN, "run", "--bundle", bundle, NAME], stdin=subprocess.DEVNULL)
    try:
        wait_for(child, lambda: run(*CRUN, "exec", NAME, "/minikeeper", "healthcheck", code=None))
        yield Container(child, json.loads(run(*CRUN, "state", NAME))["pid"])
    finally:
        described.write_text(original)
        if child.poll() is None:
            child.kill()
            run(*CRUN, "delete", "--force", NAME, code=None)


def wait_for(child, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        check(child.poll() is None, f"the container ended with exit code {child.returncode}")
        check(time.monotonic() < deadline, f"the server is not healthy after {PATIENCE_S} s")
        time.sleep(0.05)


def bind(source, destination, mode):
    return {"type": "bind", "source": str(source), "destination": destination, "options": ["bind", mode]}


def get(path, token=None):
    """Requests a page from outside. Returns the status and the text; None if the server does not speak HTTP."""
    connection = http.client.HTTPConnection(INSIDE, PORT, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):
            return None
        return response.status, response.read().decode()


def run(*command, code=0):
    """Runs a command and returns its stdout; exits if its exit code is not this one. `None` allows any, and returns
    nothing if it is not 0."""
    done = subprocess.run([str(it) for it in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if code is None:
        return done.stdout if done.returncode == 0 else ""
    check(done.returncode == code, f"exit code {done.returncode} of {command}: {done.stdout}{done.stderr}")
    return done.stdout


def check(is_true, what):
    if not is_true:
        raise SystemExit(f"image: {what}")


match sys.argv[1:]:
    case ["build", folder, version, architecture, revision, image]:
        build(folder, version, architecture, revision, image)
    case ["test", image, scratch]:
        test(image, pathlib.Path(scratch))
    case ["test-inside", layout, scratch]:
        test_inside(layout, pathlib.Path(scratch))
    case _:
        sys.exit(__doc__)

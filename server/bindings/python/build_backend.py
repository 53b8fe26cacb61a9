"""Builds the wheel: the package, with the programs `minikeeper` and `minikeeper-cli` inside. And the sdist, without them.

A PEP 517 backend that needs only the standard library. It takes the program that MINIKEEPER_BIN names and
`minikeeper-cli` beside it, else those of a release build of the checkout, which it makes if cargo is in PATH.
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import stat
import struct
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent
# Of the checkout; an unpacked sdist may have fewer folders above it.
ROOT = (FOLDER / "../../..").resolve()
MODE_PROGRAM = (stat.S_IFREG | 0o755) << 16
MODE_FILE = (stat.S_IFREG | 0o644) << 16
# A constant time, the earliest in a zip file, so that the same sources make the same files.
TIME = (1980, 1, 1, 0, 0, 0)
TIME_UNIX_S = 315_532_800
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT")
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
# The oldest macOS that Rust's programs run on, by the processor in the header of a Mach-O file.
MACOS = {0x01000007: "macosx_10_12_x86_64", 0x0100000C: "macosx_11_0_arm64"}
WINDOWS = {0x8664: "win_amd64", 0xAA64: "win_arm64"}
# The libraries that every manylinux system has and that a Rust program may need.
MANYLINUX_LIBRARIES = re.compile(r"ld-linux.*\.so\.\d|lib(c|m|dl|rt|pthread|util|gcc_s)\.so\.\d")
# manylinux2014 is glibc 2.17; pip knows no older one on most machines.
GLIBC_MINOR_MIN = 17

NEEDED = """minikeeper needs its program, which is written in Rust. Either
  - set MINIKEEPER_BIN to a built `minikeeper`, with `minikeeper-cli` in the same folder, or
  - install from a checkout of the repository with a Rust toolchain (`cargo`) in PATH."""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel and returns its name. Raises SystemExit if a program is missing."""
    programs = {path.name: path.read_bytes() for path in find_programs()}
    tag = f"py3-none-{platform_tag(list(programs.values()))}"
    info = f"minikeeper-{version()}.dist-info"
    files = {f"minikeeper/{path.name}": path.read_bytes() for path in modules()}
    files.update((f"minikeeper/bin/{name}", program) for name, program in programs.items())
    for name in LICENSES:
        files[f"{info}/licenses/{name}"] = license_text(name)
    files.update((f"{info}/{name}", text) for name, text in metadata_files(tag).items())
    record = f"{info}/RECORD"
    files[record] = "".join(
        [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()] + [f"{record},,\n"]
    ).encode()

    wheel = f"minikeeper-{version()}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.create_system = 3  # Unix on every system
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = MODE_PROGRAM if name.startswith("minikeeper/bin/") else MODE_FILE
            archive.writestr(entry, content)
    return wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata, which needs no program: a missing one is reported when the wheel is built."""
    info = f"minikeeper-{version()}.dist-info"
    folder = pathlib.Path(metadata_directory) / info
    folder.mkdir()
    for name, text in metadata_files("py3-none-any").items():
        (folder / name).write_bytes(text)
    return info


def build_sdist(sdist_directory, config_settings=None):
    """Writes the sdist and returns its name. It has no program: building from it needs MINIKEEPER_BIN."""
    name = f"minikeeper-{version()}"
    files = {"PKG-INFO": metadata()}
    for path in [FOLDER / "README.md", FOLDER / "build_backend.py", FOLDER / "pyproject.toml", *modules()]:
        files[path.relative_to(FOLDER).as_posix()] = path.read_bytes()
    files.update((license, license_text(license)) for license in LICENSES)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime, entry.mode = len(content), TIME_UNIX_S, 0o644
            archive.addfile(entry, io.BytesIO(content))
    sdist = f"{name}.tar.gz"
    (pathlib.Path(sdist_directory) / sdist).write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return sdist


def find_programs():
    """Returns the paths of `minikeeper` and of `minikeeper-cli`, which `minikeeper cli` starts from its own folder."""
    named = os.environ.get("MINIKEEPER_BIN")
    if named:
        program = pathlib.Path(named).resolve()
    else:
        program = built_in_checkout()
    if not program.is_file():
        raise SystemExit(f"no program at {program}\n{NEEDED}")
    # With .exe on Windows.
    shell = program.with_name("minikeeper-cli" + program.suffix)
    if not shell.is_file():
        raise SystemExit(f"no program at {shell}: minikeeper-cli must be in the same folder as {program.name}\n{NEEDED}")
    return program, shell


def built_in_checkout():
    """Returns the path of the program of a release build, after making that build if cargo is there."""
    if ROOT / "server/bindings/python" != FOLDER or not (ROOT / "Cargo.toml").is_file():
        raise SystemExit(NEEDED)
    if shutil.which("cargo"):
        # Its progress goes to stderr, because stdout has the name of the wheel.
        code = subprocess.call(["cargo", "build", "--release", "--quiet"], cwd=ROOT, stdout=sys.stderr)
        if code != 0:
            raise SystemExit(f"cargo build exited with code {code}\n{NEEDED}")
    name = "minikeeper.exe" if os.name == "nt" else "minikeeper"
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / name


def modules():
    """Returns the files of the package, in the same order on every system."""
    folder = FOLDER / "src/minikeeper"
    return sorted([*folder.glob("*.py"), folder / "py.typed"])


def license_text(name):
    # An sdist has them beside this file.
    path = FOLDER / name
    return (path if path.is_file() else ROOT / name).read_bytes()


def version():
    """Returns the version of the crates, or, in an unpacked sdist, that of the sdist."""
    return of_workspace("version") or re.search(r"(?m)^Version: (.*)$", (FOLDER / "PKG-INFO").read_text("utf-8")).group(1)


def of_workspace(name):
    """Returns a value of [workspace.package] in Cargo.toml; None in an unpacked sdist."""
    file = ROOT / "Cargo.toml"
    if ROOT / "server/bindings/python" != FOLDER or not file.is_file():
        return None
    return re.search(rf'(?ms)^\[workspace\.package\]$.*?^{name} = "(.*?)"$', file.read_text("utf-8")).group(1)


def setting(name):
    # Only Python 3.11 and later can parse TOML; this file is ours and simple.
    text = (FOLDER / "pyproject.toml").read_text("utf-8")
    return re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE).group(1)


def metadata_files(tag):
    """Returns the files that describe a wheel with these tags, except for the list of files."""
    python, abi, platforms = tag.split("-")
    tags = "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))
    wheel = f"Wheel-Version: 1.0\nGenerator: minikeeper {version()}\nRoot-Is-Purelib: false\n{tags}"
    entry_points = (
        "[console_scripts]\nminikeeper = minikeeper.__main__:main\n\n"
        "[pytest11]\nminikeeper = minikeeper.pytest_plugin\n"
    )
    return {"METADATA": metadata(), "WHEEL": wheel.encode(), "entry_points.txt": entry_points.encode()}


def metadata():
    head = [
        "Metadata-Version: 2.1",
        "Name: minikeeper",
        f"Version: {version()}",
        f"Summary: {setting('description')}",
        f"Requires-Python: {setting('requires-python')}",
        f"License: {setting('license')}",
        "Classifier: Framework :: Pytest",
        "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown",
    ]
    if repository := of_workspace("repository"):
        head.append(f"Project-URL: Repository, {repository}")
    return ("\n".join(head) + "\n\n" + (FOLDER / "README.md").read_text("utf-8")).encode()


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def platform_tag(programs):
    """Returns the tags of the platforms that run these programs.

    Static programs run on any Linux. Dynamic ones run from the glibc on whose symbols they need; one with other
    libraries, or for musl, gets a tag that only this machine's pip accepts.
    """
    others = {other_platform(program) for program in programs}
    if others != {None}:
        if len(others) != 1:
            raise SystemExit(f"the programs are for different machines: {others}")
        return others.pop()
    elves = [Elf(program) for program in programs]
    machines = {elf.machine for elf in elves}
    if len(machines) != 1:
        raise SystemExit(f"the programs are for different machines: {machines}")
    machine = MACHINES.get(machines.pop())
    if machine is None:
        raise SystemExit("the program is for an unknown machine: add it to MACHINES in build_backend.py")
    if all(elf.is_static for elf in elves):
        oldest = "manylinux2014" if machine in ("x86_64", "aarch64") else f"manylinux_2_{GLIBC_MINOR_MIN}"
        return f"{oldest}_{machine}.musllinux_1_1_{machine}"
    needed = {library for elf in elves for library in elf.needed}
    if not all(MANYLINUX_LIBRARIES.fullmatch(library) for library in needed):
        return f"linux_{machine}"
    minors = [int(version[8:].split(".")[0]) for elf in elves for version in elf.versions if version[:8] == "GLIBC_2."]
    return f"manylinux_2_{max([GLIBC_MINOR_MIN, *minors])}_{machine}"


def other_platform(program):
    """Returns the tag of a program for macOS or Windows, or for this machine if its kind is unknown; None for Linux."""
    if program.startswith(b"\x7fELF"):
        return None
    tag = None
    if program.startswith(b"\xcf\xfa\xed\xfe"):
        tag = MACOS.get(struct.unpack_from("<I", program, 4)[0])
    elif program.startswith(b"MZ"):
        # The position of the PE header, whose signature is before the machine.
        (at,) = struct.unpack_from("<I", program, 0x3C)
        tag = WINDOWS.get(struct.unpack_from("<H", program, at + 4)[0])
    return tag or re.sub(r"[-.]", "_", sysconfig.get_platform())


class Elf:
    """What the headers of a program say about the system that it needs."""

    def __init__(self, content):
        self._content = content
        self._is_64 = content[4] == 2
        self._order = "<" if content[5] == 1 else ">"
        (self.machine,) = self._read("H", 18)
        (at,) = self._read("Q", 32) if self._is_64 else self._read("I", 28)
        size, count = self._read("HH", 54 if self._is_64 else 42)
        segments = [self._segment(at + number * size) for number in range(count)]
        self._loaded = [segment for segment in segments if segment[0] == 1]
        entries = self._dynamic(next((segment for segment in segments if segment[0] == 2), None))
        has_loader = any(segment[0] == 3 for segment in segments)
        self._strings = self._offset(dict(entries).get(5, 0))
        self.needed = [self._text(value) for tag, value in entries if tag == 1]
        """The names of the shared libraries."""
        # A static program that may be loaded at any address has a dynamic section too, without libraries.
        self.is_static = not has_loader and not self.needed
        self.versions = self._needed_versions(dict(entries))
        """The versions of symbols, such as GLIBC_2.34."""

    def _read(self, form, at):
        return struct.unpack_from(self._order + form, self._content, at)

    def _segment(self, at):
        """Returns the type, offset, address and size of a segment."""
        if self._is_64:
            kind, _, offset, address, _, size = self._read("IIQQQQ", at)
        else:
            kind, offset, address, _, size = self._read("IIIII", at)
        return kind, offset, address, size

    def _dynamic(self, segment):
        if segment is None:
            return []
        form, size = ("qQ", 16) if self._is_64 else ("iI", 8)
        entries = []
        for at in range(segment[1], segment[1] + segment[3], size):
            tag, value = self._read(form, at)
            if tag == 0:
                break
            entries.append((tag, value))
        return entries

    def _offset(self, address):
        for _, offset, start, size in self._loaded:
            if start <= address < start + size:
                return offset + address - start
        return 0

    def _text(self, at):
        start = self._strings + at
        return self._content[start : self._content.index(b"\0", start)].decode()

    def _needed_versions(self, entries):
        at, count = entries.get(0x6FFFFFFE), entries.get(0x6FFFFFFF, 0)
        if at is None:
            return []
        at, versions = self._offset(at), []
        for _ in range(count):
            _, names, _, first, following = self._read("HHIII", at)
            name_at = at + first
            for _ in range(names):
                _, _, _, name, next_name = self._read("IHHII", name_at)
                versions.append(self._text(name))
                name_at += next_name
            at += following
        return versions

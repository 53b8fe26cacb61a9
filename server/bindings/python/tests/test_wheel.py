"""The wheel and the sdist: which systems they are for, and what pip says when the program is missing."""

import hashlib
import importlib.util
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import PATIENCE_S
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from minikeeper._program import BUNDLED

FOLDER = pathlib.Path(__file__).parents[1]
NEEDED = "minikeeper needs its program, which is written in Rust"

spec = importlib.util.spec_from_file_location("build_backend", FOLDER / "build_backend.py")
backend = importlib.util.module_from_spec(spec)
spec.loader.exec_module(backend)
VERSION = backend.version()

pytestmark = pytest.mark.skipif(not BUNDLED.exists(), reason="minikeeper is not installed from its wheel")


def elf(libraries=(), versions=(), loader=None, machine=62, is_relocatable=True):
    """Returns the headers of a program for Linux: its loader, libraries, and the versions of symbols from the last one."""
    strings = b"\0" + b"".join(text.encode() + b"\0" for text in [*libraries, *versions])
    at_of = lambda text: strings.index(b"\0" + text.encode() + b"\0") + 1
    needs = b""
    if versions:
        needs += struct.pack("<HHIII", 1, len(versions), at_of(libraries[-1]), 16, 0)
        needs += b"".join(
            struct.pack("<IHHII", 0, 0, 2, at_of(text), 16 if text != versions[-1] else 0) for text in versions
        )
    strings_at = 64 + 3 * 56
    needs_at = strings_at + len(strings)
    dynamic = [(1, at_of(library)) for library in libraries] + [(5, strings_at)]
    dynamic += [(0x6FFFFFFE, needs_at), (0x6FFFFFFF, 1)] if versions else []
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in [*dynamic, (0, 0)])
    dynamic_at = needs_at + len(needs)
    size = dynamic_at + len(dynamic)
    segments = [(1, 0, size)]
    if loader:
        segments.append((3, 0, 0))
    if is_relocatable:
        segments.append((2, dynamic_at, len(dynamic)))
    head = b"\x7fELF\2\1\1".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    table = b"".join(struct.pack("<IIQQQQQQ", kind, 4, at, at, at, size, size, 1) for kind, at, size in segments)
    return (head + table).ljust(strings_at, b"\0") + strings + needs + dynamic


def mach_o(processor):
    """Returns the start of a 64-bit program for macOS."""
    return struct.pack("<II", 0xFEEDFACF, processor)


def pe(machine):
    """Returns the headers of a program for Windows."""
    return b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0" + struct.pack("<H", machine)


LOADER = "/lib64/ld-linux-x86-64.so.2"
STATIC = elf()
GLIBC_2_28 = elf(["libgcc_s.so.1", "libc.so.6"], ["GLIBC_2.3.4", "GLIBC_2.28", "GLIBC_2.9"], LOADER)


@pytest.mark.parametrize(
    "programs, tag",
    [
        ([STATIC], "manylinux2014_x86_64.musllinux_1_1_x86_64"),
        ([elf(is_relocatable=False)], "manylinux2014_x86_64.musllinux_1_1_x86_64"),
        ([elf(machine=183)], "manylinux2014_aarch64.musllinux_1_1_aarch64"),
        ([elf(machine=243)], "manylinux_2_17_riscv64.musllinux_1_1_riscv64"),
        ([GLIBC_2_28], "manylinux_2_28_x86_64"),
        ([STATIC, GLIBC_2_28], "manylinux_2_28_x86_64"),
        ([elf(["libc.so.6"], ["GLIBC_2.34"], LOADER), GLIBC_2_28], "manylinux_2_34_x86_64"),
        # A text in the program is not a version that it needs.
        ([elf(["libc.so.6"], ["GLIBC_2.2.5"], LOADER) + b"GLIBC_2.99\0"], "manylinux_2_17_x86_64"),
        ([elf(["libc.so.6", "libssl.so.3"], [], LOADER)], "linux_x86_64"),
        ([elf(["libc.musl-x86_64.so.1"], [], "/lib/ld-musl-x86_64.so.1")], "linux_x86_64"),
        ([mach_o(0x0100000C)], "macosx_11_0_arm64"),
        ([mach_o(0x01000007)], "macosx_10_12_x86_64"),
        ([pe(0x8664)], "win_amd64"),
        ([pe(0xAA64)], "win_arm64"),
    ],
)
def test_tag_is_the_oldest_system_that_runs_the_programs(programs, tag):
    assert backend.platform_tag(programs) == tag


def test_programs_for_different_machines_are_refused():
    with pytest.raises(SystemExit, match="different machines"):
        backend.platform_tag([STATIC, elf(machine=183)])
    with pytest.raises(SystemExit, match="different machines"):
        backend.platform_tag([pe(0x8664), pe(0xAA64)])
    with pytest.raises(SystemExit, match="unknown machine"):
        backend.platform_tag([elf(machine=8)])


def build(out, kind="wheel", **environment):
    out.mkdir(exist_ok=True)
    ask = f"import sys, build_backend; print(build_backend.build_{kind}(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-B", "-c", ask, out],
        cwd=FOLDER,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert built.returncode == 0, built.stderr
    return out / built.stdout.strip()


def pip(*arguments, **environment):
    arguments = [sys.executable, "-m", "pip", *arguments]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1", **environment}
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def static(tmp_path):
    """A folder with programs that look static; nothing runs them."""
    folder = tmp_path / "static"
    folder.mkdir()
    for name in ("minikeeper", "minikeeper-cli"):
        (folder / name).write_bytes(STATIC)
    return folder


@pytest.fixture
def without_cargo(tmp_path):
    """The environment of a machine without a Rust toolchain and a program."""
    return {"PATH": str(tmp_path), "CARGO_TARGET_DIR": str(tmp_path / "target"), "MINIKEEPER_BIN": ""}


def test_wheel_of_static_programs_lists_every_tag_and_fits_here(tmp_path, static):
    wheel = build(tmp_path / "out", MINIKEEPER_BIN=str(static / "minikeeper"))
    assert wheel.name == f"minikeeper-{VERSION}-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl"
    _, _, _, tags = parse_wheel_filename(wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"minikeeper-{VERSION}.dist-info/WHEEL").decode()
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert {line[5:] for line in text.splitlines() if line.startswith("Tag: ")} == {str(tag) for tag in tags}
    assert {name for name, mode in modes.items() if mode == 0o755} == {
        "minikeeper/bin/minikeeper",
        "minikeeper/bin/minikeeper-cli",
    }
    if os.uname().machine == "x86_64":
        assert tags & set(sys_tags())
        code, said = pip("install", "--no-deps", "--target", tmp_path / "installed", wheel)
        assert code == 0, said
        assert os.access(tmp_path / "installed/minikeeper/bin/minikeeper-cli", os.X_OK)


def test_wheel_of_this_program_fits_here(tmp_path):
    wheel = build(tmp_path / "out", MINIKEEPER_BIN=str(BUNDLED))
    _, _, _, tags = parse_wheel_filename(wheel.name)
    assert tags & set(sys_tags())


def test_description_in_the_wheel_is_for_those_who_have_it(tmp_path, static):
    wheel = build(tmp_path / "out", MINIKEEPER_BIN=str(static / "minikeeper"))
    with zipfile.ZipFile(wheel) as archive:
        description = archive.read(f"minikeeper-{VERSION}.dist-info/METADATA").decode()
    assert "# minikeeper for Python" in description
    assert "PyPI" not in description and "Rust" not in description


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_same_sources_make_the_same_file(tmp_path, static, kind):
    sums = set()
    for number in range(2):
        file = build(tmp_path / str(number), kind, MINIKEEPER_BIN=str(static / "minikeeper"), TZ=f"UTC-{number}")
        sums.add(hashlib.sha256(file.read_bytes()).hexdigest())
        os.utime(static / "minikeeper", (number, number))
    assert len(sums) == 1


def test_missing_second_program_is_named(tmp_path, static):
    (static / "minikeeper-cli").unlink()
    code, said = pip("wheel", "-w", tmp_path, FOLDER, MINIKEEPER_BIN=str(static / "minikeeper"))
    assert code == 1 and "minikeeper-cli must be in the same folder as minikeeper" in said, said


def test_wheel_is_built_from_the_sdist_with_a_program(tmp_path, static):
    sdist = build(tmp_path / "out", "sdist")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert f"minikeeper-{VERSION}/PKG-INFO" in names and f"minikeeper-{VERSION}/src/minikeeper/py.typed" in names
    code, said = pip("wheel", "-w", tmp_path / "wheels", sdist, MINIKEEPER_BIN=str(static / "minikeeper"))
    assert code == 0, said
    (wheel,) = (tmp_path / "wheels").iterdir()
    # The same as that of the checkout.
    direct = build(tmp_path / "direct", MINIKEEPER_BIN=str(static / "minikeeper"))
    assert wheel.name == direct.name and wheel.read_bytes() == direct.read_bytes()


def test_pip_says_what_the_sdist_needs(tmp_path, without_cargo):
    sdist = build(tmp_path / "out", "sdist")
    code, said = pip("install", "--no-deps", "--target", tmp_path / "installed", sdist, **without_cargo)
    assert code == 1 and NEEDED in said and "set MINIKEEPER_BIN" in said, said
    assert "metadata-generation-failed" not in said and "Traceback" not in said, said


def test_pip_says_what_the_checkout_needs(tmp_path, without_cargo):
    code, said = pip("install", "--no-deps", "--target", tmp_path / "installed", FOLDER, **without_cargo)
    assert code == 1 and NEEDED in said and "Rust toolchain (`cargo`) in PATH" in said, said
    assert "metadata-generation-failed" not in said and "Traceback" not in said, said


def test_pip_builds_the_program_of_the_checkout_with_cargo(tmp_path, static, without_cargo):
    cargo = tmp_path / "cargo"
    cargo.write_text(
        "#!/bin/sh\necho \"cargo $*\" >\"$CARGO_TARGET_DIR/asked\"\n"
        f'/bin/mkdir -p "$CARGO_TARGET_DIR/release" && /bin/cp {static}/* "$CARGO_TARGET_DIR/release"\n'
    )
    cargo.chmod(0o755)
    target = tmp_path / "target"
    target.mkdir()
    code, said = pip("install", "--no-deps", "--target", tmp_path / "installed", FOLDER, **without_cargo)
    assert code == 0, said
    assert (target / "asked").read_text() == "cargo build --release --quiet\n"
    assert (tmp_path / "installed/minikeeper/bin/minikeeper").read_bytes() == STATIC
    cargo.write_text("#!/bin/sh\necho 'no such crate' >&2\nexit 101\n")
    code, said = pip("install", "--no-deps", "--target", tmp_path / "again", FOLDER, **without_cargo)
    assert code == 1 and "no such crate" in said and "cargo build exited with code 101" in said, said

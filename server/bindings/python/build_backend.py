"""Builds the wheel: the package, with the programs `minikeeper` and `minikeeper-cli` inside.

A PEP 517 backend that needs only the standard library. It takes the program that MINIKEEPER_BIN names and
`minikeeper-cli` beside it, or those of the release build of the checkout.
"""

import base64
import hashlib
import os
import pathlib
import re
import stat
import sysconfig
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
MODE_PROGRAM = (stat.S_IFREG | 0o755) << 16
MODE_FILE = (stat.S_IFREG | 0o644) << 16


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel and returns its name. Raises SystemExit if a program is missing."""
    program, shell = (path.read_bytes() for path in find_programs())
    version = setting("version")
    tag = f"py3-none-{platform_tag(program)}"
    info = f"minikeeper-{version}.dist-info"
    files = {
        f"minikeeper/{path.name}": path.read_bytes()
        for path in sorted((FOLDER / "src/minikeeper").iterdir())
        if path.is_file()
    }
    files["minikeeper/bin/minikeeper"] = program
    files["minikeeper/bin/minikeeper-cli"] = shell
    files[f"{info}/licenses/LICENSE-MIT"] = (ROOT / "LICENSE-MIT").read_bytes()
    files[f"{info}/licenses/LICENSE-APACHE"] = (ROOT / "LICENSE-APACHE").read_bytes()
    files[f"{info}/METADATA"] = metadata(version)
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: minikeeper {version}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    )
    files[f"{info}/entry_points.txt"] = (
        b"[console_scripts]\nminikeeper = minikeeper.__main__:main\n\n"
        b"[pytest11]\nminikeeper = minikeeper.pytest_plugin\n"
    )
    record = f"{info}/RECORD"
    files[record] = "".join(
        [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()] + [f"{record},,\n"]
    ).encode()

    wheel = f"minikeeper-{version}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            # A constant time, so that the same sources make the same wheel.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = MODE_PROGRAM if name.startswith("minikeeper/bin/") else MODE_FILE
            archive.writestr(entry, content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """Refuses: installing from source would need a Rust toolchain."""
    raise SystemExit("minikeeper has no source distribution: build a wheel from a checkout of the repository")


def find_programs():
    """Returns the paths of `minikeeper` and of `minikeeper-cli`, which `minikeeper cli` starts from its own folder."""
    named = os.environ.get("MINIKEEPER_BIN")
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    program = pathlib.Path(named).resolve() if named else target / "release/minikeeper"
    if not program.is_file():
        raise SystemExit(f"no program at {program}: run `cargo build --release` first, or set MINIKEEPER_BIN")
    shell = program.with_name("minikeeper-cli")
    if not shell.is_file():
        raise SystemExit(f"no program at {shell}: minikeeper-cli must be in the same folder as {program.name}")
    return program, shell


def setting(name):
    # Only Python 3.11 and later can parse TOML; this file is ours and simple.
    text = (FOLDER / "pyproject.toml").read_text("utf-8")
    return re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE).group(1)


def metadata(version):
    head = [
        "Metadata-Version: 2.1",
        "Name: minikeeper",
        f"Version: {version}",
        f"Summary: {setting('description')}",
        f"Requires-Python: {setting('requires-python')}",
        f"License: {setting('license')}",
        "Classifier: Framework :: Pytest",
        "Description-Content-Type: text/markdown",
    ]
    return ("\n".join(head) + "\n\n" + (FOLDER / "README.md").read_text("utf-8")).encode()


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def platform_tag(program):
    """Returns the platform of the program, from its ELF header: its machine, and the oldest glibc it can use."""
    if not program.startswith(b"\x7fELF"):
        return re.sub(r"[-.]", "_", sysconfig.get_platform())
    order = "little" if program[5] == 1 else "big"
    machine = MACHINES.get(int.from_bytes(program[18:20], order))
    if machine is None:
        raise SystemExit("the program is for an unknown machine: add it to MACHINES in build_backend.py")
    minors = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", program)]
    if not minors:
        # A static program runs on any Linux.
        return f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    return f"manylinux_2_{max(minors)}_{machine}"

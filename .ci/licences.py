#!/usr/bin/env python3
"""Writes the licences of everything in the programs, also as Debian wants them, and a list of it as CycloneDX.

    .ci/licences.py TARGET LICENCES.txt DEBIAN-COPYRIGHT SBOM.cdx.json

From the metadata of cargo, for the features of a release; what only builds or tests need is left out.
"""

import json
import pathlib
import re
import subprocess
import sys

PACKAGE = "minikeeper"
FEATURES = "tls"
NAMES = ("licen", "copying", "unlicense", "notice")


def main():
    target, licences, debian, sbom = sys.argv[1:]
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}"]
    command += ["--manifest-path", "server/Cargo.toml", "--features", FEATURES]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = edges_of(metadata, packages)
    (program,) = (key for key in edges if packages[key]["name"] == PACKAGE)
    inside = reachable(program, edges)
    others = sorted((packages[key] for key in inside if packages[key]["source"]), key=lambda it: (it["name"], it["version"]))
    pathlib.Path(licences).write_text("".join(map(text_of, others)), encoding="utf-8")
    pathlib.Path(debian).write_text(debian_copyright(others), encoding="utf-8")
    described = bill(packages, program, inside, edges)
    pathlib.Path(sbom).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")


def edges_of(metadata, packages):
    """Returns the packages that are in a program because each package needs them."""

    def is_inside(dependency):
        # What only the compiler or a build script runs is not.
        kinds = [kind for target in packages[dependency["pkg"]]["targets"] for kind in target["kind"]]
        return "proc-macro" not in kinds and any(kind["kind"] is None for kind in dependency["dep_kinds"])

    return {
        node["id"]: [dependency["pkg"] for dependency in node["deps"] if is_inside(dependency)]
        for node in metadata["resolve"]["nodes"]
    }


def reachable(start, edges):
    found, left = {start}, [start]
    while left:
        new = [key for key in edges[left.pop()] if key not in found]
        found.update(new)
        left += new
    return found


def text_of(package):
    """Returns the heading of a package and its licence files; exits if it names no licence."""
    if not package["license"]:
        raise SystemExit(f"{package['name']} {package['version']} names no licence")
    heading = f"{package['name']} {package['version']}: {package['license']}"
    parts = [f"{heading}\n{'=' * len(heading)}"]
    if package["authors"]:
        parts.append("Authors: " + ", ".join(package["authors"]))
    return "\n\n".join([*parts, *files_of(package)]) + "\n\n\n"


def files_of(package):
    """Returns the texts of the licence files of a package."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(NAMES))
    return [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]


def debian_copyright(packages):
    """Returns a machine-readable debian/copyright. Of alternatives it takes MIT, whose text is there once."""
    own = pathlib.Path("LICENSE-MIT").read_text(encoding="utf-8").splitlines()
    (holder,) = holders_in("\n".join(own))
    parts = [
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: minikeeper\n"
        "Comment: The programs are linked with the Rust packages below crates/. Where a package\n"
        " offers several licences, this names MIT. THIRD-PARTY-LICENCES.txt has all texts.",
        f"Files: *\nCopyright: {holder}\nLicense: Expat or Apache-2.0",
    ]
    for package in packages:
        texts = files_of(package)
        holders = holders_in("\n".join(texts)) or package["authors"] or [f"the authors of {package['name']}"]
        files = f"Files: crates/{package['name']}-{package['version']}/*\nCopyright: " + "\n ".join(holders)
        if "MIT" in re.split(r" OR |/", package["license"]):
            licence = "Expat"
        else:
            # Debian has that of Apache, and wants no copies.
            shown = [text for text in texts if "TERMS AND CONDITIONS FOR USE, REPRODUCTION" not in text]
            licence = package["license"].replace(" AND ", " and ") + "\n" + indented("\n\n".join(shown))
        parts.append(f"{files}\nLicense: {licence}")
    text = "\n".join(own[own.index(next(line for line in own if line.startswith("Permission"))) :])
    parts.append(f"License: Expat\n{indented(text)}")
    parts.append(f"License: Apache-2.0\n{indented(APACHE)}")
    return "\n\n".join(parts) + "\n"


APACHE = "On Debian systems, the complete text is in /usr/share/common-licenses/Apache-2.0."


def holders_in(text):
    """Returns who holds the copyright according to licence files, without the templates of the Apache licence."""
    lines = re.findall(r"(?mi)^[ /*]*copyright(?: \(c\)| ©)?[ :]+((?:\d|\(c\)|[A-Z]).*)$", text)
    found = (line.strip(" .*/") for line in lines)
    return list(dict.fromkeys(line for line in found if not re.search(r"[\[{]yyyy|^(?i:licen[cs]e|notice|owner)", line)))


def indented(text):
    return "\n".join(f" {line.rstrip()}" if line.strip() else " ." for line in text.splitlines())


def bill(packages, program, inside, edges):
    """Returns a CycloneDX 1.5 document, without a time or a random number: the same commit makes the same one."""

    def reference(key):
        return f"pkg:cargo/{packages[key]['name']}@{packages[key]['version']}"

    def component(key, kind):
        package = packages[key]
        return {
            "type": kind,
            "bom-ref": reference(key),
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
            "purl": reference(key),
        }

    ordered = sorted(inside, key=reference)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(program, "application")},
        "components": [component(key, "library") for key in ordered if key != program],
        "dependencies": [
            {"ref": reference(key), "dependsOn": sorted(reference(it) for it in edges[key] if it in inside)}
            for key in ordered
        ],
    }


main()

#!/usr/bin/env python3
"""Writes the licences of everything in the programs, and a list of it as CycloneDX.

    .ci/licences.py TARGET LICENCES.txt SBOM.cdx.json

From the metadata of cargo, for the features of a release; what only builds or tests need is left out.
"""

import json
import pathlib
import subprocess
import sys

PACKAGE = "minikeeper"
FEATURES = "tls"
NAMES = ("licen", "copying", "unlicense", "notice")


def main():
    target, licences, sbom = sys.argv[1:]
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}"]
    command += ["--manifest-path", "server/Cargo.toml", "--features", FEATURES]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = edges_of(metadata, packages)
    (program,) = (key for key in edges if packages[key]["name"] == PACKAGE)
    inside = reachable(program, edges)
    others = sorted((packages[key] for key in inside if packages[key]["source"]), key=lambda it: (it["name"], it["version"]))
    pathlib.Path(licences).write_text("".join(map(text_of, others)), encoding="utf-8")
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
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(NAMES))
    heading = f"{package['name']} {package['version']}: {package['license']}"
    parts = [heading, "=" * len(heading)]
    if package["authors"]:
        parts.append("Authors: " + ", ".join(package["authors"]))
    parts += [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]
    return "\n\n".join(parts) + "\n\n\n"


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

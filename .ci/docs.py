"""Parts of the documentation site that `.ci/docs` needs.

docs.py links                   checks every relative link and anchor, the shape of others, and that navigation and index have every page
docs.py site                    checks the links of the built site, and that it loads nothing from another host
docs.py reference PROGRAM       checks that the tables of options and verbs in the pages are those of this program, or writes
                                them with UPDATE_EXPECT=1, and that it has every option that a page names
docs.py blocks LANGUAGE DIR     writes each block of code in this language that a page shows into a file, to be run
"""

import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.parse
import urllib.request


def links():
    """Every relative link leads to a file or folder of the checkout, and its anchor to a heading; in docs/, also on the site."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        check=True, capture_output=True, text=True,
    )
    files = [pathlib.Path(name) for name in listed.stdout.splitlines() if pathlib.Path(name).exists()]
    dangling = [
        f"{file}: names the file of a snippet instead of showing its code" for file in files if "--8<" + "--" in file.read_text()
    ]
    for file in files:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(`+)[^`].*?\1", "`", without_code(file.read_text()))):
            if re.match(r"[a-z]+:", target):
                # Nothing is asked over the network.
                if not re.fullmatch(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/\S*)?|http://127\.0\.0\.1\S*|mailto:\S+@\S+", target):
                    dangling.append(f"{file}: {target}")
                continue
            name, _, anchor = target.partition("#")
            path = file.parent / name if name else file
            is_page = path.suffix == ".md" and "docs" in (file.parts[0], path.parts[0])
            slugs = (slug_on_site, slug_on_github) if is_page else (slug_on_github,)
            if not path.exists() or anchor and any(anchor not in anchors(path, slug) for slug in slugs):
                dangling.append(f"{file}: {target}")
    config = pathlib.Path("zensical.toml").read_text()
    pages = [page.relative_to("docs").as_posix() for page in pathlib.Path("docs").rglob("*.md")]
    dangling += [f"zensical.toml: docs/{page} is not in nav" for page in pages if f'"{page}"' not in config]
    index = pathlib.Path("docs/index.md").read_text()
    dangling += [f"docs/index.md: no link to {page}" for page in pages if page != "index.md" and f"({page})" not in index]
    evidence = pathlib.Path("docs/evidence.md").read_text()
    for file, test in re.findall(r"`([\w./-]+)::([^`]+)`", evidence):
        if not pathlib.Path(file).exists() or test not in pathlib.Path(file).read_text():
            dangling.append(f"docs/evidence.md: {file}::{test}")
    stop_at(dangling, "dangling links")


def site():
    """Every link of the built site leads to a file of it, and no page loads anything from another host."""
    root = pathlib.Path("target/docs/site")
    ids = {page: set(re.findall(r'\sid="([^"]+)"', page.read_text())) for page in root.rglob("*.html")}
    faults = []
    for page in sorted(ids):
        for tag, target in re.findall(r'<(\w+)\b[^>]*?\s(?:href|src)="([^"]*)"', page.read_text()):
            if page.name == "404.html" or re.match(r"data:|mailto:", target):
                continue
            if re.match(r"\w+:|//", target):
                if tag != "a":
                    faults.append(f"{page}: loads {target}")
                continue
            name, _, anchor = target.partition("#")
            path = page.parent / urllib.parse.unquote(name) if name else page
            path = pathlib.Path(os.path.normpath(path / "index.html" if path.is_dir() else path))
            if not path.exists() or anchor and path in ids and urllib.parse.unquote(anchor) not in ids[path]:
                faults.append(f"{page}: {target}")
    stop_at(faults, "dangling links of the site")


def stop_at(faults, what):
    if faults:
        sys.exit(f"{what}:\n  " + "\n  ".join(faults))


def without_code(text):
    return re.sub(r"(?ms)^ *(`{3,}).*?^ *\1$", "", text)


def anchors(path, slug):
    headings = re.findall(r"(?m)^#+ +(.*)$", without_code(path.read_text()))
    return {slug(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)) for heading in headings}


def slug_on_github(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def slug_on_site(heading):
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def reference(program):
    # Without a heading of their own are only those for help and the version.
    tables = option_tables(help_of(program))
    parts = {f"options-{heading.lower()}": table for heading, table in tables if heading != "Options"}
    for command in "advise", "ctl", "export", "healthcheck", "replay", "sweep":
        parts[f"help-{command}"] = f"```text\n{help_of(program, command).rstrip()}\n```\n"
    description = described(program)
    parts["verbs"] = verb_tables(description)
    # Tests compare these with what the program does.
    for script in "order.sh", "order-fixed.sh", "claim.sh", "claim-fixed.sh":
        text = pathlib.Path("server/tests/cli/sweep", script).read_text()
        parts[script] = f'```sh title="{script}"\n{text}```\n'
    parts["story"] = f"```text\n{pathlib.Path('docs/stories/rust.txt').read_text()}```\n"
    known = pathlib.Path("tests/differential/README.md").read_text()
    parts["known-differences"] = re.search(r"(?ms)^<!-- known -->\n(.*?)(?=^<!-- )", known)[1]
    parts |= {"suites": suites(), "planted": planted(), "lock-safety": lock_safety()}
    write_generated(parts)
    verbs = {verb["operationId"].replace("_", "-") for verb in operations(description)}
    texts = [help_of(program), *(help_of(program, name) for name in ("advise", "export", "healthcheck", "replay", "sweep"))]
    texts += [help_of(program, "ctl", verb) for verb in sorted(verbs)]
    check_options(set(re.findall(r"--[a-z0-9][a-z0-9-]*", "\n".join(texts))))


def write_generated(parts):
    """Puts each part where a page says `<!-- generated: NAME -->`, up to `<!-- end -->`."""
    stale, used = [], set()
    for page in [pathlib.Path("README.md"), *sorted(pathlib.Path("docs").rglob("*.md"))]:
        def part(place):
            used.add(place[2])
            return f"{place[1]}\n{parts[place[2]].strip()}\n\n{place[3]}"
        before = page.read_text()
        missing = set(re.findall(r"(?m)^<!-- generated: ([\w.-]+) -->$", before)) - set(parts)
        stop_at([f"{page}: {name}" for name in sorted(missing)], "parts that the program does not have; is it built with TLS?")
        after = re.sub(r"(?ms)^(<!-- generated: ([\w.-]+) -->\n)(?:.*?)(^<!-- end -->$)", part, before)
        if after != before and os.environ.get("UPDATE_EXPECT"):
            page.write_text(after)
        elif after != before:
            stale.append(str(page))
    stop_at(stale, "pages that differ from the program; UPDATE_EXPECT=1 .ci/docs writes them")
    stop_at(sorted(set(parts) - used), "no page has")

# Variables of the program that stand for no option, and of the packages and tests.
VARIABLES = {"MINIKEEPER_BIN", "MINIKEEPER_JARS", "MINIKEEPER_SEED", "MINIKEEPER_SEED_PATH", "MINIKEEPER_STORIES",
             "MINIKEEPER_SWEEP_ONLY", "MINIKEEPER_SWEEP", "MINIKEEPER_CONNECT", "MINIKEEPER_SWEEP_RUN", "MINIKEEPER_SWEEP_START",
             "MINIKEEPER_SWEEP_POINTS", "MINIKEEPER_SWEEP_SUITE", "MINIKEEPER_SWEEP_ORDERS_S", "MINIKEEPER_SWEEP_PAIRS_S"}
# Options of pytest, which pages name, too.
OTHERS = {"--minikeeper-only", "--minikeeper-unmarked", "--pdb", "--run-once"}


def check_options(known):
    """Every option that a page names as code, `--like-this`, is one of the program's, and so is that of each variable; a
    final * stands for any ending."""
    unknown = []
    variables = VARIABLES | {f"MINIKEEPER_{option[2:].upper().replace('-', '_')}" for option in known}
    for page in sorted(pathlib.Path("docs").rglob("*.md")):
        for name in re.findall(r"`(--[a-z0-9][a-z0-9*-]*)", without_code(page.read_text())):
            if name not in OTHERS and not fnmatch.filter(known, name):
                unknown.append(f"{page}: {name}")
        named = re.findall(r"\bMINIKEEPER_\w+", page.read_text())
        unknown += [f"{page}: {name}" for name in named if name not in variables]
    stop_at(unknown, "options that the program does not have")


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def option_tables(text):
    """The options of a help text as clap prints it, one table for each heading."""
    for heading, options in re.findall(r"(?ms)^(\w+):\n(.*?)(?=^\w|\Z)", text):
        entries = re.split(r"(?m)^ {2,6}(?=-)", options)[1:]
        if not entries:
            continue
        rows = ["| Option | Meaning | Default | Key in `zoo.cfg` |", "| --- | --- | --- | --- |"]
        for entry in entries:
            names, _, meaning = entry.partition("\n")
            meaning = re.sub(r"(?m)^ *- (\S+): +", r"`\1`: ", textwrap.dedent(meaning)).strip()
            default = re.search(r"\[default:\s([^\]]*)\]", meaning)
            key = re.search(r"(?m)^zoo\.cfg: (.*)$", meaning)
            # A page gives the rule for variables once.
            meaning = re.sub(r"\s*\[default:\s[^\]]*\]|(?m:^zoo\.cfg: .*$)|(?m:^\[env: .*$)", "", meaning)
            meaning = re.sub(r" *\n\s*\n *", "<br>", meaning.strip()).replace("\n", " ")
            meaning = re.sub(r"(?<=\S) (?=`\w+`: )", "<br>", meaning)
            rows.append(row(f"`{names.strip()}`", meaning, default[1].replace("\n", " ") if default else "", f"`{key[1]}`" if key else ""))
        yield heading, "\n".join(rows) + "\n"


def row(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |"


def described(program):
    """The OpenAPI description that the program gives of its control API."""
    with tempfile.TemporaryDirectory() as folder:
        address = pathlib.Path(folder, "address")
        command = [program, "--port", "0", "--control", "--exit-on-stdin-eof", "--address-file", address]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 30
            while not address.exists() and server.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            with urllib.request.urlopen(f"http://{address.read_text().strip()}/v1/openapi.json", timeout=30) as reply:
                return json.load(reply)
        finally:
            server.stdin.close()
            server.wait(30)


def suites():
    """How many tests of other people's suites pass here and on the server that they are written for."""
    folder = pathlib.Path("tests/interop")
    kazoo = re.findall(r"(?m)^(passed|failed|skipped) ", (folder / "kazoo-suite/original.txt").read_text())
    races = len(re.findall(r"(?m)^race ", (folder / "kazoo-suite/exceptions.txt").read_text()))
    passed, failed, skipped = map(kazoo.count, ("passed", "failed", "skipped"))
    total = re.compile(r"(\d+) tests passed and (\d+) failed on minikeeper, (\d+) and (\d+) on Curator's server")
    curator = [int(n) for n in total.search((folder / "bindings/curator-support/results.md").read_text()).groups()]
    rows = ["| Suite | Passed, of | On its own server | Command |", "| --- | --- | --- | --- |"]
    rows.append(row("kazoo 2.11.0", f"{passed} of {len(kazoo)}",
                    f"the same {passed}; {failed} need an ensemble, {skipped} are skipped; {races} are races, tried up to six times",
                    "`tests/interop/kazoo-suite/run`"))
    rows.append(row("Curator 5.4.0: client, framework, recipes, test", f"{curator[0]} of {curator[0] + curator[1]}",
                    f"{curator[2]} of {curator[2] + curator[3]}; `known.txt` has the reason of each failure",
                    "`tests/interop/bindings/curator-support/run --all`"))
    return "\n".join(rows)


def planted():
    """The bugs of tests/planted, as the heads of their patches describe them."""
    rows = ["| Patch | Bug | Tests that must find it | Requests |", "| --- | --- | --- | --- |"]
    for patch in sorted(pathlib.Path("tests/planted").glob("*.patch")):
        head = patch.read_text().partition("\ndiff ")[0]
        tests = re.findall(r"(?m)^Found by: (\w+) \S+$", head)
        requests = re.search(r"(?m)^Requests: (\S+)$", head)
        counts = ", ".join(f"{binary} {tests.count(binary)}" for binary in dict.fromkeys(tests))
        rows.append(row(f"`{patch.stem}`", " ".join(head.partition("\n\n")[0].split()), counts, requests[1] if requests else ""))
    return "\n".join(rows)


def lock_safety():
    """The last two columns of the lock bench's table of record, without the rows that were not run."""
    record = pathlib.Path("benches/compare/README.md").read_text().partition("## Table of record")[2]
    servers = {}
    for name, cells in re.findall(r"(?m)^\| ([^|]+ on [^|]+) \|(.*)\|$", record.partition("*The judge")[0]):
        outcome = tuple(cell.strip() for cell in cells.split("|")[-2:])
        lock, _, server = name.partition(" on ")
        if "-" not in outcome:
            server = re.sub(" (kindest|as shipped)$", "", server)
            servers.setdefault((lock, *outcome), {})[server] = None
    rows = ["| Lock | On | Cut off | Paused |", "| --- | --- | --- | --- |"]
    rows += [row(lock, "; ".join(on), *(f"**{o}**" if o == "TAKEN" else o for o in outcome)).replace("\\*", "*")
             for (lock, *outcome), on in servers.items()]
    return "\n".join(rows)


def verb_tables(description):
    """One section a verb: what it does, how it is asked, its arguments."""
    parts = []
    for verb in operations(description):
        parts.append(f"### {verb['operationId']}\n\n{verb['summary']}.\n\n`{verb['request']}`\n")
        arguments = list(arguments_of(verb))
        if arguments:
            rows = [row(f"`{name}`", kind, meaning) for name, kind, meaning in arguments]
            parts.append("\n".join(["| Argument | Type | Meaning |", "| --- | --- | --- |", *rows]) + "\n")
    return "\n".join(parts)


def operations(description):
    for path, methods in description["paths"].items():
        # The same verbs again, for another universe.
        if "{" not in path:
            for method, verb in methods.items():
                yield {**verb, "request": f"{method.upper()} {path}"}


def arguments_of(verb):
    for parameter in verb.get("parameters", []):
        kind = type_of(parameter["schema"], parameter.get("required", False))
        yield parameter["name"], kind, parameter.get("description", "")
    body = verb.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for name, schema in body.get("properties", {}).items():
        yield name, type_of(schema, name in body.get("required", [])), schema.get("description", "")


def type_of(schema, is_required):
    if "enum" in schema:
        kind = ", ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    else:
        kinds = schema.get("type", "any")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        kind = " or ".join(kind for kind in kinds if kind != "null")
    return kind if is_required else f"{kind}, optional"


# How a block's file is named. `{}` is the page and the line of its first fence.
FILES = {"java": "{}/", "js": "{}.test.js", "python": "test_{}.py", "rust": "{}.rs", "xml": "{}.xml"}


def blocks(language, folder):
    """Writes each block of a language to a file whose name and line numbers are those of the page, so that an error leads
    there. Above its fence `<!-- shown only -->` marks a block that is no program; `<!-- output -->` above the next block
    marks what it prints, which is written to a file that ends with `.out`."""
    out = pathlib.Path(folder)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    run, shown = 0, 0
    for page in pages_with_code():
        for line, mark, info, text, output in fences(page.read_text()):
            if info.partition(" ")[0] != language:
                continue
            if mark == "shown only":
                shown += 1
                continue
            run += 1
            place = re.sub(r"\W", "_", page.with_suffix("").as_posix()) + f"_{line}"
            name = file_name(language, info, text).format(place)
            (out / name).parent.mkdir(exist_ok=True)
            (out / name).write_text("\n" * line + text)
            if output is not None:
                (out / f"{name}.out").write_text(output)
    if not run:
        sys.exit(f"no page has a block of {language} to run")
    print(f"{language}: {run} blocks run, {shown} shown only")


def file_name(language, info, text):
    if ".jest." in info:
        return "{}.jest.js"
    if language == "java":
        return FILES[language] + re.search(r"(?m)^(?:public )?(?:final )?class (\w+)", text)[1] + ".java"
    if language == "python" and not re.search(r"(?m)^ *(async )?def test_", text):
        return "{}.py"  # a program, which is no test
    return FILES[language]


def pages_with_code():
    pages = [pathlib.Path("README.md"), *pathlib.Path("server/bindings").glob("*/README.md"), *pathlib.Path("docs").rglob("*.md")]
    return sorted(pages)


def fences(text):
    """The blocks of a page: line of the opening fence, mark above it, info string, content, output if the page shows it."""
    found = re.finditer(r"(?ms)^(?:<!-- ([^\n]*?) -->\n)?```(\w[^\n]*)\n(.*?)^```$", text)
    found = [(text[: one.start(2)].count("\n") + 1, *one.groups()) for one in found]
    for one, following in zip(found, [*found[1:], None]):
        yield *one, following[3] if following and following[1] == "output" else None


match sys.argv[1:]:
    case ["blocks", language, folder]:
        blocks(language, folder)
    case ["links"]:
        links()
    case ["site"]:
        site()
    case ["reference", program]:
        reference(program)
    case _:
        sys.exit(__doc__)

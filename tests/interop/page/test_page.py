"""What a person does with the page."""

import contextlib
import gzip
import json
import os
import random
import re
import socket
import struct
import threading

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss
from kazoo.security import ACL, Id
from playwright.sync_api import expect

from conftest import PATIENCE

# Printed by a failing story; MINIKEEPER_SEED gives it back.
SEED = int(os.environ.get("MINIKEEPER_SEED") or random.randrange(2**31))

VIEWS = ["tree", "sessions", "locks", "timeline", "advice", "faults", "clock", "snapshots", "universes", "servers"]


def item(page, name):
    """The row of a znode in the tree."""
    return page.get_by_role("treeitem").filter(has=page.locator(".name").get_by_text(name, exact=True))


def names(page):
    return [name.strip() for name in page.locator(".row .name").all_inner_texts()]


def commands(scope):
    return [text.strip() for text in scope.locator(".command code").all_text_contents()]


def go(page, view):
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view, exact=True).click()
    expect(page.get_by_role("link", name=view, exact=True)).to_have_attribute("aria-current", "page")


def console(page):
    """What the browser logs from now on."""
    said = []
    page.on("console", lambda it: said.append(f"{it.text} {it.location['url']}"))
    return said


# The tree.


def test_tree_loads_children_sorted_as_they_are_opened(server, client, visits):
    for name in ["b", "a", "c"]:
        client.create(f"/top/{name}/leaf-of-{name}", b"", makepath=True)
    page = visits(server.url)
    asked = []
    page.on("request", lambda it: "list_children" in it.url and asked.append(it.url))
    expect(item(page, "top")).to_have_attribute("aria-expanded", "false")
    item(page, "top").locator(".twist").click()
    expect(page.get_by_role("treeitem")).to_have_count(6)
    assert names(page) == ["/", "top", "a", "b", "c", "zookeeper"]
    assert not any("leaf" in url or "top%2Fa" in url for url in asked)
    item(page, "b").locator(".twist").click()
    item(page, "leaf-of-b").click()
    expect(page).to_have_url(re.compile("path=%2Ftop%2Fb%2Fleaf-of-b"))
    expect(page.get_by_role("article", name="Znode /top/b/leaf-of-b")).to_be_visible()
    # A new znode appears in what is open, without a reload.
    client.create("/top/b/new-one")
    expect(item(page, "new-one")).to_be_visible()
    client.delete("/top/b/new-one")
    expect(item(page, "new-one")).to_have_count(0)


def test_tree_works_with_the_keyboard_alone(server, client, visits):
    client.create("/one/two/three", b"found", makepath=True)
    client.create("/other")
    page = visits(server.url)
    expect(item(page, "one")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Tab")
    root = page.get_by_role("treeitem").first
    expect(root).to_be_focused()
    for key, name, expanded in [
        ("ArrowDown", "one", "false"),
        ("ArrowRight", "one", "true"),
        ("ArrowRight", "two", "false"),
        ("ArrowRight", "two", "true"),
        ("ArrowDown", "three", None),
        ("ArrowLeft", "two", "true"),
        ("ArrowLeft", "two", "false"),
        ("End", "zookeeper", "false"),
        ("Home", "/", "true"),
        ("o", "one", "true"),
        ("ArrowDown", "two", "false"),
        ("ArrowRight", "two", "true"),
        ("ArrowDown", "three", None),
    ]:
        page.keyboard.press(key)
        expect(item(page, name)).to_be_focused()
        if expanded is not None:
            expect(item(page, name)).to_have_attribute("aria-expanded", expanded)
        # What is open is read first.
        for parent, child in [("one", "two"), ("two", "three")]:
            if (name, expanded) == (parent, "true"):
                expect(item(page, child)).to_be_visible()
    expect(item(page, "three")).to_have_attribute("aria-level", "4")
    outline = item(page, "three").evaluate("it => getComputedStyle(it).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_label("Value", exact=True)).to_have_text("found")
    expect(item(page, "three")).to_have_attribute("aria-selected", "true")


def test_thousands_of_children_come_some_at_a_time(server, visits):
    server.call("seed", tree={f"/many/n{number:05}": "" for number in range(5_000)})
    page = visits(f"{server.url}#/tree?path=/many")
    item(page, "many").locator(".twist").click()
    expect(item(page, "n00000")).to_have_attribute("aria-setsize", "5000")
    item(page, "many").focus()
    for key in ["End", "ArrowUp"]:
        page.keyboard.press(key)
    more = page.get_by_role("treeitem", name="show more: 200 of 5000")
    expect(more).to_be_focused()
    more.click()
    expect(item(page, "n00199")).to_be_focused()
    expect(page.get_by_role("treeitem", name="show more")).to_have_count(0)
    # Only what is in sight has elements, and the row with the focus.
    for key, name in [("Home", "/"), ("End", "zookeeper"), ("ArrowUp", "n04999"), ("ArrowUp", "n04998"), ("ArrowLeft", "many"), ("ArrowDown", "n00000")]:
        page.keyboard.press(key)
        expect(item(page, name)).to_be_focused()
        expect(item(page, name)).to_be_in_viewport()
        assert page.get_by_role("treeitem").count() < 100
    page.locator(".tree").evaluate("it => { it.scrollTop = 60000; }")
    expect(item(page, "n02605")).to_be_visible()
    expect(item(page, "n00000")).to_be_focused()
    assert page.get_by_role("treeitem").count() < 100
    page.get_by_role("searchbox", name="Search paths").fill("n04321")
    page.get_by_role("link", name="/many/n04321").click()
    expect(page.get_by_role("article", name="Znode /many/n04321")).to_be_visible()
    expect(item(page, "n04321")).to_be_in_viewport()


def test_children_are_listed_in_the_order_chosen_and_a_link_shows_its_row(server, client, visits):
    server.call("seed", tree={f"/many/n{number:05}": "x" for number in range(5_000)})
    server.call("seed", tree={"/many/a-new": "x", "/many/n00300/child": "x", "/many/n04000/one": "x", "/many/n04000/two": "x"})
    page = visits(f"{server.url}#/tree?path=/many/n04000/two")
    # Beyond the first 200.
    expect(item(page, "two")).to_be_in_viewport()
    expect(item(page, "two")).to_have_attribute("aria-selected", "true")
    expect(item(page, "n04000")).to_be_visible()
    expect(item(page, "n00201")).to_have_count(0)
    page.get_by_label("Order of children").select_option(label="most children first")
    page.locator(".tree").evaluate("it => { it.scrollTop = 0; }")
    below = page.locator('.row[title^="/many/"][aria-level="3"]')
    expect(below.nth(0)).to_have_attribute("title", "/many/n04000")
    expect(below.nth(1)).to_have_attribute("title", "/many/n00300")
    page.get_by_label("Order of children").select_option(label="newest first")
    expect(below.first).to_have_attribute("title", "/many/a-new")
    page.get_by_label("Order of children").select_option(label="by name")
    expect(below.nth(1)).to_have_attribute("title", "/many/n00000")


def test_search_finds_paths_and_data(server, client, visits):
    client.create("/services/web/port", b"8443", makepath=True)
    client.create("/notes", b"the port is 8443")
    page = visits(server.url)
    page.get_by_role("searchbox", name="Search paths").fill("port")
    expect(page.get_by_text("1 found")).to_be_visible()
    page.get_by_label("data too").check()
    expect(page.get_by_text("2 found")).to_be_visible()
    page.locator(".found").get_by_role("link", name="/notes").click()
    expect(page.get_by_label("Value", exact=True)).to_have_text("the port is 8443")
    assert len(server.ctl(commands(page.locator(".found"))[0]).splitlines()) == 1


def snappy(text: bytes) -> bytes:
    """Compresses two equal halves: a literal, and a copy of it."""
    half = text[: len(text) // 2]
    assert half * 2 == text and len(half) <= 60
    block = bytes([len(text), (len(half) - 1) << 2]) + half + bytes([((len(half) - 1) << 2) | 2, len(half), 0])
    return b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2 + len(block).to_bytes(4, "big") + block


def test_values_are_shown_as_text_json_xml_and_hex_and_decompressed(server, client, visits):
    # A number that JavaScript would round.
    text = b'{"id":12345678901234567890,"on":true,"tags":["a","b"],"none":{}}'
    pretty = '{\n  "id": 12345678901234567890,\n  "on": true,\n  "tags": [\n    "a",\n    "b"\n  ],\n  "none": {}\n}'
    values = {
        "json": text,
        "gzip": gzip.compress(text),
        "snappy": snappy(b"abcdefgh" * 2),
        "xml": b"<a x='1'><b>text</b><c/></a>",
        "binary": bytes(range(256)),
        "damaged": gzip.compress(text)[:20],
        "bomb": gzip.compress(bytes(5 << 20)),
    }
    for name, value in values.items():
        client.create(f"/values/{name}", value, makepath=True)
    page = visits(f"{server.url}#/tree?path=/values/json")
    value = page.get_by_label("Value", exact=True)
    expect(value).to_have_text(pretty)
    for name, wanted in [
        ("gzip", pretty),
        ("snappy", "abcdefgh" * 2),
        ("xml", "<a x='1'>\n  <b>text</b>\n  <c/>\n</a>"),
        ("binary", re.compile(r"^000000  00 01 02 03 04 05 06 07  08 .*\n000010 ")),
    ]:
        item(page, name).click()
        expect(value).to_have_text(wanted)
    item(page, "damaged").click()
    expect(page.get_by_text("not gzip: the compressed data is damaged")).to_be_visible()
    item(page, "bomb").click()
    expect(page.get_by_text("not gzip: the value has more than 4 MiB when decompressed")).to_be_visible()
    # The choice is remembered.
    page.get_by_role("button", name="Hex", exact=True).click()
    page.get_by_label("Decode").select_option("stored")
    item(page, "gzip").click()
    expect(value).to_have_text(re.compile("^000000  1f 8b"))
    page.reload()
    expect(value).to_have_text(re.compile("^000000  1f 8b"))
    expect(page.get_by_role("button", name="Hex", exact=True)).to_have_attribute("aria-pressed", "true")


def test_values_of_any_bytes_end_in_text_or_an_error(server, visits):
    page = visits(server.url)
    found = page.evaluate("""async (seed) => {
      const values = await import("/page/values.js");
      const faults = [];
      let state = seed;
      const random = (end) => (state = (state * 1103515245 + 12345) % 2147483648) % end;
      const pieces = ["{", "[", "]", "}", ":", ",", '"', "\\\\", "<", ">", "/", "<a>", "</a>", "<!--", "-->", "<![CDATA[", "1", " ", "é", "\\u202e"];
      for (let round = 0; round < 3000; round += 1) {
        const text = Array.from({length: random(40)}, () => pieces[random(pieces.length)]).join("");
        const pretty = values.json(text);
        const plain = (it) => it.replace(/\\s/g, "");
        if (pretty !== null && plain(pretty) !== plain(text)) faults.push(`json ${text}`);
        const tags = values.xml(text);
        if (tags !== null && plain(tags) !== plain(text)) faults.push(`xml ${text}`);
        const bytes = Uint8Array.from({length: random(60)}, () => random(256));
        const framed = new Uint8Array([...(random(2) ? [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0] : [0xff, 6, 0, 0, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59]), ...bytes]);
        for (const one of [bytes, framed]) {
          try {
            values.unsnap(one);
          } catch (error) {
            if (error.constructor !== Error) faults.push(`snappy [${one}]: ${error}`);
          }
          for (const format of values.FORMATS) values.shown(one, format);
          if (String(values.fromDigits(values.digits(one))) !== String(one)) faults.push(`digits [${one}]`);
        }
      }
      // The framing format: a compressed chunk, padding and an uncompressed chunk.
      const chunk = (kind, body) => [kind, body.length, 0, 0, ...body];
      const stream = [0xff, 6, 0, 0, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59, ...chunk(0, [0, 0, 0, 0, 8, 4, 97, 98, 0x16, 2, 0]), ...chunk(0xfe, [1, 2]), ...chunk(1, [0, 0, 0, 0, 33])];
      const text = new TextDecoder().decode(values.unsnap(new Uint8Array(stream)));
      if (text !== "abababab!") faults.push(text);
      // What takes long with a careless parser.
      for (const piece of ["<", "<!--", "<a>", "[", '"', "[[],"]) values.shown(new TextEncoder().encode(piece.repeat(60000)), "auto");
      return faults;
    }""", SEED)
    assert found == [], f"seed {SEED}"


def test_edit_checks_the_version(server, client, visits):
    client.create("/config", b"one")
    page = visits(f"{server.url}#/tree?path=/config")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Data as text").fill("two")
    shown = commands(page.locator(".value"))[0]
    page.get_by_role("button", name="Save over version 0").click()
    expect(page.get_by_label("Value", exact=True)).to_have_text("two")
    assert client.get("/config")[0] == b"two"
    assert shown.endswith("set /config two --version 0")

    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Data as text").fill("mine")
    client.set("/config", b"theirs")
    expect(page.get_by_text("The znode has changed meanwhile: version 2 instead of 1.")).to_be_visible()
    # No button for what cannot work.
    expect(page.get_by_role("button", name="Save over")).to_have_count(0)
    page.get_by_role("button", name="Keep mine for version 2").click()
    page.get_by_role("button", name="Save over version 2").click()
    expect(page.get_by_label("Value", exact=True)).to_have_text("mine")
    assert client.get("/config")[0] == b"mine"

    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Data as text").fill("kept")
    client.delete("/config")
    page.get_by_role("button", name="Create it again").click()
    expect(page.get_by_label("Value", exact=True)).to_have_text("kept")
    assert client.get("/config")[0] == b"kept"

    client.set("/config", bytes([0, 255]))
    expect(page.get_by_label("Value", exact=True)).to_contain_text("00 ff")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Data as hexadecimal digits").fill("00 fe 0")
    expect(page.get_by_text("Not hexadecimal")).to_be_visible()
    page.get_by_label("Data as hexadecimal digits").fill("00 fe 01")
    page.get_by_role("button", name="Save over version 1").click()
    expect(page.get_by_label("Value", exact=True)).to_contain_text("00 fe 01")
    assert client.get("/config")[0] == bytes([0, 254, 1])


def test_znodes_are_created_and_deleted(server, client, visits):
    page = visits(server.url)
    page.get_by_text("Create a child").click()
    page.get_by_label("Name").fill("it's")
    page.get_by_label("Data", exact=True).fill("two\nlines")
    assert commands(page.locator("details[open]"))[0].endswith("create '/it'\\''s' 'two\nlines'")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("article", name="Znode /it's")).to_be_visible()
    assert client.get("/it's")[0] == b"two\nlines"
    client.create("/it's/child")
    expect(page.get_by_role("definition").filter(has_text=re.compile("^1$"))).to_be_visible()
    page.get_by_text("Delete", exact=True).first.click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("NOTEMPTY")
    page.get_by_label("and everything below it").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("article", name="Znode /", exact=True)).to_be_visible()
    assert not client.exists("/it's")


def test_subtree_is_exported_imported_and_compared(server, client, visits, tmp_path):
    client.create("/blue/a", b"1", makepath=True)
    client.create("/blue/raw", bytes([255]))
    page = visits(f"{server.url}#/tree?path=/blue")
    page.get_by_text("Export, import, compare").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as JSON").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == "blue.json"
    assert json.loads(file.read_text()) == {"/blue": "", "/blue/a": "1", "/blue/raw": {"data_base64": "/w=="}}

    client.create("/green")
    page.goto(f"{server.url}#/tree?path=/green")
    page.get_by_text("Export, import, compare").click()
    page.get_by_label("File with a tree").set_input_files(file)
    expect(page.get_by_label("in place of this znode")).to_be_checked()
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("2 created, 0 changed")).to_be_visible()
    assert client.get("/green/raw")[0] == bytes([255])

    page.get_by_label("With another znode").fill("/blue")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("No differences.")).to_be_visible()
    client.set("/green/a", b"2")
    client.delete("/green/raw")
    client.create("/green/new")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("3 differences")).to_be_visible()
    changes = page.locator(".diff li")
    expect(changes).to_contain_text(["/a changed12", "/new created", '/raw deleted{"data_base64":"/w=="}'])
    page.get_by_label("With an exported file").set_input_files(file)
    expect(page.locator(".diff")).to_contain_text("blue.json")


# Text of clients is text.

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)<script>",
    "javascript:alert(3)",
    '"><svg onload=alert(4)>',
    "${alert(5)}",
    "__proto__",
]


def test_hostile_names_data_and_identities_stay_text(server, clients, visits, tmp_path):
    client = clients()
    acl = [ACL(31, Id("world", "anyone")), ACL(1, Id("digest", "<img src=x onerror=alert(6)>:x"))]
    for name in HOSTILE:
        client.create(f"/x/{name}", name.encode(), acl=acl, makepath=True)
        client.create(f"/x/{name}/e", b"", ephemeral=True)
        client.get(f"/x/{name}", watch=lambda event: None)
    client.add_auth("digest", "<img src=x onerror=alert(7)>:secret")
    client.create("/locks/<img src=x onerror=alert(8)>/<b>__lock__0000000001", b"<script>alert(9)</script>", ephemeral=True, makepath=True)
    server.call("inject", action="delay", delay_ms=1, path="/<img src=x onerror=alert(10)>", optional=True)
    server.call("create_universe", name="<img src=x onerror=alert(11)>")
    server.call("snapshot")
    client.set(f"/x/{HOSTILE[0]}", HOSTILE[1].encode())
    page = visits(f"{server.url}#/tree?path=/x")
    item(page, "x").locator(".twist").click()
    for name in HOSTILE:
        item(page, name).click()
        value = HOSTILE[1] if name == HOSTILE[0] else name
        expect(page.get_by_label("Value", exact=True)).to_have_text(value)
        expect(page.locator(".acl")).to_contain_text("digest:<img src=x onerror=alert(6)>:x:r")
        for form in ["XML", "JSON", "Text", "Auto"]:
            page.get_by_role("button", name=form, exact=True).click()
    page.goto(f"{server.url}#/sessions?session=0x{client.client_id[0]:x}")
    expect(page.get_by_role("article")).to_contain_text("digest:<img src=x onerror=alert(7)>")
    expect(page.get_by_role("article")).to_contain_text("/x/javascript:alert(3)")
    for view in VIEWS:
        page.goto(f"{server.url}#/{view}")
        expect(page.locator("main")).not_to_contain_text("Reading")
        if view == "snapshots":
            page.get_by_role("button", name="Compare with now").click()
            expect(page.locator(".diff")).to_contain_text(HOSTILE[1])
        if view in ["locks", "faults", "universes", "timeline", "snapshots"]:
            expect(page.locator("main")).to_contain_text("<img src=x onerror=")
    page.goto(f"{server.url}#/tree?universe=<img src=x onerror=alert(11)>&path=/<img src=x onerror=alert(12)>")
    expect(page.get_by_text('no znode "/<img src=x onerror=alert(12)>"')).to_be_visible()
    links = page.locator("a").evaluate_all("all => all.map((it) => it.protocol)")
    assert set(links) == {"http:"}
    # A tree in a file is text too.
    file = tmp_path / "tree.json"
    file.write_text(json.dumps({f"/{name}": name for name in HOSTILE}))
    page.goto(f"{server.url}#/tree?path=/x")
    page.get_by_text("Export, import, compare").click()
    page.get_by_label("With an exported file").set_input_files(file)
    expect(page.locator(".diff")).to_contain_text(HOSTILE[0])
    markup = "document.querySelectorAll('#app img, #app script, #app svg[onload], #app [onerror]').length"
    assert page.evaluate(markup) == 0


# Sessions, clock, faults.


def expire(details):
    details.get_by_role("button", name="Expire").click()
    details.get_by_role("button", name="Yes, expire").click()


def connections(server, count):
    """Sessions without a client."""
    host, port = server.address.split(":")
    request = struct.pack(">iqiqi16s", 0, 0, 30_000, 0, 16, bytes(16))
    opened = []
    for _ in range(count):
        opened.append(socket.create_connection((host, int(port)), 15))
        opened[-1].sendall(struct.pack(">i", len(request)) + request)
        assert opened[-1].recv(100)
    return opened


def test_hundreds_of_sessions_are_sorted_and_scrolled(server, client, visits):
    client.create("/owned", ephemeral=True)
    opened = connections(server, 300)
    page = visits(f"{server.url}#/sessions")
    rows = page.locator("tbody tr:not(.rest)")
    expect(page.locator(".title")).to_contain_text("301")
    expect(rows.first).to_be_visible()
    assert rows.count() < 100
    page.get_by_role("button", name="Session", exact=True).click()
    ids = sorted(one["id"] for one in server.read("sessions")["sessions"])
    expect(rows.first).to_contain_text(ids[0])
    expect(page.get_by_role("columnheader", name="Session")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("group", name="List of sessions").evaluate("it => { it.scrollTop = it.scrollHeight; }")
    expect(rows.last).to_contain_text(ids[-1])
    expect(rows.last).to_be_in_viewport()
    expect(page.get_by_role("columnheader", name="Session")).to_be_in_viewport()
    assert rows.count() < 100
    for _ in range(2):
        page.get_by_role("button", name="Owns").click()
    page.get_by_role("group", name="List of sessions").evaluate("it => { it.scrollTop = 0; }")
    expect(rows.first).to_contain_text(f"0x{client.client_id[0]:x}")
    page.get_by_role("searchbox", name="Filter sessions").fill("/owned")
    expect(rows).to_have_count(1)
    for one in opened:
        one.close()


def test_session_shows_what_it_owns_and_is_expired(server, client, visits):
    lost = threading.Event()
    client.add_listener(lambda state: state == KazooState.LOST and lost.set())
    client.create("/owned", b"", ephemeral=True)
    client.exists("/watched", watch=lambda event: None)
    session = f"0x{client.client_id[0]:x}"
    page = visits(f"{server.url}#/sessions")
    page.get_by_role("button", name=session).click()
    details = page.get_by_role("article", name=f"Session {session}")
    expect(details.get_by_role("link", name="/owned")).to_be_visible()
    expect(details.get_by_role("link", name="/watched")).to_be_visible()
    assert any(line.endswith(f"expire {session}") for line in commands(details))
    details.get_by_role("button", name="Drop connection").click()
    expect(details).to_contain_text("connected")
    details.get_by_role("button", name="Expire").click()
    details.get_by_role("button", name="No").click()
    assert session in [one["id"] for one in server.read("sessions")["sessions"]]
    expire(details)
    expect(page.get_by_text(f"Session {session} has ended.")).to_be_visible()
    assert lost.wait(15)


def test_advice_names_a_mistake_with_its_evidence(server, client, visits):
    page = visits(f"{server.url}#/advice")
    expect(page.get_by_text("There are none.")).to_be_visible()
    client.ensure_path("/jobs")
    client.create("/jobs/lock-", ephemeral=True, sequence=True)
    found = page.get_by_role("article", name="unprotected-sequential")
    expect(found).to_contain_text("created /jobs/lock- as EPHEMERAL_SEQUENTIAL")
    expect(found).to_contain_text(re.compile(r"entry #\d+"))
    expect(found).to_contain_text("put a UUID into the name")
    assert commands(page)[0].endswith("advise")


def test_clock_is_stepped_until_a_session_expires(server, client, visits):
    client.create("/leader", b"", ephemeral=True)
    session = f"0x{client.client_id[0]:x}"
    page = visits(f"{server.url}#/clock")
    page.get_by_role("button", name="Freeze").click()
    expect(page.get_by_text("nothing expires until the clock moves")).to_be_visible()
    expect(page.get_by_role("link", name="frozen")).to_be_visible()
    go(page, "Sessions")
    page.get_by_role("button", name=session).click()
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("button", name="Listen again")).to_be_visible()
    go(page, "Clock")
    # Frozen, it stays as it is between the steps.
    sessions = {one["id"]: one["timeout_left_ms"] for one in server.read("sessions")["sessions"]}
    for step in range(1, 5):
        page.get_by_role("spinbutton", name="Advance by").fill("3")
        button = page.get_by_role("button", name="Advance", exact=True)
        with page.expect_response("**/v1/advance"):
            button.click()
        lives = session in [one["id"] for one in server.read("sessions")["sessions"]]
        assert lives == (step * 3_000 < sessions[session])
    page.goto(f"{server.url}#/tree?path=/leader")
    expect(page.get_by_text('no znode "/leader"')).to_be_visible()
    page.goto(f"{server.url}#/sessions?session={session}")
    expect(page.get_by_text(f"Session {session} has ended.")).to_be_visible()
    go(page, "Clock")
    page.get_by_role("button", name="Unfreeze").click()
    expect(page.get_by_text("runs", exact=True)).to_be_visible()


def test_clock_advances_by_itself_when_told(server, visits):
    page = visits(f"{server.url}#/clock")
    page.get_by_role("button", name="Freeze").click()
    page.get_by_role("button", name="Switch on").click()
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    used = [entry["text"] for entry in server.read("journal", "kind=verb")["entries"]]
    assert [text.split("auto_advance")[1].strip() for text in used if "auto_advance" in text] == ["idle_ms=100", ""]


def test_fault_is_set_hit_and_removed(server, client, visits):
    page = visits(f"{server.url}#/faults")
    page.get_by_label("Action").select_option("error")
    page.get_by_role("textbox", name="Error").fill("CONNECTIONLOSS")
    page.get_by_label("Operations").fill("create")
    page.get_by_label("Path").fill("/orders/**")
    page.get_by_label("Times").fill("1")
    shown = commands(page.locator("section").last)[0]
    assert shown.endswith("inject error --op create --path '/orders/**' --count 1 --error CONNECTIONLOSS")
    page.get_by_role("button", name="Set").click()
    fault = page.get_by_role("listitem", name="Fault 1")
    expect(fault).to_contain_text("0 of 1 hits")
    client.create("/orders")
    with pytest.raises(ConnectionLoss):
        client.create("/orders/1")
    client.create("/orders/1")
    expect(fault).to_contain_text("1 of 1 hit")
    fault.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No fault is set.")).to_be_visible()
    # The server's sentence, if it never acted.
    page.get_by_role("button", name="Set").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("alert")).to_contain_text("never")
    page.get_by_role("textbox", name="Error").fill("NONSENSE")
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_role("alert")).to_contain_text("NONSENSE")


# Snapshots and universes.


def test_snapshot_is_compared_and_restored(server, client, visits):
    client.create("/kept", b"before")
    page = visits(f"{server.url}#/snapshots")
    page.get_by_role("button", name="Take a snapshot").click()
    one = page.get_by_role("listitem", name="Snapshot 1")
    expect(one).to_be_visible()
    client.set("/kept", b"after")
    client.create("/added", b"")
    one.get_by_role("button", name="Compare with now").click()
    expect(one).to_contain_text("2 differences")
    expect(one.locator(".diff li")).to_contain_text(["/added created", "/kept changedbeforeafter"])
    page.get_by_role("button", name="Take a snapshot").click()
    two = page.get_by_role("listitem", name="Snapshot 2")
    expect(two).to_be_visible()
    one.get_by_role("button", name="Restore").click()
    expect(one).to_contain_text("No differences.")
    expect(two).to_contain_text("can no longer be restored")
    assert client.get("/kept")[0] == b"before"
    assert not client.exists("/added")
    for snapshot in [two, one]:
        snapshot.get_by_role("button", name="Drop").click()
        expect(snapshot).to_have_count(0)
    expect(page.get_by_text("There is no snapshot.")).to_be_visible()


@contextlib.contextmanager
def held(page, verb):
    """Holds the next request of this verb until the end of the block."""
    routes = []
    page.route(re.compile(f"/{verb}$"), lambda route: routes.append(route), times=1)
    yield
    for _ in range(1_000):
        if not routes:
            page.wait_for_timeout(10)
    routes[0].continue_()


def test_text_typed_before_an_answer_stays(server, client, visits):
    page = visits(f"{server.url}#/universes")
    name = page.get_by_label("Name")
    name.fill("first")
    with held(page, "create_universe"):
        page.get_by_role("button", name="Create empty").click()
        name.fill("second")
    expect(page.get_by_role("main").get_by_role("link", name="first")).to_be_visible()
    expect(name).to_have_value("second")

    client.create("/config", b"one")
    page.goto(f"{server.url}#/tree?path=/config")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Data as text").fill("two")
    with held(page, "set"):
        page.get_by_role("button", name="Save over version 0").click()
        page.get_by_label("Data as text").fill("three")
    expect(page.get_by_text("The znode has changed meanwhile: version 1 instead of 0.")).to_be_visible()
    expect(page.get_by_label("Data as text")).to_have_value("three")
    assert client.get("/config")[0] == b"two"


def test_universe_is_created_opened_and_dropped(server, clients, visits):
    clients().create("/of-the-server")
    page = visits(f"{server.url}#/universes")
    page.get_by_label("Name").fill("test-1")
    page.get_by_role("button", name="Create empty").click()
    page.get_by_label("Name").fill("copy")
    page.get_by_role("button", name="Copy the server's own").click()
    page.get_by_role("main").get_by_role("link", name="test-1").click()
    expect(page.get_by_label("Universe")).to_have_value("test-1")
    clients("/test-1").create("/of-the-universe")
    expect(item(page, "of-the-universe")).to_be_visible()
    expect(item(page, "of-the-server")).to_have_count(0)
    assert "--universe test-1" in commands(page)[0]
    page.get_by_label("Universe").select_option("copy")
    expect(item(page, "of-the-server")).to_be_visible()
    go(page, "Universes")
    page.get_by_role("listitem").filter(has_text="/copy").get_by_role("button", name="Drop").click()
    expect(page.get_by_role("main").get_by_role("link", name="copy")).to_have_count(0)
    assert server.read("universes") == {"universes": ["test-1"]}
    expect(page.get_by_label("Universe")).to_have_value("")


# Locks and the timeline.


def wait_for(lock):
    # The client may be stopped first.
    with contextlib.suppress(Exception):
        lock.acquire()


def queue(clients, count, path="/locks/orders"):
    """Kazoo clients in the queue of a lock, the first of them with the lock."""
    locks = []
    for number in range(count):
        client = clients()
        lock = client.Lock(path, f"worker-{number}")
        if number == 0:
            assert lock.acquire(timeout=15)
        else:
            threading.Thread(target=wait_for, args=[lock], daemon=True).start()
            # In the order of their numbers.
            while len(lock.contenders()) <= number:
                pass
        locks.append(lock)
    return locks


def test_lock_queue_hands_over_while_watched(server, clients, visits):
    locks = queue(clients, 3)
    page = visits(f"{server.url}#/locks")
    lock = page.get_by_role("group", name="Lock /locks/orders")
    rows = lock.get_by_role("listitem").filter(has_text="worker-")
    expect(rows).to_contain_text(["worker-0", "worker-1", "worker-2"])
    expect(rows.first).to_contain_text("holds")
    expect(rows.nth(1)).to_contain_text("waits 1")
    locks[0].release()
    expect(rows).to_have_count(2)
    expect(rows).to_contain_text(["worker-1", "worker-2"])
    expect(rows.first).to_contain_text("holds")
    # The next holder's session expires.
    holder = f"0x{locks[1].client.client_id[0]:x}"
    rows.first.get_by_role("button").first.click()
    expire(page.get_by_role("article", name=f"Session {holder}"))
    go(page, "Locks")
    expect(rows.first).to_contain_text("worker-2")
    expect(rows.first).to_contain_text("holds")


def test_long_queue_is_short_until_it_is_opened(server, client, visits):
    # Without watches, so that each waiter has a warning.
    for number in range(40):
        client.create("/locks/long/x__lock__", f"worker-{number}".encode(), ephemeral=True, sequence=True, makepath=True)
    client.create("/locks/other/x__lock__", b"other-worker", ephemeral=True, sequence=True, makepath=True)
    page = visits(f"{server.url}#/locks")
    lock = page.get_by_role("group", name="Lock /locks/long")
    queue = lock.locator(".contender")
    expect(queue).to_have_count(8)
    lock.get_by_role("button", name="Show all 40").click()
    expect(queue).to_have_count(40)
    lock.get_by_role("button", name="Show the first 8").click()
    expect(queue).to_have_count(8)
    # One session with many names is none of them.
    expect(queue.last.locator(".for")).to_have_text(re.compile("…"))
    expect(lock.locator(".warnings > li").filter(has_text="waiter-without-watch")).to_have_count(1)
    lock.get_by_text("and 38 more").click()
    expect(lock.locator(".warnings details li").last).to_be_visible()
    page.get_by_role("searchbox", name="Filter locks").fill("other-worker")
    expect(page.get_by_role("group", name="Lock /")).to_have_count(1)
    page.get_by_role("link", name="/locks/other", exact=True).click()
    expect(page.get_by_role("article", name="Znode /locks/other")).to_be_visible()


def test_deadlock_of_two_clients_is_named(server, clients, visits):
    (one,), (two,) = queue(clients, 1, "/locks/a"), queue(clients, 1, "/locks/b")
    page = visits(f"{server.url}#/locks")
    expect(page.get_by_role("group", name="Lock /locks/b")).to_be_visible()
    expect(page.get_by_text("Deadlock", exact=True)).to_have_count(0)
    for client, path in [(one.client, "/locks/b"), (two.client, "/locks/a")]:
        threading.Thread(target=wait_for, args=[client.Lock(path)], daemon=True).start()
    named = page.get_by_role("group", name="Deadlock")
    for path in ["/locks/a", "/locks/b"]:
        expect(named).to_contain_text(path)
    for lock in [one, two]:
        expect(named.get_by_title(f"session 0x{lock.client.client_id[0]:x}").first).to_be_visible()
    server.call("expire", session=f"0x{one.client.client_id[0]:x}")
    expect(named).to_have_count(0)


def test_timeline_shows_requests_as_they_come(server, client, visits):
    page = visits(f"{server.url}#/timeline")
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    client.create("/made-while-watching", b"")
    expect(page.locator("main")).to_contain_text("/made-while-watching")
    page.get_by_role("button", name="Pause").click()
    client.create("/made-while-paused", b"")
    server.call("until_exists", path="/made-while-paused")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("main")).to_contain_text("/made-while-paused")


def test_page_without_a_journal_never_asks_for_it(servers, visits):
    server = servers("--journal-bytes", "0")
    page = visits("about:blank", origin=server.url)
    refused, polls = [], []
    page.on("response", lambda it: it.status >= 400 and refused.append(it.url))
    page.on("response", lambda it: it.url.endswith("/v1/now") and polls.append(it.url))
    page.goto(f"{server.url}#/timeline")
    expect(page.get_by_text("--journal-bytes 4194304")).to_be_visible()
    for view in VIEWS:
        go(page, view.capitalize())
        expect(page.locator("main")).not_to_contain_text("Reading")
        expect(page.locator("main .bad")).to_have_count(0)
        # Until the page has asked again.
        polls.clear()
        while len(polls) < 3:
            page.wait_for_event("response")
    go(page, "Advice")
    expect(page.get_by_text("--journal-bytes 4194304")).to_be_visible()
    assert refused == []
    # The other views are live all the same.
    go(page, "Tree")
    server.call("create", path="/seen")
    expect(item(page, "seen")).to_be_visible()


@pytest.mark.parametrize("journal", ["0", "4194304"])
def test_universe_that_is_dropped_elsewhere_is_missed_without_an_error(servers, visits, journal):
    server = servers("--journal-bytes", journal)
    server.call("create_universe", name="test-1")
    page = visits("about:blank", origin=server.url)
    said = console(page)
    page.goto(f"{server.url}#/sessions?universe=test-1")
    expect(page.get_by_text("No client has a session.")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="polling" if journal == "0" else "live")).to_be_visible()
    # The page asks once a second; what is on its way when the universe goes is refused.
    with page.expect_response("**/test-1/sessions"), page.expect_response("**/test-1/now"):
        pass
    server.call("drop_universe", name="test-1")
    expect(page.get_by_text("There is no universe test-1.")).to_be_visible()
    for view in [view for view in VIEWS if view not in ["servers", "universes"]]:
        go(page, view.capitalize())
        expect(page.get_by_text("There is no universe test-1.")).to_be_visible()
    # It is found when it comes again, and so is a link to one that has gone.
    server.call("create_universe", name="test-1")
    expect(page.get_by_text("There is no universe")).to_have_count(0)
    go(page, "Servers")
    expect(page.get_by_role("listitem", name="Server 1")).to_be_visible()
    page.goto("about:blank")
    server.call("drop_universe", name="test-1")
    page.goto(f"{server.url}#/tree?universe=test-1")
    page.get_by_role("link", name="the server's own universe").click()
    expect(item(page, "zookeeper")).to_be_visible()
    assert said == []


def test_no_view_of_the_default_server_says_anything_on_the_console(servers, visits):
    server = servers()
    server.call("seed", tree={f"/many/n{number:05}": "x" for number in range(10_000)})
    client = KazooClient(server.address, timeout=10)
    client.start(PATIENCE)
    client.create("/locks/a", b"", makepath=True, ephemeral=True)
    page = visits("about:blank", origin=server.url)
    said = console(page)
    page.goto(f"{server.url}#/tree?path=/many/n09999")
    expect(item(page, "n09999")).to_be_in_viewport()
    page.get_by_role("treeitem", name="show more: 200 of 10000").click()
    expect(page.get_by_role("treeitem", name="show more")).to_have_count(0)
    for key in ["End", "ArrowUp", "PageUp", "Home", "ArrowDown"]:
        page.keyboard.press(key)
    for view in VIEWS:
        go(page, view.capitalize())
        client.set("/many/n00001", view.encode())
        expect(page.locator("main h1, main .tree").first).to_be_visible()
        expect(page.locator("main")).not_to_contain_text("Reading")
        expect(page.locator("main .notice.bad, main [role=alert]")).to_have_count(0)
    client.stop()
    client.close()
    assert said == []


def test_first_znode_has_no_age(server, visits):
    page = visits(server.url)
    expect(page.locator(".facts")).to_contain_text("with the server")
    expect(page.locator(".facts")).not_to_contain_text("ago")


def test_servers_are_taken_down_and_up(servers, visits):
    server = servers("--control", "--servers", "3")
    page = visits(f"{server.url}#/servers")
    one, two = [page.get_by_role("listitem", name=f"Server {number}") for number in [1, 2]]
    expect(one).to_contain_text("this page")
    expect(one.get_by_role("button", name="Down")).to_have_count(0)
    for label, mode in [("Down", "down"), ("Up", "up"), ("Cut off", "cut-off"), ("Read-only", "read-only")]:
        two.get_by_role("button", name=label, exact=True).click()
        expect(two.locator(".state")).to_have_text(mode)
        assert server.read("servers")["servers"][1]["mode"] == mode
    server.ctl(commands(two)[0])
    expect(two.locator(".state")).to_have_text("up")
    two.get_by_role("button", name="Make it the leader").click()
    expect(two).to_contain_text("leader")
    # One server has nothing to fail over to.
    alone = visits(f"{servers().url}#/servers")
    expect(alone.get_by_text("--servers 3")).to_be_visible()
    expect(alone.get_by_role("main").get_by_role("button", name="Down")).to_have_count(0)


# The page itself.


def test_read_only_page_changes_nothing(server, client, visits):
    client.create("/kept", b"x")
    server.call("inject", action="delay", delay_ms=1, optional=True)
    server.call("snapshot")
    page = visits(f"{server.url}#/tree?path=/kept")
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    page.get_by_label("Read-only").check()
    changes = re.compile("^(Edit|Create|Delete|Import|Expire$|Set|Remove|Up$|Down$|Freeze|Advance|Switch|Take|Restore|Drop|Copy the)")
    page.reload()
    for view in VIEWS:
        path = "tree?path=/kept" if view == "tree" else f"sessions?session=0x{client.client_id[0]:x}" if view == "sessions" else view
        page.goto(f"{server.url}#/{path}")
        expect(page.locator("main")).not_to_contain_text("Reading")
        expect(page.get_by_role("button", name=changes)).to_have_count(0)
        expect(page.locator("summary", has_text=changes)).to_have_count(0)
    # The module that calls verbs refuses too.
    refused = "import('/page/api.js').then((api) => api.change('delete', {path: '/kept'})).catch((error) => error.message)"
    assert "read-only" in page.evaluate(refused)
    assert client.exists("/kept")
    page.get_by_label("Read-only").uncheck()
    page.goto(f"{server.url}#/tree?path=/kept")
    expect(page.get_by_role("button", name="Edit")).to_be_visible()


def test_token_is_asked_for_and_kept_in_the_tab(servers, visits, browser):
    server = servers("--control", "--control-token", "s3cret")
    page = visits(server.url)
    page.get_by_label("Token of the server").fill("wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("missing or wrong token")
    page.get_by_label("Token of the server").fill("s3cret")
    page.keyboard.press("Enter")
    expect(item(page, "zookeeper")).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.get_by_text("Create a child").click()
    page.get_by_label("Name").fill("made")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(item(page, "made")).to_be_visible()
    page.reload()
    expect(item(page, "made")).to_be_visible()
    assert "s3cret" not in page.url + page.content()
    # Another tab knows it not.
    other = visits(server.url, context=page.context)
    expect(other.get_by_label("Token of the server")).to_be_visible()


def test_narrow_window_needs_no_horizontal_scrolling(server, clients, visits):
    client = clients()
    client.create("/a-long-name-" + "x" * 80 + "/another-" + "y" * 80, b"z" * 300, makepath=True)
    client.create("/raw", bytes(range(256)))
    queue(clients, 2)
    server.call("inject", action="delay", delay_ms=1, path="/" + "p" * 60, optional=True)
    server.call("snapshot")
    server.call("create_universe", name="universe-with-a-long-name")
    page = visits(server.url, width=400)
    long = "/a-long-name-" + "x" * 80 + "/another-" + "y" * 80
    places = [f"tree?path={long}", "tree?path=/raw", f"sessions?session=0x{client.client_id[0]:x}", *VIEWS]
    for place in places:
        page.goto(f"{server.url}#/{place}")
        expect(page.locator("main")).not_to_contain_text("Reading")
        expect(page.locator("main h1, main [role=tree]").first).to_be_visible()
        for details in page.locator("details").all():
            details.evaluate("it => { it.open = true; }")
        expect(page.locator("nav [aria-current]")).to_be_in_viewport(ratio=0.9)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 400, f"{place}: {width}"


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const linear = [r, g, b].map((it) => it / 255).map((it) => it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const faults = [];
  for (const element of document.querySelectorAll("#app *")) {
    const isText = [...element.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
    if (!isText || !element.checkVisibility({checkOpacity: true}) || element.closest(":disabled, svg, option")) continue;
    let behind = element;
    while (behind && rgb(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const back = light(rgb(getComputedStyle(behind ?? document.documentElement).backgroundColor));
    const front = light(rgb(getComputedStyle(element).color));
    const ratio = (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
    if (ratio < 4.5) faults.push(`${element.className || element.tagName} ${element.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return faults;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(server, clients, visits, scheme):
    client = clients()
    client.create("/json", b'{"a": 1}')
    queue(clients, 2)
    server.call("inject", action="delay", delay_ms=1, optional=True)
    server.call("snapshot")
    client.set("/json", b"2")
    page = visits(server.url, scheme=scheme)
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (int(re.findall(r"\d+", background)[0]) < 128) == (scheme == "dark")
    for place in ["tree?path=/json", f"sessions?session=0x{client.client_id[0]:x}", *VIEWS]:
        page.goto(f"{server.url}#/{place}")
        expect(page.locator("main h1").first).to_be_visible()
        expect(page.locator("main")).not_to_contain_text("Reading")
        if place == "snapshots":
            page.get_by_role("button", name="Compare with now").click()
            expect(page.locator(".diff")).to_be_visible()
        assert page.evaluate(CONTRAST) == [], place


def test_commands_do_what_the_actions_do(server, client, visits):
    client.create("/a b", b"x")
    page = visits(f"{server.url}#/tree?path=/a b")
    expect(page.get_by_label("Value", exact=True)).to_have_text("x")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Data as text").fill("-it's")
    page.get_by_label("Copy command").nth(1).click()
    line = page.evaluate("navigator.clipboard.readText()")
    assert line == commands(page.locator(".value"))[0]
    server.ctl(line)
    assert client.get("/a b")[0] == b"-it's"
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_label("Value", exact=True)).to_have_text("-it's")
    # Those that the views show run as they are.
    server.call("inject", action="delay", delay_ms=1, optional=True)
    server.call("snapshot")
    for view in VIEWS:
        page.goto(f"{server.url}#/{view}")
        expect(page).to_have_title(re.compile(view, re.IGNORECASE))
        expect(page.locator("main")).not_to_contain_text("Reading")
        for line in commands(page.locator("main")):
            if not re.search("ctl .*(NAME|FILE|tail)", line):
                server.ctl(line)


def test_page_comes_back_with_the_server(servers, visits):
    server = servers("--control")
    page = visits(server.url)
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    server.stop()
    expect(page.get_by_role("status").filter(has_text="no answer")).to_be_visible()
    again = servers("--control", "--port", server.address.rpartition(":")[2])
    again.call("create", path="/after")
    expect(item(page, "after")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()

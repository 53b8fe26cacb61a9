"""What a person sees in the timeline, in the queues of locks, and in the page that a failed test leaves behind."""

import contextlib
import json
import re
import threading
import time
import urllib.parse

import pytest
from kazoo.exceptions import NodeExistsError
from playwright.sync_api import expect

from conftest import PATIENCE

HOSTILE = "</script><img src=x onerror=alert(1)><!-- \u2028 ]]> \"'&amp;javascript:alert(1)"


@pytest.fixture
def bundle(server, visits, tmp_path):
    """Opens the page of a failed test from a file, with the server stopped."""

    def open_bundle(title="test_orders", failure="", **window):
        query = urllib.parse.urlencode({"title": title, "failure": failure})
        file = tmp_path / "bundle.html"
        file.write_text(server.read("story", query)["html"])
        server.stop()
        return visits(file.as_uri(), **window)

    return open_bundle


def session(client):
    return f"0x{client.client_id[0]:x}"


def short(client):
    """A session as the views name it."""
    return f"…{session(client)[-4:]}"


def port(server, client):
    """The client's port, which names its session where no lock does and all clients are on one host."""
    [found] = [it["address"] for it in server.read("sessions")["sessions"] if it["id"] == session(client)]
    return found[found.rindex(":"):]


def acquire(lock):
    """Queues for a lock that the client does not get before it is stopped."""

    def run():
        with contextlib.suppress(Exception):
            lock.acquire()

    threading.Thread(target=run, daemon=True).start()


def deadlock(server, clients):
    """Two clients that wait for each other."""
    one, two = clients(), clients()
    locks = [(one.Lock("/locks/accounts", "worker 1"), one.Lock("/locks/orders", "worker 1")),
             (two.Lock("/locks/orders", "worker 2"), two.Lock("/locks/accounts", "worker 2"))]
    for held, _ in locks:
        assert held.acquire(timeout=PATIENCE)
    for _, wanted in locks:
        acquire(wanted)
    for path in ["/locks/accounts", "/locks/orders"]:
        server.call("until_contenders", lock=path, count=2)
    deadline = time.monotonic() + PATIENCE
    while not server.read("locks")["deadlocks"]:
        assert time.monotonic() < deadline
    return one, two


def row(page, text):
    return page.get_by_role("row").filter(has_text=text)


def test_bundle_shows_the_deadlock_lanes_and_events_without_a_server(server, clients, bundle):
    one, two = deadlock(server, clients)
    one.create("/config", b"1")
    two.get("/config", watch=lambda event: None)
    one.set("/config", b"2")
    one, two = short(one), short(two)
    page = bundle("test_transfer", "AssertionError: no transfer\nwithin 5 s")
    expect(page).to_have_title("test_transfer - minikeeper")
    expect(page.get_by_label("Failure")).to_contain_text("AssertionError: no transfer")
    found = page.get_by_role("group", name="Deadlock").get_by_role("listitem")
    expect(found).to_have_count(2)
    expect(found.first).to_contain_text(re.compile("worker 1.*waits for /locks/orders, held by worker 2"))
    queue = page.get_by_role("group", name="Lock /locks/orders").get_by_role("listitem")
    expect(queue).to_contain_text([re.compile(f"holds{two}“?worker 2"), re.compile(f"waits 1{one}“?worker 1.*for worker 2")])
    # The lanes have the names that the locks' contenders have.
    for name in ["worker 1", "worker 2"]:
        expect(page.locator(".heads").get_by_role("button", name=name)).to_be_visible()
    # The change leads to the event by an arrow.
    expect(row(page, "← NodeDataChanged/config")).to_be_visible()
    expect(page.locator(".arrow.event")).not_to_have_count(0)


def test_hostile_texts_stay_texts(server, clients, bundle):
    client = clients()
    path = "/" + HOSTILE.replace("/", "-")
    client.create(path, b"x")
    lock = client.Lock("/locks/" + HOSTILE.replace("/", "-"), HOSTILE)
    assert lock.acquire(timeout=PATIENCE)
    page = bundle(HOSTILE, HOSTILE)
    expect(page.get_by_role("heading", level=1)).to_contain_text("</script><img src=x")
    expect(page.get_by_label("Failure")).to_contain_text("<!--")
    expect(row(page, f"create{path}")).to_have_count(1)
    expect(page.locator("q")).to_contain_text("<img src=x onerror=alert(1)>")
    row(page, f"create{path}").click()
    expect(page.get_by_label("Entry")).to_contain_text(path)
    assert page.locator("img, iframe, object, a[href^=javascript]").count() == 0


def test_filter_shows_the_same_as_its_command(server, clients, visits):
    client, other = clients(), clients()
    client.ensure_path("/orders")
    for _ in range(3):
        client.create("/orders/a-", b"", sequence=True)
    for someone in [client, other, other]:
        with pytest.raises(NodeExistsError):
            someone.create("/orders")
    page = visits(f"{server.url}#/timeline")
    box = page.get_by_label("Filter the timeline")
    for text, count in [
        ("create /orders/*", 3),
        ("create -> NODEEXISTS", 3),
        (f"-> error by {session(other)}", 2),
        ("session_opened", 2),
        ("/orders/**", 3),
        ("nodeexists", 3),
        ("create /nothing", 0),
    ]:
        box.fill(text)
        expect(page.get_by_role("status").filter(has_text=f"{count} of")).to_be_visible()
        expect(page.locator(".entry:not(.between)")).to_have_count(count)
        [command] = page.locator(".timeline .command code").all_inner_texts()
        printed = server.ctl(command)
        found = printed.splitlines() if "|" in command else json.loads(printed)["entries"]
        assert len(found) == count, command
    expect(page.get_by_text("No entry matches the filter.")).to_be_visible()
    # A lane's head shows the session alone, and all again.
    box.fill("")
    head = page.locator(".heads").get_by_title(session(other))
    expect(head).to_have_text(port(server, other))
    head.click()
    expect(head).to_have_attribute("aria-pressed", "true")
    expect(row(page, "NODEEXISTS")).to_have_count(2)
    head.click()
    expect(row(page, "NODEEXISTS")).to_have_count(3)
    assert box.input_value() == ""


def test_timeline_works_with_the_keyboard_alone(server, clients, visits):
    client, other = clients(), clients()
    client.create("/config")
    other.get("/config", watch=lambda event: None)
    client.set("/config", b"new")
    page = visits(f"{server.url}#/timeline")
    expect(row(page, "← NodeDataChanged/config")).to_be_visible()
    page.get_by_label("Filter the timeline").focus()
    grid = page.get_by_role("grid")
    for _ in range(9):
        page.keyboard.press("Tab")
        if grid.evaluate("it => it === document.activeElement"):
            break
    expect(grid).to_be_focused()
    selected = page.locator("[aria-selected=true]")
    page.keyboard.press("End")
    expect(selected).to_contain_text("← NodeDataChanged")
    expect(grid).to_have_attribute("aria-activedescendant", selected.get_attribute("id"))
    page.keyboard.press("ArrowLeft")
    expect(selected).to_contain_text("setData")
    page.keyboard.press("ArrowUp")
    expect(selected).to_contain_text("getData")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    details = page.get_by_label("Entry")
    expect(details).to_contain_text("data_bytes3")
    expect(details).to_contain_text("minikeeper ctl")
    page.keyboard.press("ArrowRight")
    expect(selected).to_contain_text("← NodeDataChanged")
    expect(details).to_contain_text("Caused by")
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)
    page.keyboard.press("Home")
    expect(page.get_by_role("row").first).to_have_attribute("aria-selected", "true")
    expect(grid).to_be_focused()


def test_what_belongs_together_is_highlighted(server, clients, bundle):
    client, watcher, other = clients(), clients(), clients()
    server.call("inject", action="lose-reply", op="setData", path="/config", count=1)
    client.create("/config")
    for someone in [watcher, other]:
        someone.get("/config", watch=lambda event: None)
    other.create("/other")
    with contextlib.suppress(Exception):
        client.set("/config", b"new")
    page = bundle()
    for part in ["fault 1", "setData/config", "← NodeDataChanged/config"]:
        row(page, part).first.hover()
        expect(page.locator(".entry.lit")).to_contain_text(["fault 1", "setData/config", "← NodeDataChanged/config", "← NodeDataChanged/config"])
        expect(page.locator(".arrow.event.lit")).to_have_count(2)
        expect(page.locator(".arrow.fault.lit")).to_have_count(1)
        # The same path, wherever it is; and the session's lane.
        expect(page.locator(".path.same")).not_to_have_count(0)
        assert set(page.locator(".path.same").all_text_contents()) == {"/config"}
        expect(page.locator(".line.lit")).not_to_have_count(0)
    row(page, "create/other").hover()
    expect(page.locator(".entry.lit")).to_contain_text(["create/other"])
    # The focus of the keyboard does the same.
    page.mouse.move(0, 0)
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    while "setData" not in page.locator("[aria-selected=true]").inner_text():
        expect(page.get_by_role("row").first).to_have_attribute("aria-selected", "false")
        page.keyboard.press("ArrowUp")
    expect(page.locator(".entry.lit")).to_have_count(4)


def test_time_jumps_expiries_and_faults_are_drawn(server, clients, bundle):
    client, watcher = clients(), clients()
    silenced = port(server, client)
    client.create("/members/me", ephemeral=True, makepath=True)
    watcher.get_children("/members", watch=lambda event: None)
    server.call("freeze")
    server.call("silence", session=session(client))
    server.call("advance", by_ms=11_000)
    page = bundle()
    expect(row(page, "clock moved ahead by")).not_to_have_count(0)
    expect(page.locator("g.jump")).not_to_have_count(0)
    expect(row(page, "deleted/members/me")).to_contain_text("session expired")
    expired = row(page, "session expired").filter(has_not_text="disconnected").filter(has_not_text="deleted")
    expect(expired).to_contain_text(silenced)
    # The session's lane ends there, and an arrow leads to who was told.
    expect(page.locator(".mark.ends.bad")).to_have_count(1)
    expired.hover()
    expect(page.locator(".entry.lit")).to_contain_text(["← NodeChildrenChanged/members", "session expired"])
    expect(page.get_by_role("table").last).to_contain_text("drop-request")


def test_ten_thousand_entries_scroll(server, client, bundle):
    client.create("/config")
    for result in [client.get_async("/config") for _ in range(10_000)]:
        result.get(PATIENCE)
    client.create("/last")
    page = bundle()
    expect(page.get_by_role("status")).to_contain_text("10000 entries")
    # The end comes first, and only what is visible is in the document.
    expect(row(page, "create/last")).to_be_visible()
    assert page.get_by_role("row").count() < 150
    grid = page.get_by_role("grid")
    assert int(grid.get_attribute("aria-rowcount")) >= 10_000
    grid.focus()
    page.keyboard.press("Home")
    expect(page.locator("[aria-selected=true]")).to_be_visible()
    expect(row(page, "earlier entries are not here")).to_be_visible()
    grid.evaluate("it => { it.scrollTop = it.scrollHeight / 2; }")
    # On a loaded machine there may be a pause between two entries anywhere.
    expect(row(page, "earlier entries are not here")).to_have_count(0)
    expect(row(page, "getData/config").first).to_be_visible()
    assert page.get_by_role("row").count() < 150
    page.keyboard.press("End")
    expect(row(page, "create/last")).to_have_attribute("aria-selected", "true")


def test_live_entries_move_neither_the_view_nor_the_focus(server, clients, visits):
    client = clients()
    client.ensure_path("/a")
    for number in range(100):
        client.create(f"/a/{number}")
    page = visits(f"{server.url}#/timeline")
    expect(row(page, "create/a/99")).to_be_visible()
    grid = page.get_by_role("grid")
    grid.focus()
    page.keyboard.press("Home")
    for _ in range(30):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen = page.locator("[aria-selected=true]").inner_text()
    at = grid.evaluate("it => it.scrollTop")
    # The bounded list drops its oldest entries.
    for number in range(100, 200):
        client.create(f"/a/{number}")
    expect(page.locator(".timeline output")).to_contain_text(re.compile("2[0-9][0-9]"))
    assert page.locator("[aria-selected=true]").inner_text() == chosen
    assert grid.evaluate("it => it.scrollTop") == at
    expect(grid).to_be_focused()
    # At the end, the view follows.
    page.keyboard.press("End")
    client.create("/seen-at-the-end")
    expect(row(page, "create/seen-at-the-end")).to_be_visible()


def test_queue_hands_over_live_and_keeps_the_focus(server, clients, visits):
    holder, waiter = clients(), clients()
    held = holder.Lock("/locks/orders", "first")
    assert held.acquire(timeout=PATIENCE)
    acquire(waiter.Lock("/locks/orders", "second"))
    server.call("until_contenders", lock="/locks/orders", count=2)
    page = visits(f"{server.url}#/locks")
    lock = page.get_by_role("group", name="Lock /locks/orders")
    expect(lock.get_by_role("listitem")).to_contain_text(["holds", "waits 1"])
    button = lock.get_by_role("listitem").last.locator(".whose").get_by_role("button")
    button.focus()
    held.release()
    expect(lock.get_by_role("listitem")).to_contain_text([re.compile(f"holds{short(waiter)}“?second")])
    expect(lock.get_by_role("listitem")).to_have_count(1)
    expect(lock.locator(".whose").get_by_role("button")).to_be_focused()
    # How it changed hands, from the journal.
    expect(lock.locator(".history")).to_contain_text(re.compile("handed over ?1×"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"sessions\\?session={session(waiter)}"))


def test_bundle_has_known_mistakes_of_the_clients(client, bundle):
    client.create("/lock-", ephemeral=True, sequence=True)
    page = bundle()
    expect(page.get_by_role("heading", name="Known mistakes")).to_be_visible()
    expect(page.get_by_role("article", name="unprotected-sequential")).to_contain_text("if the reply is lost")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bundle_needs_no_horizontal_scrolling_at_400_pixels(server, clients, bundle, scheme):
    one, _ = deadlock(server, clients)
    # The second waits without a watch, so that the lock has a warning, which names two long paths.
    for name in ["a" * 32, "b" * 32]:
        one.create(f"/locks/unwatched/{name}__lock__", ephemeral=True, sequence=True, makepath=True)
    server.call("inject", action="delay", delay_ms=1, path="/" + "p" * 200, optional=True)
    page = bundle("tests/test_orders.py::" + "long_" * 20, "x" * 500, width=400, scheme=scheme)
    expect(page.get_by_role("group", name="Deadlock")).to_be_visible()
    expect(page.get_by_role("group", name="Lock /locks/unwatched")).to_contain_text("waiter-without-watch")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (int(re.findall(r"\d+", background)[0]) < 128) == (scheme == "dark")

"""The pictures of the documentation."""

import json
import os

import pytest
from playwright.sync_api import expect

from test_page import queue
from test_sweep import report  # noqa: F401
from test_timeline import bundle, deadlock, row  # noqa: F401

CONFIG = {"name": "orders", "replicas": 3, "limits": {"cpu": 2, "memory": "4Gi"}, "hosts": ["10.0.0.7", "10.0.0.8"]}


@pytest.fixture
def server(servers):
    # The port that the commands need not name.
    return servers("--control", "--port", "2181")


def fill(server):
    server.call("seed", tree={
        "/orders/config": json.dumps(CONFIG),
        "/orders/schema.xml": "<schema/>",
        "/orders/state": "ready",
        **{f"/services/web/node-{number:04}": f"10.0.0.{number}:80" for number in range(240)},
        "/services/db/primary": "10.0.1.1:5432",
    })


def shoot(page, name):
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Reading")
    page.screenshot(path=f"{os.environ['PAGE_IMAGES']}/{name}.png")


def test_tree(server, clients, visits):
    fill(server)
    queue(clients, 2)
    page = visits(f"{server.url}#/tree?path=/orders/config", 1060, 620)
    expect(page.get_by_label("Value", exact=True)).to_contain_text("replicas")
    shoot(page, "page-tree")


def test_locks(server, clients, visits):
    locks = queue(clients, 4)
    page = visits(f"{server.url}#/locks", 1060, 400, "dark")
    expect(page.locator("main")).to_contain_text("worker-0")
    locks[0].release()
    expect(page.get_by_role("main").get_by_role("listitem").first).to_contain_text("worker-1")
    shoot(page, "page-locks")


def test_timeline(server, clients, visits):
    locks = queue(clients, 3)
    server.call("inject", action="error", op="setData", error="BADVERSION", optional=True)
    page = visits(f"{server.url}#/timeline", 1060, 500)
    locks[0].release()
    locks[1].client.ensure_path("/orders/state")
    with pytest.raises(Exception, match=""):
        locks[1].client.set("/orders/state", b"paid")
    server.call("expire", session=f"0x{locks[1].client.client_id[0]:x}")
    server.call("until_contenders", lock="/locks/orders", count=1)
    expect(page.locator("main")).to_contain_text("/locks/orders")
    shoot(page, "page-timeline")


def test_narrow(server, clients, visits):
    locks = queue(clients, 3)
    page = visits(f"{server.url}#/locks", 400, 700)
    expect(page.locator("main")).to_contain_text("worker-0")
    locks[0].release()
    expect(page.get_by_role("main").get_by_role("listitem").first).to_contain_text("worker-1")
    shoot(page, "page-narrow")


def test_sweep(report):  # noqa: F811
    faults = ["reply-lost", "request-lost", "connection-cut", "session-expired"]
    page = report(*[word for fault in faults for word in ("--fault", fault)], width=1000, height=500)
    expect(page.get_by_role("region", name="Map")).to_be_visible()
    page.screenshot(path=f"{os.environ['PAGE_IMAGES']}/sweep-report.png", full_page=True)


def test_story(server, clients, bundle):  # noqa: F811
    server.call("inject", action="error", op="setData", path="/accounts/*", error="BADVERSION", count=1)
    one, two = deadlock(server, clients)
    one.create("/accounts/anna", b"10", makepath=True)
    two.get("/accounts/anna", watch=lambda event: None)
    with pytest.raises(Exception, match=""):
        two.set("/accounts/anna", b"20")
    one.set("/accounts/anna", b"5")
    failure = "AssertionError: the transfer did not finish within 5 s"
    page = bundle("test_accounts.py::test_transfer", failure, width=920, height=790)
    page.get_by_label("Filter the timeline").fill("/accounts/**")
    row(page, "setData/accounts/anna").last.hover()
    expect(page.locator(".entry.lit")).to_have_count(2)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.screenshot(path=f"{os.environ['PAGE_IMAGES']}/story.png")

"""What a person sees in the report of a sweep."""

import pathlib
import re
import subprocess

import pytest
from playwright.sync_api import expect

from conftest import PROGRAM

# The script of docs/find-the-fault.md.
SCRIPTS = pathlib.Path(__file__).parents[3] / "server/tests/cli/sweep"

HOSTILE = "/<-script><img src=x onerror=alert(1)><!-- &amp;'"


@pytest.fixture
def report(visits, tmp_path):
    """Sweeps a command and opens the report."""
    folder = tmp_path / "sweep"

    def sweep(*options, command=("sh", "order.sh"), **window):
        path = f"{pathlib.Path(PROGRAM).parent}:/usr/bin:/bin"
        tree = ["--tree", "jobs.yaml"] if command[-1] == "order.sh" else []
        line = [PROGRAM, "sweep", *tree, "--out", folder, *options, "--", *command]
        done = subprocess.run(line, cwd=SCRIPTS, env={"PATH": path, "CLI": f"{PROGRAM} cli"}, capture_output=True, text=True)
        assert done.returncode in [0, 1, 3], done.stderr
        return visits((folder / "report.html").as_uri(), **window)

    return sweep


def row(page, text):
    return page.get_by_role("row").filter(has_text=text)


def test_failure_is_shown_from_the_fault_to_the_end_with_its_command_and_story(report):
    page = report("--fault", "reply-lost")
    expect(page).to_have_title("Sweep of sh order.sh - minikeeper")
    expect(page.locator(".kind")).to_contain_text("failed")
    point = "reply-lost:1:create2:1:/jobs/job-"
    failure = page.get_by_role("article", name=point)
    expect(failure.get_by_role("heading")).to_have_text("when the reply to the 1st create2 of /jobs/job- by client 1 was lost")
    expect(failure).to_contain_text(f"minikeeper sweep --tree jobs.yaml --only '{point}' -- sh order.sh")
    expect(page.locator("pre.failure")).to_contain_text("exit status: 1")
    # The fault has the focus, and the client has its number in place of its session.
    expect(failure.locator("[aria-selected=true]")).to_contain_text(re.compile("client 1.*fault 1"))
    expect(failure.locator(".heads").get_by_role("button", name="client 1")).to_be_visible()
    expect(failure.get_by_role("row").last).to_contain_text("the test failed: exit status: 1")
    failure.get_by_role("link", name="the story of this run").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(point)
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()


def test_map_has_what_failed_what_passed_and_what_was_left_out(report):
    page = report()
    create = row(page.get_by_role("region", name="Map"), "create2 /jobs/job-")
    expect(create.get_by_label("reply-lost: the test failed")).to_have_count(1)
    expect(create.get_by_label("session-expired: the test passed")).to_have_count(1)
    expect(row(page, "getChildren2 /jobs").get_by_label("request-lost: left out")).to_have_count(1)
    # It leads to the failure.
    create.get_by_label("reply-lost: the test failed").click()
    expect(page.get_by_role("article", name="reply-lost:1:create2:1:/jobs/job-")).to_be_focused()
    page.get_by_label("only what failed or is not known").check()
    expect(page.locator(".map tbody tr")).to_have_count(1)


def test_budget_leaves_points_that_the_map_shows_as_untried(report):
    page = report("--runs", "3", "--fault", "connection-cut")
    expect(page.get_by_label("Incomplete")).to_contain_text("was not tried")
    expect(page.get_by_role("region", name="Map").get_by_label("connection-cut: not tried")).to_have_count(1)
    expect(page.get_by_role("region", name="Map").get_by_label("connection-cut: the test passed")).to_have_count(1)


def test_hostile_names_stay_texts(report):
    script = f'$CLI -server {{}} create "{HOSTILE}" || {{ echo "{HOSTILE}"; exit 1; }}'
    page = report("--fault", "request-lost", command=("sh", "-c", script))
    expect(page.locator("pre.failure")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.get_by_role("region", name="Map")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.get_by_role("link", name="request-lost: the test failed")).to_have_count(1)
    assert page.locator("img, iframe, object, a[href^=javascript]").count() == 0
    page.get_by_role("link", name="the story of this run").click()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_needs_no_horizontal_scrolling_at_400_pixels(report, scheme):
    script = f"$CLI -server {{}} create /{'long' * 40}"
    page = report(command=("sh", "-c", script), width=400, scheme=scheme)
    expect(page.get_by_role("region", name="Map")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (int(re.findall(r"\d+", background)[0]) < 128) == (scheme == "dark")

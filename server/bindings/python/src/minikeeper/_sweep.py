"""Tests that pytest runs once for every fault at every place where it can happen: the mark `minikeeper_sweep`."""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import re
import shlex
import signal
import sys
import threading
import time
import traceback
import weakref
from types import FrameType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Literal, NoReturn, Optional, Set, Tuple, Union

import pytest
from _pytest.outcomes import Failed
from _pytest.runner import runtestprotocol

from . import _forks, _rules, _story
from ._errors import MinikeeperError
from ._overlap import Overlap, sent_by
from ._rules import Rule
from ._sweep_runs import Result, Run
from ._values import given, names_nearest
from .server import Server, server_of_suite, server_of_sweep
from .universe import Universe

MARK = "minikeeper_sweep"

# A test with one of these fixtures is swept by `minikeeper sweep --suite`.
UNIVERSES = ("minikeeper", "connect_string", "kazoo_client")

# The report of the test has the traceback and the output of so many failed runs.
SHOWN_MAX = 3

# A test may catch the exception that interrupts it, and go on.
INTERRUPTS_MAX = 3


# An alarm may come so much earlier than it was set to.
EARLY_S = 0.01


class RunHung(Failed):
    """A run did not end in time."""


class RunCrashed(Failed):
    """The clients of a run have died by a fault: the test begins again."""


class Sweep:
    """The sweep of one test: its runs, the first in this process, and the others in forked ones if possible."""

    @names_nearest
    def __init__(
        self,
        item: pytest.Item,
        *,
        faults: Union[str, Iterable[str], None] = None,
        time_s: Optional[float] = None,
        runs: Optional[int] = None,
        depth: int = 1,
        seed: int = 0,
        all: bool = False,
        run_time_s: float = 60,
        jobs: int = 8,
        allow_unreached: int = 0,
        allow_untried: int = 0,
        allow: Union[Rule, str, Iterable[Union[Rule, str]]] = (),
        leave_out: Union[Rule, str, Iterable[Union[Rule, str]]] = (),
        first: bool = False,
        compare: bool = False,
        outage_ms: Optional[int] = None,
        rollback: Optional[int] = None,
        orders: bool = False,
        changes: Union[int, Literal["all"], None] = None,
        more: Optional[int] = None,
        alike: Optional[bool] = None,
        clients: Optional[int] = None,
    ) -> None:
        self.item = item
        self._only: Optional[str] = item.config.getoption("--minikeeper-only")
        allowed = [allow] if isinstance(allow, (Rule, str)) else list(allow)
        self._options: Dict[str, Any] = {
            "faults": faults if faults is None or isinstance(faults, str) else ",".join(faults),
            "time_ms": None if time_s is None else round(time_s * 1_000),
            "runs": runs,
            "depth": depth,
            "seed": seed,
            "all": all,
            "only": self._only,
            "allow_unreached": allow_unreached,
            "allow_untried": allow_untried,
            "allow": _rules.texts("allow", allowed),
            "leave_out": _rules.texts("leave_out", [leave_out] if isinstance(leave_out, (Rule, str)) else leave_out),
            "first": first,
            "compare": compare,
            "outage_ms": outage_ms,
            "rollback": rollback,
        }
        self._expected = [rule.raises for rule in allowed if isinstance(rule, Rule) and rule.raises is not None]
        of_orders = {
            "changes": None if changes is None else str(changes),
            "more": more,
            "alike": alike,
            "clients": clients,
        }
        for name, value in of_orders.items():
            if value is not None and not orders:
                raise TypeError(f"{name}: only with orders=True")
        if orders:
            # The threads of the process tell when no further request is coming.
            self._options.update(of_orders, orders=True, process=os.getpid())
        # The options are those of the suite, and these rules.
        self._is_of_suite = server_of_suite() is not None and not orders
        if self._is_of_suite:
            self._options.update(test=item.nodeid, tests_left=_tests_left(item), repeat=_repeat(item))
        if jobs < 1:
            raise TypeError(f"jobs is {jobs}; the least is 1")
        self._jobs = 1 if orders else jobs
        self.run_time_s = run_time_s
        # A debugger takes its time.
        self._is_debugged = bool(item.config.getoption("usepdb", False))
        # A test that is expected to fail saves nothing.
        is_expected = item.get_closest_marker("xfail") is not None
        self._folder = None if is_expected else _story.folder(item.config)
        self._server: Optional[Server] = None
        self._sweep: Optional[int] = None
        self.is_over = False
        # Why runs are not forked, though several may be done at a time.
        self._why_here: Optional[str] = None
        # The first run that failed with these points.
        self._failed: Dict[str, int] = {}
        self._sections: List[Tuple[str, str]] = []
        self._properties = len(item.user_properties)
        # In a forked process: sends a result, and ends the process.
        self._send: Optional[Callable[[Any], NoReturn]] = None
        self._run: Optional[Run] = None
        # The run whose clients have died.
        self._crashed: Optional[Run] = None
        self._reset()

    def _reset(self) -> None:
        self._result = Result()
        self._deadline = time.monotonic() + self.run_time_s
        self._interrupts = 0
        self._threads: Set[threading.Thread] = set(threading.enumerate())

    @property
    def is_running(self) -> bool:
        """Whether a run has begun and not ended."""
        return self._run is not None

    @property
    def is_forked(self) -> bool:
        """Whether this is the process of a single run, beside others."""
        return self._send is not None

    @property
    def universe(self) -> Optional[Universe]:
        """The universe of the run, if it has one before its fixtures."""
        return None if self._run is None else self._run.universe

    @property
    def server(self) -> Server:
        """The server that keeps the sweep, once it has begun."""
        assert self._server is not None
        return self._server

    @property
    def number(self) -> int:
        """The number of the sweep, once it has begun."""
        assert self._sweep is not None
        return self._sweep

    # Called by the fixture `minikeeper`.

    def begin_run(self, server: Server, universe: Universe) -> None:
        """Injects the faults of the next run into a universe that is not that of a run yet.

        Skips the rest of the test if the sweep is over.
        """
        if "minikeeper_server" in self.item.fixturenames:  # type: ignore[attr-defined]
            message = "a server of a run's own cannot keep the sweep: use minikeeper without minikeeper_server"
            pytest.fail(f"{MARK}: {message}", pytrace=False)
        if self._sweep is None:
            try:
                self._sweep = int(server._control.do("sweep_start", given(**self._options))["sweep"])
            except MinikeeperError as error:
                raise Failed(f"{MARK}: {error}", pytrace=False) from None
            self._server = server
        if self._run is None:
            next = universe.sweep_next(self._sweep)
            self._run = self.begun(next.run, next.points, universe)
            if self._run is None:
                pytest.skip("the sweep is over")
            if self._run.may_crash and _has_alarms():
                threading.Thread(target=self._await_crash, args=(self._run,), daemon=True).start()
        _story.current.run = self._run.number

    def begun(self, number: int, points: str, universe: Universe) -> Optional[Run]:
        """Returns the run that `sweep_next` has begun, None if the sweep is over."""
        if number != 0:
            return Run(number, points, universe)
        self.is_over = True
        universe.drop_universe()
        return None

    # Called for the reports of a run.

    def is_failure(self, call: pytest.CallInfo[None]) -> bool:
        """Whether a phase of the run has failed, even if the test is expected to fail."""
        if self._run is None or call.excinfo is None:
            return False
        if self._has_died():
            # Only its second start counts.
            return False
        # A test that skips the first run skips the sweep. One that skips another run has not checked it.
        outcomes = (pytest.xfail.Exception, *([pytest.skip.Exception] if self._run.number == 1 else []))
        return not isinstance(call.excinfo.value, outcomes)

    @property
    def folder(self) -> Optional[pathlib.Path]:
        """The folder for the story of the run, or None to save none."""
        return self._folder if self._run is not None and self._is_new(self._run) else None

    def _is_new(self, run: Run) -> bool:
        # A failed run is repeated, which shows nothing new.
        return self._failed.get(run.points, run.number) == run.number

    def note_failure(self, report: pytest.TestReport, call: pytest.CallInfo[None], story: Optional[pathlib.Path]) -> None:
        """Takes note of a failed phase, and of the page with its story."""
        assert call.excinfo is not None and self._run is not None
        result = self._result
        if result.failure is None:
            is_hung = isinstance(call.excinfo.value, RunHung)
            result.outcome = "hung" if is_hung else "failed"
            result.failure = str(call.excinfo.value) if is_hung else self._words_of(call.excinfo)
            result.story = None if story is None else str(story)
            lines = [entry.lineno + 1 for entry in call.excinfo.traceback if str(entry.path) == str(self.item.path)]
            result.place = f"{self.item.path.name}:{lines[-1]}" if lines else None
        which = self._run.words
        if report.longreprtext:
            result.sections.append((f"Traceback of the {which}", report.longreprtext))
        result.sections += [(f"{title}, {which}", text) for title, text in report.sections]

    # The runs.

    def run_all(self, nextitem: Optional[pytest.Item]) -> List[pytest.TestReport]:
        """Runs the test until the sweep is over. Returns the reports of the test."""
        began = time.monotonic()
        broken: Optional[MinikeeperError] = None
        try:
            while True:
                self._run = None
                reports = self._do()
                run, result = self._run, self._result
                if run is None:
                    break
                self.end_run(run, result)
                is_skipped = run.number == 1 and result.failure is None and any(report.skipped for report in reports)
                if is_skipped or self.is_stopped:
                    break
                if run.number == 1 and self._jobs > 1:
                    self._why_here = _forks.why_not(self.item)
                    if self._why_here is None:
                        Overlap(self, self._jobs, run.universe).run_all()
                        break
        except MinikeeperError as error:
            # The server has forgotten the sweep, such as one that the test has restarted.
            broken = error
        finally:
            self._run = None
            self._reset()
        if broken is not None:
            return [*reports[:1], self._report("call", f"{MARK}: {broken}"), self._end(nextitem)]
        if self._sweep is None and all(report.passed for report in reports):
            failure = f"{MARK}: the test must use the fixture minikeeper, or one that uses it"
            return [*reports[:1], self._report("call", failure), self._end(nextitem)]
        if not self.is_over and not self.is_stopped:
            # It was skipped, or a fixture failed before the run.
            return [*reports[:-1], *(one for one in reports[-1:] if one.failed), self._end(nextitem)]
        return [self._report("setup"), self._reported(time.monotonic() - began), self._end(nextitem)]

    def _do(self) -> List[pytest.TestReport]:
        """Does a run in this process. Returns the reports of pytest."""
        reports = self._start()
        while self._run is not None and not self.is_forked and self._has_died():
            self._run = self._run.again()
            reports = self._start()
        result = self._result
        if result.failure is None and time.monotonic() > self._deadline and not self._is_debugged:
            result.outcome, result.failure = "hung", f"the run took longer than {self.run_time_s:g} s"
        return reports

    def _start(self) -> List[pytest.TestReport]:
        item = self.item
        _story.current.begin(item.nodeid)
        item._report_sections.clear()
        del item.user_properties[self._properties :]
        self._reset()
        # An instance of a test class is for one run.
        if getattr(item, "instance", None) is not None:
            for kept in ("_instance", "_obj"):
                vars(item).pop(kept, None)
        # The parent in place of the next test keeps the fixtures of larger scopes.
        reports = runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]
        if (self._result.failure is not None or self._is_crashed) and not self.is_forked:
            _leave(thread for thread in threading.enumerate() if thread not in self._threads)
        return reports

    def do_in_fork(self, run: Run, send: Callable[[Any], NoReturn]) -> Dict[str, Any]:
        """Does a run in this process, which is its own. Returns what to send to the process of the sweep."""
        self._send, self._run = send, run
        self._do()
        return sent_by(self._result, self.item.session)

    @property
    def is_stopped(self) -> bool:
        """Whether pytest ends the tests."""
        return bool(self.item.session.shouldstop or self.item.session.shouldfail)

    def end_run(self, run: Run, result: Result) -> None:
        """Tells the server the result of a run, and drops its universe."""
        if result.failure is not None:
            self._failed.setdefault(run.points, run.number)
            if self._is_new(run) and len(self._failed) <= SHOWN_MAX:
                self._sections += result.sections
        message = None if result.failure is None else _story.clean(result.failure)[: _story.FAILURE_CHARS_MAX]
        # The server, because the test may have dropped the universe.
        self.server.sweep_end(
            self.number,
            run=run.number,
            outcome=result.outcome,
            message=message,
            place=result.place,
            story=result.story,
        )
        try:
            run.universe.drop_universe()
        except MinikeeperError as error:
            if error.status != 404:
                raise

    def add_story(self, run: Run, result: Result) -> None:
        """Adds the story of a run whose process could not read it."""
        assert result.failure is not None
        _story.current.begin(self.item.nodeid)
        _story.current.run = run.number
        story = _story.current.read(run.universe, result.failure)
        text, page = _story.text(story, self._folder if self._is_new(run) else None)
        result.story = None if page is None else str(page)
        result.sections.append((f"minikeeper, {run.words}", text))

    # The death of the clients of a run, by the fault `client-crash`.

    def has_crashed(self, run: Run) -> bool:
        """Whether the clients of a run have died, for the first time."""
        return run.may_crash and self.server.sweep_crashed(self.number, run=run.number, within_ms=0)

    @property
    def _is_crashed(self) -> bool:
        return self._run is not None and self._crashed is self._run

    def _has_died(self) -> bool:
        return self._is_crashed or (self._run is not None and self.has_crashed(self._run))

    def _await_crash(self, run: Run) -> None:
        """Interrupts the run when its clients have died. For a thread, which ends with the run."""
        with contextlib.suppress(MinikeeperError):
            within_ms = round(2 * self.run_time_s * 1_000)
            if self.server.sweep_crashed(self.number, run=run.number, within_ms=within_ms):
                self._crashed = run
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    def _words_of(self, raised: pytest.ExceptionInfo[BaseException]) -> str:
        """Returns how an exception is told, with the names of its classes that the test expects."""
        text = raised.exconly()
        names = [_rules.name_of(one) for one in self._expected if isinstance(raised.value, one)]
        names = [name for name in names if name not in text]
        if names:
            text = "\n".join([text[: _story.FAILURE_CHARS_MAX // 2], *(f"which is a {name}" for name in names)])
        return text

    def _reported(self, took_s: float) -> pytest.TestReport:
        """Returns the report of the test, with what the sweep has found."""
        assert self._server is not None
        query = {"sweep": self._sweep, "repeat": _repeat(self.item), "title": self.item.nodeid}
        found = self.server._control.read("sweep_report", query)
        # What the budget of a suite leaves is told at its end.
        is_incomplete = found["state"] == "incomplete" and not self._is_of_suite
        text, is_passed = str(found["text"]).rstrip(), found["state"] != "failed" and not is_incomplete
        summary = str(found["summary"])
        if self._why_here is not None:
            why = f"one run at a time, in the process of pytest, because {self._why_here}"
            text, summary = f"{text}\n\n{why}", f"{summary}; {why}"
        if not is_passed and self._folder is not None:
            name = f"sweep-{_story.file_name(self.item.nodeid)}.html"
            text += f"\n\n{_story.save(self._folder, {name: str(found['html'])})}"
        self.item.user_properties[self._properties :] = [(MARK, summary)]
        report = self._report("call", None if is_passed else text)
        if is_incomplete:
            # It is no failure that a test may be expected to have, and never a pass.
            report.outcome, report.longrepr = "failed", text
            vars(report).pop("wasxfail", None)
        report.duration = took_s
        report.sections = [("minikeeper", text)] if is_passed else self._sections
        return report

    def _end(self, nextitem: Optional[pytest.Item]) -> pytest.TestReport:
        """Ends the fixtures of larger scopes that the next test does not use."""
        setups = self.item.session._setupstate
        return self._report("teardown", act=lambda: setups.teardown_exact(nextitem))

    def _report(
        self, when: Any, failure: Optional[str] = None, act: Optional[Callable[[], None]] = None
    ) -> pytest.TestReport:
        self.item._report_sections.clear()

        def fail() -> None:
            if failure is not None:
                pytest.fail(failure, pytrace=False)

        call = pytest.CallInfo.from_call(act or fail, when)
        report: pytest.TestReport = self.item.ihook.pytest_runtest_makereport(item=self.item, call=call)
        return report

    def limited(self, when: str) -> Iterator[None]:
        """Raises RunHung in a phase of the run, also in a blocked call, when the time of the run is over.

        Only in the main thread, and where there is SIGALRM. Elsewhere a run that ends late counts as hung.
        """
        if not _has_alarms() or self._is_debugged:
            yield
            return

        # The clients of a hung test get the time to stop.
        left_s = self.run_time_s if when == "teardown" else max(self._deadline - time.monotonic(), 0.001)
        end = time.monotonic() + left_s

        def ring(_: int, frame: Optional[FrameType]) -> None:
            __tracebackhide__ = True
            if self._is_crashed and when != "teardown":
                raise RunCrashed("the clients of the run have died", pytrace=False)
            if time.monotonic() < end - EARLY_S:
                # It was for a crash.
                return
            self._interrupts += 1
            # A process of its own can be ended earlier.
            if self._interrupts > (1 if self.is_forked else INTERRUPTS_MAX):
                self._exit(frame)
            signal.setitimer(signal.ITIMER_REAL, self.run_time_s)
            raise RunHung(f"the run did not end within {self.run_time_s:g} s{self._line(frame)}")

        if self._is_crashed and when != "teardown":
            raise RunCrashed("the clients of the run have died", pytrace=False)
        others = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, left_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, others)

    def _exit(self, frame: Optional[FrameType]) -> None:
        """Ends the process, because the test cannot be ended: it catches what interrupts it."""
        assert self._run is not None
        goes_on = f"goes on after {self._interrupts - 1} interrupts{self._line(frame)}"
        why = "because the test catches every exception: catch Exception instead"
        stack = "".join(traceback.format_stack(frame))
        if self._send is not None:
            if self._result.failure is None:
                self._result.outcome = "hung"
                self._result.failure = f"the run {goes_on}; its process ends, {why}"
                self._result.sections.append((f"Stack of the {self._run.words}", stack))
            self._send(sent_by(self._result, self.item.session))
        capture: Any = self.item.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        print(
            f"\n{MARK}: {self.item.nodeid} with {self._run.points or 'no fault'} {goes_on}; pytest ends, {why}\n\n{stack}",
            file=sys.stderr,
            flush=True,
        )
        os._exit(int(pytest.ExitCode.INTERNAL_ERROR))

    def _line(self, frame: Optional[FrameType]) -> str:
        """Says which line of the test has called what blocks."""
        file = str(self.item.path)
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        if frame is None:
            return ""
        return f": it was in line {frame.f_lineno} of {self.item.path.name}, in {frame.f_code.co_name}"


_left: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()
_exit_code = 0


def _leave(threads: Iterable[threading.Thread]) -> None:
    """Takes note of threads that a run which failed has left behind: they must not keep pytest from its end."""
    if not _left:
        # Before Python waits for the threads. `atexit` is after that.
        getattr(threading, "_register_atexit", lambda _: None)(_exit_without_threads)
    _left.update(thread for thread in threads if not thread.daemon)


def _exit_without_threads() -> None:
    names = sorted(thread.name for thread in _left if thread.is_alive())
    if not names:
        return
    print(f"{MARK}: threads of runs that failed still run: {', '.join(names)}; exits without them", file=sys.stderr)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(_exit_code)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    global _exit_code
    _exit_code = int(exitstatus)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what each sweep has tried, of those that pass too."""
    found = {
        report.nodeid: value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == MARK
    }
    if found:
        terminalreporter.section("minikeeper sweeps")
    for test, summary in found.items():
        terminalreporter.write_line(f"{test}: {summary}")


def _has_alarms() -> bool:
    return hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _without_other_alarms() -> Iterator[None]:
    """Suspends the alarm of another plugin, whose limit is for one run and would end pytest between two."""
    if not _has_alarms():
        yield
        return
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, 0)
    # One that comes between two runs does nothing.
    others = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, others)
        signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)


_SWEEP = pytest.StashKey[Sweep]()


def of(item: Any) -> Optional[Sweep]:
    """Returns the sweep of a test that runs in one."""
    sweep: Optional[Sweep] = item.stash.get(_SWEEP, None)
    return sweep


def _is_of_suite(item: pytest.Item) -> bool:
    """Whether `minikeeper sweep --suite` sweeps this test, though it is not marked, or does one of its runs again."""
    names = set(getattr(item, "fixturenames", ()))
    is_swept = server_of_suite() is not None or bool(item.config.getoption("--minikeeper-unmarked"))
    return is_swept and "minikeeper_server" not in names and not names.isdisjoint(UNIVERSES)


def _repeat(item: pytest.Item) -> str:
    """The command that does a run of a test again, with {} in place of its points."""
    unmarked = "--minikeeper-unmarked " if item.get_closest_marker(MARK) is None else ""
    # Single quotes keep the shell from expanding the points.
    return f"pytest {shlex.quote(item.nodeid)} {unmarked}--minikeeper-only '{{}}'"


def _tests_left(item: pytest.Item) -> int:
    """How many tests this process still has to run, this one included. Processes of pytest-xdist share them."""
    left = len(item.session.items) - item.session.items.index(item)
    return -(-left // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    mark = item.get_closest_marker(MARK)
    if mark is None and not _is_of_suite(item) or item.config.getoption("setuponly", False):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        if server_of_sweep() is not None:
            raise TypeError("the test sweeps by itself: run pytest without minikeeper sweep")
        args, kwargs = ((), {}) if mark is None else (mark.args, mark.kwargs)
        sweep = Sweep(item, *args, **kwargs)
    except TypeError as error:
        message = re.sub(r"^\S*__init__\(\)", "the mark", str(error))

        def fail() -> None:
            raise Failed(f"{MARK}: {message}", pytrace=False) from None

        # As if it were a fixture.
        call = pytest.CallInfo.from_call(fail, "setup")
        reports = [item.ihook.pytest_runtest_makereport(item=item, call=call)]
    else:
        item.stash[_SWEEP] = sweep
        try:
            with _without_other_alarms():
                reports = sweep.run_all(nextitem)
        finally:
            del item.stash[_SWEEP]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _limited(item: pytest.Item, when: str) -> Iterator[None]:
    sweep = of(item)
    if sweep is None:
        yield
    else:
        yield from sweep.limited(when)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _limited(item, "setup")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _limited(item, "call")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield from _limited(item, "teardown")

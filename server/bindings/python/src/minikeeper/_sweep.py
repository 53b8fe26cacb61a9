"""Tests that pytest runs once for every fault at every place where it can happen: the mark `minikeeper_sweep`."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import selectors
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

from . import _forks, _story
from ._control import Asked
from ._errors import MinikeeperError
from ._values import given, names_nearest
from .server import Server, server_of_sweep
from .universe import Universe

MARK = "minikeeper_sweep"

# The report of the test has the traceback and the output of so many failed runs.
SHOWN_MAX = 3

# A test may catch the exception that interrupts it, and go on.
INTERRUPTS_MAX = 3


# A process gets this time more than its run, which is interrupted then, and tells where it was.
GRACE_S = 5.0

# Between two looks at processes which may have died.
POLL_S = 0.5


class RunHung(Failed):
    """A run did not end in time."""


@dataclasses.dataclass
class Run:
    """A run that has begun."""

    number: int
    points: str
    universe: Universe


@dataclasses.dataclass
class Result:
    """What a run has shown."""

    outcome: Literal["passed", "failed", "hung"] = "passed"
    failure: Optional[str] = None
    story: Optional[str] = None
    """The page with the story of the failure."""
    sections: List[Tuple[str, str]] = dataclasses.field(default_factory=list)
    """For the report of the test."""


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
        jobs: int = 4,
        allow_unreached: int = 0,
        allow_untried: int = 0,
        orders: bool = False,
        changes: Union[int, Literal["all"], None] = None,
        more: Optional[int] = None,
        alike: Optional[bool] = None,
        clients: Optional[int] = None,
    ) -> None:
        self._item = item
        self._only: Optional[str] = item.config.getoption("--minikeeper-only")
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
        }
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
        if jobs < 1:
            raise TypeError(f"jobs is {jobs}; the least is 1")
        self._jobs = 1 if orders else jobs
        self._run_time_s = run_time_s
        # A debugger takes its time.
        self._is_debugged = bool(item.config.getoption("usepdb", False))
        # A test that is expected to fail saves nothing.
        is_expected = item.get_closest_marker("xfail") is not None
        self._folder = None if is_expected else _story.folder(item.config)
        self._server: Optional[Server] = None
        self._sweep: Optional[int] = None
        self._is_over = False
        # Why runs are not forked, though several may be done at a time.
        self._why_here: Optional[str] = None
        # The first run that failed with these points.
        self._failed: Dict[str, int] = {}
        self._sections: List[Tuple[str, str]] = []
        self._properties = len(item.user_properties)
        # In a forked process: sends a result, and ends the process.
        self._send: Optional[Callable[[Any], NoReturn]] = None
        self._run: Optional[Run] = None
        self._reset()

    def _reset(self) -> None:
        self._result = Result()
        self._deadline = time.monotonic() + self._run_time_s
        self._interrupts = 0
        self._threads: Set[threading.Thread] = set(threading.enumerate())

    @property
    def is_running(self) -> bool:
        """Whether a run has begun and not ended."""
        return self._run is not None

    @property
    def is_forked(self) -> bool:
        """Whether this is the process of a single run, which others are done beside."""
        return self._send is not None

    @property
    def universe(self) -> Optional[Universe]:
        """The universe of the run, if it has one before its fixtures."""
        return None if self._run is None else self._run.universe

    # Called by the fixture `minikeeper`.

    def begin_run(self, server: Server, universe: Universe) -> None:
        """Injects the faults of the next run into a new universe, unless `universe` has them. Skips the rest of the test if the sweep is over."""
        if "minikeeper_server" in self._item.fixturenames:  # type: ignore[attr-defined]
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
            if next.run == 0:
                self._is_over = True
                universe.drop_universe()
                pytest.skip("the sweep is over")
            self._run = Run(next.run, next.points, universe)
        _story.current.run = self._run.number

    # Called for the reports of a run.

    def is_failure(self, call: pytest.CallInfo[None]) -> bool:
        """Whether a phase of the run has failed, even if the test is expected to fail."""
        if self._run is None or call.excinfo is None:
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
            result.failure = str(call.excinfo.value) if is_hung else call.excinfo.exconly()
            result.story = None if story is None else str(story)
        which = _which(self._run)
        if report.longreprtext:
            result.sections.append((f"Traceback of the {which}", report.longreprtext))
        result.sections += [(f"{title}, {which}", text) for title, text in report.sections]

    # The runs.

    def run_all(self, nextitem: Optional[pytest.Item]) -> List[pytest.TestReport]:
        """Runs the test until the sweep is over. Returns the reports of the test."""
        began, is_stopped = time.monotonic(), False
        broken: Optional[MinikeeperError] = None
        try:
            while True:
                self._run = None
                reports = self._do()
                run, result = self._run, self._result
                if run is None:
                    break
                self._end_run(run, result)
                is_skipped = run.number == 1 and result.failure is None and any(report.skipped for report in reports)
                is_stopped = self._is_stopped()
                if is_skipped or is_stopped:
                    break
                if run.number == 1 and self._jobs > 1:
                    self._why_here = _forks.why_not(self._item)
                    if self._why_here is None:
                        self._do_others_in_forks(run)
                        is_stopped = not self._is_over
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
        if not self._is_over and not is_stopped:
            # It was skipped, or a fixture failed before the run.
            return [*reports[:-1], *(one for one in reports[-1:] if one.failed), self._end(nextitem)]
        return [self._report("setup"), self._reported(time.monotonic() - began), self._end(nextitem)]

    def _do(self) -> List[pytest.TestReport]:
        """Does a run in this process. Returns the reports of pytest."""
        item = self._item
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
        result = self._result
        if result.failure is None and time.monotonic() > self._deadline and not self._is_debugged:
            result.outcome, result.failure = "hung", f"the run took longer than {self._run_time_s:g} s"
        if result.failure is not None and not self.is_forked:
            _leave(thread for thread in threading.enumerate() if thread not in self._threads)
        return reports

    def _is_stopped(self) -> bool:
        return bool(self._item.session.shouldstop or self._item.session.shouldfail)

    def _end_run(self, run: Run, result: Result) -> None:
        """Tells the server the result of a run, and drops its universe."""
        assert self._sweep is not None and self._server is not None
        message = None if result.failure is None else _story.clean(result.failure)[: _story.FAILURE_CHARS_MAX]
        if result.failure is not None:
            self._failed.setdefault(run.points, run.number)
            if self._is_new(run) and len(self._failed) <= SHOWN_MAX:
                self._sections += result.sections
        # The server, because the test may have dropped the universe.
        self._server.sweep_end(
            self._sweep, run=run.number, outcome=result.outcome, message=message, story=result.story
        )
        try:
            run.universe.drop_universe()
        except MinikeeperError as error:
            if error.status != 404:
                raise

    # The forked runs.

    def _do_others_in_forks(self, first: Run) -> None:
        """Does the runs after the first in forked processes, some at a time, until the sweep is over or stopped."""
        assert self._server is not None
        forks: Dict[_forks.Child, Run] = {}
        asked: Optional[Asked] = None
        numbers = itertools.count(2)
        with contextlib.ExitStack() as at_end:
            selector = at_end.enter_context(selectors.DefaultSelector())
            at_end.callback(_close, forks)
            while not self._is_stopped() and not (self._is_over and not forks):
                if asked is None and not self._is_over and len(forks) < self._jobs:
                    universe = self._server.create_universe(f"{first.universe.name}-{next(numbers)}")
                    # It may wait for the end of another run.
                    asked = universe._control.ask("sweep_next", {"sweep": self._sweep})
                    selector.register(asked, selectors.EVENT_READ)
                ready = [key.fileobj for key, _ in selector.select(POLL_S)]
                if asked in ready:
                    selector.unregister(asked)
                    run = self._next_of(asked.answer(), universe)
                    asked = None
                    if run is not None:
                        child = self._fork(run)
                        forks[child] = run
                        selector.register(child, selectors.EVENT_READ)
                for child, run in list(forks.items()):
                    sent = child.read() if child in ready else child.poll()
                    if sent is not None:
                        selector.unregister(child)
                        del forks[child]
                        child.close()
                        self._end_run(run, self._received(run, sent))

    def _next_of(self, answer: Dict[str, Any], universe: Universe) -> Optional[Run]:
        if answer["run"] == 0:
            self._is_over = True
            universe.drop_universe()
            return None
        return Run(answer["run"], answer["points"], universe)

    def _fork(self, run: Run) -> _forks.Child:
        def act(send: Callable[[Any], NoReturn]) -> Any:
            self._send, self._run = send, run
            self._do()
            return self._sent()

        # The run has its time, and its fixtures have it again to end.
        return _forks.Child(self._item, act, 2 * self._run_time_s + GRACE_S)

    def _sent(self) -> Dict[str, Any]:
        """What the process of a run sends to that of the sweep."""
        session = self._item.session
        return {
            "result": dataclasses.asdict(self._result),
            "stop": str(session.shouldstop or ""),
            "fail": str(session.shouldfail or ""),
        }

    def _received(self, run: Run, sent: Dict[str, Any]) -> Result:
        """Returns the result of a run from what its process has sent, or from how it ended."""
        if "result" in sent:
            session = self._item.session
            if sent["stop"]:
                session.shouldstop = sent["stop"]
            if sent["fail"]:
                session.shouldfail = sent["fail"]
            result = Result(**sent["result"])
            result.sections = [(title, text) for title, text in result.sections]
            return result
        if "interrupted" in sent:
            raise KeyboardInterrupt
        if "exit" in sent:
            raise pytest.exit.Exception(sent["exit"], sent["code"])
        result = Result("failed")
        if "hung" in sent:
            result.outcome = "hung"
            result.failure = f"the run did not end within {self._run_time_s:g} s, nor when it was interrupted: it was killed"
        elif "error" in sent:
            result.failure = f"the run failed outside of the test: {sent['error'].strip().rpartition(chr(10))[2]}"
            result.sections.append((f"Traceback of the {_which(run)}", sent["error"]))
        else:
            result.failure = f"the process of the run {sent['died']}"
        _story.current.begin(self._item.nodeid)
        _story.current.run, self._run = run.number, run
        text, page = _story.text(_story.current.read(run.universe, result.failure), self.folder)
        self._run = None
        result.story = None if page is None else str(page)
        result.sections.append((f"minikeeper, {_which(run)}", text))
        return result

    def _reported(self, took_s: float) -> pytest.TestReport:
        """Returns the report of the test, with what the sweep has found."""
        assert self._server is not None
        # Single quotes keep the shell from expanding the points.
        repeat = f"pytest {shlex.quote(self._item.nodeid)} --minikeeper-only '{{}}'"
        query = {"sweep": self._sweep, "repeat": repeat, "title": self._item.nodeid}
        found = self._server._control.read("sweep_report", query)
        text, is_passed = str(found["text"]).rstrip(), bool(found["is_clean"])
        summary = str(found["summary"])
        if self._why_here is not None:
            why = f"one run at a time, in the process of pytest, because {self._why_here}"
            text, summary = f"{text}\n\n{why}", f"{summary}; {why}"
        if not is_passed and self._folder is not None:
            name = f"sweep-{_story.file_name(self._item.nodeid)}.html"
            text += f"\n\n{_story.save(self._folder, {name: str(found['html'])})}"
        self._item.user_properties.append((MARK, summary))
        report = self._report("call", None if is_passed else text)
        if found["state"] == "incomplete":
            # It is no failure that a test may be expected to have, and never a pass.
            report.outcome, report.longrepr = "failed", text
            vars(report).pop("wasxfail", None)
        report.duration = took_s
        report.sections = [("minikeeper", text)] if is_passed else self._sections
        return report

    def _end(self, nextitem: Optional[pytest.Item]) -> pytest.TestReport:
        """Ends the fixtures of larger scopes that the next test does not use."""
        setups = self._item.session._setupstate
        return self._report("teardown", act=lambda: setups.teardown_exact(nextitem))

    def _report(
        self, when: Any, failure: Optional[str] = None, act: Optional[Callable[[], None]] = None
    ) -> pytest.TestReport:
        self._item._report_sections.clear()

        def fail() -> None:
            if failure is not None:
                pytest.fail(failure, pytrace=False)

        call = pytest.CallInfo.from_call(act or fail, when)
        report: pytest.TestReport = self._item.ihook.pytest_runtest_makereport(item=self._item, call=call)
        return report

    def limited(self, when: str) -> Iterator[None]:
        """Raises RunHung in a phase of the run, also in a blocked call, when the time of the run is over.

        Only in the main thread, and where there is SIGALRM. Elsewhere a run that ends late counts as hung.
        """
        if not _has_alarms() or self._is_debugged:
            yield
            return

        def ring(_: int, frame: Optional[FrameType]) -> None:
            __tracebackhide__ = True
            self._interrupts += 1
            # A process of its own can be ended earlier.
            if self._interrupts > (1 if self.is_forked else INTERRUPTS_MAX):
                self._exit(frame)
            signal.setitimer(signal.ITIMER_REAL, self._run_time_s)
            raise RunHung(f"the run did not end within {self._run_time_s:g} s{self._line(frame)}")

        # The clients of a hung test get the time to stop.
        left_s = self._run_time_s if when == "teardown" else max(self._deadline - time.monotonic(), 0.001)
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
                self._result.sections.append((f"Stack of the {_which(self._run)}", stack))
            self._send(self._sent())
        capture: Any = self._item.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        print(
            f"\n{MARK}: {self._item.nodeid} with {self._run.points or 'no fault'} {goes_on}; pytest ends, {why}\n\n{stack}",
            file=sys.stderr,
            flush=True,
        )
        os._exit(int(pytest.ExitCode.INTERNAL_ERROR))

    def _line(self, frame: Optional[FrameType]) -> str:
        """Says which line of the test has called what blocks."""
        file = str(self._item.path)
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        if frame is None:
            return ""
        return f": it was in line {frame.f_lineno} of {self._item.path.name}, in {frame.f_code.co_name}"


def _close(children: Iterable[_forks.Child]) -> None:
    for child in children:
        child.close()


def _which(run: Run) -> str:
    return f"run with {run.points}" if run.points else "run without faults"


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
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)


_SWEEP = pytest.StashKey[Sweep]()


def of(item: Any) -> Optional[Sweep]:
    """Returns the sweep of a test that runs in one."""
    sweep: Optional[Sweep] = item.stash.get(_SWEEP, None)
    return sweep


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    mark = item.get_closest_marker(MARK)
    if mark is None or item.config.getoption("setuponly", False):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        if server_of_sweep() is not None:
            raise TypeError("the test sweeps by itself: run pytest without minikeeper sweep")
        sweep = Sweep(item, *mark.args, **mark.kwargs)
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

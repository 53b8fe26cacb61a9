"""The runs of a sweep after its first, several at a time, each in a forked process."""

from __future__ import annotations

import dataclasses
import itertools
import selectors
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Set

import pytest

from ._control import Asked
from ._errors import MinikeeperError
from ._forks import Child
from ._sweep_runs import Result, Run
from .universe import Universe

if TYPE_CHECKING:
    from ._sweep import Sweep

# A process gets this time more than its run, which is interrupted then, and tells where it was.
GRACE_S = 5.0

# Between two looks at processes which may have died.
POLL_S = 0.5


class Overlap:
    """Does the runs of a sweep until it is over or stopped."""

    def __init__(self, sweep: Sweep, jobs: int, first: Universe) -> None:
        """`first` is the universe of the first run."""
        self._sweep, self._jobs, self._first = sweep, jobs, first
        self._selector = selectors.DefaultSelector()
        self._children: Dict[Child, Run] = {}
        # Calls that wait: for the next run, at most one, and for crashes of clients.
        self._asked: Set[Asked] = set()
        self._is_next_asked = False
        self._numbers = itertools.count(2)

    def run_all(self) -> None:
        try:
            while not self._sweep.is_stopped and (self._children or not self._sweep.is_over):
                if not self._is_next_asked and not self._sweep.is_over and len(self._children) < self._jobs:
                    self._ask_next()
                for key, _ in self._selector.select(POLL_S):
                    # One that came before may have ended it.
                    if key.fileobj in self._children or key.fileobj in self._asked:
                        key.data()
                for child in list(self._children):
                    self._take(child, child.poll())
        finally:
            for child in self._children:
                child.close()
            for asked in self._asked:
                asked.close()
            self._selector.close()

    def _ask(self, universe: Universe, verb: str, body: Dict[str, Any], act: Callable[[Asked], None]) -> None:
        """Calls a verb that may wait for the end of another run. `act` gets the call when it can be answered."""
        asked = universe._control.ask(verb, body)

        def take() -> None:
            self._selector.unregister(asked)
            self._asked.remove(asked)
            act(asked)

        self._asked.add(asked)
        self._selector.register(asked, selectors.EVENT_READ, take)

    def _ask_next(self) -> None:
        sweep = self._sweep
        universe = sweep.server.create_universe(f"{self._first.name}-{next(self._numbers)}")

        def begin(asked: Asked) -> None:
            self._is_next_asked = False
            answer = asked.answer()
            run = sweep.begun(answer["run"], answer["points"], universe)
            if run is not None:
                self._fork(run)

        self._is_next_asked = True
        self._ask(universe, "sweep_next", {"sweep": sweep.number}, begin)

    def _fork(self, run: Run) -> None:
        sweep = self._sweep
        # The run has its time, and its fixtures have it again to end.
        limit_s = 2 * sweep.run_time_s + GRACE_S
        try:
            child = Child(sweep.item, lambda send: sweep.do_in_fork(run, send), limit_s)
        except OSError as error:
            raise MinikeeperError(f"cannot fork a process for a run, use fewer jobs: {error}") from None
        self._children[child] = run
        self._selector.register(child, selectors.EVENT_READ, lambda: self._take(child, child.read()))
        if run.may_crash:
            body = {"sweep": sweep.number, "run": run.number, "within_ms": round(limit_s * 1_000)}
            self._ask(sweep.server, "sweep_crashed", body, lambda asked: self._crash(child, asked))

    def _crash(self, child: Child, asked: Asked) -> None:
        """Kills the process whose clients have died for the server, and begins it again."""
        try:
            is_crashed = asked.answer()["is_crashed"]
        except MinikeeperError:
            # The run has ended before the server took the call.
            return
        if is_crashed and child in self._children:
            run = self._children[child]
            self._end(child)
            self._fork(run.again())

    def _take(self, child: Child, sent: Optional[Dict[str, Any]]) -> None:
        """Ends a run whose process has sent something, or has ended."""
        if sent is None or child not in self._children:
            return
        run = self._children[child]
        self._end(child)
        if self._sweep.has_crashed(run):
            self._fork(run.again())
        else:
            self._sweep.end_run(run, self._result_of(run, sent))

    def _end(self, child: Child) -> None:
        self._selector.unregister(child)
        del self._children[child]
        child.close()

    def _result_of(self, run: Run, sent: Dict[str, Any]) -> Result:
        """Returns the result of a run from what its process has sent, or from how it ended."""
        session = self._sweep.item.session
        if "result" in sent:
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
        if "hung" in sent:
            time_s = self._sweep.run_time_s
            failure = f"the run did not end within {time_s:g} s, nor when it was interrupted: it was killed"
            result = Result("hung", failure)
        elif "error" in sent:
            last = sent["error"].strip().splitlines()[-1]
            result = Result("failed", f"the run failed outside of the test: {last}")
            result.sections.append((f"Traceback of the {run.words}", sent["error"]))
        else:
            result = Result("failed", f"the process of the run {sent['died']}")
        self._sweep.add_story(run, result)
        return result


def sent_by(result: Result, session: pytest.Session) -> Dict[str, Any]:
    """Returns what the process of a run sends to that of its sweep."""
    return {
        "result": dataclasses.asdict(result),
        "stop": str(session.shouldstop or ""),
        "fail": str(session.shouldfail or ""),
    }

"""What a test says of some points of its sweep, with the reason: failures that it expects, and points not to try."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Optional, Type, Union


@dataclasses.dataclass(frozen=True)
class Rule:
    """What `allow` and `leave_out` return, for the arguments of the mark `minikeeper_sweep`."""

    # The name that users import.
    __module__ = "minikeeper"

    text: str
    """Its text, as `minikeeper sweep` takes it."""
    kind: str
    """The argument of the mark that it is for."""
    raises: Optional[Type[BaseException]] = None

    def __str__(self) -> str:
        return self.text


def allow(
    fault: str,
    *,
    raises: Union[Type[BaseException], str],
    op: Optional[str] = None,
    path: Optional[str] = None,
    client: Optional[int] = None,
    reason: str,
) -> Rule:
    """Expects failures of a swept test: for the argument `allow` of the mark `minikeeper_sweep`.

    - `fault`: The fault that the failed run has tried, such as "session-expired"
    - `raises`: The exception that ended the test, or a part of its message as pytest shows it
    - `op`, `path`, `client`: Only at these requests; in the path, `*` stands for any characters of a name
    - `reason`: Why the test may fail so
    """
    is_class = isinstance(raises, type)
    text = name_of(raises) if isinstance(raises, type) else raises
    if not text.strip():
        raise ValueError("allow: raises is empty")
    rule = f"{_where(fault, op, path, client)} raises {text}"
    return Rule(_with_reason("allow", rule, reason), "allow", raises if is_class else None)  # type: ignore[arg-type]


def leave_out(
    fault: str,
    *,
    op: Optional[str] = None,
    path: Optional[str] = None,
    client: Optional[int] = None,
    reason: str,
) -> Rule:
    """Leaves points out of a sweep: for the argument `leave_out` of the mark `minikeeper_sweep`.

    - `fault`: The fault that is not tried, such as "reply-late"
    - `op`, `path`, `client`: Only at these requests; in the path, `*` stands for any characters of a name
    - `reason`: Why it is not tried
    """
    return Rule(_with_reason("leave_out", _where(fault, op, path, client), reason), "leave_out")


def texts(kind: str, rules: Union[Rule, str, Iterable[Union[Rule, str]]]) -> Optional[str]:
    """Returns the rules of an argument of the mark, one a line."""
    lines = []
    for rule in [rules] if isinstance(rules, (Rule, str)) else rules:
        if isinstance(rule, Rule) and rule.kind != kind:
            raise TypeError(f"{kind} has a rule of minikeeper.{rule.kind}: {rule}")
        lines.append(str(rule))
    return "\n".join(lines) or None


def name_of(error: Type[BaseException]) -> str:
    """Returns the name of an exception as a traceback shows it."""
    is_plain = error.__module__ in ("builtins", "__main__")
    return error.__qualname__ if is_plain else f"{error.__module__}.{error.__qualname__}"


def _where(fault: str, op: Optional[str], path: Optional[str], client: Optional[int]) -> str:
    parts: Any = (client, op, None, path)
    if not any(part is not None for part in parts):
        return fault
    return ":".join([fault, *("*" if part is None else str(part) for part in parts)])


def _with_reason(kind: str, rule: str, reason: str) -> str:
    if not reason.strip():
        raise ValueError(f"{kind}: the reason is empty")
    text = f"{rule} because {reason}"
    if len(text.splitlines()) > 1:
        raise ValueError(f"{kind}: a rule is one line: {text!r}")
    return text

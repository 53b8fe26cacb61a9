"""What is known of kazoo, without importing it."""

from __future__ import annotations

import threading
from typing import Any, Callable, NamedTuple, Tuple

from ._errors import MinikeeperError

SETTLE_S = 30.0


class _Callback(NamedTuple):
    """As kazoo's own: what its handlers take into their queue."""

    type: str
    func: Callable[..., Any]
    args: Tuple[Any, ...]


def settle(*clients: Any) -> None:
    """Waits until kazoo's clients have run the callbacks of all events sent to them so far.

    A round trip to the server comes behind every event sent before it, and a callback of ours behind theirs: kazoo
    keeps both orders. Raises MinikeeperError if the callbacks take longer than 30 s, and what kazoo raises when it is
    not connected.
    """
    for client in clients:
        client.sync("/")
        done = threading.Event()
        client.handler.dispatch_callback(_Callback("watch", done.set, ()))
        if not done.wait(SETTLE_S):
            raise MinikeeperError(f"callbacks of {client!r} still run after {SETTLE_S:.0f} s")

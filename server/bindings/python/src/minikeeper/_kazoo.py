"""Support for kazoo, without importing it."""

from __future__ import annotations

import threading
from typing import Any, Callable, NamedTuple, Tuple

from ._errors import MinikeeperError

SETTLE_S = 30.0


def wait_renewed(client: Any, former: int) -> None:
    """Waits until kazoo's client, which was told that its session has expired, is connected with another one.

    kazoo calls listeners with LOST before that, and with CONNECTED then. Raises MinikeeperError after 30 s.
    """
    connected = threading.Event()

    def listen(state: str) -> None:
        if state == "CONNECTED":
            connected.set()

    client.add_listener(listen)
    try:
        session = client.client_id
        is_renewed = session is not None and session[0] not in (0, former) and client.connected
        if not is_renewed and not connected.wait(SETTLE_S):
            raise MinikeeperError(f"{client!r} has no new session after {SETTLE_S:.0f} s")
    finally:
        client.remove_listener(listen)


class _Callback(NamedTuple):
    """Like kazoo's own class, which its handlers accept in their queue."""

    type: str
    func: Callable[..., Any]
    args: Tuple[Any, ...]


def settle(*clients: Any) -> None:
    """Waits until kazoo's clients have run the callbacks of all events sent to them so far.

    A reply arrives after every event sent before it, and our callback runs after those of these events: kazoo keeps
    both orders. Raises MinikeeperError if the callbacks take longer than 30 s, and kazoo's own error if a client is not
    connected.
    """
    for client in clients:
        client.sync("/")
        done = threading.Event()
        client.handler.dispatch_callback(_Callback("watch", done.set, ()))
        if not done.wait(SETTLE_S):
            raise MinikeeperError(f"callbacks of {client!r} are still running after {SETTLE_S:.0f} s")

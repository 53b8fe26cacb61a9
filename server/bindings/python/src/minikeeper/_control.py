"""The control API of a server: JSON over HTTP, on the port of the clients."""

from __future__ import annotations

import http.client
import io
import json
import socket
import time
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple
from urllib.parse import quote, urlencode

from ._errors import MinikeeperError, NotVerified, WaitTimedOut

# Longer than any verb takes until its answer begins or goes on; waits add their own limit.
PATIENCE_S = 30.0

# For an answer that does not end. Far above those of a server with millions of znodes.
ANSWER_BYTES_MAX = 256 << 20
ANSWER_S_MAX = 300.0


class _Bounded(io.RawIOBase):
    """What a server sends: at most so many bytes, until a time."""

    def __init__(self, raw: io.RawIOBase, deadline: float, what: str) -> None:
        self._raw, self._deadline, self._what = raw, deadline, what
        self._left = ANSWER_BYTES_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise MinikeeperError(f"{self._what} is longer than the limit of {ANSWER_BYTES_MAX} bytes; is it a minikeeper?")
        if time.monotonic() > self._deadline:
            raise MinikeeperError(f"{self._what} did not end within {ANSWER_S_MAX:g} s; is it a minikeeper?")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class Asked:
    """A verb that has been called and not answered. `fileno` is readable when the answer comes."""

    def __init__(self, control: Control, what: str, connection: http.client.HTTPConnection) -> None:
        self._control, self._what, self._connection = control, what, connection
        self._socket = connection.sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def answer(self) -> Dict[str, Any]:
        """Waits for the answer and returns it."""
        what = self._what
        try:
            response = self._connection.getresponse()
            status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._control._unanswered(what, error) from None
        finally:
            self.close()
        try:
            answer = json.loads(text or b"{}")
        except ValueError:
            answer = None
        if status == 200 and isinstance(answer, dict):
            self._control._note(what, answer)
            return answer
        sentence = answer.get("error") if isinstance(answer, dict) else None
        sentence = sentence or f"{what}: status {status}: {text[:200]!r}"
        if what == "verify" and status == 409:
            raise NotVerified(sentence, status)
        raise (WaitTimedOut if status == 408 else MinikeeperError)(sentence, status)

    def close(self) -> None:
        self._connection.close()


class Control:
    """Calls the verbs of one server. Each call uses a new connection, so that any thread may call."""

    def __init__(self, hosts: Sequence[Tuple[str, int]], token: Optional[str], universe: Optional[str]) -> None:
        # One for each server of the ensemble.
        self.hosts, self.token, self.universe = hosts, token, universe
        # The address of control while the server is down, which `go_down` returned.
        self._side: Optional[Tuple[str, int]] = None

    def read(self, verb: str, query: Optional[Mapping[str, Any]] = None, /) -> Dict[str, Any]:
        """Calls a verb that only reads."""
        fields = {name: str(value).lower() if isinstance(value, bool) else value for name, value in (query or {}).items()}
        return self._ask("GET", verb + ("?" + urlencode(fields) if fields else ""), None, 0).answer()

    def do(self, verb: str, body: Optional[Mapping[str, Any]] = None, /) -> Dict[str, Any]:
        """Calls a verb that changes something or waits."""
        return self.ask(verb, body).answer()

    def ask(self, verb: str, body: Optional[Mapping[str, Any]] = None, /) -> Asked:
        """Calls a verb that changes something or waits, without waiting for the answer."""
        body = dict(body or {})
        return self._ask("POST", verb, body, body.get("within_ms") or 0)

    def _ask(self, method: str, verb: str, body: Optional[Mapping[str, Any]], within_ms: int) -> Asked:
        scope = f"universes/{quote(self.universe, safe='')}/" if self.universe is not None else ""
        headers = {"Accept": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        headers["Connection"] = "close"
        what = verb.partition("?")[0]
        connection: Optional[http.client.HTTPConnection] = None
        try:
            patience = PATIENCE_S + within_ms / 1000
            connection = self._connect(patience)
            answer_of = f"{what}: the answer of {connection.host}:{connection.port}"

            def bounded(sock: socket.socket, *args: Any, **others: Any) -> http.client.HTTPResponse:
                response = http.client.HTTPResponse(sock, *args, **others)
                deadline = time.monotonic() + patience + ANSWER_S_MAX
                response.fp = io.BufferedReader(_Bounded(response.fp.detach(), deadline, answer_of))
                return response

            connection.response_class = bounded  # type: ignore[assignment]
            connection.request(method, f"/v1/{scope}{verb}", content, headers)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise self._unanswered(what, error) from None
            raise
        return Asked(self, what, connection)

    def _unanswered(self, what: str, error: Exception) -> MinikeeperError:
        """Says what was called, where, and why there is no answer."""
        if isinstance(error, socket.timeout):
            return MinikeeperError(f"{what}: the server at {self._where()} timed out")
        # Nothing listens there, or what listens is not control.
        is_refused = isinstance(error, ConnectionRefusedError)
        question = "is a server running there?" if is_refused else "is the server running with --control?"
        reason = f"{type(error).__name__}: {error}"
        return MinikeeperError(f"{what}: no answer from the control API at {self._where()} ({reason}); {question}")

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        side = self._side
        if side is not None:
            connection = http.client.HTTPConnection(*side, timeout=timeout)
            try:
                connection.connect()
                return connection
            except ConnectionRefusedError:
                # Another caller has brought the server up.
                self._side = None
        for place, (host, port) in enumerate(self.hosts):
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
            try:
                connection.connect()
                break
            except ConnectionRefusedError:
                # A server of the ensemble may be down.
                if place + 1 == len(self.hosts):
                    raise
        return connection

    def _where(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.hosts)

    def _note(self, verb: str, answer: Mapping[str, Any]) -> None:
        if verb == "go_down" and "control" in answer:
            host, _, port = answer["control"].rpartition(":")
            self._side = host.strip("[]"), int(port)
        elif verb in ("come_up", "restart"):
            self._side = None

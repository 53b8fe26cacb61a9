"""The control API of a server: JSON over HTTP, on the port of the clients."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, Dict, Mapping, Optional
from urllib.parse import quote, urlencode

from ._errors import MinikeeperError, WaitTimedOut

# Longer than any verb works; waits have this on top of their own bound.
PATIENCE_S = 30.0


class Control:
    """Asks one server; each question has a connection of its own, so that any thread may ask."""

    def __init__(self, host: str, port: int, token: Optional[str], universe: Optional[str]) -> None:
        self.host, self.port, self.token, self.universe = host, port, token, universe
        # A server that is down takes no connection: the one over which it went there is kept until it comes up.
        self._kept: Optional[http.client.HTTPConnection] = None

    def read(self, verb: str, /, **query: Any) -> Dict[str, Any]:
        """Asks a verb that changes nothing."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", verb + ("?" + urlencode(given) if given else ""), None, 0)

    def do(self, verb: str, body: Optional[Mapping[str, Any]] = None, /) -> Dict[str, Any]:
        """Asks a verb that changes or waits."""
        body = dict(body or {})
        return self._ask("POST", verb, body, body.get("within_ms") or 0)

    def _ask(self, method: str, verb: str, body: Optional[Mapping[str, Any]], within_ms: int) -> Dict[str, Any]:
        scope = f"universes/{quote(self.universe, safe='')}/" if self.universe is not None else ""
        headers = {"Accept": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        timeout = PATIENCE_S + within_ms / 1000
        connection = self._kept or http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        what = verb.partition("?")[0]
        stays = what == "go_down" or (self._kept is not None and what != "come_up")
        if not stays:
            headers["Connection"] = "close"
        self._kept = None
        try:
            connection.request(method, f"/v1/{scope}{verb}", content, headers)
            response = connection.getresponse()
            status, text = response.status, response.read()
            if stays and status == 200:
                self._kept = connection
        except socket.timeout:
            raise MinikeeperError(f"{what}: the server at {self.host}:{self.port} does not answer") from None
        except (OSError, http.client.HTTPException) as error:
            reason = f"{type(error).__name__}: {error}"
            raise MinikeeperError(
                f"{what}: no answer from the control API at {self.host}:{self.port} ({reason}); "
                "is it running, and with --control?"
            ) from error
        finally:
            if self._kept is None:
                connection.close()
        try:
            answer = json.loads(text or b"{}")
        except ValueError:
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        sentence = answer.get("error") if isinstance(answer, dict) else None
        sentence = sentence or f"{what}: status {status}: {text[:200]!r}"
        raise (WaitTimedOut if status == 408 else MinikeeperError)(sentence, status)

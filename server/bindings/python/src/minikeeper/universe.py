"""A universe, with every verb."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Literal, Optional, Tuple, Union, overload

from . import _story
from ._control import Control
from ._errors import MinikeeperError
from ._faults import Fault
from ._kazoo import settle, wait_renewed
from ._sessions import Client, SessionLike, session_id, signed
from ._verbs import Verbs


class ResourceEntry:
    """A holder that is inside a resource: see `Universe.resource`."""

    def __init__(self, universe: Universe, entry: int) -> None:
        self._universe = universe
        self._entry = entry

    def write(self) -> bool:
        """Write to the resource. Returns whether it accepts that: it does unless it has seen a higher token."""
        return self._universe.resource_write(self._entry)


class Universe(Verbs):
    """A tree with its own sessions, clock and faults, and every verb.

    A `Server` is also its own first universe. `Universe("127.0.0.1:2181")` is that of a running server with
    `--control`; `token` is its `--control-token`. Each verb raises MinikeeperError if the server refuses it, and each
    wait raises WaitTimedOut, with what was seen instead, when it times out.
    """

    def __init__(self, connect_string: str, *, token: Optional[str] = None, name: Optional[str] = None) -> None:
        hosts: List[Tuple[str, int]] = []
        for address in connect_string.partition("/")[0].split(","):
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                raise ValueError(f"invalid address {address!r}; write HOST:PORT")
            hosts.append((host.strip("[]"), int(port)))
        self._connect_string = connect_string
        self._address = connect_string.partition("/")[0].partition(",")[0]
        self._token = token
        self.name = name
        self._control = Control(hosts, token, name)

    @property
    def address(self) -> str:
        """The address of its server, HOST:PORT; the first one's of an ensemble."""
        return self._address

    @property
    def connect_string(self) -> str:
        """The connect string for ZooKeeper clients: the HOST:PORT of each server, and the chroot of a created universe."""
        return self._connect_string

    def expire(
        self,
        session: Optional[SessionLike] = None,
        *,
        address: Optional[str] = None,
        identity: Optional[str] = None,
        owner: Optional[str] = None,
        allow_none: bool = False,
        seen_by: Union[Client, Iterable[Client]] = (),
    ) -> int:
        """Expire sessions; returns when their watchers have been notified. Returns how many sessions matched.

        Give exactly one of the first four arguments to select sessions: a session's id, a `Session` or a kazoo client;
        the address of clients; an identity of clients; the path of an ephemeral that they own. No matching session is
        an error (404) unless `allow_none` is set.

        Clients still have to read the events and run their callbacks, in their own threads. For the kazoo clients in
        `seen_by`, one or several, that has happened too when this returns (see `settle`). One of them whose session
        this expires has been told so (see `until_noticed`), has called its listeners, and has a new session.
        """
        clients = list(seen_by) if isinstance(seen_by, Iterable) else [seen_by]
        former = [(client, session_id(client)) for client in clients]
        count = super().expire(session, address=address, identity=identity, owner=owner, allow_none=allow_none)
        if clients:
            alive = {session_id(one) for one in self.sessions()}
            for client, ended in former:
                if ended not in alive:
                    self.until_noticed(ended)
                    wait_renewed(client, signed(ended))
        settle(*clients)
        return count

    def remove_fault(self, fault: Union[Fault, int]) -> int:
        """Remove a fault, given as a `Fault` or its number: see `Fault.remove`."""
        return fault.remove() if isinstance(fault, Fault) else super().remove_fault(fault)

    def fault(self) -> Optional[str]:
        """Return the fault that a sweep tries in this run, such as "session-expired".

        None in a run without faults, and without a sweep. Of two faults, the first: `sweep_faults` has both.
        """
        faults = self.sweep_faults().faults
        return faults[0] if faults else None

    @contextmanager
    def resource(self, name: str, *, token: Optional[int] = None, holder: Optional[str] = None) -> Iterator[ResourceEntry]:
        """Be inside a resource that a lock protects, within the block.

        `resource_verdict(name)` says whether two were inside at a time; a run of a sweep in which a resource is not safe fails. The
        resource refuses a token that is lower than one that it has seen: see `ResourceEntry.write`.
        """
        entry = self.resource_enter(name, fencing_token=token, holder=holder)
        try:
            yield ResourceEntry(self, entry)
        finally:
            self.resource_leave(entry)

    if TYPE_CHECKING:
        # Only for type checkers, which then know the result of each format.
        @overload
        def export_tree(self, *, format: Literal["json"] = "json", path: str = "/") -> Dict[str, Any]: ...
        @overload
        def export_tree(self, *, format: Literal["yaml"], path: str = "/") -> str: ...
        @overload
        def export_tree(self, *, format: Literal["json", "yaml"] = "json", path: str = "/") -> Any: ...
        def export_tree(self, *, format: Literal["json", "yaml"] = "json", path: str = "/") -> Any: ...

    def drop_universe(self, name: Optional[str] = None) -> None:
        """Drop the universe of this name, or this one: close its connections and delete its state."""
        name = self.name if name is None else name
        if name is None:
            raise TypeError("the server's own universe cannot be dropped: give a name")
        # Only the server has this verb, not a created universe.
        server = Universe(self._connect_string.partition("/")[0], token=self._token)
        super(Universe, server).drop_universe(name)

    def _faults_that_never_acted(self, others: Iterable[int] = ()) -> List[str]:
        """Removes the faults that have never acted and are not optional, without `others`. Returns a sentence for each."""
        never = [fault["fault"] for fault in self.faults() if not (fault["hits"] or fault.get("optional"))]
        never = [fault for fault in never if fault not in others]
        if never:
            # While the server still has them.
            _story.current.keep(self, "faults that have never acted")
        sentences = []
        for fault in never:
            try:
                self.remove_fault(fault)
            except MinikeeperError as error:
                sentences.append(str(error))
        return sentences

    def _universe(self, name: str, connect_string: str) -> Universe:
        return Universe(connect_string, token=self._token, name=name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._connect_string}>"

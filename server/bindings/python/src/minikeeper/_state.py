"""Verbs of a test: the tree, read, filled, marked and rewound without a client."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Union

from ._control import Control


@dataclass(frozen=True)
class Znode:
    """A znode's data, None if it has none, and its stat, by the names of the control API."""

    data: Optional[bytes]
    stat: Mapping[str, Any]


def _znode_json(znode: Any) -> Any:
    """A znode of a tree, with bytes as JSON has them."""
    if isinstance(znode, (bytes, bytearray, memoryview)):
        return {"data_base64": base64.b64encode(znode).decode()}
    if isinstance(znode, Mapping) and isinstance(znode.get("data"), (bytes, bytearray, memoryview)):
        rest = {name: value for name, value in znode.items() if name != "data"}
        return {**_znode_json(znode["data"]), **rest}
    return znode


class State:
    """The tree."""

    _control: Control

    def get(self, path: str) -> Znode:
        """A znode. Raises MinikeeperError (404) if there is none."""
        answer = self._control.read("get", path=path)
        if answer.get("data_base64") is not None:
            data: Optional[bytes] = base64.b64decode(answer["data_base64"])
        else:
            text = answer.get("data")
            data = None if text is None else text.encode()
        return Znode(data, answer.get("stat", {}))

    def children(self, path: str) -> List[str]:
        """The names of a znode's children. Raises MinikeeperError (404) if there is no such znode."""
        return list(self._control.read("children", path=path)["children"])

    def dump(self) -> str:
        """Znodes, sessions and watches as text, to be read and compared: equal trees give equal text."""
        return str(self._control.read("dump")["dump"])

    def export_tree(self, *, format: str = "json") -> Any:
        """The tree, in the form `seed` takes: a dict by path for "json" (the default), a text for "yaml"."""
        return self._control.read("export_tree", format=format)["tree"]

    def seed(self, tree: Optional[Mapping[str, Any]] = None, *, yaml: Optional[str] = None) -> None:
        """Puts znodes there: `{"/app/config": "on"}`, a tree as `export_tree` gives it, or a text in YAML.

        Data may be bytes too, by itself or as `data` of a znode: `{"/raw": b"\\xff", "/c": {"data": b"", "container": True}}`.

        Parents need not be named. Raises MinikeeperError (400) if it makes no sense.
        """
        if (tree is None) == (yaml is None):
            raise TypeError("give a tree, or yaml, not both")
        if tree is not None:
            self._control.do("seed", {"tree": {path: _znode_json(znode) for path, znode in tree.items()}})
        else:
            self._control.do("seed", {"yaml": yaml})

    def snapshot(self) -> Any:
        """Marks the state of now, sessions and watches included. Returns the mark, for `restore`."""
        return self._control.do("snapshot")["snapshot"]

    def restore(self, snapshot: Any) -> None:
        """Goes back to a mark, which stays. Raises MinikeeperError (404) if it is gone."""
        self._control.do("restore", {"snapshot": snapshot})

    def drop_snapshot(self, snapshot: Any) -> None:
        """Forgets a mark."""
        self._control.do("drop_snapshot", {"snapshot": snapshot})

    def save(self) -> None:
        """Saves the server to its data directory now. Raises MinikeeperError (409) if there is none."""
        self._control.do("save")

    def export_data(self, dir: Union[str, "os.PathLike[str]"]) -> Dict[str, Any]:
        """Writes a data directory that an Apache ZooKeeper 3.8 or 3.9 starts from."""
        return self._control.do("export_data", {"dir": os.path.abspath(dir)})

    def import_data(self, dir: Union[str, "os.PathLike[str]"]) -> Dict[str, Any]:
        """Loads the data directory of an Apache ZooKeeper 3.4 to 3.9, instead of what is here."""
        return self._control.do("import_data", {"dir": os.path.abspath(dir)})

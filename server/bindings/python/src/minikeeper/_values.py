"""Values as the control API has them in JSON."""

from __future__ import annotations

import base64
from typing import Any, Dict, Mapping, Optional


def given(**fields: Any) -> Dict[str, Any]:
    """The fields that have been given: neither None nor False, which the server takes for the rest."""
    return {name: value for name, value in fields.items() if value is not None and value is not False}


def data_of(answer: Mapping[str, Any]) -> Optional[bytes]:
    """The data in an answer, None if the znode has none."""
    if answer.get("data_base64") is not None:
        return base64.b64decode(answer["data_base64"])
    text = answer.get("data")
    return None if text is None else text.encode()


def tree_or_yaml(tree: Optional[Mapping[str, Any]], yaml: Optional[str]) -> Dict[str, Any]:
    """The field for whichever of the two has been given."""
    if (tree is None) == (yaml is None):
        raise TypeError("give a tree, or yaml, not both")
    if tree is None:
        return {"yaml": yaml}
    return {"tree": {path: _znode_json(znode) for path, znode in tree.items()}}


def _znode_json(znode: Any) -> Any:
    """A znode of a tree, with bytes as JSON has them."""
    if isinstance(znode, (bytes, bytearray, memoryview)):
        return {"data_base64": base64.b64encode(znode).decode()}
    if isinstance(znode, Mapping) and isinstance(znode.get("data"), (bytes, bytearray, memoryview)):
        rest = {name: value for name, value in znode.items() if name != "data"}
        return {**_znode_json(znode["data"]), **rest}
    return znode

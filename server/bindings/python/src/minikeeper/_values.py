"""Converts values from and to the JSON of the control API."""

from __future__ import annotations

import base64
import difflib
import functools
import inspect
from typing import Any, Callable, Dict, Mapping, Optional, TypeVar, Union, cast

Init = TypeVar("Init", bound=Callable[..., None])


def names_nearest(init: Init) -> Init:
    """Lets an unknown keyword argument of `init` be an error that names the nearest known one."""
    parameters = inspect.signature(init).parameters.values()
    names = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        for name in given:
            if name not in names:
                nearest = difflib.get_close_matches(name, names, n=1, cutoff=0)[0]
                text = f"got an unexpected keyword argument {name!r}; did you mean {nearest!r}? They are {', '.join(names)}"
                raise TypeError(f"{init.__qualname__}() {text}")
        init(self, *args, **given)

    return cast(Init, checked)


def given(**fields: Any) -> Dict[str, Any]:
    """Returns the fields that are neither None nor False, which are the server's defaults."""
    return {name: value for name, value in fields.items() if value is not None and value is not False}


def data_of(answer: Mapping[str, Any]) -> Optional[bytes]:
    """Returns the data in an answer, None if the znode has none."""
    if answer.get("data_base64") is not None:
        return base64.b64decode(answer["data_base64"])
    text = answer.get("data")
    return None if text is None else text.encode()


def data_field(data: Union[str, bytes]) -> Dict[str, str]:
    """Returns the field for the data of a znode: text, or bytes in base64."""
    if isinstance(data, str):
        return {"data": data}
    return {"data_base64": base64.b64encode(data).decode()}


def tree_or_yaml(tree: Optional[Mapping[str, Any]], yaml: Optional[str]) -> Dict[str, Any]:
    """Returns the field for the tree or its YAML, of which exactly one must be given."""
    if (tree is None) == (yaml is None):
        raise TypeError("give either tree or yaml")
    if tree is None:
        return {"yaml": yaml}
    return {"tree": {path: _znode_json(znode) for path, znode in tree.items()}}


def _znode_json(znode: Any) -> Any:
    """Converts a znode of a tree to JSON, with bytes in base64."""
    if isinstance(znode, (bytes, bytearray, memoryview)):
        return {"data_base64": base64.b64encode(znode).decode()}
    if isinstance(znode, Mapping) and isinstance(znode.get("data"), (bytes, bytearray, memoryview)):
        rest = {name: value for name, value in znode.items() if name != "data"}
        return {**_znode_json(znode["data"]), **rest}
    return znode

"""The stories of failed tests: read from the server, and saved in a folder."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple, Union

from ._verbs import Story

if TYPE_CHECKING:
    import pytest

    from .universe import Universe

# Limits of the server.
TITLE_CHARS_MAX = 200
FAILURE_CHARS_MAX = 4_000
NAME_BYTES_MAX = 100

# More stories of one test say little.
EARLY_MAX = 8


class Stories:
    """The stories of the test that runs now, for the pytest plugin."""

    def __init__(self) -> None:
        self.test: Optional[str] = None
        """The id of the test; None outside of tests."""
        self.universes: List[Universe] = []
        """The universes of its fixtures, also of those that no argument of the test names."""
        self.run: Optional[int] = None
        """The run of a sweep."""
        self._count = 0
        self._early: List[Union[Story, str]] = []

    def begin(self, test: str) -> None:
        self.test = test
        self.universes.clear()
        self.run = None
        self._count = 0
        self._early.clear()

    def keep(self, universe: Universe, failure: str) -> None:
        """Reads a story now, because its universe ends before the report of the test."""
        if self.test is not None and len(self._early) < EARLY_MAX:
            self._early.append(self.read(universe, failure))

    def take(self) -> List[Union[Story, str]]:
        """Returns the stories kept so far, and forgets them."""
        early, self._early = self._early, []
        return early

    def read(self, universe: Universe, failure: str) -> Union[Story, str]:
        """Reads the story of a universe. Returns a sentence if that fails: it must not hide why the test failed."""
        self._count += 1
        # Each has a title of its own, and so a file of its own.
        title = self.test or ""
        if self.run is not None:
            title += f" run {self.run}"
        if self._count > 1:
            title += f" {self._count}"
        try:
            story = universe.story(title=clean(title)[:TITLE_CHARS_MAX], failure=clean(failure)[:FAILURE_CHARS_MAX])
            # A name from a server could lead out of the folder.
            return dataclasses.replace(story, file_name=file_name(title))
        except Exception as error:
            return f"no story of {universe!r}: {error}"


current = Stories()


def folder(config: pytest.Config) -> Optional[pathlib.Path]:
    """The folder for stories, or None to save none."""
    given = config.getoption("--minikeeper-stories")
    if given is None:
        given = os.environ.get("MINIKEEPER_STORIES")
    if given is None:
        given = config.getini("minikeeper_stories") or "minikeeper-stories"
        return None if given == "off" else config.rootpath / given
    return None if given in ("", "off") else pathlib.Path(given).absolute()


def file_name(title: str) -> str:
    """Returns a title as the name of a file, without an extension, as the server does for `file_name`."""
    given = title.replace("::", ".")
    name = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._-]", "-", given).lstrip(".-")).rstrip(".-")
    if not name:
        return "story"
    if not re.search(r"[^A-Za-z0-9._/-]", given) and len(name) <= NAME_BYTES_MAX:
        return name
    # Similar titles have names of their own.
    number = 0x811C9DC5
    for byte in clean(title).encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    ending = f"-{number:08x}"
    return name[: NAME_BYTES_MAX - len(ending)] + ending


def text(story: Union[Story, str], folder: Optional[pathlib.Path]) -> Tuple[str, Optional[pathlib.Path]]:
    """Returns what to print of a story, and its page. Saves it in a folder; None saves nothing."""
    if isinstance(story, str):
        return story, None
    if folder is None:
        return story.text, None
    name = story.file_name
    saved = save(folder, {f"{name}.html": story.html, f"{name}.json": story.json})
    return f"{story.text}\n{saved}", folder / f"{name}.html"


def save(folder: pathlib.Path, files: Dict[str, str]) -> str:
    """Saves files in a folder, which is created. Says where the first one is."""
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".gitignore").write_text("*\n")
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        return f"not saved: {error}"
    return f"saved in {folder / next(iter(files))}"


def clean(text: str) -> str:
    # A lone surrogate has no form in UTF-8.
    return text.encode("utf-8", "replace").decode()

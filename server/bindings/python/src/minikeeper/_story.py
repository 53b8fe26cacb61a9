"""The stories of failed tests: read from the server, and saved in a folder."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, List, Optional, Union

from ._verbs import Story

if TYPE_CHECKING:
    from .universe import Universe

# Limits of the server.
TITLE_CHARS_MAX = 200
FAILURE_CHARS_MAX = 4_000

# More stories of one test say little.
EARLY_MAX = 8


class Stories:
    """The stories of the test that runs now, for the pytest plugin."""

    def __init__(self) -> None:
        self.test: Optional[str] = None
        """The id of the test; None outside of tests."""
        self.universes: List[Universe] = []
        """The universes of its fixtures, also of those that no argument of the test names."""
        self._count = 0
        self._early: List[Union[Story, str]] = []

    def begin(self, test: str) -> None:
        self.test = test
        self.universes.clear()
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
        title = self.test or "" if self._count == 1 else f"{self.test} {self._count}"
        try:
            return universe.story(title=_clean(title)[:TITLE_CHARS_MAX], failure=_clean(failure)[:FAILURE_CHARS_MAX])
        except Exception as error:
            return f"no story of {universe!r}: {error}"


current = Stories()


def text(story: Union[Story, str], folder: Optional[pathlib.Path]) -> str:
    """Returns what to print of a story, and saves it in a folder, which is created; None saves nothing."""
    if isinstance(story, str):
        return story
    if folder is None:
        return story.text
    page = folder / f"{story.file_name}.html"
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".gitignore").write_text("*\n")
        page.write_text(story.html, encoding="utf-8")
        page.with_name(f"{story.file_name}.json").write_text(story.json, encoding="utf-8")
    except OSError as error:
        return f"{story.text}\nnot saved: {error}"
    return f"{story.text}\nsaved in {page}"


def _clean(text: str) -> str:
    # A lone surrogate has no form in UTF-8.
    return text.encode("utf-8", "replace").decode()

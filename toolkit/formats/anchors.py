"""Anchors: patterns from the file system's root or the home directory, as patterns from the workspace's root.

Reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ringfence.toolkit.formats import gitignore
from ringfence.toolkit.formats.model import Setting
from ringfence.toolkit.formats.regular_language import ANYTHING, Language, Row, covering
from ringfence.toolkit.formats.regular_language import BELOW as BELOW_IT


class Outside(Exception):
    """A rule about paths outside the workspace."""


def covered(line: gitignore.Line) -> Language:
    """Return a pattern for everything that a line matches, with everything below."""
    if line == EVERYTHING:
        return ANYTHING
    return Row((line.language, BELOW_IT)) if line.folder else covering(line.language)


def home(what: str, setting: Setting) -> str:
    """Return a path that begins with `~` as a path from the file system's root."""
    return setting.home.rstrip("/") + what.removeprefix("~")


EVERYTHING = gitignore.Line(False, ANYTHING, False, "*")


def absolute(what: str, setting: Setting) -> Iterator[gitignore.Line]:
    """Return a pattern from the file system's root as a pattern from the workspace's root. Outside."""
    names = [name for name in what.strip("/").split("/") if name]
    places = {0}
    for folder in setting.root.strip("/").split("/"):
        if any(at == len(names) for at in places):
            yield EVERYTHING
            return
        places = {after for at in places for after in _past(names, at, folder)}
    rests = ["/".join(names[at:]) for at in sorted(places)]
    if not rests:
        raise Outside("about paths outside of the workspace, which nothing there can reach")
    for rest in rests:
        if rest in ("", "**"):
            yield EVERYTHING
            return
    tail = "/" if what.endswith("/") else ""
    for rest in rests:
        yield gitignore.line(f"/{rest}{tail}")


def _past(names: list[str], at: int, part: str) -> set[int]:
    if at == len(names):
        return set()
    name = names[at]
    if name == "**":
        return {at, *_past(names, at + 1, part)}
    fits = re.fullmatch(
        "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in name), part, re.DOTALL
    )
    return {at + 1} if fits else set()

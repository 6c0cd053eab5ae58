"""Patterns that load but look like mistakes: judged by their text alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

_FILE = re.compile(r"(?:^|[/*}\]])[^/]*\.[A-Za-z0-9]{1,5}/$")
_GLUED = re.compile(r"(?:^|/)(?=[^/]*\*\*)(?!\*+(?:/|$))[^/]+")
_HOST = re.compile(r"[A-Za-z]:/|/?(?:home|Users|root|etc|var|usr|mnt|opt)/|~|\$[A-Za-z{]|[a-z]+://")
_REGEX = re.compile(r"\.\+|^\^|\$$|\(\?|\([^()]*\|[^()]*\)|\[\^?[a-z]-[a-z]\]\+")


def _directory_name(pattern: str) -> bool:
    return bool(_FILE.search(pattern)) and not pattern.rstrip("/").rpartition("/")[2].startswith(".")


def _look_alike(pattern: str) -> bool:
    """Whether one name has letters of Latin and of a script with letters that look the same."""
    for name in pattern.split("/"):
        scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
        if len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH"}) > 1:
            return True
    return False


SUSPECTS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "pattern-directory-name": _directory_name,
        "pattern-glued-stars": lambda pattern: bool(_GLUED.search(pattern)),
        "pattern-host-path": lambda pattern: bool(_HOST.match(pattern)),
        "pattern-look-alike": _look_alike,
        "pattern-regex": lambda pattern: bool(_REGEX.search(pattern)),
        "pattern-stars-first": lambda pattern: bool(re.fullmatch(r"/?\*\*/[^/]+/?", pattern)),
    }
)


def suspects(pattern: str) -> Iterator[str]:
    """The codes of all that looks wrong with a pattern."""
    return (code for code, test in SUSPECTS.items() if test(pattern))

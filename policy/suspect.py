"""Patterns that load but look like mistakes: judged by their text alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

# Extensions that folders have too (conf.d, repo.git, Some.app), and version numbers, are no file's.
_FILE = re.compile(r"(?:^|[/*}\]])[^/]*\.(?!(?:d|git|app)/$)[A-Za-z][A-Za-z0-9]{0,4}/$")
_GLUED = re.compile(r"(?:^|/)(?=[^/]*\*\*)(?!\*+(?:/|$))[^/]+")
_HOST = re.compile(
    r"[A-Za-z]:/|/(?:home|Users|root|etc|var|usr|mnt|opt)/|~(?:/|$|[a-z]+/)|\$[A-Za-z{]|%[A-Za-z_]+%"
)
_REGEX = re.compile(r"\.\+|^\^|\$$|\(\?|\([^()]*\|[^()]*\)|\[[^\]/]+\]\+")
# Strokes and stars that no compatibility form leads from.
_SIGNS = frozenset("\u2044\u2215\u2217\u29f8\u2010\u2212")
_SHAPES = frozenset({"<wide>", "<font>", "<compat>", "<noBreak>"})


def _directory_name(pattern: str) -> bool:
    return bool(_FILE.search(pattern)) and not pattern.rstrip("/").rpartition("/")[2].startswith(".")


def _look_alike(pattern: str) -> bool:
    """Whether a name has Latin letters beside a script's that look the same, or ASCII in another shape."""
    if pattern.isascii():
        return False
    for name in pattern.split("/"):
        scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
        if len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}) > 1:
            return True
    return any(not sign.isascii() and _as_ascii(sign) for sign in pattern)


def _as_ascii(character: str) -> bool:
    """Whether a character is a letter of ASCII, or a sign that patterns use, in another shape."""
    if character in _SIGNS:
        return True
    meant = unicodedata.normalize("NFKC", character)
    shaped = unicodedata.decomposition(character).split(" ")[0] in _SHAPES
    return (
        shaped and character != "\u3000" and meant.isascii() and (meant.isalnum() or meant in "/*?[]{}!.- ")
    )


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

"""Patterns that load but look like mistakes, judged by their text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby, pairwise
from types import MappingProxyType

# `re` compiles each when it is first needed, and a plain look before it says that most never are.
# Extensions that folders have too (conf.d, repo.git, Some.app), and version numbers, are no file's.
_FILE = r"(?:^|[/*}\]])[^/]*\.(?!(?:d|git|app)/$)[A-Za-z][A-Za-z0-9]{0,4}/$"
# Words and a star by itself at the end, as in `git push *`; names with blanks rarely end that way.
_COMMAND = r"[a-z][a-z0-9_.-]*(?: [^/*\s]+)* \*$"
# As a set is used; the tasks of a workspace have the folder `@tasks`.
_SET = r"@(?!tasks\Z)[A-Za-z][A-Za-z0-9_-]{0,63}\Z"
_HOST = r"[A-Za-z]:/|/(?:home|Users|root|etc|var|usr|mnt|opt)/|~(?:/|$|[a-z]+/)|\$[A-Za-z{]|%[A-Za-z_]+%"
# A class with nothing but letters, after the dots of a route that takes the rest, up to a dot or a slash.
_WORD = r"(?:^|[/{,])\[{1,2}(?:\.{3})?([A-Za-z_][A-Za-z0-9_]+)\]{1,2}(?=$|[./,}])"
_REGEX = r"\.\+|^\^|\$$|\(\?|\([^()]*\|[^()]*\)|\[[^\]/]+\]\+"
_STARS_FIRST = r"/?\*\*/(?!@)[^/]+/?"
# Slashes and stars without a compatibility form.
_SIGNS = frozenset("\u2044\u2215\u2217\u29f8\u2010\u2212")
# Scripts with letters that look like ASCII letters, and those letters.
_ALIKE = MappingProxyType(
    {
        "LATIN": "",
        "CYRILLIC": "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423"
        "\u0425\u042c\u0430\u0433\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0461"
        "\u0474\u0475\u04ae\u04af\u04bb\u04bd\u04c0\u04cf\u0501\u050c\u051b\u051c\u051d\ua647",
        "GREEK": "\u037f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5"
        "\u03a7\u03b1\u03b3\u03b9\u03bd\u03bf\u03c1\u03c3\u03c5\u03d2\u03dc\u03f1\u03f2\u03f3"
        "\u03f9\u03fa",
        "ARMENIAN": "\u054d\u054f\u0555\u0561\u0563\u0566\u0570\u0578\u057c\u057d\u0581\u0584\u0585",
        "CHEROKEE": "\u13a0\u13a1\u13a2\u13a5\u13a9\u13aa\u13ab\u13ac\u13b3\u13b7\u13bb\u13bd\u13c0\u13c2"
        "\u13c3\u13cf\u13d2\u13d4\u13d5\u13d9\u13da\u13de\u13df\u13e2\u13e6\u13e7\u13f3\u13f4"
        "\uab75\uab81\uab83\uab93\uaba9\uabaa\uabaf",
    }
)
_LATIN_LIKE = frozenset("".join(_ALIKE.values()))
_SHAPES = frozenset({"<wide>", "<font>", "<compat>", "<noBreak>"})


def _directory_name(pattern: str) -> bool:
    if not pattern.endswith("/") or not re.search(_FILE, pattern):
        return False
    return not pattern.rstrip("/").rpartition("/")[2].startswith(".")


def _look_alike(pattern: str) -> bool:
    """Whether a word mixes Latin letters with look-alikes of another script.

    So does a word of look-alikes alone, and a word with ASCII characters in another shape. A word of a script
    whose other letters occur in the pattern too is intended.
    """
    if pattern.isascii():
        return False
    words = [{*word} for letters, word in groupby(pattern, str.isalpha) if letters]
    own = {_script(letter) for word in words for letter in word - _LATIN_LIKE}
    for word in words:
        scripts = {_script(letter) for letter in word} & _ALIKE.keys()
        if len(scripts) > 1 or (word <= _LATIN_LIKE and not scripts & own):
            return True
    return any(not sign.isascii() and _as_ascii(sign) for sign in pattern)


def _script(letter: str) -> str:
    import unicodedata

    return unicodedata.name(letter, "").split(" ")[0]


def _as_ascii(character: str) -> bool:
    """Whether a character is an ASCII letter, or a sign that patterns use, in another shape."""
    if character in _SIGNS:
        return True
    import unicodedata

    meant = unicodedata.normalize("NFKC", character)
    shaped = unicodedata.decomposition(character).split(" ")[0] in _SHAPES
    return (
        shaped and character != "\u3000" and meant.isascii() and (meant.isalnum() or meant in "/*?[]{}!.- ")
    )


def _class_word(pattern: str) -> bool:
    """Whether a character class that is a whole name, or all before its first dot, could be a word."""
    return "[" in pattern and any(
        not (len(word) == 2 and word[0].lower() == word[1].lower())
        and any(ord(after) - ord(before) != 1 for before, after in pairwise(word))
        for word in re.findall(_WORD, pattern)
    )


SUSPECTS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "pattern-class-word": _class_word,
        "pattern-command": lambda pattern: pattern.endswith(" *") and bool(re.match(_COMMAND, pattern)),
        "pattern-directory-name": _directory_name,
        "pattern-glued-stars": lambda pattern: any(
            "**" in name and name.strip("*") for name in pattern.split("/")
        ),
        "pattern-host-path": lambda pattern: bool(re.match(_HOST, pattern)),
        "pattern-look-alike": _look_alike,
        "pattern-not-ascii": lambda pattern: not pattern.isascii(),
        "pattern-regex": lambda pattern: bool(re.search(_REGEX, pattern)),
        "pattern-set-name": lambda pattern: pattern.startswith("@") and bool(re.match(_SET, pattern)),
        "pattern-stars-first": lambda pattern: (
            pattern.startswith(("**/", "/**/")) and bool(re.fullmatch(_STARS_FIRST, pattern))
        ),
    }
)


def suspects(pattern: str) -> Iterator[str]:
    """Return the codes of all findings about a pattern."""
    return (code for code, test in SUSPECTS.items() if test(pattern))

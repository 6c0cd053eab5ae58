"""Trie of patterns: names as edges, with common prefixes stored once.

Nearly all patterns are names and stars in ASCII, and enter without an object for each. Only builds the trie;
`matcher` walks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ringfence.policy.patterns.name_index import ANY, Key, key
from ringfence.policy.patterns.syntax import CROSS, Branch, Fold, folded, parse, plain_names

# Patterns that match what they end at; that if it is a directory; and what is below it.
Ends = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

START: Final = 0  # the node where a path begins
NO_ENDS: Final[Ends] = ((), (), ())
_STARS: Final = re.compile(r"\*{2,}")


class PatternTrie:
    """Nodes are numbers; a name, or a `**`, leads from one node to another."""

    __slots__ = ("at_root", "cross", "ends", "inner", "names", "size")

    def __init__(self, patterns: Iterable[str], fold: Fold) -> None:
        self.size = 1
        self.names: dict[Key, dict[int, int]] = {}  # for each name, the nodes it leads from and to
        self.cross: dict[int, int] = {}
        self.ends: dict[int, Ends] = {}
        self.at_root: list[int] = []  # the patterns that match the root itself
        self.inner: set[int] = set()  # the nodes that names lead from
        for number, text in enumerate(patterns):
            names = plain_names(text)
            if names:
                self._plain(number, text, [folded(name, fold) for name in names] if fold else names)
                continue
            letters = parse(text, fold, letters=True).branches if fold else ()
            for at, branch in enumerate(parse(text, fold).branches):
                self._add(number, _keys(branch), branch.directory)
                if letters and letters[at] != branch:
                    self._add(number, _keys(letters[at]), branch.directory)
                if branch.root:
                    self.at_root.append(number)

    def _plain(self, number: int, text: str, names: list[str]) -> None:
        keys: list[str | None] = names  # type: ignore[assignment]  # nobody else holds it
        if len(names) == 1 and text[0] != "/" and text[:2] != "./":
            # Without a slash a name is at any depth, and `**` is one name.
            keys = [CROSS, names[0] if names[0].strip(ANY) else ANY]
            if text == ANY:
                self.at_root.append(number)
        self._add(number, _normal(keys) if "**" in text else keys, text[-1] == "/")

    def _add(self, number: int, keys: Sequence[Key | None], directory: bool) -> None:
        inside = keys[-1] == ANY and not directory
        if inside:
            # A match covers what is below it: a star, or two, at the end is all there is below.
            keys = keys[: -2 if keys[-2:-1] == [CROSS] else -1]
        at = START
        for name in keys:
            if name is CROSS:
                leads = self.cross
            else:
                self.inner.add(at)
                known = self.names.get(name)
                leads = self.names.setdefault(name, {}) if known is None else known
            under = leads.get(at)
            if under is None:
                under = leads[at] = self.size
                self.size += 1
            at = under
        more = (number,)
        before = self.ends.get(at)
        if before is None:
            self.ends[at] = () if inside or directory else more, () if inside else more, more
            return
        file, whole, below = before
        file, whole = file if inside or directory else file + more, whole if inside else whole + more
        self.ends[at] = file, whole, below + more


def _keys(branch: Branch) -> list[Key | None]:
    return [None if segment is CROSS else key(segment) for segment in branch.segments]


def _normal(keys: list[str | None]) -> list[str | None]:
    """Return the names without adjacent stars or `**`, and with a name after the last `**`."""
    out: list[str | None] = []
    for name in keys:
        if name is not CROSS and "**" in name:
            name = _STARS.sub(ANY, name) if name.strip(ANY) else CROSS
        if name is not CROSS or not out or out[-1] is not CROSS:
            out.append(name)
    return out if out[-1] is not CROSS else [*out, ANY]

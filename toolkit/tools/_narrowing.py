"""How to narrow a search or a listing that reached a bound: where most of what there is lies.

Counts only what the agent may read without anybody being asked, and no more than a bound of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from ringfence.toolkit import paths
from ringfence.toolkit.plan.changes import DIRECTORY, Entry
from ringfence.toolkit.text import escape
from ringfence.toolkit.tools._entry_filter import below

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_COUNTED = 10_000  # names beyond those that are shown
_MOST_NAMED = 3
_NEARLY_ALL = 0.8
_LONGEST = 60  # characters of a name in a note


@dataclass(slots=True)
class Tally:
    """Counts by folder, below the directory at `base`; `bounded` if there may be more than was counted."""

    base: str
    total: int = 0
    bounded: bool = False
    _folders: Counter[str] = field(default_factory=Counter)
    _endings: Counter[str] = field(default_factory=Counter)

    def add(self, path: str, *, directory: bool = False) -> None:
        """Count a name, or something found in the file of that name."""
        self.total += 1
        if directory:
            return
        above, _, name = path.rpartition("/")
        self._folders[above or paths.ROOT] += 1
        first, dot, ending = name.rpartition(".")
        if dot and first:
            self._endings[ending] += 1

    def fields(self) -> dict[str, Any]:
        """Return the fields about the folders that hold most, if there are any below the base."""
        found = self._most()
        return {"most_in": [{"path": path, "count": count} for path, count in found]} if found else {}

    def of(self) -> str:
        """Return how many there are in all, as far as they were counted."""
        return f"{'at least ' if self.bounded else ''}{self.total:,}"

    def advice(self, *, otherwise: str, excludes: bool = True) -> str:
        """Return in words where most is and what leaves the rest out; `otherwise` is for what has no folders.
        `excludes`: the tool takes `exclude_patterns`.
        """
        found, told = self._most(), otherwise
        if found:
            named = ", ".join(f"'{_short(path)}' ({count:,})" for path, count in found)
            first = f"{_short(below(found[0][0], self.base))}/"
            without = f' or leave one out with exclude_patterns: ["{first}"]' if excludes else ""
            told = f"most are in {named}: give one as path{without}"
        ending, count = self._endings.most_common(1)[0] if self._endings else ("", 0)
        if count * 2 <= self.total:
            return told
        return f"{told}; {count:,} are in names that end in .{_short(ending)}"

    def _most(self) -> list[tuple[str, int]]:
        """Return the folders that hold most, from the first level at which no single one holds nearly all."""
        level, total = self.base, self._folders.total()
        while True:
            grouped = self._grouped(level)
            first = next(iter(grouped), (level, 0))
            if first[1] <= _NEARLY_ALL * total or not self._grouped(first[0]):
                break
            level = first[0]
        return [(folder, count) for folder, count in grouped if count < total][:_MOST_NAMED]

    def _grouped(self, level: str) -> list[tuple[str, int]]:
        """Return the counts of the directories directly in one, the greatest first."""
        grouped: Counter[str] = Counter()
        for folder, count in self._folders.items():
            if folder != level and paths.is_below(folder, level):
                grouped[paths.child(level, below(folder, level).partition("/")[0])] += count
        return grouped.most_common()


def unasked(entries: Iterable[Entry], view: View) -> Iterator[Entry]:
    """Yield the entries of a walk that nobody has to be asked about, and take the questions back."""
    known = len(view.asked)
    for entry in entries:
        if len(view.asked) > known:
            del view.asked[known:]
        else:
            yield entry


def shown_and_counted(
    entries: Iterable[Entry], view: View, base: str, most: int
) -> tuple[list[Entry], Tally | None]:
    """Return the first entries of a walk, and the count of all if there are more than `most`."""
    walked = iter(entries)
    found = list(islice(walked, most + 1))
    if len(found) <= most:
        return found, None
    tally = Tally(base)
    for entry in found:
        tally.add(entry.path, directory=entry.stat.kind == DIRECTORY)
    count_on(walked, view, tally)
    return found[:most], tally


def count_on(entries: Iterable[Entry], view: View, tally: Tally) -> None:
    """Count the entries that a walk has left."""
    for number, entry in enumerate(unasked(entries, view)):
        if number == MAX_COUNTED:
            tally.bounded = True
            return
        tally.add(entry.path, directory=entry.stat.kind == DIRECTORY)


def _short(name: str) -> str:
    shown = escape(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST // 2]}…{shown[-_LONGEST // 2 :]}"

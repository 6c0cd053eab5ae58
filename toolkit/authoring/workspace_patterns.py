"""Comparison of a policy's patterns with the names in a workspace: finds misspelt names and classes.

Reads names only, up to a bound, and follows no symlink. A pattern for a file that does not exist yet is not a
mistake: it is reported only if a similar name exists, or as a note if the rule permits something.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ringfence.policy.analysis.parent_directories import names_of
from ringfence.policy.lint.codes import Finding
from ringfence.policy.model import Effect, Rule
from ringfence.policy.patterns.matcher import Matcher, matches
from ringfence.policy.patterns.spelled_classes import spelled_out
from ringfence.policy.patterns.syntax import Fold, Folding, folded
from ringfence.policy.value_classes import dataclass, field
from ringfence.toolkit.storage.local.name_folding import folding_of

MOST_NAMES = 50_000
_WILD = frozenset("*?[{")


@dataclass(slots=True)
class Seen:
    """The names of a workspace, those nearest to the root first."""

    fold: Fold
    paths: list[tuple[str, bool]] = field(default_factory=list)  # and whether it is a directory
    inside: dict[str, dict[str, bool]] = field(default_factory=dict)  # by directory, "" for the root
    not_opened: int = 0  # directories, and links to some, whose names were not looked at

    def child(self, directory: str, name: str) -> str | None:
        """The name that is there, as the file system compares it."""
        wanted = folded(name, self.fold)
        return next((each for each in self.inside[directory] if folded(each, self.fold) == wanted), None)


def fold_of(root: str) -> Folding:
    """How names are compared below a directory of this machine. Raises OSError if it cannot be opened."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return folding_of(fd, root)
    finally:
        os.close(fd)


def look(root: str, most: int = MOST_NAMES) -> Seen:
    """The names below a directory of this machine, at most `most`. Raises OSError if it cannot be opened."""
    seen = Seen(fold_of(root))
    waiting = deque([""])
    while waiting and len(seen.paths) < most:
        at = waiting.popleft()
        found = _names(os.path.join(root, at), most)
        if found is None:
            seen.not_opened += 1
            continue
        names, links = found
        seen.inside[at] = names
        seen.not_opened += len(links)
        for name in sorted(names):
            path = f"{at}/{name}" if at else name
            seen.paths.append((path, names[name]))
            if names[name] and name not in links:
                waiting.append(path)
    seen.not_opened += len(waiting)
    return seen


def _names(place: str, most: int) -> tuple[dict[str, bool], set[str]] | None:
    """The names in a directory, and which of them are links to one; None for one unreadable or too large."""
    found: dict[str, bool] = {}
    links: set[str] = set()
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if len(found) == most:
                    return None
                found[entry.name] = entry.is_dir()
                if found[entry.name] and entry.is_symlink():
                    links.add(entry.name)
    except OSError:
        return None
    return found, links


def compare(rules: Iterable[Rule], seen: Seen) -> list[Finding]:
    """Return the findings about the patterns of these rules in this workspace."""
    patterns = list(dict.fromkeys(rule.pattern for rule in rules))
    used = _matching(patterns, seen)
    spelled = {each: spelling for each in patterns if (spelling := _spelled(each, seen)) is not None}
    slips = {
        each: meant for each in patterns if each not in used and (meant := _slip(each, seen)) is not None
    }
    found: list[Finding] = []
    for rule in rules:
        pattern = rule.pattern
        if pattern in spelled:
            path, right = spelled[pattern]
            text = f'"{pattern}" does not match {path}, which is there; for the name itself write "{right}"'
            found.append(Finding("pattern-class-name", text, rule.where, path, f'write "{right}"'))
        elif pattern in slips:
            text = f'"{pattern}" matches no file here; did you mean "{slips[pattern]}"?'
            found.append(Finding("pattern-near-miss", text, rule.where))
        elif pattern not in used and not seen.not_opened and _opens_a_place(rule):
            found.append(Finding("pattern-unmatched", f'"{pattern}" matches no file here', rule.where))
    return found


def _matching(patterns: list[str], seen: Seen) -> set[str]:
    """Return the patterns that match something."""
    machine = Matcher(patterns, seen.fold, range(len(patterns)))
    used: set[int] = set(machine.top.directory.last)
    for path, directory in seen.paths:
        with suppress(ValueError):  # a name that no call can have
            state = machine.at(path)
            used.update((state.directory if directory else state.file).last)
    return {patterns[number] for number in used}


def _spelled(pattern: str, seen: Seen) -> tuple[str, str] | None:
    """A path that a pattern names letter by letter and does not match, and the pattern that does."""
    meant = spelled_out(pattern)
    if meant is None:
        return None
    for path, directory in seen.paths:
        hits = (matches(each, path, directory, fold=seen.fold) for each in (meant, pattern))
        if "[" in path and next(hits) and not next(hits):
            return path, meant
    return None


def _slip(pattern: str, seen: Seen) -> str | None:
    """The pattern that was meant, if one of its names is not there and one beside it is nearly the same."""
    if "{" in pattern:
        return None
    names, tied = names_of(pattern)
    if not tied and not pattern.endswith("/"):
        return None  # a name at any depth: most are there for what may come
    at = ""
    for number, name in enumerate(names):
        if _WILD & set(name) or at not in seen.inside:
            return None
        there = seen.child(at, name)
        if there is None:
            only = number < len(names) - 1 or pattern.endswith("/")
            near = next(_near(name, seen.inside[at], only), None)
            return None if near is None else _with(pattern, names, number, near)
        at = f"{at}/{there}" if at else there
    return None


def _with(pattern: str, names: list[str], number: int, name: str) -> str:
    front = "/" if pattern.startswith("/") else ""
    end = "/" if pattern.endswith("/") else ""
    return front + "/".join([*names[:number], name, *names[number + 1 :]]) + end


def _near(name: str, there: dict[str, bool], directories: bool) -> Iterator[str]:
    return (each for each in sorted(there) if (there[each] or not directories) and is_one_slip(name, each))


def is_one_slip(one: str, other: str) -> bool:
    """Whether two names differ by case, or by one letter that is wrong, missing, added or in the wrong place.

    Names that differ by a digit or by the dot at the start are two names.
    """
    if one.casefold() == other.casefold():
        return one != other
    short, long = sorted((one, other), key=len)
    if len(short) < 3:
        return False
    head = _alike(short, long)
    tail = _alike(short[head:][::-1], long[head:][::-1])
    left, right = short[head : len(short) - tail], long[head : len(long) - tail]
    if len(right) == 2 and left == right[::-1]:
        return True
    return len(right) == 1 and len(left) <= 1 and (left + right).isalpha()


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _opens_a_place(rule: Rule) -> bool:
    """Whether a rule lets something through at a place that it names from the root."""
    names, tied = names_of(rule.pattern)
    return rule.effect is not Effect.DENY and rule.tier != "mandatory" and tied and not _WILD & set(names[0])

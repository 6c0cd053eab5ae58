"""Missing parent directories: the shortest path at which a tool would make a directory that is denied.

A tool that makes the missing directories above a path needs `write` on each; for these only a deny counts. A
statement must hold whichever of them are missing in the workspace. Reads no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.policy.analysis.pattern_queries import PatternQueries, Undecided, Wanted, Witness
from ringfence.policy.analysis.verdict_queries import QueryContext, VerdictQueries
from ringfence.policy.model import Effect
from ringfence.policy.patterns.braces import expand
from ringfence.policy.patterns.matcher import ROOT
from ringfence.policy.patterns.syntax import MAX_LENGTH
from ringfence.policy.value_classes import dataclass

_SPECIAL = frozenset("*?[{}")


@dataclass(frozen=True, slots=True)
class Above:
    """The directories below which a pattern matches: those of `pattern`, without those of `but`."""

    pattern: str
    but: str | None = None


def above(pattern: str) -> list[Above]:
    """Return all directories below which a pattern matches; Undecided if there are too many."""
    found = [Above(pattern)]  # a match covers everything below it
    for picked in expand(pattern):
        names, tied = names_of("".join(pattern[offset] for offset in picked))
        if not tied:
            return [Above("**")]
        at = next((n for n, name in enumerate(names) if _crosses(name)), None)
        for depth in range(1, len(names) if at is None else at + 1):
            before = "/" + "/".join(names[:depth])
            found.append(Above(before, _bounded(f"{before}/*")))
        if at is not None:
            found.append(Above(_bounded("/".join(["", *names[:at], "**"]))))
    return list(dict.fromkeys(found))


def _bounded(pattern: str) -> str:
    if len(pattern) > MAX_LENGTH:
        raise Undecided("too complex: the pattern is too long")
    return pattern


def names_of(alternative: str) -> tuple[list[str], bool]:
    """Return the names of a pattern without braces, and whether the pattern starts at the root."""
    text = alternative.removesuffix("/")
    names = text.removeprefix("./").removeprefix("/").split("/")
    return names, len(names) > 1 or text.startswith(("/", "./"))


def _crosses(name: str) -> bool:
    return len(name) > 1 and not name.strip("*")


def patterns(pattern: str) -> Iterator[str]:
    """Yield the patterns that `denied_parent` uses."""
    for each in above(pattern):
        yield each.pattern
        if each.but is not None:
            yield each.but


def denied_parent(
    ask: VerdictQueries, wheres: Sequence[QueryContext], pattern: str
) -> tuple[Witness, Witness] | None:
    """Return the shortest path of a pattern below a directory that must not be made, and that directory.

    Of several contexts the first is the combination of the others.
    """
    best: tuple[Witness, Witness] | None = None
    for each in above(pattern):
        region = ask.inside(each.pattern) & Wanted(directory=True)
        if each.but is not None:
            region &= ask.outside([each.but])
        parent = ask.find(ask.verdict(wheres[0], Effect.DENY), region)
        if parent is None or parent.path == ROOT:
            continue  # the root is always there
        path = _below(ask, parent.path, pattern)
        if path is not None and (best is None or len(path.path) < len(best[0].path)):
            best = path, parent
    return best


def _below(ask: VerdictQueries, directory: str, pattern: str) -> Witness | None:
    """Return the shortest path below a directory that a pattern matches."""
    literal = "".join(f"[{each}]" if each in _SPECIAL else each for each in directory)
    both = PatternQueries(
        [pattern, _bounded(f"/{literal}/*")], budget=ask.automaton.budget, fold=ask.automaton.fold
    )
    return both.find([Wanted(((0,), (1,)))])

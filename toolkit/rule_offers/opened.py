"""What a change of a policy opens for an agent: in the workspace now, and the shortest of all possible paths.

Pure over two policies and the workspace's listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.analysis.command_queries import CommandQueries
from ringfence.policy.analysis.diff import Change
from ringfence.policy.analysis.pattern_queries import Budget, Undecided, Wanted
from ringfence.policy.analysis.verdict_queries import VerdictQueries, context
from ringfence.policy.model import RUN, Effect
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.toolkit.grant_patterns import literal
from ringfence.toolkit.text import escape, plural

NAMED = 3  # paths that are named

Name = tuple[str, bool]  # a path, and whether it is a directory


@dataclass(frozen=True, slots=True)
class Opened:
    """What opens beside what was asked: the number of paths now, the first ones, and the shortest of all.

    `whole` is False if the listing was cut short; `shortest` is None if nothing else opens, or for a bound
    that was reached (then `decided` is False). `with_tools`: by which tools or actions.
    `below`: what was asked about, where the shortest path lies below it.
    """

    paths: int
    first: tuple[str, ...]
    whole: bool
    shortest: str | None
    directory: bool = False
    decided: bool = True
    with_tools: tuple[str, ...] = ()
    command: bool = False
    below: str = ""

    def in_words(self) -> str:
        """Return what opens now: `opens 13 paths more that are there now: a.md, b.md, c.md, …`."""
        if self.command:
            return "opens no path: what a command changes is judged by itself"
        if not self.paths and not self.whole:
            return "how many paths it opens now is not known"
        if not self.paths:
            return "opens nothing else that is there now"
        number = plural(self.paths, "path")
        names = ", ".join(map(escape, self.first)) + (", …" if self.paths > len(self.first) else "")
        number = number if self.whole else f"at least {number}"
        return f"opens {number} more that {'is' if self.paths == 1 else 'are'} there now: {names}"

    def shortest_in_words(self) -> str:
        """Return the shortest possible path or command that was not asked about."""
        what = "command" if self.command else "path"
        if not self.decided:
            return f"the shortest other {what} it opens is not known"
        if self.shortest is None:
            return f"opens no other {what} at all"
        found = f"{escape(self.shortest)}{'/' if self.directory else ''}"
        note = f", if {escape(self.below)} becomes a directory" if self.below else ""
        return f"the shortest of all other {what}s it opens: {found}{note}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "paths": self.paths,
            "first": list(self.first),
            "whole": self.whole,
            "shortest": self.shortest,
            "directory": self.directory,
            "decided": self.decided,
            "with": list(self.with_tools),
        }


def opened(  # noqa: PLR0913  two policies, who asked for what, and the names that are there
    before: Policy,
    after: Policy,
    agent: str,
    changes: Sequence[Change],
    asked: Iterable[str],
    listing: Iterable[Name],
    *,
    whole: bool = True,
    fold: Fold = Folding.NONE,
) -> Opened:
    """Return what opens for an agent beside `asked`. `changes` are those of the exact diff."""
    known = set(asked)
    queries = list(dict.fromkeys((change.tool, change.action) for change in changes))
    if any(action == RUN for _, action in queries):
        return _of_commands(before, after, agent, known)
    paths = [
        path
        for path, directory in listing
        if path not in known and _opens(before, after, agent, queries, path, directory, fold)
    ]
    try:
        shortest = _shortest(before, after, agent, queries, known, fold)
    except Undecided:
        return Opened(
            len(paths), tuple(paths[:NAMED]), whole, None, decided=False, with_tools=_names(queries)
        )
    path, directory = shortest or (None, False)
    below = next((each for each in known if path is not None and path.startswith(f"{each}/")), "")
    return Opened(
        len(paths), tuple(paths[:NAMED]), whole, path, directory, with_tools=_names(queries), below=below
    )


def _names(queries: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(tool if tool == action else f"{tool} ({action})" for tool, action in queries)


def _opens(  # noqa: PLR0913  one path in both policies
    before: Policy,
    after: Policy,
    agent: str,
    queries: Sequence[tuple[str, str]],
    path: str,
    directory: bool,
    fold: Fold,
) -> bool:
    return any(
        after.effect(agent, tool, action, path, directory, fold=fold) is Effect.ALLOW
        and before.effect(agent, tool, action, path, directory, fold=fold) is not Effect.ALLOW
        for tool, action in queries
    )


def _shortest(  # noqa: PLR0913  as above
    before: Policy,
    after: Policy,
    agent: str,
    queries: Sequence[tuple[str, str]],
    known: Iterable[str],
    fold: Fold,
) -> Name | None:
    exact = [(literal(path), f"{literal(path)}/*") for path in known]
    ask = VerdictQueries([before, after], [text for both in exact for text in both], Budget(), fold)
    # A pattern matches a path and all below it: without what it matches below, only the path itself is left.
    region = Wanted(unless=tuple(((ask.number[path],), (ask.number[below],)) for path, below in exact))
    best: Name | None = None
    for tool, action in queries:
        old, new = (context(policy, agent, tool, action, fold) for policy in (before, after))
        questions = ask.both(ask.verdict(old, Effect.ASK), list(ask.verdict(new, Effect.ALLOW)))
        found = ask.find(questions, region)
        if found is not None and (best is None or len(found.path) < len(best[0])):
            best = found.path, found.directory
    return best


def _of_commands(before: Policy, after: Policy, agent: str, known: Iterable[str]) -> Opened:
    texts = list(known)
    try:
        ask = CommandQueries([before, after], texts)
        for each in ask.classes:
            if any(ask.fits(text, each) for text in texts):
                continue
            was, now = ask.judge(before, agent, each)[0], ask.judge(after, agent, each)[0]
            if was is not Effect.ALLOW and now is Effect.ALLOW:
                return Opened(0, (), True, each.line, with_tools=(RUN,), command=True)
    except Undecided:
        return Opened(0, (), True, None, decided=False, with_tools=(RUN,), command=True)
    return Opened(0, (), True, None, with_tools=(RUN,), command=True)

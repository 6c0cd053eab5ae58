"""Reach of a grant: how many paths of the workspace it opens now, and the first that the request does not
show.

Reads names and judges them; changes nothing. Stops at a bound, and reports that it did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ringfence.policy import ACTIONS, Effect, Policy
from ringfence.toolkit import paths
from ringfence.toolkit.approvals.requests import PATTERN, Request, spelled
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.grant_patterns import matcher
from ringfence.toolkit.plan.changes import DIRECTORY, Entry
from ringfence.toolkit.protected_paths import TASKS
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.text import escape, plural
from ringfence.toolkit.tools import TOOLS
from ringfence.toolkit.workspace.workspace import Workspace

MOST = 10_000  # paths that are counted
LOOKED_AT = 50_000  # paths that are looked at

Opens = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True)
class Reach:
    """Number of opened `paths`: a lower bound unless `whole`, an upper bound unless `judged` by the policy.

    `first` is the first of them that the request does not show.
    """

    paths: int
    first: str | None
    whole: bool
    judged: bool

    def in_words(self) -> str:
        """`opens 41 paths that are there now; the first that was not shown: src/a.py`."""
        number = plural(self.paths, "path")
        if not self.whole:
            number = f"more than {number}" if self.paths >= MOST else f"at least {number}"
        elif not self.judged:
            number = f"up to {number}"
        first = "; all of them are shown" if self.whole else ""
        if self.first is not None:
            first = f"; the first that was not shown: {escape(self.first)}"
        return f"opens {number} that {'is' if self.paths == 1 else 'are'} there now{first}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the reach, under their own names."""
        return {"paths": self.paths, "first": self.first, "whole": self.whole, "judged": self.judged}


def reach(  # noqa: PLR0913  a grant's parts, and bounds by keyword
    workspace: Workspace,
    policy: Policy,
    request: Request,
    scope: str,
    pattern: str | None = None,
    *,
    most: int = MOST,
    looked_at: int = LOOKED_AT,
) -> Reach | None:
    """Return what a grant of this scope opens; None for a request about tasks, or about running a command.

    If the policy has changed since the request, every path that the request's rules match is counted. `most`
    and `looked_at` bound the paths that are counted and read. Raises CallError if the workspace cannot be
    read.
    """
    if request.of_command == TO_RUN or any(path.partition("/")[0] == TASKS for path in request.paths):
        return None
    judged = policy.revision == request.revision
    opens = _judged(workspace, policy, request) if judged else _matched(request)
    if scope == PATTERN and pattern is not None:
        opens = _both(opens, matcher(pattern))
    shown = set(request.paths)
    found, looked, first = 0, 0, None
    with at(workspace.backend, paths.ROOT) as spot:
        for looked, entry in enumerate(workspace.below(spot, paths.ROOT), 1):
            if looked > looked_at or found >= most:
                return Reach(found, first, whole=False, judged=judged)
            if _may_change(workspace, entry) and opens(entry):
                found += 1
                first = entry.path if first is None and entry.path not in shown else first
    return Reach(found, first, whole=True, judged=judged)


def _may_change(workspace: Workspace, entry: Entry) -> bool:
    try:
        workspace.guard(entry.path)
    except CallError:
        return False
    return True


def _judged(workspace: Workspace, policy: Policy, request: Request) -> Opens:
    rules, fold, tool = request.rules, workspace.fold, request.tool
    needs = [action for action, _ in TOOLS[tool].needs] if tool in TOOLS else _asked(request)
    actions = dict.fromkeys(needs)
    if request.of_command == CHANGES:
        actions = dict.fromkeys(("write", "delete"))
    if any(request.writes):  # nothing is created at a path that is there
        actions.pop("write", None)
        actions |= dict.fromkeys(f"write.{kind}" for kind in request.writes - {"create", ""})

    def opens(entry: Entry) -> bool:
        directory = entry.stat.kind == DIRECTORY
        for action in actions:
            effect, rule = policy.verdict(request.agent, tool, action, entry.path, directory, fold=fold)
            asked = spelled(None if rule is None else rule.to_json())
            if effect is Effect.ASK and asked in rules:
                return True
        return False

    return opens


def _asked(request: Request) -> list[str]:
    """Return the actions on paths of a request: what another server's tool does is in no table here."""
    return [need["action"] for need in request.needs if need["action"] in ACTIONS]


def _matched(request: Request) -> Opens:
    found = [pattern for pattern in request.patterns if pattern is not None]
    if len(found) < len(request.patterns):
        return lambda _: True  # without a rule, any path may ask
    matching = [matcher(pattern) for pattern in found]
    return lambda entry: any(matches(entry.path) for matches in matching)


def _both(opens: Opens, matches: Callable[[str], bool]) -> Opens:
    return lambda entry: matches(entry.path) and opens(entry)

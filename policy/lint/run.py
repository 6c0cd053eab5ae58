"""Lint of a policy that loads. Exact: a problem that is not reported does not exist.

Reads no files. A question that exceeds its bound is reported as `too-complex`, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from ringfence.policy.analysis.pattern_queries import Budget, Undecided
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.lint.codes import FINDINGS, Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.lint.dead_rules import dead_rules, idle_rules
from ringfence.policy.lint.earlier_answers import LintMemory
from ringfence.policy.lint.evadable_limits import past_commands, per_call
from ringfence.policy.lint.overlaps import allows_that_cut, denies_that_cut, kinds_overridden, loosening
from ringfence.policy.lint.policy_views import View, combined, views_of
from ringfence.policy.lint.special_entries import ended, unused_sets, without_effect
from ringfence.policy.lint.suspicious_patterns import suspects
from ringfence.policy.lint.unreachable_limits import limits
from ringfence.policy.lint.unused import excepts, unused_agents
from ringfence.policy.patterns.syntax import Fold, Folding

_LESS = frozenset({"idle-rule", "kind-key-overridden"})  # nothing to say of what is dead
_DEAD = frozenset({"dead-rule", "kind-key-settled", "tool-key-settled"})


def lint(  # noqa: PLR0913  a policy, and what it is looked at with
    policy: Engine,
    *,
    files: frozenset[str] | None = None,
    budget: Budget | None = None,
    fold: Fold = Folding.NONE,
    now: float | None = None,
    memory: LintMemory | None = None,
) -> list[Finding]:
    """Return the findings about the rules of these files (as `Where.file` names them), or of all files.

    `fold`: differences between names that the workspace's file system ignores. `now`: the time, in seconds
    since 1970, for entries that end; None: all of them count at first. `memory`: the answers of the lint
    before the last edit; the findings are the same, apart from which of several shortest paths is named.
    """
    budget, memory = budget or Budget(), memory or LintMemory()
    if not policy.special:
        return _findings(View(policy), LINTS, files, budget, fold, memory)
    current = policy if now is None else policy.at(now)
    views = views_of(current)
    parts = [Budget(budget.work // len(views), budget.expired) for _ in views]
    found = [
        (view, _findings(view, LINTS if view.policy is current else OF_RULES, files, part, fold, memory))
        for view, part in zip(views, parts, strict=True)
    ]
    over = ended(policy, files, now) if now is not None else ()
    return sorted(dict.fromkeys([*over, *combined(found)]), key=place_of)


def _findings(  # noqa: PLR0913  those of `lint`, for one view
    view: View,
    lints: Iterable[str],
    files: frozenset[str] | None,
    budget: Budget,
    fold: Fold,
    memory: LintMemory,
) -> list[Finding]:
    """Return the findings of these lints about the entries that count plainly."""
    names = list(lints)
    answers = memory.begin(view.when, view.policy, fold)
    try:
        lint = LintContext(view.policy, files, budget, fold, answers)
    except Undecided as error:
        return [Finding("too-complex", f"the rules: {error}")]
    found: list[Finding] = []
    cut: dict[str, list[Finding]] = {}
    for done, name in enumerate(names):
        # A part for each: what one does not use is shared out among those after it.
        lint.budget.share(len(names) - done)
        _sort_in(name, run(lint, name), found, cut)
    # What the last ones did not use is for those whose part was not enough.
    waiting = list(cut)
    for done, name in enumerate(waiting):
        lint.budget.share(len(waiting) - done)
        if lint.budget.over:
            break
        _sort_in(name, run(lint, name), found, cut)
    found += [finding for each in cut.values() for finding in each]
    answers.close(complete=not (budget.expired is not None and budget.expired()))
    memory.keep(view.when, answers)
    dead = {finding.where for finding in found if finding.code in _DEAD}
    kept = (each for each in found if each.code not in _LESS or each.where not in dead)
    return sorted(dict.fromkeys(kept), key=place_of)


def _sort_in(name: str, findings: list[Finding], found: list[Finding], cut: dict[str, list[Finding]]) -> None:
    """Add the findings of one lint to the final findings, or to those that the bound cut short."""
    if any(finding.code == "too-complex" for finding in findings):
        cut[name] = [*cut.get(name, ()), *findings]
    else:
        cut.pop(name, None)
        found += findings


def run(lint: LintContext, name: str) -> list[Finding]:
    """Return the findings of one lint of `LINTS`."""
    found: list[Finding] = []
    try:
        found.extend(LINTS[name](lint))
    except Undecided as error:
        found.append(Finding("too-complex", f"{name}: {error}"))
    return found


def place_of(finding: Finding) -> tuple[str, int, int, str]:
    """Return the sort key of a finding: by file, line and column."""
    where = finding.where
    return (where.file, where.line, where.column, finding.code) if where else ("", 0, 0, finding.code)


def _suspicious(lint: LintContext) -> Iterator[Finding]:
    rules = [rule for _, _, listed in lint.maps() for rule in listed]
    rules += [rule for item in lint.policy.content.mandatory for rule in item.rules]
    for rule in rules:
        if lint.own(rule):
            for code in suspects(rule.pattern):
                yield Finding(code, f'"{rule.pattern}": {FINDINGS[code][1]}', rule.where)


def _command_rules(lint: LintContext) -> Iterator[Finding]:
    if lint.policy.content.has_run_rules:
        from ringfence.policy.lint.command_rules import command_rules  # with the reader of command lines

        yield from command_rules(lint)


def _command_lanes(lint: LintContext) -> Iterator[Finding]:
    if lint.policy.content.commands is not None:
        from ringfence.policy.lint.command_lanes import lanes

        yield from lanes(lint)


LINTS: Mapping[str, Callable[[LintContext], Iterator[Finding]]] = MappingProxyType(
    {
        # These cost nothing where the policy has no such thing, so what is left is for all others.
        "sets": unused_sets,
        "entries without effect": without_effect,
        "kinds of writing": kinds_overridden,
        "suspicious patterns": _suspicious,
        "unused agents": unused_agents,
        "exceptions": excepts,
        "dead rules": dead_rules,
        "loosening": loosening,
        "limits": limits,
        "limits of one call": per_call,
        "limits and commands": past_commands,
        "rules on commands": _command_rules,
        "lanes of commands": _command_lanes,
        "allows that cut": allows_that_cut,
        "denies that cut": denies_that_cut,
        "idle rules": idle_rules,
    }
)
OF_RULES = tuple(name for name in LINTS if name not in ("sets", "entries without effect"))

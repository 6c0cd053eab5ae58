"""Examination of a policy that loads: findings, cases and invariants, for the command line and for editors.

Reads names of the workspace only. Prints nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from ringfence.policy import Policy
from ringfence.policy.analysis.shortest_witness import Budget
from ringfence.policy.evaluation.cases import CaseResult
from ringfence.policy.evaluation.cases import check as run_cases
from ringfence.policy.lint.agent_names import unknown_agents
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.earlier_answers import LintMemory
from ringfence.policy.lint.invariants import broken
from ringfence.policy.lint.run import lint, place_of
from ringfence.policy.lint.suppressions import ignoring
from ringfence.policy.model import Case, Rule
from ringfence.policy.patterns.syntax import Folding
from ringfence.policy.value_classes import dataclass
from ringfence.toolkit.authoring.workspace_patterns import Seen, compare, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ringfence.policy.analysis.prove import Proof

Source = tuple[str, str]  # a file's name, as `Where.file` has it, and its text


@dataclass(frozen=True, slots=True)
class Examined:
    """What there is to say about a policy that loads."""

    results: tuple[CaseResult, ...]
    proofs: list[Proof]
    findings: list[Finding]
    not_run: int  # cases that the deadline left
    late: bool  # whether the deadline left something open
    seen: Seen | None  # the names of the workspace that its patterns were compared with


def examine(  # noqa: PLR0913  a policy, and what `check` knows beside it
    policy: Policy,
    file: str,
    cases: tuple[Case, ...],
    sources: Iterable[Source],
    *,
    workspace: str | None,
    fold: Folding = Folding.NONE,
    expired: Callable[[], bool],
    now: float | None = None,
    times: Sequence[float] | None = None,
    memory: LintMemory | None = None,
) -> Examined:
    """Return what there is to say about the rules of one file, by name, and these cases.

    Findings that a comment in one of the sources suppresses are left out. `workspace`: the folder whose names
    the patterns are compared with. Once `expired`, open questions are findings `too-complex`. `now` and
    `times` are those of `lint` and `prove`, for entries that end; `memory` is that of `lint`, for edits.
    """
    whole = policy
    policy = whole if now is None else whole.at(now)
    results = run_cases(policy, cases, expired=expired, fold=fold)
    proofs: list[Proof] = []
    if policy.invariants:
        from ringfence.policy.analysis.prove import prove  # most policies state none

        proofs = prove(policy, policy.invariants, expired=expired, fold=fold, times=times)
    budget = Budget(expired=expired)
    found = lint(whole, files=frozenset({file}), budget=budget, fold=fold, now=now, memory=memory)
    found += broken(proofs)
    not_run = len(cases) - len(results)
    if not_run:
        passed = f"cases: the deadline passed after {len(results):,} of {len(cases):,}"
        found.append(Finding("too-complex", passed))
    late = expired() and any(finding.code == "too-complex" for finding in found)
    found += unknown_agents(policy, cases, policy.invariants)
    seen = None
    if workspace is not None:
        with suppress(OSError):  # what cannot be opened is no workspace
            seen = look(workspace)
            found += compare(path_rules(policy, file), seen)
    for name, text in sources:
        found = ignoring(found, name, text)
    return Examined(results, proofs, sorted(found, key=place_of), not_run, late, seen)


def path_rules(policy: Policy, file: str) -> list[Rule]:
    """Return the rules of a file whose patterns are of paths."""
    content = policy.content
    maps = [content.rules, *(agent.rules for agent in content.agents.values())]
    rules = [rule for each in maps for listed in each.values() for rule in listed]
    rules += [rule for item in content.mandatory for rule in item.rules]
    return [rule for rule in rules if rule.where and rule.where.file == file]

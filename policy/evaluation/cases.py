"""Runs a policy's own cases. Judges, counts and returns; prints nothing."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator

from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import (
    MAKES_PARENTS,
    POLICY_TOOLS,
    Amount,
    Case,
    Decision,
    Need,
    kinds_of,
    names_action,
    path_needs,
)
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.policy.upstreams.rows import CALL, Row
from ringfence.policy.upstreams.rows import needs_of as needs_of_row
from ringfence.policy.value_classes import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case with the decision that the engine made."""

    case: Case
    decision: Decision

    @property
    def passed(self) -> bool:
        """Whether the decision has the effect that the case expects."""
        return self.decision.effect is self.case.want


def check(
    policy: Engine,
    cases: Iterable[Case] | None = None,
    *,
    expired: Callable[[], bool] = lambda: False,
    fold: Fold = Folding.NONE,
) -> tuple[CaseResult, ...]:
    """Run these cases, or the policy's own; stops at the first case after the deadline has expired."""
    chosen = policy.cases if cases is None else cases
    return tuple(
        CaseResult(case, run(policy, case, fold))
        for case in itertools.takewhile(lambda _: not expired(), chosen)
    )


def run(policy: Engine, case: Case, fold: Fold = Folding.NONE) -> Decision:
    """Judge one case. If it has an amount, limits apply too, as for an agent that has changed and read
    nothing before.
    """
    needs = needs_of(policy, case)
    decision = policy.decide(case.agent, case.tool, needs, fold=fold)
    if case.files is None and case.bytes is None:
        return decision
    amount = Amount(case.files or 0, case.bytes or 0)
    known = POLICY_TOOLS.get(case.tool)
    actions = {need.action for need in needs}
    if known is not None and actions == {"read"} and known.gives == "no file":
        return decision  # a listing gives no content
    changing = actions - {"read"} or actions
    return policy.tighten(decision, case.agent, case.tool, dict.fromkeys(changing, amount), _nothing)


def _nothing(_agent: str, _key: str, _per: str) -> Amount:
    return Amount()


def needs_of(policy: Engine, case: Case) -> tuple[Need, ...]:
    """Return the needs of a case's call, with the missing parents that the call would make."""
    if case.command:
        from ringfence.policy.commands.needs import run_needs  # the reader of command lines is slow to import

        return tuple(run_needs(case.path))
    if names_action(case.tool):
        action, _, kind = case.tool.partition(".")
        return (Need(action, case.path, case.directory, kind=kind),)
    pairs = path_needs(case.tool, policy.tools)
    if tuple(pairs) == needs_of_row(Row()):
        return (Need(CALL, case.tool),)
    first = pairs[0][1] if pairs else ""
    kinds = kinds_of(case.tool) if case.tool in POLICY_TOOLS else ()  # any kind, of another server's tool
    usual = next((kind for kind in kinds if not case.exists or kind != "create"), "")
    needs = [
        Need(
            action,
            case.path if parameter == first or case.to is None else case.to,
            case.directory,
            kind=usual if action == "write" else "",
        )
        for action, parameter in pairs
    ]
    if case.parents == "missing":
        needs += [each for need in needs for each in parents_made(case.tool, need)]
    return tuple(needs)


def parents_made(tool: str, need: Need) -> Iterator[Need]:
    """Yield a need for each parent directory that a tool would make, outermost first."""
    if tool in MAKES_PARENTS and need.action == "write":
        names = need.path.split("/")
        for depth in range(1, len(names)):
            yield Need("write", "/".join(names[:depth]), True, True, "create")


def cases_beside(path: str | Path) -> Path | None:
    """Return the file of cases that belongs to a policy file, or None."""
    beside = f"{os.path.splitext(path)[0]}.cases.yaml"
    if not os.path.isfile(beside):
        return None
    from pathlib import Path

    return Path(beside)

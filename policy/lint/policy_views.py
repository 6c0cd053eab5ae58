"""Views of a policy with entries that end, are on trial or depend on content: the findings about all views.

A rule that is useless in one view may have a use in another; what is risky in one view is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.policy.analysis.epochs import text
from ringfence.policy.errors import Where
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.lint.codes import Finding
from ringfence.policy.model import Agent, Content
from ringfence.policy.value_classes import dataclass, replace

# Findings that say that something has no use; true only if it has none in any view that has it.
_USELESS = frozenset(
    {
        "agent-unused", "dead-rule", "except-covers-all", "except-unused", "idle-rule", "kind-key-settled",
        "limit-unreachable", "tool-key-settled",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """A policy as it judges at some time, or where something counts that does not always."""

    policy: Engine
    when: str = ""


def views_of(policy: Engine) -> list[View]:
    """Return the policy now and after each end; each plainly, for each detector, and with its trials."""
    views = []
    for time in (None, *policy.ends):
        current = policy if time is None else policy.at(time)
        since = "" if time is None else f" (from {text(time)} on)"
        views.append(View(current, since))
        views += [
            View(current.where_content(each), f" (where the content has {each}){since}")
            for each in current.detectors
        ]
        if current.has_trials:
            views.append(View(current.with_trials(), f" (once what is on trial counts){since}"))
    return views


def combined(found: Sequence[tuple[View, Sequence[Finding]]]) -> Iterator[Finding]:
    """Yield the findings of all views, each once; those of one view alone say of which."""
    useless = [{each.where for each in findings if each.code in _USELESS} for _, findings in found]
    never = [
        {each.where for each in findings if each.code in _USELESS and each.code != "idle-rule"}
        for _, findings in found
    ]
    places = [_places(view.policy) for view, _ in found]
    seen: set[tuple[str, Where | None]] = set()
    for view, findings in found:
        for each in findings:
            key = each.code, each.where
            if key in seen:
                continue
            if each.code in _USELESS and not all(
                each.where in reported or each.where not in there
                for reported, there in zip(
                    useless if each.code == "idle-rule" else never, places, strict=True
                )
            ):
                continue
            seen.add(key)
            yield replace(each, message=f"{each.message}{view.when}") if view.when else each


def _places(policy: Engine) -> set[Where | None]:
    """Return the places of all entries that count in a view."""
    content = policy.content
    owners: tuple[Content | Agent, ...] = (content, *content.agents.values())
    found = {rule.where for owner in owners for listed in owner.rules.values() for rule in listed}
    found |= {rule.where for owner in owners for rule in owner.run}
    found |= {rule.where for item in (*content.mandatory, *content.run_floor) for rule in item.rules}
    found |= {limit.where for owner in owners for listed in owner.limits.values() for limit in listed}
    return found

"""Needs of a call's plan: what each of its changes needs, and what asks because of its content."""

from __future__ import annotations

from ringfence.policy import Need
from ringfence.toolkit.plan.changes import Change, MakeDirectory, Plan
from ringfence.toolkit.plan.impact import touched
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.workspace.readable_paths import aliased


def needs_of_plan(attempt: Attempt, plan: Plan) -> list[Need]:
    """Return the needs of every change of a plan, under each name by which the call knows its path."""
    if attempt.known_tool.tasks:
        return []  # each task is judged already, as one
    return [need for change in plan.changes for need in _needs_of(attempt, change)]


def _needs_of(attempt: Attempt, change: Change) -> list[Need]:
    incidental = isinstance(change, MakeDirectory) and change.incidental
    needs: list[Need] = []
    linked = [place for place, _ in attempt.places.values() if place.real != place.named]
    if not linked:
        return [
            Need(action, path, directory, incidental, kind)
            for path, action, directory, kind in touched(change, edits=attempt.edits)
        ]
    for path, action, directory, kind in touched(change, edits=attempt.edits):
        aliases = (aliased(place, path) for place in linked)
        names = sorted({path, *(alias for alias in aliases if alias is not None)})
        needs += [Need(action, name, directory, incidental, kind) for name in names]
    return needs


def content_needs(attempt: Attempt) -> dict[Need, list[str]]:
    """Return the needs that ask or are denied because of content, each with the detectors that found it."""
    return {} if attempt.content is None else attempt.content.needs()

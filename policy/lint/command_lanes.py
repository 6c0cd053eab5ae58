"""Findings about the lanes of commands' effects: what is written at once is what agents may change freely.

Exact over every path, agent by agent, mandatory rules included.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.policy.analysis.command_queries import CommandQueries
from ringfence.policy.analysis.shortest_witness import Witness
from ringfence.policy.analysis.verdict_queries import QueryContext
from ringfence.policy.errors import Where
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.model import RUN_TOOL, Effect
from ringfence.policy.patterns.matcher import matches

# What no tool changes, whatever a policy says: its own files, and the state of the program.
_PROTECTED = (("ringfence.yaml", False), (".ringfence", True), (".ringfence/state", False))


def lanes(lint: LintContext) -> Iterator[Finding]:
    """Yield lanes that reach what is not to be changed unasked, and lanes that overlap."""
    commands = lint.policy.content.commands
    if commands is None:
        return
    runners = _runners(lint) if commands.through else []
    for text, where in zip(commands.through, commands.through_at, strict=True):
        if not _own(lint, where):
            continue
        yield from _protected(lint, text, where)
        yield from _reached(lint, text, where, runners)
        for other in commands.discard:
            ask = lint.questions
            both = ask.find([ask.inside(text) & ask.inside(other)])
            if both is not None:
                message = f'through "{text}" and discard "{other}" both match {both}: it is written at once'
                yield Finding("lanes-overlap", message, where, str(both))


def _own(lint: LintContext, where: Where | None) -> bool:
    return lint.files is None or (where is not None and where.file in lint.files)


def _runners(lint: LintContext) -> list[str]:
    """Return the kinds of agents that can run some command at all."""
    ask = CommandQueries([lint.policy], (), lint.budget)
    return [
        name
        for name in lint.names
        if any(ask.judge(lint.policy, name, each)[0] is not Effect.DENY for each in ask.classes)
    ]


def _protected(lint: LintContext, text: str, where: Where | None) -> Iterator[Finding]:
    path = next(
        (path for path, directory in _PROTECTED if matches(text, path, directory, fold=lint.fold)), None
    )
    if path is not None:
        message = f'through "{text}" reaches {path}, which no command may change'
        yield Finding("through-protected", message, where, path)


def _reached(lint: LintContext, text: str, where: Where | None, names: list[str]) -> Iterator[Finding]:
    """Yield the shortest path that an agent would change unasked by a command, against its rules."""
    region = lint.questions.inside(text)
    best: tuple[Witness, QueryContext, Effect] | None = None
    seen: set[tuple[object, ...]] = set()
    for name in names:
        for action in ("write", "delete"):
            context = lint.context(name, RUN_TOOL, action)
            if context.meaning in seen:
                continue
            seen.add(context.meaning)
            for effect in (Effect.DENY, Effect.ASK):
                found = lint.questions.ever(context, effect, region)
                if found and (best is None or len(found.path) < len(best[0].path)):
                    best = found, context, effect
    if best is not None:
        witness, context, effect = best
        outcome = "is denied" if effect is Effect.DENY else "a person is asked"
        message = f'through "{text}" reaches {witness}: agent {context.agent}, {context.action}: {outcome}'
        yield Finding("through-reaches", message, where, str(witness))

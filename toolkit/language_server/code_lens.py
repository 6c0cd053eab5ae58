"""Code lenses: above each path pattern, which agents may read, write and delete there.

A lens has its text only once the editor resolves it, so a long policy costs no more than its visible part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lsprotocol import types as lsp

from ringfence.policy import Effect
from ringfence.policy.analysis.shortest_witness import Undecided
from ringfence.policy.errors import visible
from ringfence.policy.model import ACTIONS
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.rule_questions import RuleQuestions

WHO_MAY = "ringfence.whoMay"  # the command of a lens
_MOST_GROUPS = 3
_LONGEST = 60  # characters of a pattern in a lens
_SECTIONS = ("rules", "agents", "mandatory")
_OTHERS = "everybody else"

Verdicts = tuple[frozenset[Effect], ...]


def lenses(document: Document) -> list[lsp.CodeLens]:
    """Return a lens without its text for each pattern of a rule or a mandatory item."""
    out = []
    for spot in document.spots:
        patterned = spot.is_pattern and spot.trail[0] in _SECTIONS and "except" not in spot.trail
        if patterned and spot.node.text and "match" not in spot.trail and "not_match" not in spot.trail:
            start = spot.node.start
            data = {"uri": document.uri, "line": start.line, "column": start.column}
            out.append(lsp.CodeLens(range=document.range(spot.node), data=data))
    return out


def title(questions: RuleQuestions | None, line: int, column: int) -> str:
    """Return the text of the lens of a rule at a place, which counts from 0."""
    rules = questions.rules_at(line, column) if questions is not None else []
    if questions is None or not rules:
        return "who may: not known while the policy does not load"
    first = rules[0]
    only = " (as if not on trial)" if first.trial else ""
    only += f" (where content has {', '.join(map(str, first.content))})" if first.content else ""
    name = f"@{first.set_name}" if first.set_name else first.pattern
    shown = visible(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")
    try:
        groups = _groups(questions.who_may(rules))
    except Undecided as error:
        return f"{shown}: {error}"
    sentences = [f"{', '.join(names)}: {_sentence(verdicts)}" for verdicts, names in groups.items()]
    more = f" | and {len(sentences) - _MOST_GROUPS} more" if len(sentences) > _MOST_GROUPS else ""
    return f"{shown}{visible(only)} – {' | '.join(sentences[:_MOST_GROUPS])}{more}"


def table(questions: RuleQuestions, line: int, column: int) -> str:
    """Return everything that the lens of a rule knows, a line for each kind of agent."""
    lines = []
    for rule in questions.rules_at(line, column):
        lines.append(f"{visible(rule.pattern)}:")
        try:
            lines += [
                f"  {name}: {_sentence(sentences)}"
                for sentences, every in _groups(questions.who_may([rule])).items()
                for name in every
            ]
        except Undecided as error:
            lines.append(f"  {error}")
    return "\n".join(lines)


def _groups(who: Mapping[str, Verdicts]) -> dict[Verdicts, list[str]]:
    """Return the agents by their verdicts; agents without an entry of their own last."""
    out: dict[Verdicts, list[str]] = {}
    for name, verdicts in sorted(who.items(), key=lambda each: each[0] == ""):
        out.setdefault(verdicts, []).append(name or (_OTHERS if len(who) > 1 else "everybody"))
    if len(out) == 1 and len(who) > 1:
        return {next(iter(out)): ["everybody"]}
    return out


def _sentence(verdicts: Verdicts) -> str:
    return ", ".join(_parts(verdicts))


def _parts(verdicts: Verdicts) -> Iterator[str]:
    """Yield what may be done, actions with the same verdicts together."""
    same: dict[frozenset[Effect], list[str]] = {}
    for action, effects in zip(ACTIONS, verdicts, strict=True):
        same.setdefault(effects, []).append(action)
    for effects, actions in same.items():
        yield f"{'/'.join(actions)} {' or '.join(str(each) for each in sorted(effects)) or 'no path'}"

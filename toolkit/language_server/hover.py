"""Hover: what the rule, the set or the key under the cursor means, as Markdown."""

from __future__ import annotations

import time
from collections.abc import Iterator

from lsprotocol import types as lsp

from ringfence.policy.analysis.shortest_witness import Undecided
from ringfence.policy.errors import visible
from ringfence.policy.model import Rule
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.key_reference import description
from ringfence.toolkit.language_server.policy_tree import Spot
from ringfence.toolkit.language_server.rule_questions import RuleQuestions
from ringfence.toolkit.language_server.set_names import Definition, SetNames

_MOST = 40  # patterns of a set that are listed


def hover(
    document: Document, line: int, column: int, names: SetNames, questions: RuleQuestions | None
) -> lsp.Hover | None:
    """Return what is under the cursor; without `questions` (the policy does not load) only sets and keys."""
    spot = document.spot_at(line, column)
    if spot is None:
        return None
    parts: list[str] = []
    mention = names.mention_at(document, line, column)
    if mention is not None and mention.definition is not None:
        parts.append(_set(mention.definition, names))
    start = spot.node.start
    found = questions.rules_at(start.line, start.column) if questions is not None else []
    if questions is not None and found:
        parts.append(_rules(found, questions))
    elif spot.value is not None and mention is None:
        described = description((*spot.trail, spot.node.text))
        parts += [f"`{spot.node.text}`: {described}"] if described else []
    if not parts:
        return None
    return lsp.Hover(
        lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n---\n\n".join(parts)), _range(document, spot)
    )


def _range(document: Document, spot: Spot) -> lsp.Range:
    return document.range(spot.node)


def _set(definition: Definition, names: SetNames) -> str:
    patterns = definition.patterns
    listed = "\n".join(f"- {_code(each)}" for each in patterns[:_MOST])
    more = f"\n- and {len(patterns) - _MOST} more" if len(patterns) > _MOST else ""
    inner = [each[1:] for each in patterns if each.startswith("@")]
    known = names.known(definition.document)
    for name in inner:
        if name in known and known[name].identity != definition.identity:
            more += f"\n\n`@{name}`: {', '.join(map(_code, known[name].patterns[:_MOST]))}"
    place = f"{definition.document.path.name}:{definition.key.start.line + 1}"
    return f"**set `{definition.name}`** ({place})\n\n{listed}{more}"


def _rules(rules: list[Rule], questions: RuleQuestions) -> str:
    first = rules[0]
    lines = [f"**{first.effect}**: {_tier(first)}, key `{first.key}`, {_what(rules)}"]
    lines += [f"Reason: {visible(first.reason)}"] if first.reason else []
    lines += _conditions(first)
    lines += _decides_commands(rules, questions) if first.key == "run" else _decides(rules, questions)
    return "\n\n".join(lines)


def _tier(rule: Rule) -> str:
    if rule.tier == "mandatory":
        return "mandatory, for every agent"
    return f"rule of agent `{rule.agent}`" if rule.tier == "agent" else "rule for everybody"


def _what(rules: list[Rule]) -> str:
    if len(rules) > 1 or rules[0].set_name:
        return f"set `@{rules[0].set_name}` of {len(rules)} patterns"
    return ("words " if rules[0].key == "run" else "pattern ") + _code(rules[0].pattern)


def _conditions(rule: Rule) -> Iterator[str]:
    if rule.excepts:
        yield f"Except {', '.join(map(_code, rule.excepts[:_MOST]))}"
    if rule.until is not None:
        yield f"Until {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(rule.until))} UTC"
    if rule.trial:
        yield "On trial: the verdict is recorded and has no effect"
    if rule.content:
        masked = "; an answer is shown with a mark in place of it" if rule.mask else ""
        yield f"Only where content has {', '.join(_code(str(each)) for each in rule.content)}{masked}"


def _decides(rules: list[Rule], questions: RuleQuestions) -> Iterator[str]:
    for rule in rules[:3]:
        of = f" (by {_code(rule.pattern)})" if len(rules) > 1 else ""
        try:
            witness = questions.witness(rule)
            over = questions.overriding(rule)
        except Undecided as error:
            yield f"What it decides is not known: {error}"
            continue
        if witness is None:
            yield f"Decides no path{of}"
        else:
            yield f"Decides for example {_code(str(witness))}, the shortest such path{of}"
        if over:
            yield "On some of its paths another rule decides:\n" + "\n".join(
                f"- {_rule_text(each)}" for each in over
            )


def _decides_commands(rules: list[Rule], questions: RuleQuestions) -> Iterator[str]:
    for rule in rules[:3]:
        of = f" (by {_code(rule.pattern)})" if len(rules) > 1 else ""
        try:
            line = questions.command(rule)
        except Undecided as error:
            yield f"What it decides is not known: {error}"
            continue
        if line is None:
            yield f"Decides no command{of}: mandatory or later rules decide all that it matches"
        else:
            yield f"Decides for example {_code(line)}, the shortest such command{of}"


def _rule_text(rule: Rule) -> str:
    place = f"{rule.where.file}:{rule.where.line}" if rule.where else ""
    whose = {"mandatory": "mandatory ", "agent": f"agent `{rule.agent}` "}.get(rule.tier, "")
    return f"{place} {whose}{rule.key}: {_code(rule.pattern)} {rule.effect}"


def _code(text: str) -> str:
    """Return text as code in Markdown, whatever is in it."""
    shown = visible(text)
    fence = "`" * (max((len(run) for run in _runs(shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _runs(text: str) -> list[str]:
    return [run for run in "".join(each if each == "`" else " " for each in text).split(" ") if run]

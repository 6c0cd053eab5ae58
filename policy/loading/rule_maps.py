"""Reader of rules: a mapping from keys (tools, actions) to effects, or to maps of patterns to effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringfence.policy.commands import patterns as word_patterns
from ringfence.policy.commands.needs import judged
from ringfence.policy.loading.entry_fields import ENTRY_FIELDS, entry_fields
from ringfence.policy.loading.values import Reader
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.model import EFFECTS, RUN, Effect, Tier
from ringfence.policy.patterns.matcher import matches
from ringfence.policy.rule_list import Columns, RuleList

_RULE = ("effect", "reason", "match", "not_match", *ENTRY_FIELDS)


def read_rules(reader: Reader, node: Node, tier: Tier, agent: str | None) -> dict[str, RuleList]:
    """Read a mapping from keys to effects or maps of patterns."""
    if node.kind != "mapping":
        hint = f'write "*": {node.text} below it' if node.text in EFFECTS else None
        reader.report.add("value_invalid", f"rules are a mapping, not {node.describe()}", node, hint)
        return {}
    out: dict[str, RuleList] = {}
    for key_node, value in node.pairs:
        looks = any(character in key_node.text for character in "*/.")
        hint = f'a pattern goes below a key: delete: {{"{key_node.text[:40]}": ...}}' if looks else ""
        key = reader.rule_key(key_node, hint)
        reading = _Map(reader, key or "", words=key == RUN)
        columns = reading.read(value, key_node)
        if key and columns[0]:
            out[key] = RuleList(tier, agent, key, columns, reading.more)
    return out


class _Map:
    """One key's map of patterns, read into the columns of a `RuleList`."""

    def __init__(self, reader: Reader, key: str, *, words: bool) -> None:
        self.reader = reader
        self.report = reader.report
        self.key = key
        self.words = words
        self.more: dict[int, dict[str, Any]] = {}
        self._texts: list[str] = []
        self._effects: list[Effect] = []
        self._reasons: list[str | None] = []
        self._places: list[Any] = []

    def read(self, node: Node, key_node: Node) -> Columns:
        if node.kind == "scalar":
            effect = self.reader.effect(node)
            if effect is not None:
                self._add("*", effect, None, key_node)
        elif node.kind != "mapping":
            message = f"a rule is an effect or a mapping from patterns to effects, not {node.describe()}"
            self.report.add("value_invalid", message, node)
        plain = self.reader.word_pattern if self.words else self.reader.pattern
        for pattern_node, value in node.pairs:
            if pattern_node.plain and pattern_node.text in _RULE:
                self._misplaced(pattern_node)
            elif value.kind == "scalar" and value.text in EFFECTS and pattern_node.text[:1] != "@":
                text = plain(pattern_node)
                if text is not None:  # as `_add` does, without the call: nearly every rule is read here
                    self._texts.append(text)
                    self._effects.append(EFFECTS[value.text])
                    self._reasons.append(None)
                    self._places.append(pattern_node.start)
            else:
                self._entry(pattern_node, value)
        lines, columns = (
            [place.line + 1 for place in self._places],
            [each.column + 1 for each in self._places],
        )
        files = [self.report.name] * len(lines)
        return self._texts, self._effects, self._reasons, files, lines, columns

    def _entry(self, pattern_node: Node, value: Node) -> None:
        """Read a rule with more than an effect, or whose pattern is a set."""
        found = self._patterns(pattern_node)
        effect, reason, fields = self._rule(value, [text for text, _ in found])
        if effect is None:
            return
        for text, origin in found:
            if fields or origin:
                self.more[len(self._texts)] = {**(fields or {}), **(origin or {})}
            self._add(text, effect, reason, pattern_node)

    def _add(self, text: str, effect: Effect, reason: str | None, at: Node) -> None:
        self._texts.append(text)
        self._effects.append(effect)
        self._reasons.append(reason)
        self._places.append(at.start)

    def _misplaced(self, node: Node) -> None:
        """Report a key of a rule that stands where a pattern is expected."""
        hint = 'for every path write "*": {effect: ...}; a file of that name goes in quotes'
        self.report.add("key_unknown", f"'{node.text}' stands where a pattern is expected", node, hint)

    def _patterns(self, node: Node) -> list[tuple[str, dict[str, Any] | None]]:
        """Return the patterns that a node stands for, each with what it has from a set."""
        if self.words:
            text = self.reader.word_pattern(node)
            return [] if text is None else [(text, None)]
        return [(text, set_fields(node, each)) for text, each in self.reader.patterns(node)]

    def _rule(
        self, node: Node, patterns: Sequence[str]
    ) -> tuple[Effect | None, str | None, dict[str, Any] | None]:
        if node.kind != "mapping":
            return self.reader.effect(node), None, None
        found = self.reader.mapping(node, _RULE, "a rule")
        effect = reason = None
        if "effect" in found:
            effect = self.reader.effect(found["effect"])
        else:
            self.report.add(
                "key_missing", "the key 'effect' is missing", node, "add effect: allow, ask or deny"
            )
        if "reason" in found:
            reason = self.reader.text(found["reason"], "a reason")
        for key, wanted in (("match", True), ("not_match", False)):
            if key in found:
                self._examples(found[key], patterns, wanted)
        return effect, reason, entry_fields(self.reader, found, [self.key] if self.key else [], effect)

    def _examples(self, node: Node, patterns: Sequence[str], wanted: bool) -> None:
        for item in self.reader.several(node, "an example"):
            example = (self._line_matches if self.words else self._path_matches)(item, patterns)
            if example is None or example is wanted:
                continue
            does = "does not match" if wanted else "matches"
            shown = patterns[0] if len(patterns) == 1 else "the set"
            self.report.add("example_fails", f"\"{shown}\" {does} '{item.text[:80]}'", item)

    def _path_matches(self, node: Node, patterns: Sequence[str]) -> bool | None:
        path = self.reader.path(node, "an example")
        return any(matches(each, *path) for each in patterns) if path and patterns else None

    def _line_matches(self, node: Node, patterns: Sequence[str]) -> bool | None:
        line = self.reader.text(node, "an example")
        if line is None or not patterns:
            return None
        return any(all(word_patterns.matches(each, words) for words in judged(line)) for each in patterns)


def set_fields(node: Node, each: Any) -> dict[str, Any] | None:
    """Return the fields of a rule whose pattern is from a set; None for a pattern of its own."""
    return None if each is None else {"set_name": node.text[1:], "set_where": each.where}

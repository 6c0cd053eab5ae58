"""Reader of values, patterns and limits in the YAML tree of a policy file.

Strict: unknown keys and words are errors, and all errors of a file are found in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy.commands import patterns as word_patterns
from ringfence.policy.errors import Problem, Where, nearest
from ringfence.policy.evaluation.limits import LIMITS
from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.loading.pattern_sets import SetPattern, Sets, used_set
from ringfence.policy.loading.yaml_tree import Node, Report
from ringfence.policy.model import ACTIONS, DEAD_TOOLS, EFFECTS, PERIODS, RUN, WRITE_KINDS, Effect
from ringfence.policy.patterns.matcher import ROOT
from ringfence.policy.patterns.syntax import PatternError, check, parse
from ringfence.policy.rule_list import RuleList
from ringfence.policy.upstreams.rows import CALL, Row, Table, key_of, needs_of, split_key

MAX_CHARACTERS = 2_000_000  # in all patterns of a policy together, braces expanded

_NUMBER = re.compile(r"(0|[1-9][0-9]{0,17})\Z")
_UNITS = ("", "KiB", "MiB", "GiB", "TiB")  # each 1024 of the one before
_SIZE = re.compile(rf"(0|[1-9][0-9]{{0,17}})({'|'.join(_UNITS)})\Z")
UNLIMITED = "unlimited"  # the words for no bound
_SYNONYMS = {
    "accept": "allow", "approve": "ask", "auto": "allow", "block": "deny", "confirm": "ask", "forbid": "deny",
    "grant": "allow", "never": "deny", "no": "deny", "off": "deny", "on": "allow", "permit": "allow",
    "prompt": "ask", "refuse": "deny", "reject": "deny", "true": "allow", "false": "deny", "yes": "allow",
}  # fmt: skip


@dataclass(slots=True)
class Draft:
    """One limit as written: only the fields that the file sets."""

    fields: dict[str, Any]
    where: Where
    problem: Problem  # the problem if the limit has no bound, its bases included


@dataclass(frozen=True, slots=True)
class Drafts:
    """The limits under one key of `limits`: one mapping, or a list of mappings."""

    drafts: tuple[Draft, ...]
    single: bool


@dataclass(slots=True)
class Tiered:
    """The rules and limits of one tier: everybody's, or one agent's."""

    rules: dict[str, RuleList] = field(default_factory=dict)
    limits: dict[str, Drafts] = field(default_factory=dict)


@dataclass(slots=True)
class Budget:
    """What all files of a policy share: characters of patterns left to store, and the sets used so far."""

    left: int = MAX_CHARACTERS
    used_sets: set[Where] = field(default_factory=set)


class Reader:
    """Reads the YAML tree of one file; problems go into the report.

    Every method takes a node, and `what` to call it in a message; None or an empty value means that the
    report has the problem.
    """

    def __init__(
        self,
        report: Report,
        tools: Mapping[str, Sequence[tuple[str, str]]],
        budget: Budget,
        upstreams: dict[str, dict[str, Row]] | None = None,
    ) -> None:
        self.report = report
        self.tools = dict(tools)
        self.budget = budget
        self.upstreams = {} if upstreams is None else upstreams  # shared: what extends this file knows them
        self.sets: Sets | None = None  # None: no set is known, and "@x" is a pattern like any other
        self.keys = [*ACTIONS, *WRITE_KINDS, RUN, CALL, *tools, "*"]
        for name in self.upstreams:
            self.add_upstream(name, {})

    def add_upstream(self, name: str, table: Table) -> None:
        """Make the tools of a server known, besides those that are known of it."""
        known = self.upstreams.setdefault(name, {})
        known.update(table)
        found = {key_of(name, tool): needs_of(row) for tool, row in known.items()}
        self.tools |= found
        self.keys += [key for key in found if key not in self.keys]

    def _is_upstream_tool(self, key: str) -> bool:
        """Whether a key names a tool of a known server; one that no table has is added, without paths."""
        named = split_key(key)
        if named is None or named[0] not in self.upstreams:
            return False
        if named[1] not in self.upstreams[named[0]]:
            self.add_upstream(named[0], {named[1]: Row()})
        return True

    # Values

    def mapping(self, node: Node, known: Iterable[str], what: str) -> dict[str, Node]:
        """Return the pairs of a mapping; an unknown key is a problem."""
        if node.kind != "mapping":
            self.report.add("value_invalid", f"{what} is a mapping, not {node.describe()}", node)
            return {}
        names = list(known)
        found: dict[str, Node] = {}
        for key, value in node.pairs:
            if key.text in names:
                found[key.text] = value
                continue
            close = nearest(key.text, names)
            hint = f"did you mean '{close}'?" if close else f"known here: {', '.join(sorted(names))}"
            self.report.add("key_unknown", f"unknown key '{key.text[:80]}' in {what}", key, hint)
        return found

    def several(self, node: Node, what: str) -> Sequence[Node]:
        """Return the items of a list, or a single text as a list of one."""
        if node.kind == "sequence" and node.items:
            return node.items
        if node.kind == "scalar" and (node.text or not node.plain):
            return [node]
        self.report.add("value_invalid", f"{what} cannot be {_empty(node)}", node)
        return []

    def listed(self, node: Node, what: str) -> Sequence[Node]:
        """Return the items of a list."""
        if node.kind == "sequence":
            return node.items
        self.report.add("value_invalid", f"{what} is a list, not {node.describe()}", node)
        return []

    def text(self, node: Node, what: str) -> str | None:
        """Return text without blanks at its ends; invisible characters are a problem."""
        if node.kind != "scalar" or not node.is_text or not node.text.strip():
            hint = "put quotes around it" if node.kind == "scalar" and node.text else None
            self.report.add("value_invalid", f"{what} is text, not {node.describe()}", node, hint)
            return None
        for character in node.text:
            if is_invisible(character) and character not in "\n\t":
                message = f"character U+{ord(character):04X} in {what} cannot be seen"
                self.report.add("hidden_character", message, node)
                return None
        return node.text.strip()

    def word(self, node: Node, known: Sequence[str], what: str) -> str | None:
        """Return one of the known words."""
        if node.kind == "scalar" and node.text in known:
            return node.text
        close = nearest(node.text, known) if node.kind == "scalar" else None
        hint = f"did you mean '{close}'?" if close else f"write {either(known)}"
        self.report.add("value_invalid", f"{what} is {either(known)}, not {node.describe()}", node, hint)
        return None

    def flag(self, node: Node, what: str) -> bool | None:
        """Return a boolean: the plain word `true` or `false`."""
        if node.kind == "scalar" and node.plain and node.text in {"true", "false"}:
            return node.text == "true"
        self.report.add(
            "value_invalid", f"{what} is true or false, not {node.describe()}", node, "write true or false"
        )
        return None

    def flag_or_word(self, node: Node, word: str, what: str) -> bool | str | None:
        """Return a boolean, or a word."""
        if node.kind == "scalar" and (node.text == word or (node.plain and node.text in {"true", "false"})):
            return word if node.text == word else node.text == "true"
        known = either(("true", "false", word))
        message = f"{what} is {known}, not {node.describe()}"
        self.report.add("value_invalid", message, node, f"write {known}")
        return None

    def number(self, node: Node, what: str, most: int | None = None) -> int | None:
        """Return a whole number from 0 to `most`; None for `most` is no upper bound."""
        if node.kind == "scalar" and node.plain and _NUMBER.match(node.text):
            found = int(node.text)
            if most is None or found <= most:
                return found
            self.report.add("number_invalid", f"{what} is at most {most:,}, not {node.describe()}", node)
            return None
        self.report.add("number_invalid", f"{what} is a plain number, not {node.describe()}", node)
        return None

    def size(self, node: Node, what: str) -> int | None:
        """Return a number of bytes, written with a binary unit or without a unit."""
        found = size_of(node.text) if node.kind == "scalar" and node.plain else None
        if found is not None:
            return found
        word = node.text.strip() if node.kind == "scalar" else ""
        meant = re.match(r"([0-9]{1,9}) ?([kKmMgGtT])(i?[bB])?\Z", word)
        hint = f"write {meant[1]}{meant[2].upper()}iB" if meant else "write bytes, or 500MiB, or 2GiB"
        self.report.add("number_invalid", f"{what} is a size, not {node.describe()}", node, hint)
        return None

    def effect(self, node: Node, allowed: Sequence[str] = ("allow", "ask", "deny")) -> Effect | None:
        """Return an effect among those allowed here."""
        if node.kind == "scalar" and node.text in allowed:
            return EFFECTS[node.text]
        if node.kind == "scalar" and node.text.startswith("*"):
            return None  # an alias, which was reported as one
        word = node.text.lower() if node.kind == "scalar" else ""
        close = _SYNONYMS.get(word) or nearest(word, allowed)
        hint = f"did you mean '{close}'?" if close in allowed else f"write {either(allowed)}"
        self.report.add(
            "effect_unknown", f"an effect is {either(allowed)}, not {node.describe()}", node, hint
        )
        return None

    def pattern(self, node: Node) -> str | None:
        """Return a pattern that compiles; its characters are taken from the budget."""
        if node.kind != "scalar" or not node.is_text:
            self.report.add("pattern_not_text", f"a pattern is text, not {node.describe()}", node)
            return None
        if self.budget.left < 0:
            return None
        try:
            alternatives = check(node.text)
        except PatternError as error:
            self.pattern_problem(node, error)
            return None
        self.budget.left -= len(node.text) * alternatives
        if self.budget.left < 0:  # no call for each of many patterns
            self._too_many(node)
            return None
        return node.text

    def patterns(self, node: Node) -> list[tuple[str, SetPattern | None]]:
        """Return the patterns that a node stands for: its own, or those of the set that it names."""
        name = used_set(node.text) if node.kind == "scalar" and self.sets is not None else None
        if name is None or self.sets is None:
            text = self.pattern(node)
            return [] if text is None else [(text, None)]
        if name not in self.sets:
            close = nearest(name, self.sets)
            other = f'for a file of this name write "**/{node.text}"'
            hint = f"did you mean '@{close}'? {other}" if close else other
            self.report.add("set_unknown", f"there is no set '{name}'", node, hint)
            return []
        self.budget.used_sets.add(self.sets[name].where)
        found = self.sets[name].patterns
        self.budget.left -= sum(len(each.text) for each in found)
        if self.budget.left < 0:
            self._too_many(node)
            return []
        return [(each.text, each) for each in found]

    def word_pattern(self, node: Node) -> str | None:
        """Return a pattern of a command's words; its characters are taken from the budget."""
        if node.kind != "scalar" or not node.is_text:
            self.report.add("pattern_not_text", f"a pattern is text, not {node.describe()}", node)
            return None
        try:
            word_patterns.parse(node.text)
        except PatternError as error:
            self.pattern_problem(node, error)
            return None
        self.budget.left -= len(node.text)
        if self.budget.left < 0:
            self._too_many(node)
            return None
        return node.text

    def _too_many(self, node: Node) -> None:
        """Report that the budget of characters is used up."""
        parse.cache_clear()
        message = f"the patterns hold more than {MAX_CHARACTERS:,} characters with their braces expanded"
        self.report.add("policy_too_large", message, node)

    def pattern_problem(self, node: Node, error: PatternError) -> None:
        """Add a pattern's problem to the report, at the characters that caused it."""
        at, length = self.report.raw_offset(node, error.offset, error.length)
        self.report.add(error.code, error.message, node, error.hint, at=at, length=length)

    def path(self, node: Node, what: str) -> tuple[str, bool] | None:
        """Return a canonical path, and whether a slash at its end makes it a directory."""
        text = self.text(node, what)
        if text is None:
            return None
        if text in {ROOT, "./"}:
            return ROOT, True
        path = text.removesuffix("/")
        if any(name in {"", ".", ".."} for name in path.split("/")) or "\\" in path or "\n" in path:
            hint = "write it from the workspace's root: src/a.py; a slash at the end makes it a directory"
            self.report.add("value_invalid", f"{node.describe()} is not a path in the workspace", node, hint)
            return None
        return path, text.endswith("/")

    def rule_key(self, node: Node, extra: str = "") -> str | None:
        """Return the name of a tool or action, or `*`."""
        if node.kind == "scalar" and (node.text in self.keys or self._is_upstream_tool(node.text)):
            return node.text
        instead = DEAD_TOOLS.get(node.text) if node.kind == "scalar" else None
        close = nearest(node.text, self.keys) if node.kind == "scalar" else None
        named = split_key(node.text) if node.kind == "scalar" else None
        if named is not None and not nearest(named[0], self.upstreams):
            other = close is not None and split_key(close) is not None  # the tool of another server
            close = None if other else close
            extra = f"for a tool of the MCP server '{named[0]}', name the server under upstreams"
        if instead:
            hint: str | None = f"there is no such tool; write {instead}"
        else:
            hint = f"did you mean '{close}'?" if close else extra or None
        what = f"'{node.text[:80]}'" if node.kind == "scalar" else node.describe()
        self.report.add("rule_key_unknown", f"{what} is neither a tool nor an action", node, hint)
        return None

    def tool(self, node: Node) -> str | None:
        """Return the name of a tool."""
        if node.text in DEAD_TOOLS:
            self.rule_key(node)
            return None
        if node.kind == "scalar" and (node.text in self.tools or self._is_upstream_tool(node.text)):
            return node.text
        close = nearest(node.text, self.tools) if node.kind == "scalar" else None
        hint = f"did you mean '{close}'?" if close else f"tools are {', '.join(sorted(self.tools))}"
        self.report.add("value_invalid", f"{node.describe()} is not a tool", node, hint)
        return None

    # Limits

    def limits(self, node: Node) -> dict[str, Drafts]:
        """Read a mapping from keys to limits."""
        if node.kind != "mapping":
            self.report.add("value_invalid", f"limits are a mapping, not {node.describe()}", node)
            return {}
        out: dict[str, Drafts] = {}
        for key_node, value in node.pairs:
            key = self._limit_key(key_node)
            single = value.kind != "sequence"
            items = [value] if single else value.items
            if not items:
                self.report.add(
                    "value_invalid", "a list of limits is empty", value, "write one, or leave the key out"
                )
            drafts = tuple(draft for item in items if (draft := self._limit(item)))
            if key and drafts:
                out[key] = Drafts(drafts, single)
        return out

    def _limit_key(self, node: Node) -> str | None:
        if node.text in WRITE_KINDS and node.kind == "scalar":
            hint = "write a limit on write; it counts every kind of writing"
            self.report.add("value_invalid", f"'{node.text}' has no limit of its own", node, hint)
            return None
        if node.text == RUN and node.kind == "scalar":
            hint = "limit the files that commands change under run_command; time and memory under commands"
            self.report.add("value_invalid", "running a command changes no file by itself", node, hint)
            return None
        if node.text == CALL and node.kind == "scalar":
            hint = "limit read, write and delete; a tool without paths counts no files"
            self.report.add("value_invalid", "a call without paths changes no file that is known", node, hint)
            return None
        return self.rule_key(node)

    def _limit(self, node: Node) -> Draft | None:
        found = self.mapping(node, [*LIMITS, "per", "over"], "a limit")
        fields: dict[str, Any] = {}
        for name in LIMITS:
            if name in found:
                fields[name] = self.number(found[name], name)
        if "per" in found:
            fields["per"] = self.word(found["per"], PERIODS, "per")
        if "over" in found:
            fields["over"] = self.effect(found["over"], ("ask", "deny"))
        if node.kind == "mapping" and not node.pairs:
            self.report.add("key_missing", "a limit says how much", node, f"add {either(sorted(LIMITS))}")
        if not fields or None in fields.values():
            return None
        hint = f"add {either(sorted(LIMITS))}"
        problem = self.report.problem("key_missing", "a limit says how much", node, hint)
        return Draft(fields, self.report.where(node), problem)


def size_of(text: str) -> int | None:
    """Return the bytes that `500MiB`, `2GiB` or a plain number stand for; None for any other text."""
    match = _SIZE.match(text)
    return int(match[1]) << _UNITS.index(match[2]) * 10 if match else None


def _empty(node: Node) -> str:
    return "an empty list" if node.kind == "sequence" else node.describe()


def either(words: Sequence[str]) -> str:
    """Return the words as an alternative: `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""Gemini CLI's policy files: `[[rule]]` tables in TOML; the rule with the highest priority decides.

A rule matches a path by a regular expression over the call's arguments as JSON.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

from ringfence.policy.model import DEFAULT_AGENT, Effect
from ringfence.toolkit.formats import gemini_regex, wildcard
from ringfence.toolkit.formats.model import (
    NO_RULE,
    Entry,
    Exported,
    Flat,
    FormatError,
    Imported,
    Left,
    Maps,
    Setting,
    Subject,
    agent_name,
    shown,
    tightened,
)
from ringfence.toolkit.formats.model import text as text_of
from ringfence.toolkit.formats.recognize import other_than, recognized
from ringfence.toolkit.formats.whole_paths import EVERYTHING, Writing
from ringfence.toolkit.formats.wildcard import Any1, Kind, Star

DECISIONS = {"allow": Effect.ALLOW, "ask_user": Effect.ASK, "deny": Effect.DENY}
# A policy's key, the tool and action for the comparison, Gemini's tool, and the effect without a rule.
TOOLS = (
    ("read", "read", "read", "read_file", Effect.ALLOW),
    ("create_file", "create_file", "write", "write_file", Effect.ASK),
    ("edit_file", "edit_file", "write", "replace", Effect.ASK),
    ("insert_at_line", "insert_at_line", "write", "replace", Effect.ASK),
)
PATH = '"file_path":"'
_MAX_EXPRESSION = 2_048  # a longer one is ignored there
_PLAIN = {
    "toolName",
    "decision",
    "priority",
    "argsPattern",
    "denyMessage",
    "deny_message",
    "subagent",
    "modes",
}
_NOT_FILES = {"mcpName", "commandPrefix", "commandRegex"}


def read(text: str, setting: Setting) -> Imported:
    """Read one policy file, as if it were the only one of its tier. FormatError."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = other_than("gemini", text)
        if "\\" in text and not hint:
            hint = "in TOML a pattern with a backslash stands between single quotes"
        raise FormatError(f"the file is not TOML: {error}", "", hint) from None
    recognized(document, "gemini")
    listed = document.get("rule", [])
    if not isinstance(listed, list):
        raise FormatError("'rule' is not a list of tables", "rule", "write [[rule]]")
    out = Imported()
    out.left += [
        Left(key, shown(document[key]), "not a rule about a call") for key in document if key != "rule"
    ]
    rules = [_rule(rule, f"rule[{number}]", out) for number, rule in enumerate(listed)]
    kept = [rule for rule in rules if rule is not None]
    # Of two rules with one priority the first in the file decides, so it comes last here.
    kept.reverse()
    kept.sort(key=lambda rule: rule["priority"])
    names = list(dict.fromkeys(rule["subagent"] for rule in kept if rule["subagent"]))
    out.everybody = _judge([rule for rule in kept if not rule["subagent"]], DEFAULT_AGENT, out)
    for name in names:
        own = [rule for rule in kept if rule["subagent"] in (None, name)]
        out.agents[name] = _judge(own, name, out)
    out.left = list(dict.fromkeys(out.left))
    out.everybody.setdefault("delete", [Entry("*", Effect.ASK, "Gemini CLI has no tool that deletes")])
    out.notes.append("on top of what Gemini CLI starts from: reading is allowed, changing asks")
    out.notes.append("a path is taken as the agent writes it, from the workspace's root")
    return out


def _rule(rule: Any, where: str, out: Imported) -> dict[str, Any] | None:
    if not isinstance(rule, dict):
        raise FormatError(f"{where} is not a table", where, "write [[rule]]")
    decision, priority = rule.get("decision"), rule.get("priority")
    if not isinstance(decision, str) or decision not in DECISIONS:
        raise FormatError(f"{where}: the decision {shown(decision)} is not allow, ask_user or deny", where)
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= 999:
        raise FormatError(f"{where}: the priority {shown(priority)} is not a number from 0 to 999", where)
    tools = _texts(rule, "toolName", where) or ["*"]
    subagent = rule.get("subagent")
    if subagent is not None:
        agent_name(text_of(subagent, f"{where}.subagent"), f"{where}.subagent")
    what = ", ".join(f"{key} = {shown(value)}" for key, value in rule.items() if key != "priority")[:160]
    if not set(tools) & {"*", *(theirs for _, _, _, theirs, _ in TOOLS)}:
        why = "not about a tool that reads, writes or replaces a file"
        out.left.append(Left(where, what, why, harmless=True))
        return None
    if not _applies(rule, where, what, out):
        return None
    effect = DECISIONS[decision]
    try:
        paths = _paths(rule.get("argsPattern"), where, out)
    except (gemini_regex.RegexError, FormatError) as error:
        why = f"its argsPattern cannot be expressed in a policy: {error}"
        if effect is Effect.ALLOW:
            out.left.append(Left(where, what, why))
            return None
        out.left.append(Left(where, what, f"{why}; applied to every path, which is stricter"))
        paths = None
    return {
        "effect": effect,
        "strict": (paths is None and "argsPattern" in rule) or bool(set(rule) - _PLAIN),
        "priority": priority,
        "tools": tools,
        "subagent": subagent,
        "paths": paths,
        "where": where,
        "what": what,
    }


def _applies(rule: dict[str, Any], where: str, what: str, out: Imported) -> bool:
    """Whether a rule applies to a file tool in the mode `default`.

    Records conditions that cannot be expressed.
    """
    elsewhere = sorted(set(rule) & _NOT_FILES)
    if elsewhere:
        out.left.append(Left(where, what, f"{', '.join(elsewhere)}: not about a file tool", harmless=True))
        return False
    modes = _texts(rule, "modes", where)
    if modes and "default" not in modes:
        out.left.append(Left(where, what, "for other modes; the policy is for the mode `default`"))
        return False
    unknown = sorted(set(rule) - _PLAIN)
    if not unknown:
        return True
    allows = rule["decision"] == "allow"
    why = f"{', '.join(unknown)} cannot be expressed in a policy; "
    why += "the allow is left out" if allows else "taken without, which is stricter"
    out.left.append(Left(where, what, why))
    return not allows


def _texts(rule: dict[str, Any], key: str, where: str) -> list[str]:
    """Return a text, or a list of texts, under a key."""
    value = rule.get(key, [])
    return [text_of(each, f"{where}.{key}") for each in (value if isinstance(value, list) else [value])]


def _paths(expression: Any, where: str, out: Imported) -> list[wildcard.Tokens] | None:
    """Return the paths of a rule as rows of tokens; None: every path."""
    if expression is None:
        return None
    if not isinstance(expression, str) or not expression.startswith(PATH):
        raise gemini_regex.RegexError(f"it does not begin with {PATH}")
    found = []
    for row in gemini_regex.variants(expression[len(PATH) :]):
        if gemini_regex.END in row:
            at = row.index(gemini_regex.END)
            if at != len(row) - 1:
                raise gemini_regex.RegexError("it speaks of other arguments, too")
            found.append(row[:at])
        else:
            found += [(*row, Star()), *_up_to_the_quote(row)]
    if gemini_regex.passes_the_end(expression):
        out.notes.append(
            f"{where}: its '.' or [^/] may also reach into other arguments of a call; it is read as within"
            ' the path ([^"] and [^/"] end with it)'
        )
    return [_merged(row) for row in found]


def _up_to_the_quote(row: wildcard.Tokens) -> Iterator[wildcard.Tokens]:
    """Return shorter variants of an open-ended row: its last tokens may match the quote and bracket there."""
    single = 0
    for at in reversed(range(len(row))):
        token = row[at]
        if not isinstance(token, Star):
            if not (isinstance(token, Any1 | Kind) and token.quote) or single == 2:
                return
            single += 1
            yield row[:at]


def _merged(row: wildcard.Tokens) -> wildcard.Tokens:
    out: list[wildcard.Token] = []
    for token in row:
        if token == Star() and out and out[-1] == Star():
            continue
        out.append(token)
    return tuple(out)


def _judge(rules: list[dict[str, Any]], agent: str, out: Imported) -> Maps:
    maps: Maps = {}
    for key, tool, action, theirs, default in TOOLS:
        writing = Writing(default, out.left, Entry("*", default, NO_RULE))
        own = [rule for rule in rules if {"*", theirs} & set(rule["tools"])]
        for rule in _in_order(own):
            variants = [EVERYTHING] if rule["paths"] is None else rule["paths"]
            writing.add(variants, rule["effect"], rule["where"], rule["what"])
        writing.finish()
        maps[key] = writing.entries
        out.subjects.append(Subject(tool, action, tuple(writing.judged), default, agent))
    if maps["create_file"] == maps["edit_file"]:
        return {"read": maps["read"], "write": maps["create_file"]}
    return maps


def _in_order(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules with the deciding one last; a rule that asks about too much opens nothing denied."""
    out: list[dict[str, Any]] = []
    for rule in rules:
        out = tightened(out, [rule], lambda each: each["effect"]) if rule["strict"] else [*out, rule]
    return out


def write(flat: Flat) -> Exported:
    """Write a policy as rules; the deciding rule has the highest priority."""
    words = {effect: word for word, effect in DECISIONS.items()}
    rules: list[str] = []
    puts, edits, left = flat.puts_and_edits
    written = [(["write_file", "replace"], puts)]
    if puts != edits:
        written = [(["write_file"], puts), (["replace"], edits)]
    for tools, listed in ((["read_file"], flat.actions["read"]), *written):
        if len(listed) > 499:
            raise FormatError("more rules than there are priorities")
        start = 0 if tools == ["read_file"] else 500
        for number, (pattern, effect) in enumerate(listed):
            for expression in gemini_regex.of_pattern(pattern):
                if len(PATH + expression) > _MAX_EXPRESSION:
                    raise FormatError(f"the pattern {pattern!r} is too long as a regular expression")
                lines = ["[[rule]]", f"toolName = {json.dumps(tools)}"]
                if pattern != "*":
                    lines.append(f"argsPattern = {json.dumps(PATH + expression)}")
                lines += [f'decision = "{words[effect]}"', f"priority = {start + number + 1}"]
                rules.append("\n".join(lines))
    if flat.actions["delete"]:
        why = "Gemini CLI has no tool that deletes files"
        left.append(Left("delete", "rules for deleting", why, harmless=True))
    return Exported("\n\n".join(rules) + "\n", tuple(left))

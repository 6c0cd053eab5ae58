"""OpenCode fork with a `delete` tool: `permission.rules`, and `agents.NAME.permission` for one agent.

An agent's own key first, then everybody's, then `*` in that order; within a map the longest pattern decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy.model import DEFAULT_AGENT, Effect
from ringfence.toolkit.formats import wildcard
from ringfence.toolkit.formats.fork_patterns import longest_decides
from ringfence.toolkit.formats.model import (
    COMMANDS,
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
    effect,
    mapping,
    part,
    shown,
    tightened,
)
from ringfence.toolkit.formats.recognize import settings_of
from ringfence.toolkit.formats.whole_paths import Writing

# A policy's key, the tool and action for the comparison, and the fork's key.
TOOLS = (
    ("read", "read", "read", "read"),
    ("create_file", "create_file", "write", "write"),
    ("edit_file", "edit_file", "write", "edit"),
    ("insert_at_line", "insert_at_line", "write", "edit"),
    ("delete", "delete", "delete", "delete"),
)
# Other file tools of the fork, and the keys above under which their denials are kept.
OTHERS = {
    **dict.fromkeys(("view", "list", "ls", "glob", "grep"), ("read",)),
    "multiedit": ("write", "edit"),
    "patch": ("write", "edit", "delete"),
}
NAMED = {**{theirs: (theirs,) for _, _, _, theirs in TOOLS}, **OTHERS}
PlacedRule = tuple[str, Effect, str]  # a pattern, its effect, and its place in the file


@dataclass(slots=True)
class Tier:
    """The rules of one level: the patterns of each key, the deciding one last.

    `stricter`: denials and asks that apply after all other rules.
    """

    rules: dict[str, list[PlacedRule]] = field(default_factory=dict)
    stricter: dict[str, list[PlacedRule]] = field(default_factory=dict)

    def keep(self, keys: Iterable[str], rules: Iterable[PlacedRule]) -> None:
        """Add the rules that do not allow to `stricter`, under each key."""
        strict = [rule for rule in rules if rule[1] is not Effect.ALLOW]
        for key in keys:
            self.stricter.setdefault(key, []).extend(strict)


def read(file: str, setting: Setting) -> Imported:
    """Read an .opencode.json of the fork. FormatError."""
    settings = settings_of(file, "opencode-fork")
    out = Imported()
    permission = part(settings, "permission")
    everybody = _tier(part(permission, "rules", "permission."), "permission.rules", out)
    for key, value in permission.items():
        if key != "rules":
            _beside(key, value, everybody, out)
    out.everybody = _judge([everybody], DEFAULT_AGENT, out, setting)
    for name, value in part(settings, "agents").items():
        where = f"agents.{agent_name(name, f'agents.{name}')}"
        own = mapping(value, where)
        tier = _tier(part(own, "permission", f"{where}."), f"{where}.permission", out)
        _switches(part(own, "tools", f"{where}."), f"{where}.tools", tier, out)
        if tier.rules or tier.stricter:
            out.agents[name] = _judge([tier, everybody], name, out, setting)
    out.left = list(dict.fromkeys(out.left))
    if not setting.absolute:
        out.notes.append(
            "patterns are taken from the workspace's root, as they are meant; the fork itself compares"
            " absolute paths, where one that begins with neither * nor / matches nothing (--absolute reads"
            " them so)"
        )
    return out


def _tier(maps: dict[str, Any], prefix: str, out: Imported) -> Tier:
    tier = Tier()
    for key, value in maps.items():
        where = f"{prefix}.{key}"
        if key == "*" or (key in NAMED and key not in OTHERS):
            tier.rules[key] = _rules(value, where)
        elif key in OTHERS:
            tier.keep(OTHERS[key], _rules(value, where))
            why = f"a policy has no rule for this tool alone; denied and asked under {', '.join(OTHERS[key])}"
            out.left.append(Left(where, shown(value), why))
        else:
            why = COMMANDS if key == "bash" else "not about reading, editing or deleting files"
            out.left.append(Left(where, shown(value), why, harmless=True))
    return tier


def _beside(key: str, value: Any, everybody: Tier, out: Imported) -> None:
    """Record a key of `permission` beside `rules`, which is OpenCode's own; the fork ignores it."""
    where = f"permission.{key}"
    # OpenCode has one action for all changes, so its `edit` includes writing and deleting.
    keys = {**NAMED, "*": tuple(NAMED), "edit": OTHERS["patch"]}.get(key, ())
    if not keys:
        out.left.append(Left(where, shown(value), "not about files", harmless=True))
        return
    rules = _rules(value, where)
    everybody.keep([each for each in keys if each not in OTHERS], rules)
    why = "the fork reads only permission.rules; "
    if all(each is Effect.ALLOW for _, each, _ in rules):
        why += "an allow there is left out"
    else:
        why += "what is denied or asked here is kept, after all other rules"
    out.left.append(Left(where, shown(value), why))


def _switches(tools: dict[str, Any], prefix: str, tier: Tier, out: Imported) -> None:
    """Read an agent's switches of tools: a tool that is off is denied."""
    for name, on in tools.items():
        where = f"{prefix}.{name}"
        if not isinstance(on, bool):
            raise FormatError(f"{shown(on)} is not true or false", where)
        named = [each for each in NAMED if () in wildcard.below(wildcard.tokens(name, question=False), each)]
        off = [each for each in named if not on and (each == name or each not in tools)]
        for each in off:
            tier.keep(NAMED[each], [("*", Effect.DENY, where)])
            if each in OTHERS:
                why = f"a policy has no rule for {each} alone; denied under {', '.join(NAMED[each])}"
                out.left.append(Left(where, "false", why))
        if not named:
            out.left.append(Left(where, shown(on), "not a tool that reads or edits files", harmless=True))


def _rules(value: Any, where: str) -> list[PlacedRule]:
    """Return the patterns of one key with the longest last, because the longest match decides."""
    listed = {"*": value} if isinstance(value, str) else mapping(value, where)
    order = sorted(listed, key=lambda pattern: (pattern != "*", len(pattern), pattern))
    lowered = {key: each.lower() if isinstance(each, str) else each for key, each in listed.items()}
    return [(pattern, effect(lowered[pattern], where), where) for pattern in order]


def _judge(tiers: list[Tier], agent: str, out: Imported, setting: Setting) -> Maps:
    """Return one list from all `tiers`, nearest first; a nearer tier's rules come later, so they decide."""
    maps: Maps = {}
    for key, tool, action, theirs in TOOLS:
        default = Effect.ALLOW if theirs == "read" else Effect.ASK
        writing = Writing(default, out.left, Entry("*", default, NO_RULE))
        listed = [
            rule for name in ("*", theirs) for tier in reversed(tiers) for rule in tier.rules.get(name, ())
        ]
        more = [rule for tier in reversed(tiers) for rule in tier.stricter.get(theirs, ())]
        for pattern, effect_, where in tightened(listed, more, lambda rule: rule[1]):
            variants = _variants(pattern, setting)
            if not variants:
                why = "matches no path in the workspace"
                out.left.append(Left(where, pattern, why, harmless=True))
            writing.add(variants, effect_, where, pattern)
        writing.finish()
        maps[key] = writing.entries
        out.subjects.append(Subject(tool, action, tuple(writing.judged), default, agent))
    if maps["create_file"] == maps["edit_file"]:
        rest = {key: maps[key] for key in ("read", "delete")}
        return {"read": rest["read"], "write": maps["create_file"], "delete": rest["delete"]}
    return maps


def _variants(pattern: str, setting: Setting) -> list[wildcard.Tokens]:
    if "\\" in pattern:
        return []
    body = setting.home.rstrip("/") + pattern[1:] if pattern == "~" or pattern.startswith("~/") else pattern
    found = [wildcard.tokens(body, question=False)]
    if body.endswith("/*"):
        found.append(tuple(body[:-2]))  # compared as text: a star in the name is a literal star
    if setting.absolute or body.startswith("/"):
        prefix = setting.root.rstrip("/") + "/"
        # `/work/*` also matches the folder /work itself, which is above the workspace or is its root.
        found = [rest for each in found for rest in wildcard.below(each, prefix) if rest]
    return found


def write(flat: Flat) -> Exported:
    """Write a policy as `permission.rules`, with absolute paths: the fork compares no others."""
    puts, edits, left = flat.puts_and_edits
    rules: dict[str, dict[str, str]] = {}
    lists = {"read": flat.actions["read"], "write": puts, "edit": edits, "delete": flat.actions["delete"]}
    for key, listed in lists.items():
        longest, inexact = longest_decides(listed, flat.root, "write" if key == "edit" else key)
        rules[key] = longest
        left += inexact
    text = json.dumps({"permission": {"rules": rules}}, indent=2, ensure_ascii=False) + "\n"
    return Exported(text, tuple(dict.fromkeys(left)))

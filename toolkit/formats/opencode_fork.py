"""The OpenCode fork with a `delete` tool: `permission.rules`, and `agents.NAME.permission` for one.

An agent's own key first, then everybody's, then `*` in that order; in one map the longest pattern decides.
"""

from __future__ import annotations

from typing import Any

from policy.model import DEFAULT_AGENT, Effect
from toolkit.formats import wildcard
from toolkit.formats.language import Either
from toolkit.formats.opencode import effect
from toolkit.formats.source import (
    Entry,
    Imported,
    Judged,
    Left,
    Maps,
    Setting,
    Subject,
    mapping,
)
from toolkit.formats.written import entries, json_of

# A policy's key, the tool and action it is compared on, and their key.
TOOLS = (
    ("read", "read", "read", "read"),
    ("create_file", "create_file", "write", "write"),
    ("edit_file", "edit_file", "write", "edit"),
    ("insert_at_line", "insert_at_line", "write", "edit"),
    ("delete", "delete", "delete", "delete"),
)
_KNOWN = {"*", *(theirs for _, _, _, theirs in TOOLS)}
Said = dict[str, list[tuple[str, Effect, str]]]  # their key -> patterns, the deciding one last


def read(text: str, setting: Setting) -> Imported:
    """Read an .opencode.json of the fork."""
    settings = mapping(json_of(text), "")
    permission = mapping(settings.get("permission", {}), "permission")
    out = Imported()
    everybody = _said(mapping(permission.get("rules", {}), "permission.rules"), "permission.rules", out)
    out.left += [
        Left(f"permission.{key}", str(value)[:200], "not about files")
        for key, value in permission.items()
        if key != "rules"
    ]
    out.everybody = _judge([everybody], DEFAULT_AGENT, out, setting)
    for name, value in mapping(settings.get("agents", {}), "agents").items():
        where = f"agents.{name}.permission"
        own = mapping(value, f"agents.{name}").get("permission")
        if own is not None:
            out.agents[name] = _judge([_said(mapping(own, where), where, out), everybody], name, out, setting)
    out.left = list(dict.fromkeys(out.left))
    if not setting.absolute:
        out.notes.append(
            "patterns are taken from the workspace's root, as they are meant; the fork itself compares"
            " absolute paths, where one that begins with neither * nor / matches nothing (--absolute reads"
            " them so)"
        )
    return out


def _said(maps: dict[str, Any], prefix: str, out: Imported) -> Said:
    found: Said = {}
    for key, value in maps.items():
        where = f"{prefix}.{key}"
        if key not in _KNOWN:
            out.left.append(Left(where, str(value)[:200], "not about reading, editing or deleting files"))
            continue
        listed = {"*": value} if isinstance(value, str) else mapping(value, where)
        for pattern, each in listed.items():
            if isinstance(each, str):
                listed[pattern] = each.lower()
        order = sorted(listed, key=lambda pattern: (pattern != "*", len(pattern), pattern))
        found[key] = [(pattern, effect(listed[pattern], where), where) for pattern in order]
    return found


def _judge(tiers: list[Said], agent: str, out: Imported, setting: Setting) -> Maps:
    """`tiers` from the nearest to everybody's; what is nearer comes later in a list that the last decides."""
    maps: Maps = {}
    for key, tool, action, theirs in TOOLS:
        default = Effect.ALLOW if theirs == "read" else Effect.ASK
        maps[key] = [Entry("*", default, "what is done where no rule speaks")]
        judged: list[Judged] = []
        for name in ("*", theirs):
            for tier in reversed(tiers):
                for pattern, said, where in tier.get(name, ()):
                    variants = _variants(pattern, setting)
                    texts = [text for each in variants for text in wildcard.patterns(each)]
                    language = Either(tuple(map(wildcard.language, variants)))
                    judged.append(Judged(said, language, patterns=tuple(texts)))
                    if not texts:
                        out.left.append(Left(where, pattern, "matches no path in the workspace"))
                    entry = Entry("", said, f"{where} {pattern}")
                    maps[key] += entries(texts, entry, out.left, where, pattern)
        out.subjects.append(Subject(tool, action, tuple(judged), default, agent))
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
        found.append(tuple(body[:-2]))  # compared as text: a star in it is a star in a name
    if setting.absolute or body.startswith("/"):
        prefix = setting.root.rstrip("/") + "/"
        # `/work/*` also matches the folder /work itself, which is above the workspace or is its root.
        found = [rest for each in found for rest in wildcard.below(each, prefix) if rest]
    return found

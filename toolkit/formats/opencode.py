"""OpenCode's settings: the ordered array `permissions`, and the older map `permission`.

The last rule that matches decides; a star crosses slashes, and a match is of the whole path only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from policy.model import DEFAULT_AGENT, EFFECTS, Effect
from toolkit.formats import wildcard
from toolkit.formats.language import Either, Language
from toolkit.formats.source import (
    Entry,
    Exported,
    Flat,
    FormatError,
    Imported,
    Judged,
    Left,
    Maps,
    Setting,
    Subject,
    mapping,
)
from toolkit.formats.written import entries, json_of

# Their names for what a policy calls read, write and delete: patches delete under `edit`.
ACTIONS = {"read": "read", "write": "edit", "delete": "edit"}
# What the older form starts from, before anything the file says.
BUILT_IN: tuple[tuple[str, str, str], ...] = (
    ("*", "*", "allow"),
    ("read", "*.env", "ask"),
    ("read", "*.env.*", "ask"),
    ("read", "*.env.example", "allow"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of theirs, with the place it has in the file."""

    action: str
    resource: str
    effect: Effect
    where: str


def read(text: str, setting: Setting) -> Imported:
    """Read an opencode.json, whichever of the two forms it has."""
    settings = mapping(json_of(text), "")
    out = Imported()
    ordered = "permissions" in settings
    base = [] if ordered else [Rule(a, r, EFFECTS[e], "built in") for a, r, e in BUILT_IN]
    everybody = base + list(_rules(settings, ""))
    out.everybody = _judge(everybody, DEFAULT_AGENT, out, setting, ordered)
    for key in ("agent", "agents", "mode"):
        for name, value in mapping(settings.get(key) or {}, key).items():
            own = list(_rules(mapping(value, f"{key}.{name}"), f"{key}.{name}."))
            if own:
                out.agents[name] = _judge(everybody + own, name, out, setting, ordered)
    out.left = list(dict.fromkeys(out.left))
    if not ordered:
        out.notes.append("on top of the rules that OpenCode starts from: everything allowed, *.env asks")
    out.notes.append("paths are matched from the workspace's root, with a star that crosses slashes")
    return out


def _rules(settings: dict[str, Any], prefix: str) -> Iterator[Rule]:
    if "permissions" in settings:
        where = f"{prefix}permissions"
        if not isinstance(settings["permissions"], list):
            raise FormatError(f"{where} is not a list", where)
        for number, rule in enumerate(settings["permissions"]):
            here = f"{where}[{number}]"
            fields = mapping(rule, here)
            if set(fields) != {"action", "resource", "effect"}:
                raise FormatError(f"{here} has not just action, resource and effect", here)
            yield Rule(
                _text(fields["action"], here),
                _text(fields["resource"], here),
                effect(fields["effect"], here),
                here,
            )
    elif "permission" in settings:
        value, where = settings["permission"], f"{prefix}permission"
        for action, said in ({"*": value} if isinstance(value, str) else mapping(value, where)).items():
            maps = {"*": said} if isinstance(said, str) else mapping(said, f"{where}.{action}")
            for resource, each in maps.items():
                here = f"{where}.{action}"
                yield Rule(action, resource, effect(each, here), here)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise FormatError(f"{value!r} is not text", where)
    return value


def effect(value: Any, where: str) -> Effect:
    """One of the three words."""
    if value not in EFFECTS:
        raise FormatError(f"{value!r} is not allow, ask or deny", where)
    return EFFECTS[value]


def _judge(rules: list[Rule], agent: str, out: Imported, setting: Setting, ordered: bool) -> Maps:
    maps: Maps = {}
    for rule in rules:
        if not any(_names(rule.action, theirs) for theirs in ACTIONS.values()):
            what = f"{rule.action} {rule.resource}: {rule.effect}"
            out.left.append(Left(rule.where, what, "not about reading or editing files"))
    for action, theirs in ACTIONS.items():
        judged: list[Judged] = []
        maps[action] = []
        for rule in rules:
            if not _names(rule.action, theirs):
                continue
            variants = _variants(rule.resource, setting, ordered)
            language: Language = Either(tuple(wildcard.language(each) for each in variants))
            what = f"{rule.action} {rule.resource}"
            said = [pattern for each in variants for pattern in wildcard.patterns(each)]
            judged.append(Judged(rule.effect, language, patterns=tuple(said)))
            if not said:
                out.left.append(Left(rule.where, what, "matches no path in the workspace"))
            entry = Entry("", rule.effect, f"{rule.where} {what}")
            maps[action] += entries(said, entry, out.left, rule.where, what)
        out.subjects.append(Subject(action, action, tuple(judged), Effect.ASK, agent))
    return maps


def _names(pattern: str, name: str) -> bool:
    """Whether a rule's action, which may have wildcards, is this one."""
    return () in wildcard.below(wildcard.tokens(pattern), name)


def _variants(resource: str, setting: Setting, ordered: bool) -> list[wildcard.Tokens]:
    """A resource as wildcards of paths from the root: home and absolute ones seen from there."""
    body = resource.replace("\\", "/")
    for start in ("~", "$HOME"):
        if body == start or body.startswith(f"{start}/"):
            body = setting.home.rstrip("/") + body[len(start) :]
    found = [wildcard.tokens(body)]
    if body.endswith(" *"):
        found.append(wildcard.tokens(body[:-2]))
    if body.startswith("/"):
        if not ordered:
            return []  # the older form compares a path from the root with it, which never begins so
        prefix = setting.root.rstrip("/") + "/"
        found = [rest for each in found for rest in wildcard.below(each, prefix) if rest]
    return found


def write(flat: Flat) -> Exported:
    """Write a policy as the ordered array."""
    from toolkit.formats.flat import crossing

    left = list(flat.left)
    listed: list[dict[str, str]] = []
    for action, theirs in (("read", "read"), ("write", "edit")):
        for pattern, said in flat.actions[action]:
            resources = crossing(pattern, said)
            if resources is None:
                left.append(
                    Left(action, f"{pattern}: {said}", "its star would cross slashes there and say more")
                )
            listed += [{"action": theirs, "resource": each, "effect": str(said)} for each in resources or ()]
    if flat.actions["delete"] != flat.actions["write"]:
        left.append(Left("delete", "rules for deleting", "OpenCode deletes under `edit`"))
    return Exported(json.dumps({"permissions": listed}, indent=2) + "\n", tuple(left))

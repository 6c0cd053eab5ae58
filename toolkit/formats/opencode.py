"""OpenCode's settings: the ordered array `permissions`, and the older map `permission`.

The last matching rule decides; a star crosses slashes, and only the whole path matches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ringfence.policy.model import DEFAULT_AGENT, EFFECTS, Effect
from ringfence.toolkit.formats import wildcard
from ringfence.toolkit.formats.command_rules import RUN_NOTE, add, as_text
from ringfence.toolkit.formats.model import (
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
    agent_name,
    effect,
    mapping,
    part,
    shown,
    text,
)
from ringfence.toolkit.formats.recognize import settings_of
from ringfence.toolkit.formats.regular_language import ANYTHING
from ringfence.toolkit.formats.whole_paths import Writing

# OpenCode's names for read, write and delete: patches delete under `edit`.
ACTIONS = {"read": "read", "write": "edit", "delete": "edit"}
# The defaults of the older form, before the rules of the file.
BUILT_IN: tuple[tuple[str, str, str], ...] = (
    ("*", "*", "allow"),
    ("read", "*.env", "ask"),
    ("read", "*.env.*", "ask"),
    ("read", "*.env.example", "allow"),
)


SHELL = "bash"
_START = "built in"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the settings, with its place in the file."""

    action: str
    resource: str
    effect: Effect
    where: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of a tool under `tools`: by its name or by a wildcard, and where."""

    on: bool
    named: bool
    where: str


Tools = dict[str, Switch]  # by the name in the file
# The tools that `tools` can turn off, with their action.
SWITCHES = {
    "read": ("read",),
    "edit": ("write", "edit", "patch", "multiedit", "apply_patch"),
    "bash": ("bash",),
}
# A policy's tools and OpenCode's equivalents, for a switch that turns off only one of them.
ALONE = {
    "create_file": ("write",),
    "edit_file": ("edit",),
    "insert_at_line": ("edit",),
    "delete": ("patch", "apply_patch"),
}
FORK = "the fork with a `delete` tool writes `rules` there: ringfence import opencode-fork"


def read(file: str, setting: Setting) -> Imported:
    """Read an opencode.json in either form. FormatError."""
    settings = settings_of(file, "opencode")
    out = Imported()
    ordered = "permissions" in settings
    base = [] if ordered else [Rule(a, r, EFFECTS[e], _START) for a, r, e in BUILT_IN]
    everybody = base + list(_rules(settings, ""))
    tools = _tools(settings, "", out)
    out.everybody = _judge([*everybody, *_off(tools)], DEFAULT_AGENT, out, setting, ordered)
    _alone(out.everybody, DEFAULT_AGENT, out, tools)
    for name, (own, switched) in _agents(settings, out).items():
        if own or switched:
            rules = [*everybody, *own, *_off(*switched, tools)]
            out.agents[name] = _judge(rules, name, out, setting, ordered)
            _alone(out.agents[name], name, out, *switched, tools)
    out.left = list(dict.fromkeys(out.left))
    if not ordered:
        out.notes.append("on top of the rules that OpenCode starts from: everything allowed, *.env asks")
    out.notes.append("paths are matched from the workspace's root, with a star that crosses slashes")
    return out


def _agents(settings: dict[str, Any], out: Imported) -> dict[str, tuple[list[Rule], list[Tools]]]:
    """Return each agent's own rules, and its switches, the nearest level first; the older key is `mode`."""
    found: dict[str, tuple[list[Rule], list[Tools]]] = {}
    for key in ("mode", "agents", "agent"):
        for name, value in part(settings, key).items():
            where = f"{key}.{name}"
            rules, levels = found.setdefault(agent_name(name, where), ([], []))
            rules += _rules(mapping(value, where), f"{where}.")
            # A level of its own: a wildcard of the nearer key turns off what the older key turns on by name.
            if tools := _tools(value, f"{where}.", out):
                levels.insert(0, tools)
    return found


def _tools(settings: dict[str, Any], prefix: str, out: Imported) -> Tools:
    """Return the older switches of tools."""
    found: Tools = {}
    known = [tool for tools in SWITCHES.values() for tool in tools]
    for name, on in part(settings, "tools", prefix).items():
        where = f"{prefix}tools.{name}"
        if not isinstance(on, bool):
            raise FormatError(f"{shown(on)} is not true or false", where)
        found[name] = Switch(on, name in known, where)
        if not any(_names(name, tool) for tool in known):
            out.left.append(
                Left(
                    where, shown(on), "not a tool that reads or edits files, or runs commands", harmless=True
                )
            )
        elif on:
            out.left.append(Left(where, "true", "the tool is on; that alone allows nothing here"))
    return found


def _off(*levels: Tools) -> Iterator[Rule]:
    """Return rules for tools that are off, the nearest level first.

    They come last: nothing turns a tool on again.

    The editing tools are one action: one that is off by name turns all of them off, and so does a wildcard if
    none is on.
    """
    for action, tools in SWITCHES.items():
        switches = [state for tool in tools if (state := _state(tool, levels))]
        off = [state for state in switches if not state.on]
        named = [state for state in off if state.named]
        if named or (off and len(off) == len(switches)):
            yield Rule(action, "*", Effect.DENY, (named or off)[0].where)


def _alone(maps: Maps, agent: str, out: Imported, *levels: Tools) -> None:
    """Deny the work of a tool that a wildcard turns off while another editing tool is on."""
    for tool, theirs in ALONE.items():
        states = [_state(each, levels) for each in theirs]
        off = [state for state in states if state and not state.on]
        if len(off) < len(theirs):
            continue
        maps[tool] = [*maps.get(tool, ()), Entry("*", Effect.DENY, off[0].where)]
        action = "delete" if tool == "delete" else "write"
        rule = Judged(Effect.DENY, ANYTHING, patterns=("*",))
        out.subjects = [each for each in out.subjects if (each.tool, each.agent) != (tool, agent)]
        out.subjects.append(Subject(tool, action, (rule,), Effect.ASK, agent))


def _state(tool: str, levels: tuple[Tools, ...]) -> Switch | None:
    for level in levels:
        wild = [switch for name, switch in level.items() if _names(name, tool)]
        if wild:
            return level.get(tool) or wild[-1]
    return None


def _rules(settings: dict[str, Any], prefix: str) -> Iterator[Rule]:
    if "permissions" in settings:
        where = f"{prefix}permissions"
        if not isinstance(settings["permissions"], list):
            hint = "an object there is Claude Code's: ringfence import claude-code"
            raise FormatError(f"{where} is not a list", where, hint)
        for number, rule in enumerate(settings["permissions"]):
            here = f"{where}[{number}]"
            fields = mapping(rule, here)
            if set(fields) != {"action", "resource", "effect"}:
                raise FormatError(f"{here} has not just action, resource and effect", here)
            named = text(fields["action"], here), text(fields["resource"], here)
            yield Rule(*named, effect(fields["effect"], here), here)
    elif settings.get("permission") is not None:
        value, where = settings["permission"], f"{prefix}permission"
        for action, given in ({"*": value} if isinstance(value, str) else mapping(value, where)).items():
            here = f"{where}.{action}"
            hint = FORK if action == "rules" else ""
            if isinstance(given, str):
                yield Rule(action, "*", effect(given, here, hint), here)
                continue
            for resource, each in mapping(given, here, hint).items():
                yield Rule(action, resource, effect(each, f"{here}.{resource}", hint), here)


def _judge(rules: list[Rule], agent: str, out: Imported, setting: Setting, ordered: bool) -> Maps:
    maps: Maps = {}
    for rule in rules:
        if not any(_names(rule.action, theirs) for theirs in (*ACTIONS.values(), SHELL)):
            what = f"{rule.action} {rule.resource}: {rule.effect}"
            out.left.append(Left(rule.where, what, "not about reading or editing files", harmless=True))
    for action, theirs in ACTIONS.items():
        writing = Writing(Effect.ASK, out.left)
        for rule in rules:
            if not _names(rule.action, theirs):
                continue
            variants = _variants(rule.resource, setting, ordered)
            what = f"{rule.action} {rule.resource}"
            if not variants:
                why = "matches no path in the workspace"
                out.left.append(Left(rule.where, what, why, harmless=True))
            writing.add(variants, rule.effect, rule.where, what)
        writing.finish()
        maps[action] = writing.entries
        out.subjects.append(Subject(action, action, tuple(writing.judged), Effect.ASK, agent))
    run = _run(rules, out)
    return {**maps, "run": run} if run else maps


def _run(rules: list[Rule], out: Imported) -> list[Entry]:
    """Return the rules on commands; none, so that they ask, if only OpenCode's defaults are about them."""
    about = [rule for rule in rules if _names(rule.action, SHELL)]
    if all(rule.where == _START for rule in about):
        return []
    listed: list[Entry] = []
    for rule in about:
        add(listed, rule.resource, rule.effect, rule.where, f"{rule.action} {rule.resource}", out.left)
    if RUN_NOTE not in out.notes:
        out.notes.append(RUN_NOTE)
    return listed


def _names(pattern: str, name: str) -> bool:
    """Whether a rule's action, which may have wildcards, includes this one."""
    return () in wildcard.below(wildcard.tokens(pattern), name)


def _variants(resource: str, setting: Setting, ordered: bool) -> list[wildcard.Tokens]:
    """Return a resource as wildcards of paths from the workspace's root, home and absolute paths included."""
    body = resource.replace("\\", "/")
    for start in ("~", "$HOME"):
        if body == start or body.startswith(f"{start}/"):
            body = setting.home.rstrip("/") + body[len(start) :]
    found = [wildcard.tokens(body)]
    if body.endswith(" *"):
        found.append(wildcard.tokens(body[:-2]))
    if body.startswith("/"):
        if not ordered:
            return []  # the older form compares it with a path from the root, which never begins like this
        prefix = setting.root.rstrip("/") + "/"
        found = [rest for each in found for rest in wildcard.below(each, prefix) if rest]
    return found


def write(flat: Flat) -> Exported:
    """Write a policy as the ordered array. Deleting belongs to `edit`, with the stricter effect of both."""
    from ringfence.toolkit.formats.flatten import stricter, strictest

    left = list(flat.left)
    reads, writes, deletes = (list(flat.actions[action]) for action in ("read", "write", "delete"))
    edits = strictest(writes, deletes)
    if writes != deletes:
        left.append(
            Left("delete", "rules for deleting", "OpenCode deletes under `edit`: the stricter of both")
        )
    listed: list[dict[str, str]] = []
    for action, rules in (("read", reads), ("edit", edits)):
        crossed = _crossing(action, rules, left)
        listed += [{"action": action, "resource": each, "effect": str(effect)} for each, effect in crossed]
    commands: list[tuple[str, Effect]] = []
    for pattern, result in flat.run:
        one = as_text(pattern, result)
        if one.why:
            left.append(Left("run", f"{pattern}: {result}", one.why))
        if one.pattern is not None:
            more = [(one.pattern, result)]
            commands = stricter(commands, more) if one.why else commands + more
    listed += [{"action": SHELL, "resource": each, "effect": str(effect)} for each, effect in commands]
    return Exported(json.dumps({"permissions": listed}, indent=2) + "\n", tuple(left))


def _crossing(action: str, rules: list[tuple[str, Effect]], left: list[Left]) -> list[tuple[str, Effect]]:
    """Return the rules with stars that cross slashes; a rule that would allow more is left out."""
    from ringfence.toolkit.formats.flatten import crossing, stricter

    crossed: list[tuple[str, Effect]] = []
    for pattern, result in rules:
        exact = crossing(pattern, Effect.ALLOW)
        if exact is None:
            why = "its star would cross slashes there and allow more"
            why = why if result is Effect.ALLOW else "applied to more paths, which is stricter"
            left.append(Left(action, f"{pattern}: {result}", why))
        if exact is None and result is Effect.ALLOW:
            continue
        more = [(each, result) for each in crossing(pattern, result) or ()]
        crossed = stricter(crossed, more) if exact is None else crossed + more
    return crossed

"""Claude Code's settings: `permissions` with allow, ask and deny rules for Read and Edit.

Deny is looked at first, then ask, then allow; paths are .gitignore patterns from one of four anchors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from policy.model import Effect
from toolkit.formats import gitignore
from toolkit.formats.language import ANYTHING, Language, Row, covering
from toolkit.formats.language import BELOW as BELOW_IT
from toolkit.formats.source import (
    Entry,
    Exported,
    Flat,
    FormatError,
    Imported,
    Judged,
    Left,
    Setting,
    Subject,
    mapping,
)
from toolkit.formats.written import entries, json_of

LISTS = (("allow", Effect.ALLOW), ("ask", Effect.ASK), ("deny", Effect.DENY))
_RULE = re.compile(r"([A-Za-z_][A-Za-z0-9_*-]*)(?:\((.*)\))?", re.DOTALL)
_READS = {"Read"}
_EDITS = {"Edit", "MultiEdit", "NotebookEdit"}
Found = tuple[Effect, Language, Entry]


def read(text: str, setting: Setting) -> Imported:
    """Read a settings.json of a project."""
    out = Imported()
    settings = mapping(json_of(text), "")
    permissions = mapping(settings.get("permissions", {}), "permissions")
    found: dict[str, list[Found]] = {"read": [], "write": []}
    for name, effect in LISTS:
        listed = permissions.get(name, [])
        if not isinstance(listed, list):
            raise FormatError(f"permissions.{name} is not a list", f"permissions.{name}")
        for number, rule in enumerate(listed):
            _rule(rule, effect, f"permissions.{name}[{number}]", found, out, setting)
    _others(permissions, out)
    # What may not be read may not be edited either.
    found["write"] += [each for each in found["read"] if each[0] is Effect.DENY]
    for action, default in (("read", Effect.ALLOW), ("write", Effect.ASK)):
        base = Entry("*", default, "what is done where no rule speaks")
        out.everybody[action] = [base, *(entry for _, _, entry in found[action])]
        rules = tuple(
            Judged(effect, language, patterns=(entry.pattern,)) for effect, language, entry in found[action]
        )
        out.subjects.append(Subject(action, action, rules, default))
    denied = [entry for effect, _, entry in found["write"] if effect is Effect.DENY]
    out.everybody["delete"] = [Entry("*", Effect.ASK, "Claude Code has no tool that deletes"), *denied]
    out.notes.append(
        "read as the settings of a project, started in its folder: `/x` and `./x` are from the"
        " workspace's root"
    )
    out.notes.append("deleting is not in these settings: it asks, and is denied where editing is")
    return out


def _rule(
    rule: Any, effect: Effect, where: str, found: dict[str, list[Found]], out: Imported, setting: Setting
) -> None:
    match = _RULE.fullmatch(rule) if isinstance(rule, str) else None
    if match is None:
        raise FormatError(f"{rule!r} is not a rule", where, 'write "Tool" or "Tool(what)"')
    tool, what = match[1], match[2]
    if tool == "Write" and what is not None:
        why = "a path in a Write rule is never looked at; Claude Code takes Edit for it"
        out.left.append(Left(where, rule, why))
        return
    if tool not in _READS | _EDITS | {"Write"}:
        out.left.append(Left(where, rule, "not about reading or editing files"))
        return
    action = "read" if tool in _READS else "write"
    if what is None or what == "":
        found[action].append((effect, ANYTHING, Entry("*", effect, f"{where} {rule}")))
        return
    try:
        for language, pattern in _anchored(what, effect, setting):
            for entry in entries([pattern], Entry("", effect, f"{where} {rule}"), out.left, where, rule):
                found[action].append((effect, language, entry))
    except _Outside as error:
        out.left.append(Left(where, rule, str(error)))
    except gitignore.LineError as error:
        raise FormatError(f"{rule!r} cannot be said in a policy: {error}", where) from None


class _Outside(Exception):
    """A rule about paths that are not in the workspace."""


def _anchored(what: str, effect: Effect, setting: Setting) -> Iterator[tuple[Language, str]]:
    if what.startswith("!"):
        raise gitignore.LineError("'!' at the start")
    if what.startswith("//"):
        yield from _absolute(what[1:], setting)
    elif what == "~" or what.startswith("~/"):
        yield from _absolute(setting.home.rstrip("/") + what[1:], setting)
    else:
        body = what.removeprefix("./") if what.startswith("./") else what
        if body != what and "/" not in body.rstrip("/"):
            body = f"/{body}"
        # A rule that denies or asks for `name/**` means every folder of that name.
        depth = effect is not Effect.ALLOW and re.fullmatch(r"[^/*?\[]+/\*\*", what) is not None
        yield _read(body, depth=depth)


def _read(body: str, *, depth: bool = False) -> tuple[Language, str]:
    line = gitignore.line(body, depth=depth)
    if line.folder:
        return Row((line.language, BELOW_IT)), line.pattern
    return covering(line.language), line.pattern


def _absolute(what: str, setting: Setting) -> Iterator[tuple[Language, str]]:
    """A pattern from the file system's root, seen from the workspace."""
    names = [name for name in what.strip("/").split("/") if name]
    places = {0}
    for part in setting.root.strip("/").split("/"):
        if any(at == len(names) for at in places):
            yield ANYTHING, "*"
            return
        places = {after for at in places for after in _past(names, at, part)}
    rests = ["/".join(names[at:]) for at in sorted(places)]
    if not rests:
        raise _Outside("about paths outside of the workspace, which nothing there can reach")
    for rest in rests:
        if rest in ("", "**"):
            yield ANYTHING, "*"
            return
    tail = "/" if what.endswith("/") else ""
    for rest in rests:
        yield _read(f"/{rest}{tail}")


def _past(names: list[str], at: int, part: str) -> set[int]:
    if at == len(names):
        return set()
    name = names[at]
    if name == "**":
        return {at, *_past(names, at + 1, part)}
    fits = re.fullmatch(
        "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in name), part, re.DOTALL
    )
    return {at + 1} if fits else set()


def _others(permissions: dict[str, Any], out: Imported) -> None:
    for key, value in permissions.items():
        where = f"permissions.{key}"
        if key in ("allow", "ask", "deny") or (key == "defaultMode" and value == "default"):
            continue
        why = "not a rule about files in the workspace"
        if key == "defaultMode":
            why = "a mode changes what happens where no rule speaks; the policy is for the mode `default`"
        out.left.append(Left(where, json.dumps(value)[:200], why))


def write(flat: Flat) -> Exported:
    """Write a policy's reading and writing as rules."""
    left = list(flat.left)
    lists: dict[str, list[str]] = {name: [] for name, _ in LISTS}
    for action, tool in (("read", "Read"), ("write", "Edit")):
        for pattern, effect in flat.actions[action]:
            if pattern == "*" and effect is (Effect.ALLOW if action == "read" else Effect.ASK):
                continue  # what happens anyway
            for body in _written(pattern):
                rule = tool if body == "*" else f"{tool}({body})"
                if rule not in lists[str(effect)]:
                    lists[str(effect)].append(rule)
    if flat.actions["delete"] != flat.actions["write"]:
        left.append(Left("delete", "rules for deleting", "Claude Code has no tool that deletes files"))
    return Exported(json.dumps({"permissions": lists}, indent=2) + "\n", tuple(left))


def _written(pattern: str) -> Iterator[str]:
    from toolkit.formats.flat import alternatives

    for each in alternatives(pattern):
        body = each.removeprefix("./") if each.startswith("./") else each
        yield f"/{body}" if "/" in body.rstrip("/") and not body.startswith("/") else body

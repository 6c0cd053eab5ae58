"""Claude Code's settings: `permissions` with allow, ask and deny rules for Read, Edit and Bash.

Deny rules come first, then ask, then allow; paths are .gitignore patterns from one of four anchors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from ringfence.policy.model import Effect
from ringfence.toolkit.formats import gitignore
from ringfence.toolkit.formats.anchors import Outside, absolute, covered, home
from ringfence.toolkit.formats.command_rules import RUN_NOTE, add, as_text, unwrapped
from ringfence.toolkit.formats.model import (
    COMMANDS,
    NO_RULE,
    Entry,
    Exported,
    Flat,
    FormatError,
    Imported,
    Judged,
    Left,
    Listed,
    Setting,
    Subject,
    mapping,
    part,
    shown,
    text,
)
from ringfence.toolkit.formats.recognize import settings_of
from ringfence.toolkit.formats.regular_language import ANYTHING, Language
from ringfence.toolkit.formats.yaml_writer import entries

LISTS = (("allow", Effect.ALLOW), ("ask", Effect.ASK), ("deny", Effect.DENY))
_RULE = re.compile(r"([A-Za-z_*][A-Za-z0-9_*-]*)(?:\((.*)\))?", re.DOTALL)
# Claude Code's file tools and the policy's keys: a rule for Edit applies to every tool that edits.
TOOLS = {
    "Read": ("read",),
    "Edit": ("create_file", "edit_file", "insert_at_line"),
    "Write": ("create_file",),
    "MultiEdit": ("edit_file", "insert_at_line"),
    "NotebookEdit": ("edit_file", "insert_at_line"),
}
WRITES = TOOLS["Edit"]
_USUAL = ("*", Effect.ASK)  # what is done with a command that no rule is about
_PARTLY = {"MultiEdit", "NotebookEdit"}
_SEARCHES = {"Grep", "Glob", "LS", "NotebookRead"}
_ABOUT_COMMANDS = {"BashOutput", "KillShell", "PowerShell"}
Found = tuple[Effect, Language, Entry]


@dataclass(slots=True)
class Reading:
    """The state of an import: the rules for each tool of a policy, and whether prompts are off."""

    out: Imported
    setting: Setting
    found: dict[str, list[Found]] = field(default_factory=lambda: {key: [] for key in ("read", *WRITES)})
    run: list[Entry] = field(default_factory=list)  # on commands
    never_asks: bool = False
    plans: bool = False

    def effect(self, effect: Effect) -> Effect:
        """Return the effect of a rule: an ask denies where no prompt is ever shown."""
        return Effect.DENY if effect is Effect.ASK and self.never_asks else effect


def read(file: str, setting: Setting) -> Imported:
    """Read a project's settings.json. FormatError."""
    reading = Reading(Imported(), setting)
    settings = settings_of(file, "claude-code")
    permissions = mapping(
        {} if settings.get("permissions") is None else settings["permissions"],
        "permissions",
        "a list there is OpenCode's: ringfence import opencode",
    )
    _mode(settings, permissions, reading)
    for name, effect in LISTS:
        for number, rule in enumerate(_list(permissions, name, "permissions")):
            _rule(rule, effect, f"permissions.{name}[{number}]", reading)
    _sandbox(settings, reading)
    _others(settings, permissions, reading.out)
    return _judged(reading)


def _judged(reading: Reading) -> Imported:
    out, found = reading.out, reading.found
    for key in WRITES:
        # A path that may not be read may not be edited either.
        found[key] += [each for each in found["read"] if each[0] is Effect.DENY]
        if reading.plans:
            found[key].append((Effect.DENY, ANYTHING, Entry("*", Effect.DENY, "defaultMode plan")))
    maps: dict[str, list[Entry]] = {}
    for key, rules in found.items():
        default = Effect.ALLOW if key == "read" else reading.effect(Effect.ASK)
        changed = [replace(entry, effect=reading.effect(entry.effect)) for _, _, entry in rules]
        maps[key] = [Entry("*", default, NO_RULE), *changed]
        judged = tuple(
            Judged(entry.effect, language, patterns=(entry.pattern,))
            for entry, (_, language, _) in zip(changed, rules, strict=True)
        )
        out.subjects.append(Subject(key, "read" if key == "read" else "write", judged, default))
    if maps["create_file"] == maps["edit_file"]:
        maps = {"read": maps["read"], "write": maps["create_file"]}
    denied = [entry for effect, _, entry in found["create_file"] if effect is Effect.DENY]
    unsaid = Entry("*", reading.effect(Effect.ASK), "Claude Code has no tool that deletes")
    out.everybody = {**maps, "delete": [unsaid, *denied], "run": _run(reading)}
    out.notes.append(
        "read as the settings of a project, started in its folder: `/x` and `./x` are from the"
        " workspace's root"
    )
    out.notes.append("deleting is not in these settings: it asks, and is denied where editing is")
    return out


def _run(reading: Reading) -> list[Entry]:
    """Return the rules on commands: deny comes before ask, and ask before allow, so the denials are last."""
    run = [replace(each, effect=reading.effect(each.effect)) for each in reading.run]
    listed = sorted(run, key=lambda each: each.effect)
    if listed:
        reading.out.notes.append(RUN_NOTE)
        listed = unwrapped(listed, reading.out.left)
    default = [Entry("*", Effect.DENY, NO_RULE)] if reading.never_asks else []
    last = [Entry("*", Effect.DENY, "defaultMode plan")] if reading.plans else []
    return [*default, *listed, *last]


def _list(settings: dict[str, Any], key: str, prefix: str) -> list[Any]:
    value = settings.get(key)
    if not isinstance(value, list | None):
        raise FormatError(f"{prefix}.{key} is not a list", f"{prefix}.{key}")
    return value or []


def _mode(settings: dict[str, Any], permissions: dict[str, Any], reading: Reading) -> None:
    """Read the settings about prompts in general."""
    for prefix, keys in (("", settings), ("permissions.", permissions)):
        value = keys.get("denyInsteadOfPrompting")
        if not isinstance(value, bool | None):
            where = f"{prefix}denyInsteadOfPrompting"
            raise FormatError(f"{shown(value)} is not true or false", where)
        reading.never_asks |= bool(value)
    where, mode = "permissions.defaultMode", permissions.get("defaultMode")
    if mode is None:
        return
    if not isinstance(mode, str):
        raise FormatError(f"{shown(mode)} is not the name of a mode", where)
    if mode == "dontAsk":
        reading.never_asks = True
    elif mode == "plan":
        reading.plans = True
    elif mode != "default":
        why = "this mode permits more where no rule speaks; the policy is for the mode `default`"
        reading.out.left.append(Left(where, shown(mode), why))


def _rule(rule: Any, effect: Effect, where: str, reading: Reading) -> None:
    match = _RULE.fullmatch(text(rule, where))
    if match is None:
        reading.out.left.append(Left(where, shown(rule), 'not a rule, and skipped there; write "Tool(what)"'))
        return
    tool, what = match[1], match[2]
    if tool == "Bash" or (fnmatchcase("Bash", tool) and what is None and effect is not Effect.ALLOW):
        body = "" if what is None else what
        body = f"{body[:-2]} *" if body.endswith(":*") else body
        add(reading.run, body, effect, where, rule, reading.out.left)
    if tool == "Bash":
        return
    names = [name for name in TOOLS if fnmatchcase(name, tool)]
    reason = _left_out(tool, what, names, effect)
    if reason is not None:
        reading.out.left.append(Left(where, rule, *reason))
        if not names or effect is Effect.ALLOW or (what is not None and tool == "Write"):
            return
    keys = list(dict.fromkeys(key for name in names for key in TOOLS[name]))
    if not what:
        for key in keys:
            reading.found[key].append((effect, ANYTHING, Entry("*", effect, f"{where} {rule}")))
        return
    if what.startswith("!"):
        why = "a pattern that takes another one back; "
        why += (
            "the policy asks, which is stricter" if effect is Effect.ALLOW else "left out, which is stricter"
        )
        reading.out.left.append(Left(where, rule, why))
        if effect is not Effect.ALLOW:
            return
        what, effect = what[1:], Effect.ASK
    _add(what, keys, effect, where, rule, reading)


def _left_out(tool: str, what: str | None, names: list[str], effect: Effect) -> tuple[str, bool] | None:
    """Return why a rule is left out or changed in the policy, and whether that is harmless."""
    if tool in _SEARCHES:
        return "a policy judges looking for files as reading them", False
    if not names:
        why = COMMANDS if tool in _ABOUT_COMMANDS else "not about reading or editing files"
        return why, True
    if tool == "Write" and what is not None:
        return "a path in a Write rule is never looked at; Claude Code takes Edit for it", True
    if tool in _PARTLY or "*" in tool:
        if effect is Effect.ALLOW:
            return "an allow for a part of the tools that edit is left out", False
        return ("applied to all that edits, which is stricter", False) if tool in _PARTLY else None
    return None


def _add(body: str, keys: Iterable[str], effect: Effect, where: str, what: str, reading: Reading) -> None:  # noqa: PLR0913  one rule and its place in the settings
    """Add a rule for the paths of a pattern; record what cannot be expressed."""
    left = reading.out.left
    try:
        lines = list(_anchored(body, effect, reading.setting))
    except (Outside, gitignore.LineError) as error:
        left.append(Left(where, what, str(error), harmless=True))
        return
    for line in lines:
        if line.wider:
            ends = "; the allow is left out" if effect is Effect.ALLOW else ", which is stricter"
            left.append(Left(where, what, line.wider + ends))
            if effect is Effect.ALLOW:
                continue
        language = covered(line)
        entry = Entry("", effect, f"{where} {what}")
        for each in entries([line.pattern], entry, left, where, what):
            for key in keys:
                reading.found[key].append((each.effect, language, each))


def _sandbox(settings: dict[str, Any], reading: Reading) -> None:
    """Deny paths that are closed to commands in the sandbox to the file tools too."""
    files = part(part(settings, "sandbox"), "filesystem", "sandbox.")
    for name, keys in (("denyRead", ("read",)), ("denyWrite", WRITES)):
        for number, path in enumerate(_list(files, name, "sandbox.filesystem")):
            where = f"sandbox.filesystem.{name}[{number}]"
            body = text(path, where)
            # A path in this setting starts at the file system's root, at home, or at the workspace.
            start = body if body.startswith(("//", "~")) else f"/{body}"
            here = body if body.startswith(("/", "~", "./")) else f"./{body}"
            before = len(reading.out.left)
            _add(start if body.startswith("/") else here, keys, Effect.DENY, where, body, reading)
            if len(reading.out.left) == before:
                why = "about commands in the sandbox; denied to the file tools, too, which is stricter"
                reading.out.left.append(Left(where, body, why))


def _anchored(what: str, effect: Effect, setting: Setting) -> Iterator[gitignore.Line]:
    if what.startswith("//"):
        yield from absolute(what[1:], setting)
    elif what == "~" or what.startswith("~/"):
        yield from absolute(home(what, setting), setting)
    else:
        body = what.removeprefix("./") if what.startswith("./") else what
        if body != what and "/" not in body.rstrip("/"):
            body = f"/{body}"
        # A rule that denies or asks for `name/**` means every folder of that name.
        depth = effect is not Effect.ALLOW and re.fullmatch(r"[^/*?\[]+/\*\*", what) is not None
        yield gitignore.line(body, depth=depth)


_ELSEWHERE = {"additionalDirectories", "disableBypassPermissionsMode", "disableAutoMode"}


def _others(settings: dict[str, Any], permissions: dict[str, Any], out: Imported) -> None:
    for key, value in permissions.items():
        if key not in ("allow", "ask", "deny", "defaultMode", "denyInsteadOfPrompting"):
            why = "not a rule about files in the workspace" if key in _ELSEWHERE else "not known"
            out.left.append(Left(f"permissions.{key}", shown(value), why, harmless=key in _ELSEWHERE))
    hooks = settings.get("hooks")
    for event in ("PreToolUse", "PermissionRequest"):
        if isinstance(hooks, dict) and hooks.get(event):
            why = "a program that may decide about a call is not read"
            out.left.append(Left(f"hooks.{event}", shown(hooks[event]), why))


def write(flat: Flat) -> Exported:
    """Write a policy's read and write rules as settings."""
    edits, whole, left = _edits(flat)
    lists: dict[str, list[str]] = {name: [] for name, _ in LISTS}
    if whole is not None:
        lists[str(whole)].append("Write")
    for action, tool, rules in (("read", "Read", flat.actions["read"]), ("write", "Edit", edits)):
        for pattern, effect in rules:
            if pattern == "*" and effect is (Effect.ALLOW if action == "read" else Effect.ASK):
                continue  # the default anyway
            bodies = _written(pattern, effect)
            if bodies is None:
                left.append(
                    Left(action, f"{pattern}: {effect}", "its class has another meaning there; left out")
                )
            for body in bodies or ():
                rule = tool if body == "*" else f"{tool}({body})"
                if rule not in lists[str(effect)]:
                    lists[str(effect)].append(rule)
    _write_commands(flat, lists, left)
    if flat.actions["delete"] != flat.actions["write"]:
        why = "Claude Code has no tool that deletes files"
        left.append(Left("delete", "rules for deleting", why, harmless=True))
    return Exported(json.dumps({"permissions": lists}, indent=2) + "\n", tuple(left))


def _write_commands(flat: Flat, lists: dict[str, list[str]], left: list[Left]) -> None:
    """Add the rules for commands to the lists, and what is lacking of them to `left`."""
    for pattern, effect in flat.run:
        spoken = as_text(pattern, effect)
        if spoken.why:
            left.append(Left("run", f"{pattern}: {effect}", spoken.why))
        rule = "Bash" if spoken.pattern == "*" else f"Bash({spoken.pattern})"
        if spoken.pattern is not None and rule not in lists[str(effect)] and (pattern, effect) != _USUAL:
            lists[str(effect)].append(rule)


def _edits(flat: Flat) -> tuple[Listed, Effect | None, list[Left]]:
    """Return the rules for Edit, the effect of a rule for Write if there is one, and what is lacking.

    A rule for Edit with a path is one for Write, too; a rule for Write has no path.
    """
    puts, edits, left = flat.puts_and_edits
    if puts == edits:
        return edits, None, left
    if {pattern for pattern, _ in puts} == {"*"}:
        return edits, puts[-1][1], left
    from ringfence.toolkit.formats.flatten import strictest

    why = "a rule for writing whole files has no path there: the stricter of both"
    left.append(Left("write", "rules for writing whole files and for editing", why))
    return tuple(strictest(list(puts), list(edits))), None, left


def _written(pattern: str, effect: Effect) -> list[str] | None:
    """Return a pattern in the form of a rule's path; None for an allow that would allow more."""
    from ringfence.toolkit.formats.ignore_patterns import lines_of

    found = lines_of(pattern, effect)
    return found and [f"/{body}" if "/" in body.rstrip("/") and body[0] != "/" else body for body in found]

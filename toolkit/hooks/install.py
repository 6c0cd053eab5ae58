"""Installer of the hook: a host's settings with the hook, or without it; text in, text out.

Pure. The text is spliced, not serialized again, so that a person's formatting stays.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ringfence.toolkit.hooks.hosts import AFTER, EVENTS

_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()
# Every tool of a host: the paths of unknown tools have to be judged too.
_ALL = ".*"
# Present and former names of the program in a hook's command.
_NAMES = r"(?:ringfence|toolkit\.cli)"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a host stores hooks, and its names for them.

    `events` and `after` have the matcher of tools for each event: before a tool runs, and after a shell
    command ran. `timeout` is in the host's unit. `root` is the command's expression for the project. Where
    hooks are in no groups, `entry` makes one of a command and a time-out, and the file has a `version`.
    """

    files: Mapping[str, str]
    events: Mapping[str, str]
    after: Mapping[str, str]
    timeout: int
    root: str = ""
    entry: Callable[[str, int], dict[str, Any]] | None = None
    version: int | None = None


_CODEX_SHELLS = "[Bb]ash|shell|local_shell|shell_command|exec_command"
# Copilot CLI and VS Code read each file in this folder, and each other's events in it.
_GITHUB = MappingProxyType(
    {"project": ".github/hooks/ringfence.json", "user": "~/.copilot/hooks/ringfence.json"}
)
_IN_COPILOT = '${COPILOT_PROJECT_DIR:+--root "$COPILOT_PROJECT_DIR"}'
_BEFORE = MappingProxyType({"PreToolUse": _ALL, "PermissionRequest": _ALL})
SETTINGS: Mapping[str, Settings] = MappingProxyType(
    {
        "claude-code": Settings(
            {
                "project": ".claude/settings.json",
                "local": ".claude/settings.local.json",
                "user": "~/.claude/settings.json",
            },
            _BEFORE,
            dict.fromkeys(AFTER["claude-code"], "Bash|Monitor|PowerShell"),
            60,
            '--root "$CLAUDE_PROJECT_DIR"',
        ),
        "codex": Settings(
            {"project": ".codex/hooks.json", "user": "~/.codex/hooks.json"},
            _BEFORE,
            dict.fromkeys(AFTER["codex"], _CODEX_SHELLS),
            60,
        ),
        "gemini": Settings(
            {"project": ".gemini/settings.json", "user": "~/.gemini/settings.json"},
            {"BeforeTool": _ALL},
            dict.fromkeys(AFTER["gemini"], "run_shell_command"),
            60_000,
            '--root "$GEMINI_PROJECT_DIR"',
        ),
        # Without a matcher the hook is for all tools.
        "cursor": Settings(
            {"project": ".cursor/hooks.json", "user": "~/.cursor/hooks.json"},
            dict.fromkeys(EVENTS["cursor"], ""),
            dict.fromkeys(AFTER["cursor"], ""),
            60,
            '${CURSOR_PROJECT_DIR:+--root "$CURSOR_PROJECT_DIR"}',
            lambda run, timeout: {"command": run, "timeout": timeout, "failClosed": True},
            1,
        ),
        "copilot": Settings(
            _GITHUB,
            dict.fromkeys(EVENTS["copilot"], ""),
            dict.fromkeys(AFTER["copilot"], "bash|powershell"),
            60,
            _IN_COPILOT,
            lambda run, timeout: {"type": "command", "bash": run, "timeoutSec": timeout},
            1,
        ),
        # VS Code applies no matcher, so a hook after each tool would cost more than its record is worth.
        "vscode": Settings(
            _GITHUB,
            dict.fromkeys(EVENTS["vscode"], ""),
            {},
            60,
            _IN_COPILOT,
            lambda run, timeout: {"type": "command", "command": run, "timeout": timeout},
            1,
        ),
    }
)


# Where the settings have rules that hold commands back.
_RULES: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        "claude-code": (("permissions", "deny"), ("permissions", "ask")),
        "gemini": (("tools", "exclude"), ("excludeTools",)),
    }
)


class NotPlain(Exception):
    """Settings that a program cannot change safely; the message says why."""


def command(program: Sequence[str], host: str, options: Mapping[str, str | None]) -> str:
    """Return the command that the host runs; `program` are the words that start Ringfence.

    An option that is None is left out. Every failure, a missing program included, blocks the call.
    """
    words = [shlex.join(program), "hook", host, SETTINGS[host].root]
    words += [f"--{name} {shlex.quote(value)}" for name, value in options.items() if value is not None]
    run = " ".join(word for word in words if word)
    return f'{run} || {{ echo "ringfence gave no answer: blocked" >&2; exit 2; }}'


def installed(text: str, host: str, run: str, *, shell: bool = True) -> str:
    """Return the settings with the hook on every event; an existing hook is replaced. NotPlain.

    Without `shell` the hook does not run after shell commands.
    """
    value = parsed(text)
    entries = {event: _entry(matcher, host, run) for event, matcher in _events(host).items()}
    if not shell:
        entries = {event: entry for event, entry in entries.items() if event in SETTINGS[host].events}
    if all(
        _ours(value, host, event) == ([entries[event]] if event in entries else []) for event in _events(host)
    ):
        return text
    text = removed(text, host)
    version = SETTINGS[host].version
    if not text.strip():
        found: dict[str, Any] = {} if version is None else {"version": version}
        found["hooks"] = {event: [entry] for event, entry in entries.items()}
        return json.dumps(found, indent=2) + "\n"
    if version is not None and "version" not in parsed(text):
        text = _appended(text, _skip(text, 0), '"version": ', version, 0)
    for event, entry in entries.items():
        text = _added(text, event, entry)
    return text


def removed(text: str, host: str) -> str:
    """Return the settings without the hook and the containers it leaves empty; "" if only it was there."""
    while True:
        value = parsed(text)
        found = next(
            (
                (event, n, m)
                for event in _events(host)
                for n, group in enumerate(_groups(value, event))
                for m, hook in enumerate(_hooks(group))
                if _is_ours(hook, host)
            ),
            None,
        )
        if found is None:
            return text
        event, n, m = found
        trail = _emptied(value, event, n, m)
        text = _without(text, trail) if trail else ""


def commands(text: str, host: str) -> list[str]:
    """Return our commands in the settings. NotPlain as in `parsed`."""
    value = parsed(text)
    groups = (group for event in _events(host) for group in _groups(value, event))
    return [_command(hook) for group in groups for hook in _hooks(group) if _is_ours(hook, host)]


def host_rules(text: str, host: str) -> list[str]:
    """Return the host's own rules on the words of shell commands, which no rewritten command fits."""
    value = parsed(text)
    found = [_at(value, *trail) for trail in _RULES.get(host, ())]
    rules = [rule for listed in found if isinstance(listed, list) for rule in listed]
    return [
        rule for rule in rules if isinstance(rule, str) and re.match(r"(?:Bash|run_shell_command)\(", rule)
    ]


def _at(value: Any, *trail: str) -> Any:
    for key in trail:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def is_isolated(run: str) -> bool:
    """Whether our command names its interpreter, and isolates it from other modules."""
    return re.match(r"(?:'/[^']*'|/\S*) -(?:I|E -P) -m ", run) is not None


def parsed(text: str) -> dict[str, Any]:
    """Return the settings as an object. NotPlain for anything else, for a duplicate key or for comments."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the pairs as a dict; NotPlain for a duplicate key."""
        if len(dict(pairs)) != len(pairs):
            raise NotPlain("a key is there twice")
        return dict(pairs)

    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise NotPlain(f"not plain JSON ({error})") from None
    if not isinstance(value, dict):
        raise NotPlain("not an object")
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise NotPlain("`hooks` is not what this host's settings have there")
    return value


def _events(host: str) -> dict[str, str]:
    """Return every event that the hook may be on, with the matcher of its tools."""
    return {**SETTINGS[host].events, **SETTINGS[host].after}


def _entry(matcher: str, host: str, run: str) -> dict[str, Any]:
    settings = SETTINGS[host]
    if settings.entry is None:
        hook = {"type": "command", "command": run, "timeout": settings.timeout}
        return {"matcher": matcher, "hooks": [hook]}
    return ({"matcher": matcher} if matcher else {}) | settings.entry(run, settings.timeout)


def _groups(value: dict[str, Any], event: str) -> list[Any]:
    found: list[Any] = value.get("hooks", {}).get(event, [])
    return found


def _hooks(group: Any) -> list[Any]:
    """Return the hooks of a group; a hook without a group is one by itself."""
    if isinstance(group, dict) and "hooks" not in group:
        return [group]
    found = group.get("hooks") if isinstance(group, dict) else None
    return found if isinstance(found, list) else []


def _command(hook: Any) -> Any:
    return hook.get("command", hook.get("bash")) if isinstance(hook, dict) else None


def _is_ours(hook: Any, host: str) -> bool:
    run = _command(hook)
    return isinstance(run, str) and re.search(rf"\b{_NAMES} hook {host}\b", run) is not None


def _ours(value: dict[str, Any], host: str, event: str) -> list[Any]:
    """Return the positions of our hook in the groups."""
    return [group for group in _groups(value, event) if any(_is_ours(hook, host) for hook in _hooks(group))]


def _emptied(value: dict[str, Any], event: str, n: int, m: int) -> tuple[str | int, ...]:
    """Return what to remove with hook `m` of group `n`, so that nothing empty stays."""
    hooks = value["hooks"]
    if len(_hooks(hooks[event][n])) > 1:
        return "hooks", event, n, "hooks", m
    if len(hooks[event]) > 1:
        return "hooks", event, n
    if len(hooks) > 1:
        return "hooks", event
    return ("hooks",) if value.keys() - {"hooks", "version"} else ()


# Splicing: the places of values in a text, and the text with one value more or less.


def _spans(text: str, start: int) -> Iterator[tuple[str | int, int, int, int]]:
    """Yield each value in the object or list at `start`: key, entry's start, value's start and end."""
    at = _skip(text, start + 1)
    number = 0
    while text[at] not in "}]":
        entry, key = at, number
        if text[start] == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        yield key, entry, at, end
        number += 1
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _find(text: str, trail: tuple[str | int, ...]) -> int | None:
    """Return the start of the value at the end of a trail."""
    at = _skip(text, 0)
    for key in trail:
        found = next((value for name, _, value, _ in _spans(text, at) if name == key), None)
        if found is None:
            return None
        at = found
    return at


def _added(text: str, event: str, entry: dict[str, Any]) -> str:
    if (at := _find(text, ("hooks", event))) is not None:
        return _appended(text, at, "", entry, 2)
    if (at := _find(text, ("hooks",))) is not None:
        return _appended(text, at, f"{json.dumps(event)}: ", [entry], 1)
    at = _skip(text, 0)
    return _appended(text, at, '"hooks": ', {event: [entry]}, 0)


def _appended(text: str, start: int, name: str, value: Any, depth: int) -> str:
    """Return the text with one more value at the end of the object or list at `start`."""
    step = _step(text)
    line = "\r\n" if "\r\n" in text else "\n"
    inner = line + step * (depth + 1)
    block = name + json.dumps(value, indent=step or None, ensure_ascii=False).replace("\n", inner)
    ends = [end for *_, end in _spans(text, start)]
    if ends:
        return f"{text[: ends[-1]]},{inner}{block}{text[ends[-1] :]}"
    end = _skip(text, start + 1)
    return f"{text[: start + 1]}{inner}{block}{line + step * depth}{text[end:]}"


def _step(text: str) -> str:
    """Return the indentation of one level: that of the first indented line, else two blanks."""
    for line in text.splitlines():
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        if blank and line.strip():
            return blank
    return "  "


def _without(text: str, trail: tuple[str | int, ...]) -> str:
    """Return the text without the entry at the end of a trail, and without its comma."""
    start = _find(text, trail[:-1])
    assert start is not None, "the trail was found in this text"
    spans = list(_spans(text, start))
    place = next(n for n, (key, *_) in enumerate(spans) if key == trail[-1])
    if place:
        return text[: spans[place - 1][3]] + text[spans[place][3] :]
    if len(spans) > 1:
        return text[: spans[0][1]] + text[spans[1][1] :]
    return text[: start + 1] + text[_skip(text, spans[0][3]) :]

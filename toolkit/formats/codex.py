"""Codex: sandbox, permission profiles and approvals of a config.toml, and `.rules` files.

A path may be read, written or neither; a change that the sandbox blocks asks a person.
"""

from __future__ import annotations

import ast
import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ringfence.policy.model import Effect
from ringfence.toolkit.formats import gitignore
from ringfence.toolkit.formats.anchors import EVERYTHING, Outside, absolute, covered, home
from ringfence.toolkit.formats.command_rules import prefix
from ringfence.toolkit.formats.model import (
    COMMANDS,
    Entry,
    FormatError,
    Imported,
    Judged,
    Left,
    Setting,
    Subject,
    part,
    shown,
)
from ringfence.toolkit.formats.model import text as text_of
from ringfence.toolkit.formats.recognize import other_than, recognized
from ringfence.toolkit.formats.yaml_writer import entries

_WORKSPACE = (":workspace_roots", ":project_roots", ":cwd")
_PROTECTED = {".git": "read", ".agents": "read", ".codex": "read"}
# Access to the workspace in the built-in profiles and the older modes.
BUILT_IN: Mapping[str, dict[str, Any]] = {
    ":read-only": {":root": "read"},
    ":workspace": {":root": "read", ":workspace_roots": {".": "write", **_PROTECTED}},
    ":danger-full-access": {":root": "write"},
}
MODES = {
    "read-only": ":read-only",
    "workspace-write": ":workspace",
    "danger-full-access": ":danger-full-access",
}
APPROVALS = ("untrusted", "on-failure", "on-request", "never")
_ACCESS = ("read", "write", "deny", "none")
_UNNAMED = ("sandbox_mode", *(f"permissions.{name}" for name in BUILT_IN))  # prefixes of built-in entries
_CONDITIONAL = {"sandbox_mode", "approval_policy", "default_permissions", "permissions"}


@dataclass(frozen=True, slots=True)
class _Access:
    """One entry of a profile: its place, its path, and read, write or deny."""

    where: str
    path: str
    access: str
    scoped: bool  # from the workspace's root

    @property
    def denies(self) -> bool:
        return self.access in ("deny", "none")

    @property
    def is_glob(self) -> bool:
        return bool(set(self.path.removesuffix("/**")) & set("*?["))

    def order(self, line: gitignore.Line) -> tuple[bool, bool, bool, int, bool]:
        """The sort key by precedence, strongest last: a deny, then a glob, the deeper path, then `write`."""
        inside = self.scoped or line != EVERYTHING
        names = [name for name in (line.pattern if inside else self.path).split("/") if name]
        depth = 0 if inside and line == EVERYTHING else len(names)
        return inside and self.denies, self.is_glob, inside, depth, self.access == "write"


def read(file: str, setting: Setting) -> Imported:
    """Read a config.toml, or a file of command rules. FormatError."""
    try:
        settings = tomllib.loads(file)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if "prefix_rule" in file or "host_executable" in file:
            return _rules(file)
        raise FormatError(f"the file is not TOML: {error}", "", other_than("codex", file)) from None
    recognized(settings, "codex")
    out = Imported()
    settings = _with_profile(settings, out)
    asks, writes = _approvals(settings, out)
    _judge(_filesystem(settings, out), asks, writes, setting, out)
    hooks = settings.get("hooks")
    if isinstance(hooks, dict) and hooks:
        out.left.append(Left("hooks", shown(hooks), "a program that may decide about a call is not read"))
    out.left = list(dict.fromkeys(out.left))
    out.notes.append("what the sandbox keeps commands from is kept from the file tools, too")
    return out


def _with_profile(settings: dict[str, Any], out: Imported) -> dict[str, Any]:
    """Return the settings with the configuration profile that they select; other profiles are recorded."""
    chosen = settings.get("profile")
    profiles = part(settings, "profiles")
    for name, profile in profiles.items():
        if name != chosen and isinstance(profile, dict) and _CONDITIONAL & set(profile):
            out.left.append(
                Left(f"profiles.{name}", shown(profile), "counts only when it is chosen; not read")
            )
    if chosen is None:
        return settings
    name = text_of(chosen, "profile")
    return settings | part(profiles, name, "profiles.")


def _approvals(settings: dict[str, Any], out: Imported) -> tuple[Effect, Effect]:
    """Return the effect of a change that the sandbox blocks, and of one that it permits."""
    where, policy = "approval_policy", settings.get("approval_policy", "on-request")
    if isinstance(policy, dict):
        why = "approvals are set per kind of action; read as `never`, which is stricter"
        out.left.append(Left(where, shown(policy), why))
        return Effect.DENY, Effect.ALLOW
    if policy not in APPROVALS:
        raise FormatError(f"{shown(policy)} is not one of {', '.join(APPROVALS)}", where)
    if policy == "untrusted":
        return Effect.ASK, Effect.ASK
    return (Effect.DENY if policy == "never" else Effect.ASK), Effect.ALLOW


def _filesystem(settings: dict[str, Any], out: Imported) -> Iterator[_Access]:
    """Return the entries of the active mode or profile."""
    mode, profile = settings.get("sandbox_mode"), settings.get("default_permissions")
    if mode is not None:
        if not isinstance(mode, str) or mode not in MODES:
            raise FormatError(f"{shown(mode)} is not one of {', '.join(MODES)}", "sandbox_mode")
        if profile is not None:
            why = "sandbox_mode is there, and Codex takes that instead"
            out.left.append(Left("default_permissions", shown(profile), why, harmless=True))
        yield from _entries(BUILT_IN[MODES[mode]], "sandbox_mode", out)
        return
    if profile is None:
        why = "without sandbox_mode it depends on whether you trust the project; taken as read-only"
        out.left.append(Left("sandbox_mode", "not there", why))
        profile = ":read-only"
    name = text_of(profile, "default_permissions")
    yield from _entries(_profile(name, part(settings, "permissions"), ()), f"permissions.{name}", out)


def _profile(name: str, profiles: dict[str, Any], below: tuple[str, ...]) -> dict[str, Any]:
    """Return a profile's file system table, merged over that of its parents."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    where = f"permissions.{name}"
    if name not in profiles or name in below:
        raise FormatError(
            f"there is no profile {name!r}" if name not in below else f"{name!r} extends itself", where
        )
    profile = part(profiles, name, "permissions.")
    parent = profile.get("extends")
    found = {} if parent is None else _profile(text_of(parent, f"{where}.extends"), profiles, (*below, name))
    own = part(profile, "filesystem", f"{where}.")
    both = {key: {**found[key], **value} for key, value in own.items() if _two_tables(found.get(key), value)}
    return {**found, **own, **both}


def _two_tables(one: Any, other: Any) -> bool:
    return isinstance(one, dict) and isinstance(other, dict)


def _entries(table: Mapping[str, Any], prefix: str, out: Imported) -> Iterator[_Access]:
    for key, value in table.items():
        where = prefix if prefix in _UNNAMED else f"{prefix}.{key}"
        if key == "glob_scan_max_depth":
            out.notes.append(
                f"{where}: the depth of the sandbox's search is unknown; the policy denies at any depth"
            )
            continue
        scoped = key in _WORKSPACE
        if isinstance(value, dict):
            for path, access in value.items():
                yield _access(where, path if scoped else f"{key}/{path}", access, scoped)
        elif scoped:
            yield _access(where, ".", value, True)
        elif key == ":root":
            yield _access(where, "/", value, False)
        elif key.startswith(":"):
            out.notes.append(f"{where}: not about the workspace")
        else:
            yield _access(where, key, value, False)


def _access(where: str, path: str, access: Any, scoped: bool) -> _Access:
    if not isinstance(access, str) or access not in _ACCESS:
        raise FormatError(f"{shown(access)} is not one of {', '.join(_ACCESS)}", where)
    return _Access(where, path, access, scoped)


def _judge(listed: Iterable[_Access], asks: Effect, writes: Effect, setting: Setting, out: Imported) -> None:
    effects = {
        "read": {"read": Effect.ALLOW, "write": Effect.ALLOW, "deny": Effect.DENY, "none": Effect.DENY},
        "write": {"read": asks, "write": writes, "deny": Effect.DENY, "none": Effect.DENY},
    }
    lines = [(each, line) for each in listed for line in _lines(each, setting, out)]
    lines.sort(key=lambda pair: pair[0].order(pair[1]))
    denied = [line.pattern for each, line in lines if each.denies and line != EVERYTHING]
    for each, line in lines:
        if not each.denies and any(_is_below(line.pattern, pattern) for pattern in denied):
            why = "below a path that is denied; stays denied, which is stricter"
            out.left.append(Left(each.where, f"{each.path}: {each.access}", why))
    for action in ("read", "write", "delete"):
        words = effects["read" if action == "read" else "write"]
        maps = [Entry("*", asks, "what no entry names")]
        judged: list[Judged] = []
        for each, line in lines:
            entry = Entry("", words[each.access], f"{each.where} {each.path}: {each.access}")
            maps += entries([line.pattern], entry, out.left, each.where, each.path)
            judged.append(Judged(entry.effect, covered(line), patterns=(line.pattern,)))
        out.everybody[action] = maps
        out.subjects.append(Subject(action, action, tuple(judged), asks))


def _is_below(pattern: str, other: str) -> bool:
    return f"{pattern.lstrip('/')}/".startswith(f"{other.lstrip('/')}/")


def _lines(each: _Access, setting: Setting, out: Imported) -> list[gitignore.Line]:
    """Return the patterns of an entry, from the workspace's root."""
    if each.is_glob and each.access == "write":
        out.left.append(Left(each.where, each.access, "a glob that opens is not known everywhere; left out"))
        return []
    path = each.path.removesuffix("/**")
    try:
        if each.scoped:
            body = path.removeprefix("./").strip("/")
            if body in ("", ".", "**"):
                return [EVERYTHING]
            return [_exact(gitignore.line(f"/{body}"), each, out)]
        found = absolute(home(path, setting) if path.startswith("~") else path, setting)
        return [_exact(line, each, out) for line in found]
    except (Outside, gitignore.LineError) as error:
        out.left.append(Left(each.where, each.path, str(error), harmless=True))
        return []


def _exact(line: gitignore.Line, each: _Access, out: Imported) -> gitignore.Line:
    if line.wider:
        out.left.append(Left(each.where, each.path, f"{line.wider}, which is stricter"))
    return line


_DECISIONS = {"allow": Effect.ALLOW, "prompt": Effect.ASK, "forbidden": Effect.DENY}
_MOST_ALTERNATIVES = 256


def _rules(file: str) -> Imported:
    """Read command rules, in Starlark. The strictest rule that matches decides. FormatError."""
    try:
        body = ast.parse(file).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormatError(f"the file is neither TOML nor rules: {error}") from None
    out = Imported()
    listed: list[Entry] = []
    for statement in body:
        where, what = f"line {statement.lineno}", shown(ast.unparse(statement))
        found = _prefixes(statement)
        if found is None:
            out.left.append(Left(where, what, COMMANDS, harmless=True))
            continue
        effect, justification, prefixes = found
        for words in prefixes:
            spoken = prefix(words, effect)
            if spoken.why:
                out.left.append(Left(where, what, spoken.why))
            if spoken.pattern is not None:
                listed.append(Entry(spoken.pattern, effect, where, justification))
    if listed:
        out.everybody["run"] = sorted(listed, key=lambda entry: entry.effect)
        out.notes.append(
            "an allow there runs a command outside the sandbox; here it runs inside all the same"
        )
    out.notes.append("rules for commands say nothing about file tools: a policy without rules asks")
    return out


def _prefixes(statement: ast.stmt) -> tuple[Effect, str, list[tuple[str, ...]]] | None:
    """Return effect, justification and prefixes of a rule; None for another statement.

    FormatError for a rule that cannot be read: it could be one that forbids.
    """
    where = f"line {statement.lineno}"
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "prefix_rule":
        if "prefix_rule" in ast.unparse(statement):
            raise FormatError("prefix_rule is not called by itself", where, "write each rule out")
        return None
    try:
        given = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
    except ValueError:
        raise FormatError("the rule is not written with plain texts", where, "write it out") from None
    pattern, effect = given.get("pattern"), _DECISIONS.get(str(given.get("decision", "allow")))
    if call.args or effect is None or not isinstance(pattern, list) or not pattern:
        raise FormatError("the rule has no pattern, or another decision", where)
    groups = [each if isinstance(each, list) else [each] for each in pattern]
    if not all(isinstance(word, str) for group in groups for word in group):
        raise FormatError("a pattern is a list of texts, or of lists of texts", where)
    if math.prod(map(len, groups)) > _MOST_ALTERNATIVES:
        raise FormatError("the pattern has too many alternatives", where, "write several rules")
    return effect, str(given.get("justification") or ""), [tuple(each) for each in itertools.product(*groups)]

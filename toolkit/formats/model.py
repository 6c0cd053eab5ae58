"""Model of an import: a policy, the settings' own judge, and what was left out.

A judge is data: the rules of one subject in the order in which the last match decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ringfence.policy.model import DEFAULT_AGENT, EFFECTS, Effect
from ringfence.policy.patterns.syntax import PatternError, parse_agent
from ringfence.toolkit.formats.regular_language import Language

NO_RULE = "what is done where no rule speaks"
LONGEST = 1000  # characters of a pattern that is written; a key in YAML has at most 1,024, with its quotes
COMMANDS = "a rule about commands of a kind that is not read"


class FormatError(Exception):
    """Settings that cannot be read at all, or a policy that cannot be written: where and why."""

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Setting:
    """The origin of the settings: their workspace and home directory, and how to read them."""

    root: str = "/workspace"
    home: str = "/home/user"
    absolute: bool = False
    exact_case: bool = False


@dataclass(frozen=True, slots=True)
class Left:
    """One setting that the result lacks, or has in a stricter form: where and why.

    `harmless`: the setting says nothing about files of the workspace, so both agree without it.
    """

    where: str
    what: str
    why: str
    harmless: bool = False

    def to_json(self) -> dict[str, str | bool]:
        """Return place, setting, reason and relevance as JSON values."""
        return {"where": self.where, "what": self.what, "why": self.why, "about_files": not self.harmless}


@dataclass(frozen=True, slots=True)
class Judged:
    """One rule of the settings: the paths it matches (itself, and for a directory only), and its effect.

    `patterns` are the policy rules written for it, in order. `after`: the policy's effect below a match;
    None: the rule covers it.
    """

    effect: Effect
    language: Language
    folder: bool = False
    patterns: tuple[str, ...] = ()
    after: tuple[Judged, ...] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """All rules of the settings for one agent and tool or action; the last match decides.

    `above`: as in .gitignore, a denied directory denies everything below it, whatever else is written.
    Without `opens` a directory is denied once any rule denies it, even if a later rule opens it.
    `denies_only`: the settings only deny, and leave everything else open.
    """

    tool: str
    action: str
    rules: tuple[Judged, ...]
    default: Effect = Effect.ASK
    agent: str = DEFAULT_AGENT
    above: bool = False
    opens: bool = True
    denies_only: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule of the policy to write, with its source."""

    pattern: str
    effect: Effect
    comment: str = ""
    reason: str = ""


Maps = dict[str, list[Entry]]  # by key of `rules`


@dataclass(slots=True)
class Imported:
    """The result of an import."""

    everybody: Maps = field(default_factory=dict)
    agents: dict[str, Maps] = field(default_factory=dict)
    subjects: list[Subject] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Exported:
    """A policy as another tool's settings, and what they cannot express."""

    text: str
    left: tuple[Left, ...] = ()


Reader = Callable[[str, Setting], Imported]
Writer = Callable[["Flat"], Exported]


Listed = tuple[tuple[str, Effect], ...]  # patterns with effects; the last match decides


@dataclass(frozen=True, slots=True)
class Writes:
    """Rules for tools that write whole files and for tools that edit; what a format lacks that has both."""

    puts: Listed
    edits: Listed
    left: tuple[Left, ...]


@dataclass(frozen=True, slots=True)
class Flat:
    """A policy for one agent: for each action one list in which the last match decides.

    `writes`: writing in two lists, if the policy tells the kinds of writing apart.
    """

    agent: str
    actions: Mapping[str, Listed]
    left: tuple[Left, ...] = ()
    root: str = "/workspace"
    run: Listed = ()  # on commands, in patterns of words; a command that none fits asks
    writes: Writes | None = None

    @property
    def puts_and_edits(self) -> tuple[Listed, Listed, list[Left]]:
        """The rules for tools that write whole files, for tools that edit, and what the format lacks."""
        if self.writes is None:
            return self.actions["write"], self.actions["write"], list(self.left)
        return self.writes.puts, self.writes.edits, list(self.writes.left)


@dataclass(frozen=True, slots=True)
class Format:
    """One format: its reader, its writer and its file names."""

    name: str
    summary: str
    read: Reader
    write: Writer | None


def mapping(value: Any, where: str, hint: str = "") -> dict[str, Any]:
    """Return a JSON object. FormatError for anything else."""
    if not isinstance(value, dict):
        raise FormatError(f"{where or 'the file'} is not an object", where, hint)
    return value


def part(settings: Mapping[str, Any], key: str, prefix: str = "") -> dict[str, Any]:
    """Return the object under a key; empty where the key is missing or null. FormatError."""
    value = settings.get(key)
    return {} if value is None else mapping(value, f"{prefix}{key}")


def text(value: Any, where: str) -> str:
    """Return a text. FormatError for anything else."""
    if not isinstance(value, str):
        raise FormatError(f"{shown(value)} is not text", where)
    return value


def effect(value: Any, where: str, hint: str = "") -> Effect:
    """Return the effect that one of three words stands for. FormatError."""
    if not isinstance(value, str) or value not in EFFECTS:
        raise FormatError(f"{shown(value)} is not allow, ask or deny", where, hint)
    return EFFECTS[value]


def agent_name(name: str, where: str) -> str:
    """Return a name that a policy can have under `agents`. FormatError."""
    try:
        parse_agent(name)
    except PatternError as error:
        raise FormatError(f"{shown(name)} is no name of an agent: {error.message}", where) from None
    return name


def shown(value: Any) -> str:
    """Return a value as it is in the file, shortened. A value without a JSON form (a date) is quoted."""
    shown_text = repr(value) if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return shown_text if len(shown_text) <= 200 else shown_text[:199] + "…"


T = TypeVar("T")


def tightened(rules: Sequence[T], more: Sequence[T], of: Callable[[T], Effect]) -> list[T]:
    """Return last-match rules made stricter by more rules, and never looser.

    A rule that asks must not open what was denied, so the denials follow it once more.
    """
    asks = [each for each in more if of(each) is Effect.ASK]
    denies = [each for each in more if of(each) is Effect.DENY]
    again = [each for each in rules if of(each) is Effect.DENY] if asks else []
    return [*rules, *asks, *again, *denies]

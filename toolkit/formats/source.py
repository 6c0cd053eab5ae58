"""What a reader of other tools' settings gives: a policy, the settings' own judge, and what was left out.

A judge here is data: the rules of one subject in the order in which the last match decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policy.model import DEFAULT_AGENT, Effect
from toolkit.formats.language import Language


class FormatError(Exception):
    """Settings that cannot be read at all, or a policy that cannot be written: where and why."""

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the settings are from: the workspace and the home they speak of, and how to read them."""

    root: str = "/workspace"
    home: str = "/home/user"
    absolute: bool = False
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class Left:
    """One thing of the settings that the policy does not say, or says in another way: where and why."""

    where: str
    what: str
    why: str

    def to_json(self) -> dict[str, str]:
        return {"where": self.where, "what": self.what, "why": self.why}


@dataclass(frozen=True, slots=True)
class Judged:
    """One rule of the settings: the paths it matches (itself, and for a folder only), and what it says.

    `patterns` are the rules of the policy that were written for it, in order.
    """

    effect: Effect
    language: Language
    folder: bool = False
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """All rules of the settings that speak of one agent and tool or action; the last match decides.

    `above`: as with .gitignore, a folder that is denied denies everything below it, whatever else is said.
    `denies_only`: the settings say what is denied and leave all else open.
    """

    tool: str
    action: str
    rules: tuple[Judged, ...]
    default: Effect = Effect.ASK
    agent: str = DEFAULT_AGENT
    above: bool = False
    denies_only: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule of the policy to be written, with what it comes from."""

    pattern: str
    effect: Effect
    comment: str = ""


Maps = dict[str, list[Entry]]  # by key of `rules`


@dataclass(slots=True)
class Imported:
    """What the settings became."""

    everybody: Maps = field(default_factory=dict)
    agents: dict[str, Maps] = field(default_factory=dict)
    subjects: list[Subject] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Exported:
    """A policy as another tool's settings, and what they cannot say."""

    text: str
    left: tuple[Left, ...] = ()


Reader = Callable[[str, Setting], Imported]
Writer = Callable[["Flat"], Exported]


@dataclass(frozen=True, slots=True)
class Flat:
    """A policy for one agent: for each action one list in which the last match decides."""

    agent: str
    actions: Mapping[str, tuple[tuple[str, Effect], ...]]
    left: tuple[Left, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """One format: how it is read and written, and what its files are called."""

    name: str
    summary: str
    read: Reader
    write: Writer | None


def mapping(value: Any, where: str) -> dict[str, Any]:
    """A JSON object, else FormatError."""
    if not isinstance(value, dict):
        raise FormatError(f"{where or 'the file'} is not an object", where)
    return value

"""Values that modules exchange: effects, rules, needs, decisions, limits, cases.

All of them are frozen. Nothing here looks at a path, a file or a clock.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

from ringfence.policy.errors import Where
from ringfence.policy.upstreams.rows import CALL, Upstreams
from ringfence.policy.value_classes import dataclass, field

ACTIONS = ("read", "write", "delete")  # by how much they change
KINDS = ("create", "replace", "edit")  # of writing: a new name, the whole content of a file, a part of it
WRITE_KINDS: Final = tuple(f"write.{kind}" for kind in KINDS)  # as keys of a policy
RUN: Final = "run"  # the action of a command line; its rules are patterns of words, not of paths
RUN_TOOL: Final = "run_command"  # the tool whose effects on files need `write` and `delete`
GRAVITY: Mapping[str, int] = MappingProxyType(
    {**{action: n for n, action in enumerate((*ACTIONS, RUN, CALL))}, **dict.fromkeys(WRITE_KINDS, 1)}
)
DEFAULT_AGENT = "default"


@dataclass(frozen=True, slots=True)
class PolicyTool:
    """What the policy language knows of a tool; all else is in the tool's own document.

    `needs`: each action with the call's parameter that names the path ("" is the root itself).
    `makes_parents`: the tool makes the directories missing above what it writes, each of them a `write`, too.
    `changes`: what one call can change at most, for the limits that count it.
    `gives`: the content of how many files one call's answer can have, for limits on reading.
    `kinds`: the kinds of writing that a call can be, the usual one first; none if it writes nothing.
    """

    needs: tuple[tuple[str, str], ...]
    makes_parents: bool = False
    changes: Literal["no file", "one file", "files", "tasks"] = "files"
    gives: Literal["no file", "one file", "files"] = "no file"
    kinds: tuple[str, ...] = ()


_READ = ("read", "path")
_WRITE = ("write", "path")
_DELETE = ("delete", "path")
_COPY = (("read", "source"), ("write", "destination"))
_MOVE = (("read", "source"), ("delete", "source"), ("write", "destination"))
_PUTS = ("create", "replace")

# The one list of tools, in the order in which they are offered.
POLICY_TOOLS: Mapping[str, PolicyTool] = MappingProxyType(
    {
        "create_file": PolicyTool((_WRITE,), makes_parents=True, changes="one file", kinds=_PUTS),
        "edit_file": PolicyTool((_READ, _WRITE), changes="one file", kinds=("edit",)),
        "insert_at_line": PolicyTool((_READ, _WRITE), changes="one file", kinds=("edit",)),
        "delete_file": PolicyTool((_DELETE,), changes="one file"),
        "delete": PolicyTool((_DELETE,)),
        "move_file": PolicyTool(_MOVE, makes_parents=True, kinds=_PUTS),
        "copy_file": PolicyTool(_COPY, makes_parents=True, changes="one file", kinds=_PUTS),
        "create_directory": PolicyTool((_WRITE,), makes_parents=True, changes="no file", kinds=("create",)),
        "read_file": PolicyTool((_READ,), gives="one file"),
        "read_files": PolicyTool((("read", "paths"),), gives="files"),
        "get_file_info": PolicyTool((_READ,)),
        "list_directory": PolicyTool((_READ,)),
        "directory_tree": PolicyTool((_READ,)),
        "search_files": PolicyTool((_READ,)),
        "search_text": PolicyTool((_READ,), gives="files"),
        "get_project_root": PolicyTool((("read", ""),)),
        "run_command": PolicyTool(((RUN, "command"),), kinds=KINDS),
        "list_tasks": PolicyTool((("read", "task_ids"),)),
        "delete_tasks": PolicyTool((("delete", "task_ids"),), changes="tasks"),
        "restore_tasks": PolicyTool((("write", "task_ids"),), changes="tasks", kinds=("create",)),
    }
)
TOOL_ACTIONS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {name: tool.needs for name, tool in POLICY_TOOLS.items()}
)
# What the policy language knows: a command's effects can be ruled also where no tool runs commands.
LANGUAGE_TOOLS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {RUN_TOOL: ((RUN, "command"),), **TOOL_ACTIONS}
)
_EFFECTS_OF_COMMANDS = (_WRITE, _DELETE)


def path_needs(
    tool: str, tools: Mapping[str, Sequence[tuple[str, str]]] = LANGUAGE_TOOLS
) -> Sequence[tuple[str, str]]:
    """Return a tool's needs on paths, each with its parameter; of a tool that runs commands, its effects."""
    return _EFFECTS_OF_COMMANDS if tool == RUN_TOOL else tools[tool]


def counted_actions(
    key: str, tools: Mapping[str, Sequence[tuple[str, str]]] = LANGUAGE_TOOLS
) -> tuple[str, ...]:
    """Return the actions whose amounts a limit's key counts.

    A tool that only reads counts what its answers give; any other tool, and `*`, count changes alone.
    """
    if key in ACTIONS:
        return (key,)
    if key in tools and all(action == "read" for action, _ in tools[key]):
        return ("read",)
    return ("write", "delete")


def names_action(key: str) -> bool:
    """Return whether a key of a policy is an action or a kind of writing, and no tool."""
    return key in ACTIONS or key in WRITE_KINDS or key == CALL


def kinds_of(tool: str) -> tuple[str, ...]:
    """Return the kinds of writing that a tool's calls can be; all of them for `write` and unknown tools."""
    known = POLICY_TOOLS.get(tool)
    return KINDS if known is None else known.kinds


def asked_actions(tool: str, action: str, *, kinds: bool) -> tuple[str, ...]:
    """Return an action; with `kinds`, in place of `write` each kind of writing that a tool can have."""
    if action != "write" or not kinds:
        return (action,)
    return tuple(f"write.{kind}" for kind in kinds_of(tool) or KINDS)


def kind_at(tool: str, exists: bool) -> str:
    """Return the kind of a tool's write to a path, by whether something is there; "" if it can be several."""
    kinds = kinds_of(tool)
    if len(kinds) > 1:
        kinds = tuple(kind for kind in kinds if (kind != "create") is exists)
    return kinds[0] if len(kinds) == 1 else ""


MAKES_PARENTS: Final = frozenset(name for name, tool in POLICY_TOOLS.items() if tool.makes_parents)

# Names that people expect to be tools, and what to write instead.
DEAD_TOOLS: Mapping[str, str] = MappingProxyType({"write_file": "create_file"})

Tier = Literal["mandatory", "agent", "global"]
Parents = Literal["missing", "exist"]


_EFFECTS = ("allow", "ask", "deny")


class Effect(enum.IntEnum):
    """A verdict of a policy; the greater value is the stricter one."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    def __str__(self) -> str:
        return _EFFECTS[self]

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


EFFECTS: Mapping[str, Effect] = MappingProxyType({str(effect): effect for effect in Effect})


DETECTORS: Final = (
    "private-key", "aws-access-key", "github-token", "slack-token", "jwt", "high-entropy", "match",
)  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Detector:
    """Something to find in content: one of DETECTORS, `match` with its regular expression."""

    name: str
    expression: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.expression}" if self.expression else self.name


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern with its effect. In the mandatory tier `paths` and `excepts` hold the whole item.

    `until`: when it ends, in seconds since 1970. `trial`: its verdict is only recorded. `content`: it counts
    only where one of these is found; with `mask`, an answer has a mark in place of each find. `set_name` and
    `set_where`: the set that the pattern is from, and its place there.
    """

    tier: Tier
    agent: str | None
    key: str
    pattern: str
    effect: Effect
    reason: str | None = None
    where: Where | None = None
    paths: tuple[str, ...] = ()
    excepts: tuple[str, ...] = ()
    until: int | None = None
    trial: bool = False
    content: tuple[Detector, ...] = ()
    mask: bool = False
    set_name: str | None = None
    set_where: Where | None = None

    def __str__(self) -> str:
        owner = f"rule for agent {self.agent}," if self.tier == "agent" else f"{self.tier} rule"
        place = f" ({self.where.file}:{self.where.line})" if self.where else ""
        origin = ""
        if self.set_name:
            at = f" ({self.set_where.file}:{self.set_where.line})" if self.set_where else ""
            origin = f" of set {self.set_name}{at}"
        return f'{owner} {self.key}: "{self.pattern}"{origin} says {self.effect}{place}'

    def to_json(self) -> dict[str, Any]:
        """Return place, tier, agent, key, pattern and reason as JSON values; a missing one is None.

        `set` (name, file and line of the pattern in it) is there only for a pattern of a set.
        """
        at = self.set_where
        origin = {"name": self.set_name, "file": at and at.file, "line": at and at.line}
        return {
            "file": self.where.file if self.where else None,
            "line": self.where.line if self.where else None,
            "tier": self.tier,
            "agent": self.agent,
            "key": self.key,
            "pattern": self.pattern,
            "reason": self.reason,
            **({"set": origin} if self.set_name else {}),
        }


@dataclass(frozen=True, slots=True)
class Mandatory:
    """One item of the mandatory rules: one rule for each of its paths, and its exceptions."""

    effect: Effect
    keys: tuple[str, ...]
    rules: tuple[Rule, ...]
    excepts: tuple[str, ...] = ()
    except_tools: tuple[str, ...] = ()  # tools that the item does not apply to
    except_agents: tuple[str, ...] = ()  # patterns of agents that the item does not apply to
    until: int | None = None
    trial: bool = False
    content: tuple[Detector, ...] = ()
    mask: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """An action on a path, or `run` on the text of a command.

    An incidental need (a missing parent directory) counts only if it is denied. `kind` is one of KINDS for a
    write whose kind is known.
    """

    action: str
    path: str
    directory: bool = False
    incidental: bool = False
    kind: str = ""

    @property
    def name(self) -> str:
        """The action with its kind, as the engine's methods take it: `write.create`."""
        return f"{self.action}.{self.kind}" if self.kind else self.action


@dataclass(frozen=True, slots=True)
class Amount:
    """How many files and bytes a call changes or its answer gives, or a session so far."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.files + other.files, self.bytes + other.bytes)


Period = Literal["call", "session", "hour", "day"]
PERIODS: tuple[Period, ...] = ("call", "session", "hour", "day")
SECONDS: Mapping[str, int] = MappingProxyType({"hour": 3_600, "day": 86_400})  # periods that slide


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on changes, or on the content that answers give.

    `agent` is its key under `agents`, None for everybody's limit.
    """

    key: str
    agent: str | None = None
    max_files: int | None = None
    max_bytes: int | None = None
    per: Period = "call"
    over: Effect = Effect.ASK
    where: Where | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the limit and its place in the policy as JSON values; bytes and files are plain numbers."""
        return {
            "key": self.key,
            "agent": self.agent,
            "max_files": self.max_files,
            "max_bytes": self.max_bytes,
            "per": self.per,
            "over": str(self.over),
            "file": self.where.file if self.where else None,
            "line": self.where.line if self.where else None,
        }


@dataclass(frozen=True, slots=True)
class Counting:
    """What limits count of a tool's calls.

    `reads`: what an answer gives. `kept_reads`: that too, for longer than the call. `timed_reads` and
    `timed_changes`: what an answer gives, and what is changed, for an hour or a day.
    """

    reads: bool
    kept_reads: bool
    timed_reads: bool
    timed_changes: bool


@dataclass(frozen=True, slots=True)
class LimitHit:
    """A limit that a call would exceed, with the amount that the call would reach."""

    limit: Limit
    amount: Amount
    exceeded: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the limit as in `Limit.to_json`, with `exceeded` bounds and `amount` (files, bytes)."""
        reached = {"files": self.amount.files, "bytes": self.amount.bytes}
        return {**self.limit.to_json(), "exceeded": list(self.exceeded), "amount": reached}


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, the rule that decided (None: no rule did), and what to try next."""

    effect: Effect
    rule: Rule | None
    agent: str
    tool: str
    action: str
    path: str
    reason: str
    hint: str
    limit: LimitHit | None = None
    kind: str = ""  # of the write that decided, where it is known
    content: tuple[str, ...] = ()  # the detectors because of whose finds it is so strict

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON values.

        `rule` is None where no rule decided; `limit` is there only if a limit decided, `kind` (of writing)
        only for a write whose kind is known, and `content` only if finds in content decided.
        """
        out: dict[str, Any] = {
            "effect": str(self.effect),
            "action": self.action,
            "path": self.path,
            "rule": self.rule.to_json() if self.rule else None,
            "reason": self.reason,
            "hint": self.hint,
        }
        if self.kind:
            out["kind"] = self.kind
        if self.limit:
            out["limit"] = self.limit.to_json()
        if self.content:
            out["content"] = list(self.content)
        return out


@dataclass(frozen=True, slots=True)
class Step:
    """One rule that was compared for one action, and why it decided or did not."""

    action: str
    agent: str
    rule: Rule
    matched: bool
    decided: bool
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and every rule that was compared on the way to it."""

    decision: Decision
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One of a policy's own tests."""

    tool: str
    path: str
    want: Effect
    directory: bool = False
    agent: str = DEFAULT_AGENT
    to: str | None = None
    files: int | None = None
    bytes: int | None = None
    note: str = ""
    where: Where | None = None
    parents: Parents = "missing"  # above a path that is written; they count only where the tool makes them
    command: bool = False  # `path` is the text of a command line
    exists: bool = False  # what is written replaces a file


@dataclass(frozen=True, slots=True)
class Invariant:
    """A verdict that must never (or always) occur, for `prove` and `check` to prove."""

    kind: str
    agent: str
    action: str
    path: str
    verdict: Effect
    reason: str | None = None
    where: Where | None = None


@dataclass(frozen=True, slots=True)
class Tasks:
    """Where task directories are and how many tasks a call may name."""

    path: str
    max_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Retention:
    """How long the contents of past changes are kept; None: no such bound.

    The `keep` newest calls keep their contents. Of the others, calls older than `days` lose them, and so do
    the oldest calls while all contents together are more than `max_bytes`.
    """

    days: int | None = 30
    max_bytes: int | None = 2 << 30
    keep: int = 1_000


CommandLevel = Literal["overlay", "copy", "landlock", "none"]
COMMAND_LEVELS: tuple[CommandLevel, ...] = ("overlay", "copy", "landlock", "none")  # the strongest first


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """What one command may use: seconds of time, and bytes of output, memory and scratch; and processes."""

    seconds: int = 600
    output: int = 1 << 20
    memory: int = 4 << 30
    processes: int = 512
    scratch: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Commands:
    """How commands run: the weakest level that will do, whether with network, and the lanes of their effects.

    `discard` and `through` are path patterns: effects that are dropped, and files that are written at once,
    without history. Each has the places of its patterns beside it.
    """

    require: CommandLevel = "overlay"
    network: bool = False
    discard: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    limits: CommandLimits = CommandLimits()
    discard_at: tuple[Where | None, ...] = ()
    through_at: tuple[Where | None, ...] = ()


MOST_TASKS: Final = 10_000  # what `max_tasks` can be at most, and what the tools' schemas take


RuleMap = Mapping[str, Sequence[Rule]]
LimitMap = Mapping[str, tuple[Limit, ...]]
_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Agent:
    """The content of one key under `agents`."""

    name: str
    rules: RuleMap = field(default_factory=lambda: _EMPTY)
    limits: LimitMap = field(default_factory=lambda: _EMPTY)
    run: Sequence[Rule] = ()  # the rules for commands, apart: their patterns are of words


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a policy file with everything it extends; None: the file does not set the field."""

    mandatory: tuple[Mandatory, ...] = ()
    rules: RuleMap = field(default_factory=lambda: _EMPTY)
    limits: LimitMap = field(default_factory=lambda: _EMPTY)
    agents: Mapping[str, Agent] = field(default_factory=lambda: _EMPTY)
    cases: tuple[Case, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    hard_links: Literal["replace", "refuse"] | None = None
    mode: Literal["enforce", "monitor"] | None = None
    durable: bool | Literal["log"] | None = None
    tasks: Tasks | None = None
    retention: Retention = Retention()
    run: Sequence[Rule] = ()  # everybody's rules for commands
    run_floor: tuple[Mandatory, ...] = ()  # mandatory items with `commands`
    commands: Commands | None = None
    unused_sets: tuple[tuple[str, Where], ...] = ()  # names with their places, for a finding
    upstreams: Upstreams = field(default_factory=lambda: _EMPTY)  # the tools of other MCP servers, by server

    @property
    def rules_commands(self) -> bool:
        """Whether the policy mentions commands: a rule, a mandatory item or the section."""
        return self.has_run_rules or self.commands is not None

    @property
    def has_run_rules(self) -> bool:
        """Whether any rule or mandatory item is about commands."""
        return bool(self.run or self.run_floor or any(agent.run for agent in self.agents.values()))

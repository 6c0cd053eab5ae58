"""Values of the sandbox: what to run, its limits, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["overlay", "copy", "landlock", "none"]
Stop = Literal["seconds", "output", "memory", "processes", "scratch", "cancelled"]
LEVELS: tuple[Level, ...] = ("overlay", "copy", "landlock", "none")  # the strongest first


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one command and of all that it starts.

    `output`: bytes that are kept, from the end; a command that writes 1,024 times as many is stopped.
    `memory`: bytes, of each process at once and of all together as sampled. `processes`: processes and
    threads at a time. `scratch`: bytes of one file at once, and of all that was written as sampled.
    """

    seconds: float = 600
    output: int = 1 << 20
    memory: int = 4 << 30
    processes: int = 512
    scratch: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Spec:
    """A command and the place it runs in.

    `workspace` is an absolute real path; `scratch` an absolute directory of mode 0700 that belongs to the
    caller. `cwd`, `hidden`, `through` and `writable` are relative to the workspace. `hidden` names do not
    exist inside. `through` directories exist, and are written in the real workspace. `writable` is for level
    `landlock` alone. `env` is the whole environment; None: the caller's.
    `read_only_places` are absolute names below `/tmp`, `/var/tmp`, `/dev/shm` or `/run` that are shown all
    the same; `hidden_places` are absolute names of the machine that are not readable inside.
    """

    argv: tuple[str, ...]
    workspace: str
    scratch: str
    cwd: str = "."
    hidden: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    network: bool = False
    env: Mapping[str, str] | None = None
    limits: Limits = field(default_factory=Limits)
    level: Level = "overlay"
    read_only_places: tuple[str, ...] = ()
    hidden_places: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    `stopped` is the limit that ended it. `run` itself never gives "cancelled", which is for the records of
    callers: what their `check` raises is raised.
    `status` is 0 to 255, 128+n for signal n. `output` is the end of standard output and error, in the order
    read; `output_bytes` counts everything. `started_ns` is the wall clock before the run. `notes` says what
    was different from what a person might expect, in whole sentences.
    """

    status: int
    signal: int | None
    stopped: Stop | None
    seconds: float
    level: Level
    output: bytes
    output_bytes: int
    started_ns: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LevelReport:
    """Whether a level works on this machine; if not, what is missing and what to do about it."""

    level: Level
    works: bool
    missing: str = ""
    hint: str = ""

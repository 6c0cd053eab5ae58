"""A command that ran in a sandbox, as a value: how it ended, and the changes that it would make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.plan.changes import Change

# The classes of effects in words, what is destroyed first.
_EFFECTS = {
    "deleted": "deleted",
    "replaced": "replaced",
    "moved": "moved",
    "mode": "with another mode",
    "created": "created",
    "directories": "directories made",
    "links": "links made",
}


def effects_in_words(counts: Mapping[str, int]) -> str:
    """Return how many effects of each class there are, what is destroyed first: `2 deleted, 1 created`."""
    known = [*_EFFECTS, *(name for name in counts if name not in _EFFECTS)]
    return ", ".join(f"{counts[name]:,} {_EFFECTS.get(name, name)}" for name in known if counts.get(name))


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One run of a command.

    `status` is its exit status, 128 + n after signal n; `stopped` is the limit that ended it, or None.
    `output` is the end of its standard output and standard error together, of `output_bytes` in all.
    `hidden`: how many names were hidden from it, because the agent may not read them. `counts` are its
    effects by class. `discarded` effects are dropped by the policy, `dropped` ones ((path, why)) because no
    plan can have them, `denied` ones because the policy or a protected path forbids them. `through`: the
    directories that the command wrote directly.
    """

    command: str
    cwd: str
    status: int
    seconds: float
    level: str
    network: bool
    output: bytes = b""
    output_bytes: int = 0
    signal: int | None = None
    stopped: str | None = None
    hidden: int = 0
    changes: tuple[Change, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    discarded: int = 0
    dropped: tuple[tuple[str, str], ...] = ()
    denied: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the fields of the audit record; the output is not among them."""
        return {
            "command": self.command,
            "cwd": self.cwd,
            "status": self.status,
            "signal": self.signal,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "level": self.level,
            "network": self.network,
            "output_bytes": self.output_bytes,
            "hidden": self.hidden,
            "effects": dict(self.counts),
            "discarded": self.discarded,
            "dropped": [list(row) for row in self.dropped[:100]],
            "denied": list(self.denied[:100]),
            "through": list(self.through),
        }

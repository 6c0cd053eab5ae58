"""Lint codes: the level, meaning and hint of every finding about a policy that loads.

A table only. A code never changes its meaning; each has a page in docs/reference/checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from ringfence.policy.errors import Where
from ringfence.policy.value_classes import dataclass

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")

# code -> (level, summary, hint)
FINDINGS: Mapping[str, tuple[Level, str, str]] = MappingProxyType(
    {
        "agent-unknown": (
            "note",
            "a case or an invariant names an agent that no entry fits",
            "correct the name; for an agent without an entry say `default`",
        ),
        "agent-unused": (
            "warning",
            "an agent's entry applies to no agent, because later entries match all its names",
            "move it below the wider pattern, or remove it",
        ),
        "allow-cuts-deny": (
            "warning",
            "a later allow opens a part of what an earlier deny closes",
            "put the deny last, or move it to mandatory",
        ),
        "content-without-effect": (
            "warning",
            "an entry that depends on content changes no verdict, whatever is found",
            "make it stricter than what holds without it, or remove it",
        ),
        "dead-rule": ("error", "a rule can never decide", "move it below what covers it, or remove it"),
        "deny-cuts-allow": (
            "note",
            "a later deny closes a part of what an earlier allow opens",
            "nothing to do where it is meant",
        ),
        "except-covers-all": (
            "error",
            "the exceptions of a mandatory rule leave nothing of one of its paths",
            "narrow the exception",
        ),
        "except-unused": (
            "warning",
            "an exception meets none of the paths it is an exception to",
            "correct the pattern, or remove it",
        ),
        "idle-rule": (
            "note",
            "a rule changes no verdict: without it every verdict is the same",
            "remove it, unless it documents an intention",
        ),
        "ignore-unused": (
            "warning",
            "a comment ignores a finding that is not there, or gives no reason",
            "remove it, or write: # ringfence: ignore CODE reason",
        ),
        "invariant-broken": ("error", "an invariant of the policy does not hold", "see the path it names"),
        "kind-key-overridden": (
            "note",
            "a rule for a kind of writing cannot loosen a deny of `write` on a part of its paths",
            "nothing to do where it is meant; else take the paths out of the deny under write",
        ),
        "kind-key-settled": (
            "error",
            "a rule for a kind of writing can never decide, since `write` denies all it matches",
            "deny the other kinds by their own keys in place of write",
        ),
        "lanes-overlap": (
            "warning",
            "a path is in two lanes: what is written at once cannot be dropped",
            "take it out of one of them",
        ),
        "limit-past-commands": (
            "note",
            "a limit on reading does not count what commands read, and the agent may run some",
            "let commands ask, or deny them, where reading has to be limited",
        ),
        "limit-per-call": (
            "note",
            "a limit denies what one call changes or reads, and nothing counts what several do together",
            "add a limit of the session, the hour or the day",
        ),
        "limit-unreachable": (
            "warning",
            "a limit can never stop a call",
            "remove it, or lower it",
        ),
        "loosens-global": (
            "warning",
            "an agent's rule loosens what a global rule denies",
            "if no agent may do it, deny it under mandatory",
        ),
        "pattern-class-name": (
            "error",
            "a class of characters spells the name of a file that is there, and does not match it",
            "put the bracket in brackets: [[]id]",
        ),
        "pattern-class-word": (
            "note",
            "a class of characters looks like a word; it matches one character",
            "for the name itself put the bracket in brackets: [[]slug]",
        ),
        "pattern-command": (
            "warning",
            "a pattern of paths looks like a command",
            "commands are ruled under run, by their words",
        ),
        "pattern-directory-name": (
            "warning",
            "a slash at the end after what looks like a file's name: it matches directories only",
            "leave the slash out",
        ),
        "pattern-glued-stars": (
            "warning",
            "'**' beside other characters in a name is a plain '*'",
            "write **/*.py for any depth, *.py without a slash is any depth already",
        ),
        "pattern-host-path": (
            "warning",
            "a pattern looks like a path of this machine or of Windows; patterns start at the workspace",
            "write it from the workspace's root",
        ),
        "pattern-look-alike": (
            "warning",
            "a name has letters or signs that look like others",
            "type the name again, or use '?'",
        ),
        "pattern-near-miss": (
            "note",
            "a pattern matches no file here, and a name beside it is one letter away",
            "correct the name",
        ),
        "pattern-not-ascii": (
            "note",
            "a pattern has letters beyond ASCII: names that look the same may be spelt in two ways",
            "nothing to do where one program makes the names; '*' for the letter matches both spellings",
        ),
        "pattern-regex": (
            "warning",
            "a pattern looks like a regular expression; it is read as a .gitignore pattern",
            "use *, ?, [a-z], ** and {a,b}",
        ),
        "pattern-set-name": (
            "warning",
            "a pattern looks like the name of a set, and the file knows no set",
            "define it under sets; for a file of that name write **/@name",
        ),
        "pattern-stars-first": (
            "note",
            "'**/' before a single name has no effect: a name without a slash matches at any depth already",
            "leave '**/' out",
        ),
        "pattern-unmatched": (
            "note",
            "a pattern that lets something through matches no file here",
            "nothing to do where the files are yet to come",
        ),
        "set-unused": ("warning", "nothing uses a set", 'use it as "@name", or remove it'),
        "through-protected": (
            "error",
            "a lane that is written at once reaches what no command may change",
            "name the directory that is meant",
        ),
        "through-reaches": (
            "error",
            "a lane that is written at once reaches a path that an agent may not change without being asked",
            "narrow it, or allow run_command, write and delete there",
        ),
        "too-complex": (
            "warning",
            "a question about the policy passed its bound and has no answer",
            "use fewer patterns with several stars",
        ),
        "tool-key-settled": (
            "error",
            "a tool's rule can never decide, since the action's key denies all it matches",
            "a tool's key loosens an ask, never a deny: open it in the action's key",
        ),
        "trial-without-effect": (
            "warning",
            "an entry on trial would change no verdict",
            "correct it, or remove it",
        ),
        "until-ended": ("warning", "an entry has ended, and counts no longer", "remove it, or move its end"),
    }
)


# Notes that `--strict` takes for warnings: harmless where it is meant, and often a slip.
STRICTER: frozenset[str] = frozenset({"agent-unknown", "pattern-near-miss"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about a policy, with the shortest path that demonstrates it where there is one.

    `strict`: the check treats the notes in `STRICTER` as warnings.
    """

    code: str
    message: str
    where: Where | None = None
    path: str | None = None
    hint: str = ""
    strict: bool = False

    @property
    def level(self) -> Level:
        """The level of the code; `warning` for a note in `STRICTER` in a strict check."""
        return "warning" if self.strict and self.code in STRICTER else FINDINGS[self.code][0]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON values; place and path are None where the finding has none."""
        return {
            "code": self.code,
            "level": self.level,
            "message": self.message,
            "file": self.where.file if self.where else None,
            "line": self.where.line if self.where else None,
            "column": self.where.column if self.where else None,
            "path": self.path,
            "hint": self.hint or FINDINGS[self.code][2],
        }

"""Shell call of a host: the verdict on its words, and the arguments with which `ringfence shell` runs it.

Starts nothing and opens no file. Where the call is not rewritten the verdict is a hint: what a command is
called shows little of what it does.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ringfence.policy import READY_MADE, Decision, Effect, Policy
from ringfence.policy.commands.needs import run_needs
from ringfence.policy.model import RUN_TOOL
from ringfence.toolkit.hooks import shells
from ringfence.toolkit.hooks.hosts import SHELL_DEFAULTS, SHELL_MODES
from ringfence.toolkit.hooks.judge import BY_POLICY, Verdict, within
from ringfence.toolkit.hooks.tool_table import TOOLS

# Where a host's command starts, if not in the event's folder.
_FOLDERS: Final = {
    "gemini": ("dir_path", "directory"),
    "opencode": ("workdir",),
    "cursor": ("working_directory",),
}
_SESSION: Final = re.compile(r"[\w.:@-]{1,200}", re.ASCII)
_MAX_SHOWN: Final = 200
HINT: Final = "Only the words of the command were judged, not what it does"
_INSIDE: Final = "`ringfence shell` runs the command, and its changes are judged before they are applied"
_ELSEWHERE: Final = (
    "The command would start outside the project root, where its changes cannot be judged (outside_root)."
    " Start it in the project"
)


@dataclass(frozen=True, slots=True)
class ShellCall:
    """A command that a host runs, or is about to run.

    `policy_name` and `state` are what the hook was started with, `session` is the host's name for its
    session; None where there is none. `mode` is "rewrite" or "words".
    """

    host: str
    line: str
    given: Mapping[str, Any]
    cwd: str
    root: str
    policy: Policy
    agent: str
    session: str | None = None
    policy_name: str | None = None
    state: str | None = None
    mode: str = "rewrite"

    @property
    def decision(self) -> Decision:
        """The policy's decision on the words of the command."""
        text = shells.judged(self.host, self.line, self._is_inside) if self.mode == "rewrite" else self.line
        return self.policy.decide(self.agent, RUN_TOOL, run_needs(text))

    def verdict(self) -> Verdict:
        """Return the verdict on the words, with a reason that an agent may see."""
        decision = self.decision
        reason = reason_text(decision)
        if self.mode == "words" and decision.effect is not Effect.ALLOW:
            return Verdict(decision.effect, f"{reason}. {HINT}")
        if decision.effect is Effect.DENY or self.mode == "words":
            return Verdict(decision.effect, reason)
        if not self._starts_inside():
            return Verdict(Effect.DENY, _ELSEWHERE, refused=True)
        try:
            self.rewritten()
        except ValueError as error:
            return Verdict(Effect.DENY, f"This command cannot be judged: {error}", refused=True)
        return Verdict(decision.effect, f"{reason}; {_INSIDE}")

    def rewritten(self) -> dict[str, Any]:
        """Return the call's arguments with `ringfence shell` around the command; nothing else changes.

        ValueError for a command that cannot be handed over.
        """
        line = shells.wrapped(self.host, self.line, self._start(), self._is_inside)
        return {**self.given, "command": line}

    def ran_inside(self) -> bool:
        """Whether the command that ran was a call of `ringfence shell` as this hook writes it."""
        return self.mode == "rewrite" and shells.is_wrapped(self.host, self.line, self._start())

    def _start(self) -> tuple[str, ...]:
        """Return the command up to the line, with the interpreter by its path: PATH may be an agent's."""
        isolated = sys.flags.isolated or not (sys.flags.ignore_environment and sys.flags.safe_path)
        words = [sys.executable, *(["-I"] if isolated else ["-E", "-P"]), "-m", "ringfence", "shell"]
        words += ["--root", self.root]
        if self.policy_name is not None:
            words += ["--policy", _absolute(self.policy_name, READY_MADE)]
        if self.agent != "default":
            words += ["--agent", self.agent]
        if self.session is not None:
            words += ["--session", self.session]
        if self.state is not None:
            words += ["--state", _absolute(self.state)]
        return (*words, "-c")

    def _is_inside(self, folder: str) -> bool:
        real = os.path.realpath(os.path.join(self._first_folder(), folder))
        return within(real, os.path.realpath(self.root))

    def _first_folder(self) -> str:
        named = [self.given.get(key) for key in _FOLDERS.get(self.host, ())]
        return os.path.join(self.cwd, *(name for name in named if isinstance(name, str)))

    def _starts_inside(self) -> bool:
        folder = shells.cd_of(self.host, self.line)
        return self._is_inside(".") or (folder is not None and self._is_inside(folder))


def can_rewrite(host: str, tool: str, given: Mapping[str, Any], mode: str | None) -> bool:
    """Whether the hook replaces the tool's command: the host and this system can, and the options want it."""
    default = SHELL_DEFAULTS.get((host, tool.lower()), SHELL_MODES[host][0])
    wanted = (mode or default) == "rewrite" and sys.platform == "linux"
    known = TOOLS[host].get(tool.lower())
    return wanted and known is not None and known.replaced and isinstance(given.get("command"), str)


def session_of(event: Mapping[str, Any]) -> str | None:
    """Return the host's name of its session, if it is one that a command line and a record can have."""
    named = event.get("session_id")
    return named if isinstance(named, str) and _SESSION.fullmatch(named) and named[0] != "-" else None


def reason_text(decision: Decision) -> str:
    """Return a decision as the agent may see it: without pattern, file or line of a rule."""
    rule = decision.rule
    text = " ".join(decision.path.split())
    text = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    reason = BY_POLICY[decision.effect] if rule is None else rule.reason or BY_POLICY[decision.effect]
    hint = f". {decision.hint}" if decision.effect is Effect.DENY else ""
    return f"run {text}: {reason}{hint}"


def _absolute(name: str, but: tuple[str, ...] | frozenset[str] = ()) -> str:
    return name if name in but or "://" in name else os.path.abspath(name)

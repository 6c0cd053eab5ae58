"""Suggestion of the smallest policy that agrees with people's answers: allows what they approved, denies the
rest.

Only proposes. Every proposed rule names the calls that it is based on, and the engine judges every call
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.errors import PolicyError, visible
from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.model import RUN_TOOL, TOOL_ACTIONS, Effect, Need
from ringfence.toolkit.grant_patterns import escaped, literal

ENOUGH = 3  # different approved paths in one folder before one pattern replaces them
_ROOT = "."


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that a person granted or refused; `limited`: a limit asked, and no rule."""

    approval: str
    agent: str
    tool: str
    paths: tuple[str, ...]
    granted: bool
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Proposed:
    """One rule, with the approvals that it is based on."""

    agent: str
    tool: str
    pattern: str
    effect: Effect
    rests_on: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the rule, and the ids of the approval requests that it is based on."""
        return {
            "agent": self.agent,
            "tool": self.tool,
            "pattern": self.pattern,
            "effect": str(self.effect),
            "rests_on": list(self.rests_on),
        }


@dataclass(slots=True)
class Suggestion:
    """The rules, and the calls for which they give another verdict, each with the reason."""

    rules: list[Proposed] = field(default_factory=list)
    given: list[Asked] = field(default_factory=list)
    left: list[tuple[Asked, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The rules as the text of a policy file."""
        return policy_text(self.rules)


def asked(records: Iterable[Mapping[str, Any]]) -> Iterator[Asked]:
    """Yield the answered requests with their last answers, from audit records."""
    calls: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    limited: set[str] = set()
    answers: dict[str, str] = {}
    for record in records:
        approval = record.get("approval")
        if not isinstance(approval, str):
            continue
        if record.get("event") == "approval":
            if record.get("outcome") in ("granted", "refused", "revoked"):
                answers[approval] = str(record["outcome"])
        elif record.get("event") == "call" and isinstance(paths := record.get("paths"), list) and paths:
            # Only these fields of the record: a log may hold very many records.
            paths = tuple(map(str, paths))
            calls.setdefault(approval, (str(record.get("agent")), str(record.get("tool")), paths))
            decision = record.get("decision")
            if isinstance(decision, dict) and decision.get("limit"):
                limited.add(approval)
    for approval, call in calls.items():
        if answers.get(approval) in ("granted", "refused"):
            yield Asked(approval, *call, answers[approval] == "granted", approval in limited)


def suggest(answered: Iterable[Asked]) -> Suggestion:
    """Propose rules for each agent and tool."""
    out = Suggestion()
    groups: dict[tuple[str, str], list[Asked]] = {}
    everything = list(answered)
    why_not = {each: _unsayable(each) for each in everything}
    # A rule for a path nearby could permit a refusal that no rule can express, so it is left out.
    barred = {each.tool for each in everything if why_not[each] and not each.granted}
    for each in everything:
        why = why_not[each]
        if not why and each.granted and each.tool in barred:
            why = "another call of this tool was refused that no rule can name"
        if why:
            out.left.append((each, why))
        else:
            groups.setdefault((each.agent, each.tool), []).append(each)
    for (agent, tool), calls in sorted(groups.items()):
        out.rules += _Group(agent, tool, calls, out).rules()
    _confirm(out)
    return out


def _unsayable(each: Asked) -> str:
    if each.limited:
        return "a limit asked about it, and no rule changes that: change the limit"
    if each.tool not in TOOL_ACTIONS:
        return f"{each.tool} is no tool that is known"
    if each.tool == RUN_TOOL:
        return "it runs a command, and a rule for commands takes words: write it under run"
    if not each.agent or set(each.agent) & set("*?[]{}!\\") or any(map(is_invisible, each.agent)):
        return "its agent's name cannot be a key"
    for path in each.paths:
        parts = path.split("/")
        if path == _ROOT or any(part in ("", ".", "..") for part in parts):
            return "it is about the root, or no path of the workspace"
        if "\\" in path or any(map(is_invisible, path)) or len(path) > 300:
            return "its path cannot be a pattern"
    return ""


class _Group:
    """The calls of one agent and tool."""

    def __init__(self, agent: str, tool: str, calls: list[Asked], out: Suggestion) -> None:
        self.agent, self.tool = agent, tool
        self.allowed: dict[str, list[str]] = {}
        self.denied: dict[str, list[str]] = {}
        self.open: dict[
            str, list[str]
        ] = {}  # paths both granted and refused: the policy still asks about them
        granted = {path for call in calls if call.granted for path in call.paths}
        for call in calls:
            if not call.granted:
                # Denying one path stops a call: the last path that was never approved.
                alone = [path for path in call.paths if path not in granted]
                where = self.denied if alone else self.open
                where.setdefault((alone or call.paths)[-1], []).append(call.approval)
        for call in calls:
            if any(path in self.open for path in call.paths):
                out.left.append((call, "people approved it and refused it: it goes on asking"))
                continue
            out.given.append(call)
            if call.granted:
                for path in call.paths:
                    self.allowed.setdefault(path, []).append(call.approval)

    def rules(self) -> list[Proposed]:
        """Yield rules from the root down, so that a rule for a deeper path comes last and decides."""
        found: list[tuple[int, int, Proposed]] = []
        covered: set[str] = set()
        for folder, members in self._folders().items():
            ending = _ending(members)
            if not folder and not ending:
                continue
            pattern = f"{literal(folder)}/*{escaped(ending)}" if folder else f"/*{escaped(ending)}"
            rests = dict.fromkeys(call for path in members for call in self.allowed[path])
            found.append((_depth(members[0]), 0, self._proposed(pattern, Effect.ALLOW, rests)))
            covered.update(members)
        for effect, paths in (
            (Effect.ALLOW, self.allowed),
            (Effect.DENY, self.denied),
            (Effect.ASK, self.open),
        ):
            for path, calls in paths.items():
                if effect is Effect.ALLOW and (path in covered or self._above(path)):
                    continue
                found.append((_depth(path), 1, self._proposed(literal(path), effect, dict.fromkeys(calls))))
        return [rule for *_, rule in sorted(found, key=lambda each: (*each[:2], each[2].pattern))]

    def _proposed(self, pattern: str, effect: Effect, calls: Iterable[str]) -> Proposed:
        return Proposed(self.agent, self.tool, pattern, effect, tuple(calls))

    def _folders(self) -> dict[str, list[str]]:
        """Return folders with enough approved paths directly in them and no refusal at, above or below."""
        children: dict[str, list[str]] = {}
        for path in self.allowed:
            children.setdefault(path.rpartition("/")[0], []).append(path)
        refused = [*self.denied, *self.open]
        return {
            folder: sorted(paths)
            for folder, paths in children.items()
            if len(paths) >= ENOUGH and not any(_related(folder, path) for path in refused)
        }

    def _above(self, path: str) -> bool:
        """Whether the rule for the nearest path above already allows this path."""
        parent = path.rpartition("/")[0]
        while parent:
            if parent in self.denied or parent in self.open:
                return False
            if parent in self.allowed:
                return True
            parent = parent.rpartition("/")[0]
        return False


def _depth(path: str) -> int:
    return path.count("/")


def _related(folder: str, path: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/") or folder.startswith(f"{path}/")


def _ending(paths: list[str]) -> str:
    """Return the extension that all names share, with its dot; a name such as `.env` has none."""
    endings = {"." + name.rpartition(".")[2] for name in _names(paths) if "." in name[1:]}
    return endings.pop() if len(endings) == 1 and all("." in name[1:] for name in _names(paths)) else ""


def _names(paths: list[str]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths]


def policy_text(rules: Iterable[Proposed]) -> str:
    """Return the rules as the text of a policy; a comment beside each names its approvals."""
    agents: dict[str, dict[str, list[Proposed]]] = {}
    for rule in rules:
        agents.setdefault(rule.agent, {}).setdefault(rule.tool, []).append(rule)
    out = ["version: 1"]
    if agents:
        out.append("agents:")
    for agent, tools in agents.items():
        out += [f"  {json.dumps(agent, ensure_ascii=False)}:", "    rules:"]
        for tool, listed in tools.items():
            out.append(f"      {tool}:")
            for rule in listed:
                rests = ", ".join(visible(call) for call in rule.rests_on[:5])
                more = f" and {len(rule.rests_on) - 5} more" if len(rule.rests_on) > 5 else ""
                pattern = json.dumps(rule.pattern, ensure_ascii=False)
                out.append(f"        {pattern}: {rule.effect}  # {rests}{more}")
    return "\n".join(out) + "\n"


def verdict(policy: Policy, call: Asked) -> Effect:
    """Return a policy's verdict on a call, from the paths in its record."""
    needs = []
    pairs = TOOL_ACTIONS[call.tool]
    parameters = list(dict.fromkeys(parameter for _, parameter in pairs))
    for at, path in enumerate(call.paths):
        for action, parameter in pairs:
            # The record of a tool with two paths has both, in order; any further path is a real path.
            if len(parameters) == 1 or at >= 2 or len(call.paths) == 1 or parameters[at] == parameter:
                needs.append(Need(action, path))
    return policy.decide(call.agent, call.tool, needs).effect


def _confirm(out: Suggestion) -> None:
    """Judge every call with the engine; a refused call that is allowed is a bug in this program."""
    try:
        policy = Policy.loads(out.text, file="the suggestion")
    except PolicyError as error:
        raise AssertionError(f"the suggestion does not load: {error}") from None
    given = []
    for call in out.given:
        effect = verdict(policy, call)
        if not call.granted and effect is Effect.ALLOW:
            raise AssertionError(f"the suggestion allows what was refused: {call}")
        if effect is (Effect.ALLOW if call.granted else Effect.DENY):
            given.append(call)
        else:
            out.left.append((call, f"the rules of other calls, or of the agent's parents, make it {effect}"))
    for call, _ in out.left:
        if not call.granted and not _unsayable(call) and verdict(policy, call) is Effect.ALLOW:
            raise AssertionError(f"the suggestion allows what was refused: {call}")
    out.given = given

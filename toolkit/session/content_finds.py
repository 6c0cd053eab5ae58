"""What detectors found in the contents of one call. Values only; a secret itself is in none of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ringfence.policy import Decision, Effect, Need
from ringfence.policy.model import Detector
from ringfence.toolkit.paths import ROOT
from ringfence.toolkit.plan.content import sha256


@dataclass(frozen=True, slots=True)
class ContentFind:
    """One find at a path, with the verdict that follows from it.

    `line` counts from 1. `masked`: the answer has a mark in its place, so the verdict stops nothing.
    `left_out`: the answer is made without the file. `examined` is False where the content is too large to
    look into. `token` is a keyed digest of the secret.
    """

    detector: Detector
    path: str
    line: int
    decision: Decision
    token: str
    masked: bool = False
    left_out: bool = False
    examined: bool = True

    @property
    def stops(self) -> bool:
        """Whether the verdict applies to the call: nothing has been masked or left out for it."""
        return not (self.masked or self.left_out)

    def __str__(self) -> str:
        if not self.examined:
            return f"'{self.path}' is too large to be searched for {self.detector}"
        return f"{self.detector} in '{self.path}' at line {self.line}"

    def to_json(self) -> dict[str, Any]:
        """Return the find as the audit record and the person who decides see it."""
        return {
            "detector": str(self.detector),
            "path": self.path,
            "line": self.line,
            "action": self.decision.action,
            "effect": str(self.decision.effect),
            **({"masked": True} if self.masked else {}),
            **({"left_out": True} if self.left_out else {}),
            **({} if self.examined else {"examined": False}),
        }


@dataclass(slots=True)
class ContentFinds:
    """All finds of one call, in the order in which they were made. `hidden`: the answer lacks some content
    that the call has to do with, because of a find.
    """

    found: list[ContentFind] = field(default_factory=list)
    hidden: bool = False

    def note(self, finds: list[ContentFind]) -> None:
        """Add finds, each once."""
        self.found += [find for find in dict.fromkeys(finds) if find not in self.found]

    @property
    def stopping(self) -> list[ContentFind]:
        """The finds whose verdict applies to the call."""
        return [find for find in self.found if find.stops]

    @property
    def asking(self) -> list[ContentFind]:
        """The finds because of which a person is asked."""
        return [find for find in self.stopping if find.decision.effect is Effect.ASK]

    @property
    def withholds_output(self) -> bool:
        """Whether a command's output is not given unless a person grants it."""
        return any(find.path == ROOT for find in self.stopping)

    def needs(self) -> dict[Need, list[str]]:
        """Return the needs that ask because of finds, each with these finds in words."""
        found: dict[Need, list[str]] = {}
        for find in self.asking:
            need = Need(find.decision.action, find.path, find.path == ROOT, kind=find.decision.kind)
            found.setdefault(need, []).append(f"{find.detector}, line {find.line}")
        return found

    def digest(self, plan: str) -> str:
        """Return the digest of what a person would grant: of the plan, by its digest, and of the finds."""
        tokens = sorted({f"{find.token} {find.path}" for find in self.asking})
        return sha256("\n".join([plan, *tokens]).encode("utf-8", "surrogateescape")) if tokens else plan

    def tightened(self, decision: Decision) -> Decision:
        """Return the stricter of a decision and of what follows from the finds."""
        stopping = self.stopping
        worst = max((find.decision.effect for find in stopping), default=Effect.ALLOW)
        if worst < decision.effect or worst is Effect.ALLOW:
            return decision
        causes = [find for find in stopping if find.decision.effect is worst]
        names = tuple(dict.fromkeys(find.detector.name for find in causes))
        more = f" and {len(causes) - 1:,} more" if causes[1:] else ""
        why = f"{causes[0]}{more}"
        if worst is decision.effect:
            return replace(decision, content=names, reason=f"{decision.reason}; {why}")
        first = causes[0].decision
        own = first.rule.reason if first.rule is not None else None
        return replace(first, content=names, reason=f"{own}: {why}" if own else why)

"""Statistics of questions: how many a day, how people answered them, which rules asked, and which answered.

Pure over audit records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.model import RUN
from ringfence.toolkit.approvals.requests import ONCE, PATTERN, RULE, SESSION
from ringfence.toolkit.grant_patterns import matcher
from ringfence.toolkit.rule_offers.marks import answered_rules, mark
from ringfence.toolkit.rule_offers.offers import Names

NO_ANSWER, REFUSED = "not answered", "refused"
ANSWERS = (ONCE, PATTERN, SESSION, RULE, REFUSED, NO_ANSWER)


@dataclass(slots=True)
class Questions:
    """Numbers of questions by local day, of answers by their kind, and of calls by rules.

    `asking`: questions by the rule that asked, as `file:line key "pattern"`. `answered`: calls that a rule
    from an answer allowed, by its id.
    """

    days: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    asking: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)

    @property
    def asked(self) -> int:
        """How many questions were asked."""
        return self.days.total()

    def a_day(self) -> float:
        """Return the questions a day, over the days that have any."""
        return self.asked / len(self.days) if self.days else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        return {
            "questions": self.asked,
            "a_day": round(self.a_day(), 1),
            "days": dict(sorted(self.days.items())),
            "answers": {name: self.answers[name] for name in ANSWERS},
            "asking_rules": dict(self.asking.most_common()),
            "answered_by_rule": dict(self.answered.most_common()),
        }


def questions(records: Iterable[Mapping[str, Any]]) -> Questions:
    """Count the questions and answers in audit records, oldest first."""
    out = Questions()
    asked: dict[str, str] = {}
    for record in records:
        if record.get("event") == "approval":
            _count(record, out, asked)
        elif record.get("event") == "call":
            decision = record.get("decision") or {}
            rule = (
                mark((decision.get("rule") or {}).get("reason"))
                if decision.get("effect") == "allow"
                else None
            )
            if rule is not None:
                out.answered[rule] += 1
            if record.get("outcome") == "approval_required":
                out.asking[_place(decision.get("rule"))] += 1
    out.answers.update(asked.values())
    return out


def _count(record: Mapping[str, Any], out: Questions, asked: dict[str, str]) -> None:
    name, outcome = str(record.get("approval")), record.get("outcome")
    if outcome in ("asked", "reopened"):
        asked[name] = NO_ANSWER
        if outcome == "asked":
            out.days[f"{datetime.fromtimestamp(float(record['time'])).astimezone():%Y-%m-%d}"] += 1
    elif outcome == "granted":
        asked[name] = str(record.get("scope") or ONCE)
    elif outcome == REFUSED:
        asked[name] = REFUSED


def _place(rule: Mapping[str, Any] | None) -> str:
    if not rule:
        return "no rule"
    where = f"{rule['file']}:{rule['line']} " if rule.get("file") else ""
    return f'{where}{rule.get("key")} "{rule.get("pattern")}"'


def widths(policy: Policy, names: Names) -> dict[str, int | None]:
    """Return how many paths each rule from an answer matches now; None for rules about commands."""
    found: dict[str, int | None] = {}
    for each in answered_rules(policy.whole):
        patterns = [rule.pattern for rule in each.rules if str(rule.effect) == "allow" and rule.key != RUN]
        tests = list(map(matcher, patterns))
        number = sum(any(test(path) for test in tests) for path, _ in names.paths)
        found[each.id] = number if patterns else None
    return found

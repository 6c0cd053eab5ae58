"""Figures of questions: how many a day, how people answered, by which rule, and how wide grants are.

Read at most once a minute for the inbox, because every open inbox shows them.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from ringfence.toolkit.approvals.requests import GRANTED, ONCE, PATTERN, RULE, SESSION
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.reach import reach
from ringfence.toolkit.granting.scopes import granted_in_words
from ringfence.toolkit.review.context import PageContext
from ringfence.toolkit.rule_offers.answering import names_in
from ringfence.toolkit.rule_offers.marks import answered_rules
from ringfence.toolkit.rule_offers.offers import Names
from ringfence.toolkit.rule_offers.statistics import NO_ANSWER, REFUSED, Questions, questions, widths

DAYS = 7  # days that the figures are about
_KEPT = 60.0  # seconds
# Each kind of answer with its words and the class of its bar.
_ANSWERS = (
    (ONCE, "approved once", "yes"),
    (PATTERN, "approved for paths", "yes"),
    (SESSION, "approved for a session", "yes"),
    (RULE, "answered by a rule", "rule"),
    (REFUSED, "refused", "no"),
    (NO_ANSWER, "not answered", "open"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a figure: its share of the largest, of 100."""

    words: str
    number: int
    share: int
    kind: str = ""


class Figures:
    """The figures of a workspace, kept for a minute."""

    def __init__(self, context: PageContext) -> None:
        self._desk = context
        self._lock = threading.Lock()
        self._read = 0.0
        self._questions = Questions()

    def short(self) -> dict[str, Any]:
        """Return the figures that the inbox shows: days, answers, and calls that rules let pass."""
        return self._in_short(self._found(_KEPT))

    def _in_short(self, found: Questions) -> dict[str, Any]:
        rows = [(str(day), found.days[str(day)]) for day in _days()]
        answers = [(words, found.answers[name], kind) for name, words, kind in _ANSWERS]
        return {
            "asked": found.asked,
            "a_day": found.a_day(),
            "days": _bars([(day[5:], number, "") for day, number in rows]),
            "answers": [bar for bar in _bars(answers) if bar.number],
            "by_rules": found.answered.total(),
        }

    def whole(self) -> dict[str, Any]:
        """Return all figures: also which rules asked and answered, and how wide rules and grants are now."""
        found, session, policy = self._found(0.0), self._desk.session, self._desk.policy()
        names = Names(())
        with suppress(CallError):
            names = names_in(session.workspace, policy)
        wide = widths(policy.at(time.time()), names) if policy.files else {}
        grants = []
        for one in session.approvals.listing():
            if one.state == GRANTED and one.scope != ONCE:
                opens = None
                with suppress(CallError, ValueError):
                    opens = reach(session.workspace, policy, one, one.scope, one.pattern)
                grants.append((one, granted_in_words(one), opens.in_words() if opens else ""))
        return {
            "figures": self._in_short(found),
            "asking": _bars([(place, number, "") for place, number in found.asking.most_common(10)]),
            "rules": [
                (rule, found.answered[rule.id], wide.get(rule.id)) for rule in answered_rules(policy.whole)
            ],
            "grants": grants,
        }

    def _found(self, kept: float) -> Questions:
        with self._lock:
            if time.monotonic() - self._read > kept or not self._read:
                first = _days()[0]
                since = time.mktime(first.timetuple())
                wanted = audit.RecordFilter(since=since)
                self._questions = questions(audit.matching(self._desk.session.state, wanted))
                self._read = time.monotonic()
            return self._questions


def _days() -> list[date]:
    return [date.today() - timedelta(days=n) for n in reversed(range(DAYS))]


def _bars(rows: list[tuple[str, int, str]]) -> list[Bar]:
    most = max((number for _, number, _ in rows), default=0) or 1
    return [Bar(words, number, round(100 * number / most), kind) for words, number, kind in rows]

"""Rows of the audit page: one for each call, with its steps, from records as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.review.call_rows import by_day, rows

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
assert CASES


def request(name: str, given: dict[str, Any]) -> Request:
    plain = {"agent": "a", "session": "s", "tool": "t", "arguments": {}, "digest": "", "revision": ""}
    return Request(id=name, **plain, title="", preview="", decision={"effect": "ask"}, **given)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["what"]))
def test_rows_of_records(case: dict[str, Any]) -> None:
    requests = {name: request(name, given) for name, given in case["requests"].items()}
    records = [{"session": "s", **record} for record in case["records"]]
    found = rows(reversed(records), requests.get)
    assert len(found) == len(case["rows"])
    for row, wanted in zip(found, case["rows"], strict=True):
        told = {
            "steps": [step.word for step in row.steps],
            "outcome": row.outcome[0],
            "by": row.by,
            "reason": row.reason,
            "destroys": row.destroys,
            "waits": row.waits,
            "own_act": row.own_act,
            "scope": row.scope[0],
        }
        assert {name: told[name] for name in wanted} == wanted


def test_days_are_local_and_a_time_that_is_none_has_none() -> None:
    records = [{"event": "call", "time": time} for time in (86_400 * 20.0, 86_400 * 20.0 - 10, None, 1e300)]
    days = by_day(rows(records, lambda _: None))
    assert [len(day.rows) for day in days][-1] == 2
    assert days[-1].day is None
    assert sum(len(day.rows) for day in days) == 4

"""Times from a call, over the edges of RFC 3339: told back as given, or refused; never taken for none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.durations import instant, moment
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import rfc3339
from ringfence.toolkit.tools.list_tasks import time_of

U = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
DAYS = dict.fromkeys(range(1, 13), 31) | {4: 30, 6: 30, 9: 30, 11: 30}
FIRST, LAST = (1, 1, 1), (9999, 12, 31)
AFTER_ALL = "9999-12-31T23:59:59-00:01"
BEFORE_ALL = "0001-01-01T00:00:00+23:59"


def days(year: int, month: int, day: int) -> int:
    """Days since the first day of the year 0, by counting."""
    before = year * 365 + (year + 3) // 4 - (year + 99) // 100 + (year + 399) // 400
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return before + sum(28 + leap if m == 2 else DAYS[m] for m in range(1, month)) + day - 1


EPOCH = days(1970, 1, 1)
RANGE = range((days(*FIRST) - EPOCH) * 86400, (days(*LAST) - EPOCH + 1) * 86400)

edge_years = st.sampled_from([0, 1, 2, 1969, 1970, 2000, 2100, 9998, 9999])
dates = st.tuples(edge_years, st.integers(0, 13), st.integers(0, 32))
clock = st.tuples(
    st.sampled_from([0, 1, 12, 23, 24]), st.sampled_from([0, 30, 59, 60]), st.sampled_from([0, 1, 59, 60, 61])
)
zones = st.sampled_from(
    ["Z", "z", "+00:00", "-00:00", "+23:59", "-23:59", "-00:01", "+00:01", "+24:00", "+05:60", "", "+0100"]
)


@given(
    dates, clock, zones, st.sampled_from(["T", "t", " "]), st.sampled_from(["", ".5", ".000", ".123456789"])
)
def test_a_time_is_told_back_or_refused(
    date: tuple[int, int, int], at: tuple[int, int, int], zone: str, between: str, part: str
) -> None:
    (year, month, day), (hour, minute, second) = date, at
    text = f"{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{part}{zone}"
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    valid = (
        1 <= month <= 12
        and 1 <= day <= (28 + leap if month == 2 else DAYS[month])
        and hour < 24
        and minute < 60
        and second < 60
        and zone not in ("+24:00", "+05:60", "", "+0100")
    )
    found = moment(text)
    if not valid:
        assert found is None
        return
    offset = 0 if zone in "Zz" else int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[4:6])) * 60
    whole = (days(year, month, day) - EPOCH) * 86400 + hour * 3600 + minute * 60 + second - offset
    if whole not in RANGE:
        assert found is None
        with pytest.raises(CallError) as caught:
            time_of(text, "since")
        assert (caught.value.code, caught.value.where) == ("invalid_arguments", "since")
        return
    assert found is not None
    assert int(found // 1) == whole
    told = rfc3339(found)
    assert told is not None
    assert moment(told) is not None
    assert instant(text.upper()) == found


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2026-W05-1T00:00:00Z", "20260131T180000Z", "2026-01-31", "2026-01-31T18:00:00",
     "2026-01-31T18:00Z", "2026-01-31T18:00:00,5Z", "２０２６-01-31T18:00:00Z", "2026-01-31T18:00:00Z\n",
     "2026-01-31T18:00:00+01:00:30", "2016-12-31T23:59:60Z", AFTER_ALL, BEFORE_ALL, "9" * 100_000],
)  # fmt: skip
def test_what_is_no_time_of_rfc_3339_or_none_that_can_be_told(text: str) -> None:
    assert moment(text) is None


@pytest.mark.parametrize("permanent", [False, True])
@pytest.mark.parametrize("after", [AFTER_ALL, BEFORE_ALL, "2016-12-31T23:59:60Z", ""])
def test_a_deletion_at_no_time_that_there_is_is_refused(tmp_path: Path, permanent: bool, after: str) -> None:
    folder = tmp_path / "tasks" / U
    folder.mkdir(parents=True)
    (folder / "ui_messages.json").write_text(json.dumps([]))
    (tmp_path / "ws").mkdir()
    policy = Policy.loads('version: 1\nrules: {"*": allow}\n')
    with Session(tmp_path / "ws", policy, state=":memory:", tasks=tmp_path / "tasks") as session:
        given = {"task_ids": [U], "permanent": permanent, "delete_after": after}
        answer = session.call({"tool": "delete_tasks", "arguments": given})
    assert (answer.error or {}).get("code") == "invalid_arguments"
    assert (answer.error or {}).get("where") == "delete_after"
    assert folder.is_dir()


@pytest.mark.parametrize("until", [1e30, float("inf"), float("nan"), 253402300800.0])
def test_a_grant_ends_at_a_time_that_can_be_told(tmp_path: Path, until: float) -> None:
    (tmp_path / "a").write_text("x")
    with Session(tmp_path, None, state=":memory:") as session:
        asked = session.call({"tool": "delete_file", "arguments": {"path": "a"}})
        name = asked.data["approval"]["id"]
        with pytest.raises(CallError, match="no time") as caught:
            session.approvals.answer(name, Answer(True, "session", until=until))
        assert (caught.value.code, caught.value.where) == ("invalid_arguments", "until")
        assert session.approvals.get(name).state == "pending"

"""Dates without a clock, against the standard library."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy.evaluation.dates import date, rfc3339


@given(st.integers(0, 253_402_300_799))
def test_a_time_is_written_as_the_standard_library_writes_it(time: int) -> None:
    moment = datetime.fromtimestamp(time, UTC)
    assert date(time) == f"{moment:%Y-%m-%d}"
    assert rfc3339(time) == f"{moment:%Y-%m-%dT%H:%M:%SZ}"

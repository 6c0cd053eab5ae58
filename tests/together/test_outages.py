"""Twelve processes on three shared files, the database killed; OUTAGE_CALLS sets the calls of each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.together.outages import MUTANTS, outages

PROCESSES = 12
CALLS = int(os.environ.get("OUTAGE_CALLS", "8"))
COUNT = max(3, CALLS // 6)  # of the times that something is killed


@pytest.mark.timeout(240 + 12 * CALLS)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_no_answer_is_a_lie_when_the_database_is_killed(tmp_path: Path, database: str) -> None:
    found = outages(tmp_path / "base", database, PROCESSES, CALLS, COUNT)
    print(database, found)
    assert found["problems"] == []
    assert found["outages"].total() >= COUNT
    assert found["acknowledged inserts"] > PROCESSES


@pytest.mark.timeout(480)
@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_what_is_answered_wrongly_is_found_out(mutant: str, tmp_path: Path) -> None:
    """The harness is only worth something if it sees what is wrong."""
    runs = (
        outages(tmp_path / str(n), MUTANTS[mutant][1], PROCESSES, 12, 3, seed=n, mutant=mutant)
        for n in range(4)
    )
    assert any(found["problems"] for found in runs)

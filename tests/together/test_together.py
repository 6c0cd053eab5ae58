"""Eight processes on one workspace; TOGETHER_CALLS=500 sets how many calls each of them makes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.together.harness import together

PROCESSES = 8
CALLS = int(os.environ.get("TOGETHER_CALLS", "40"))


@pytest.mark.timeout(120 + CALLS)
def test_processes_on_one_workspace_lose_nothing_and_agree(tmp_path: Path, state_place: str) -> None:
    found = together(tmp_path, state_place, PROCESSES, CALLS)
    print(found)
    assert found["problems"] == []
    assert found["answers"]["ok"] > PROCESSES * CALLS / 4


def test_calls_that_do_not_keep_each_other_off_are_found_out(tmp_path: Path) -> None:
    """The harness is only worth something if it sees what is wrong."""
    runs = (
        together(tmp_path / str(n), str(tmp_path / f"s{n}"), PROCESSES, 100, without_care=True)
        for n in range(8)
    )
    assert any(found["problems"] for found in runs)

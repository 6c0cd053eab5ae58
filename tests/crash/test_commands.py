"""A process killed at every point of its calls of run_command; `tox -e crash` kills more often."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crash.command_kills import MUTANTS
from tests.sandbox.conftest import overlay_works, place

__all__ = ["overlay_works", "place"]

RUNS = int(os.environ.get("CRASH_RUNS", "72"))

pytestmark = pytest.mark.usefixtures("overlay_works")


def killed(place: Path, runs: int, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.command_kills", str(place), str(runs), "5", *more],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(120 + 2 * RUNS)
def test_a_killed_command_leaves_nothing_and_runs_once(place: Path) -> None:
    found = killed(place, RUNS)
    assert found["wrong"] == {}
    assert found["killed"] > found["runs"] / 2


@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_what_is_wrong_is_found(mutant: str, place: Path) -> None:
    assert killed(place, 69, mutant)["wrong"] != {}

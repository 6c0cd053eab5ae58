"""A process killed between two steps of its calls and at random moments; `tox -e crash` kills more often."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.crash.harness import STATE
from tests.crash.mutants import DURABLE, MUTANTS

RUNS = int(os.environ.get("CRASH_RUNS", "60"))
WORKERS = int(os.environ.get("CRASH_WORKERS", "2"))


def harness(mode: str, runs: int, seed: int, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.harness", mode, str(runs), "--seed", str(seed), *more],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(60 + RUNS)
@pytest.mark.parametrize("mode", ["points", "random"])
def test_a_killed_process_loses_nothing_and_leaves_no_lie(mode: str) -> None:
    parts = max(1, RUNS // 500)
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(lambda seed: harness(mode, RUNS // parts, seed), range(parts)))
    print({mode: {k: sum(r[k] for r in results) for k in ("runs", "killed", "seconds")}})
    # At random moments a short run may end before it is killed; at a step it is killed there.
    assert sum(result["killed"] for result in results) > RUNS / (3 if mode == "points" else 10)
    assert [result["examples"] for result in results if result["violations"]] == []


@pytest.mark.timeout(60 + 2 * RUNS)
def test_nor_does_one_killed_while_file_and_intent_are_synced_side_by_side() -> None:
    found = harness("points", RUNS, 11, "--durable")
    _check_killed(found)


@pytest.mark.timeout(60 + 2 * RUNS)
def test_nor_does_one_killed_while_its_files_are_not_synced_yet() -> None:
    found = harness("points", RUNS, 12, "--log")
    if "durable: log" in str(found["examples"]):
        pytest.skip("temporary files are on another file system than ext4 or XFS")
    _check_killed(found)


def _check_killed(found: dict[str, Any]) -> None:
    print({k: found[k] for k in ("runs", "killed", "seconds", "settled")})
    assert found["killed"] > RUNS / 3
    assert found["examples"] == {}


@pytest.mark.timeout(120 + RUNS)
@pytest.mark.parametrize("mode", ["points", "random"])
def test_the_same_with_state_in_postgresql(
    mode: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE, postgres_url)
    found = harness(mode, max(20, RUNS // 6), 7)
    print({mode: {k: found[k] for k in ("runs", "killed", "seconds", "settled")}})
    assert found["killed"] > found["runs"] / (3 if mode == "points" else 10)
    assert found["examples"] == {}


@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_a_history_kept_wrongly_is_found_out(mutant: str) -> None:
    """The harness is only worth something if it sees what is wrong."""
    seeds = (harness("points", 120, seed, "--mutant", mutant) for seed in range(3, 8))
    assert any(found["violations"] for found in seeds)


@pytest.mark.parametrize("mutant", sorted(DURABLE))
def test_so_is_a_file_that_has_a_name_too_early(mutant: str) -> None:
    seeds = (harness("points", 120, seed, "--durable", "--mutant", mutant) for seed in range(3, 8))
    assert any("a temporary left" in found["violations"] for found in seeds)

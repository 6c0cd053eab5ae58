"""Several processes killed on one workspace, beside another program, in prune, settling and upgrade."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.crash.chains import MEMORY, MODES, STATE, UPGRADE
from tests.crash.mutants import CHAINED

KILLS = int(os.environ.get("CRASH_KILLS", "270"))  # in all modes and placements together
WORKERS = int(os.environ.get("CRASH_WORKERS", "2"))
SEARCH = (
    15_000  # kills until a mutant must be found; it takes about 1,000 for the one that is hardest to find
)
# Where the search begins: the seeds before these find nothing, or seldom.
FROM = {"let-go-unseen": 3, "never-tidy": 3}
PART = 500  # kills of one run of the program
PLACED = [(mode, place) for mode in (*MODES, UPGRADE) for place in ("beside", "inside")]
PLACED.remove((UPGRADE, "inside"))  # where deletions are caught makes no difference to it


def chains(kills: int, seed: int, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.chains", str(kills), "--seed", str(seed), *more],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def no_second_file_system(tmp_path: Path) -> bool:
    return not os.access(MEMORY, os.W_OK) or os.stat(MEMORY).st_dev == os.stat(tmp_path).st_dev


@pytest.mark.timeout(120 + 2 * KILLS)
@pytest.mark.parametrize(("mode", "place"), PLACED)
def test_after_kills_nothing_is_lost_and_nothing_is_a_lie(mode: str, place: str, tmp_path: Path) -> None:
    if place == "inside" and no_second_file_system(tmp_path):
        pytest.skip(f"{MEMORY} is no file system of its own")
    kills = -(-KILLS // len(PLACED))
    sizes = [min(PART, kills - at) for at in range(0, kills, PART)]
    options = ["--modes", mode, *(["--inside"] if place == "inside" else [])]
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(lambda n: chains(sizes[n], 1000 * n, *options), range(len(sizes))))
    print(
        {f"{mode}, {place}": [{k: r[k] for k in ("kills", "settled", "counts", "seconds")} for r in results]}
    )
    assert [result["examples"] for result in results if result["violations"]] == []
    assert sum(result["killed"] for result in results) >= kills


@pytest.mark.timeout(180 + 2 * KILLS)
def test_the_same_with_state_in_postgresql(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE, postgres_url)
    found = chains(max(24, KILLS // 20), 7, "--modes", "several")
    assert found["examples"] == {}


@pytest.mark.timeout(120 + SEARCH // 20)
@pytest.mark.parametrize("mutant", sorted(CHAINED))
def test_what_is_done_wrongly_is_found_out(mutant: str) -> None:
    """The harness is only worth something if it sees what is wrong."""
    found = chains(SEARCH, FROM.get(mutant, 1), "--modes", CHAINED[mutant][1], "--mutant", mutant)
    assert found["violations"]

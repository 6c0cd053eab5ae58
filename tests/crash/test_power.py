"""The power cut while calls are made: few snapshots here, many with `tox -e crash`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crash.power import CANNOT, LOGGED, MUTANTS

SNAPSHOTS = int(os.environ.get("POWER_SNAPSHOTS", "12"))


def cut(snapshots: int, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.power", str(snapshots), *more],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip())
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def violations(*more: str) -> set[str]:
    """Return what the first cuts show that show anything: in the moment of a cut nothing may be waiting."""
    tries = (cut(4, "--seed", str(seed), *more)["violations"] for seed in range(3, 15))
    return set(next(filter(None, tries), ()))


@pytest.mark.timeout(60 + 2 * SNAPSHOTS)
def test_after_a_power_cut_nothing_is_lost_and_nothing_is_a_lie() -> None:
    found = cut(SNAPSHOTS, "--seed", "2")
    print({k: found[k] for k in ("snapshots", "answered", "settled", "seconds")})
    assert found["examples"] == {}
    assert found["snapshots"] == SNAPSHOTS
    assert found["answered"] > SNAPSHOTS


@pytest.mark.timeout(60 + 4 * SNAPSHOTS)
@pytest.mark.parametrize("more", [("--fs", "ext4"), ("--fs", "xfs", "--again")], ids=["ext4", "xfs-again"])
def test_nor_is_it_where_only_the_intent_is_waited_for(more: tuple[str, ...]) -> None:
    found = cut(SNAPSHOTS, "--seed", "5", "--durable", "log", *more)
    print({k: found[k] for k in ("snapshots", "answered", "settled", "seen", "seconds")})
    assert found["examples"] == {}
    assert found["settled"]


@pytest.mark.parametrize("mutant", sorted(LOGGED))
def test_what_is_logged_and_not_made_again_is_found_out(mutant: str) -> None:
    assert "the history says what did not happen" in violations("--durable", "log", "--mutant", mutant)


@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_what_is_not_written_through_is_found_out(mutant: str) -> None:
    """A harness that found nothing here could find nothing at all."""
    known = {"the history says what did not happen", "an answered call is not done in the history"}
    assert known & violations("--mutant", mutant)

"""How much the benchmarks measure: all of it, or with `--quick` as little as shows that each runs through.

A quick run says nothing of any claim: its figures are of too few things. Exit status 2 is "not measured".
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

NOT_MEASURED = 2
QUICK = "--quick" in sys.argv
if QUICK:
    sys.argv.remove("--quick")  # what else is there is the benchmark's own
    print("a quick run: it shows that this runs, and its figures say nothing")

T = TypeVar("T", bound="int | float | tuple[Any, ...]")


def size(all_: T, quick: T) -> T:
    """Return the one of the two that is asked for."""
    return quick if QUICK else all_


def not_measured(missing: str) -> int:
    """Say what is not there; gives the exit status for that."""
    print(f"not measured: {missing}")
    return NOT_MEASURED

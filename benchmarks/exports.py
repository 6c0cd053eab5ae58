"""Claim: a ready-made policy is exported to any format, and compared with it, in under 5 s of the processor.

python benchmarks/exports.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from _size import size

from ringfence.policy import READY_MADE, Policy, ready_made
from ringfence.toolkit.formats.equivalence import compare
from ringfence.toolkit.formats.exporting import outgoing
from ringfence.toolkit.formats.model import Format, Setting
from ringfence.toolkit.formats.registry import FORMATS

MAX_SECONDS = 5.0


def seconds(name: str, given: Format) -> float:
    """Processor time to write a policy in a format, read it back and compare the two on every path."""
    policy = Policy.load(ready_made(name))
    start = time.process_time()
    compared = compare(outgoing(policy, given, "default", Setting()).subjects, policy)
    if compared.undecided:
        raise AssertionError(compared.undecided)
    return time.process_time() - start


def main(names: Sequence[str]) -> int:
    slowest = 0.0
    for name in names:
        for given in FORMATS.values():
            if given.write is None:
                continue
            took = seconds(name, given)
            slowest = max(slowest, took)
            print(f"{name} as {given.name}: {took:.2f} s of the processor")
    print(f"the slowest: {slowest:.2f} s")
    return int(slowest > MAX_SECONDS)


if __name__ == "__main__":
    sys.exit(main(READY_MADE[: size(len(READY_MADE), 1)]))

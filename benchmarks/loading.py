"""Claim: a policy of 1,000 rules is loaded and ready to judge in at most twice what parsing its YAML costs.

From its kept form in at most 1.2 times. What it is held against is the C parser making plain lists and dicts
of the text; loading ends with the first verdict. Processor time, the lowest of several.

    python benchmarks/loading.py
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from _size import not_measured, size
from decide import rules

from ringfence.policy import Policy
from ringfence.policy.patterns.syntax import _plain_segment, parse

COUNTS = size((10, 100, 1_000, 10_000), (10, 1_000))
AT_MOST = {"sources": 2.0, "kept": 1.2}
TURNS = size(15, 1)


def lowest(*works: Callable[[], object]) -> list[float]:
    """Return the least that each takes. They take turns, so that none of them alone meets a busy machine."""
    best = [float("inf")] * len(works)
    for _ in range(TURNS):
        for at, work in enumerate(works):
            parse.cache_clear()
            _plain_segment.cache_clear()
            gc.collect()
            start = time.process_time()
            work()
            best[at] = min(best[at], time.process_time() - start)
    return best


def first_verdict(file: Path, *, kept: bool) -> None:
    Policy.load(file, kept=kept).effect("a", "delete", "delete", "src/a.py")


def main() -> int:
    if not hasattr(yaml, "CSafeLoader"):
        return not_measured("PyYAML has no C parser here")
    ratios: dict[str, float] = {}
    print(f"{'rules':>7} {'yaml ms':>9} {'sources ms':>11} {'times':>6} {'kept ms':>9} {'times':>6}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RINGFENCE_CACHE"] = os.path.join(folder, "cache")
        for count in COUNTS:
            lines = [f'    "{pattern}": {effect}\n' for pattern, effect in rules(count).items()]
            text = "version: 1\nrules:\n  delete:\n" + "".join(lines)
            file = Path(folder, f"{count}.yaml")
            file.write_text(text)
            parsed, sources, kept = lowest(
                functools.partial(yaml.load, text, Loader=yaml.CSafeLoader),
                functools.partial(first_verdict, file, kept=False),
                functools.partial(first_verdict, file, kept=True),
            )
            print(
                f"{count:7,} {parsed * 1e3:9.2f} {sources * 1e3:11.2f} {sources / parsed:6.1f}"
                f" {kept * 1e3:9.2f} {kept / parsed:6.1f}"
            )
            if count == 1_000:
                ratios = {"sources": sources / parsed, "kept": kept / parsed}
    for name, ratio in ratios.items():
        print(f"1,000 rules from {name}: {ratio:.2f} times the YAML; claimed: at most {AT_MOST[name]:g}")
    return int(any(ratio > AT_MOST[name] for name, ratio in ratios.items()))


if __name__ == "__main__":
    sys.exit(main())

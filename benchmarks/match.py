"""Claim: matching is linear in the length of the path, for any pattern.

Each hostile pattern is matched against names and paths of doubling length, none of which it matches. Linear
means that double the length takes about double the time; a matcher that backtracks does not get to the end.

    python benchmarks/match.py
"""

from __future__ import annotations

import itertools
import sys
import time

from _size import size

from ringfence.policy.patterns.matcher import Matcher, matches

NAMES = {
    "ten stars": "*a" * 10 + "*c*b",
    "a hundred stars": "*a" * 100 + "*c*b",
    "stars and marks": "*a?" * 50 + "*c?*b",
    "classes": "*[ab]a" * 50 + "*[cd]b*b",
}
PATHS = {
    "crossings": "**/" + "/**/".join(["a*a*a"] * 20) + "/**/b",
    "many crossings": "/".join(["**", "a"] * 60) + "/b",
}
LENGTHS = size((2_000, 4_000, 8_000, 16_000), (100, 200, 400))
AT_MOST = 3.5  # for double the length; a quadratic matcher would take four times


def seconds(pattern: str, path: str) -> float:
    machine = Matcher([pattern])
    best = 1e9
    for _ in range(5):
        machine._forget()
        start = time.perf_counter()
        machine.at(path)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    print(
        f"{'pattern':>16} " + " ".join(f"{length:>10,}" for length in LENGTHS) + "   us; growth when doubled"
    )
    worst = 0.0
    rows = [(title, pattern, "a") for title, pattern in NAMES.items()]
    rows += [(title, pattern, "aaaa/") for title, pattern in PATHS.items()]
    for title, pattern, unit in rows:
        paths = [(unit * length)[: length - 2].strip("/") + "ab" for length in LENGTHS]
        assert not any(matches(pattern, path) for path in paths)
        times = [seconds(pattern, path) for path in paths]
        growth = [after / before for before, after in itertools.pairwise(times)]
        middle = sorted(growth)[len(growth) // 2]
        worst = max(worst, middle)
        cells = " ".join(f"{each * 1e6:10.1f}" for each in times)
        print(f"{title:>16} {cells}   {' '.join(f'{each:.1f}' for each in growth)}")
    print(f"double the length takes at most {worst:.1f} times as long; claimed: at most {AT_MOST}")
    return int(worst > AT_MOST)


if __name__ == "__main__":
    sys.exit(main())

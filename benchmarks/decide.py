"""Claim: deciding does not grow with the number of rules as a loop over them would.

On paths not seen before, 1,000 rules cost at most 5 times as much as 10 (a loop of compiled expressions, last
match first, grows with the rules). Ratios of one run; the times themselves depend on the machine.

    python benchmarks/decide.py
"""

from __future__ import annotations

import json
import random
import re
import sys
import time

import policy

COUNTS = (10, 100, 1_000, 10_000)
PATHS = 10_000
AT_MOST = 5.0


def words(chance: random.Random, count: int) -> list[str]:
    return [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(count)
    ]


def rules(count: int) -> dict[str, str]:
    """Make up patterns as people write them: folders, suffixes, names anywhere, trees with a suffix."""
    chance = random.Random(count)
    folder = words(chance, max(8, count // 3))
    out: dict[str, str] = {"*": "ask"}
    while len(out) < count:
        a, b, c = chance.choices(folder, k=3)
        shapes = (f"{a}/**", f"{a}/{b}/*.{c[:3]}", f"/{a}/{b}", f"*.{a[:4]}", f"{a}*", f"{a}/**/{b}*.py")
        pattern = chance.choice([*shapes, f"**/{b}/", a, f"*{a}*.{c[:2]}", f"{a}/*/{b}"])
        out[pattern] = chance.choice(["allow", "ask", "deny"])
    return out


def fresh_paths(count: int, seed: int) -> list[str]:
    """Make up paths that share folders, as those of a code base do, and are all different."""
    known = random.Random(count)
    folder = words(known, max(8, count // 3))
    chance = random.Random(seed)
    new = words(chance, 400)
    out: dict[str, None] = {}
    while len(out) < PATHS:
        names = chance.choices(folder + new, k=chance.randint(1, 4))
        out[
            "/".join([*names, f"{chance.choice(new)}{len(out)}.{chance.choice(['py', 'go', 'txt', 'md'])}"])
        ] = None
    return list(out)


def expression(pattern: str) -> re.Pattern[str]:
    """Translate one pattern for the loop; good enough for the patterns made up here."""
    body = pattern.strip("/")
    text = re.escape(body).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".+").replace(r"\*", "[^/]*")
    return re.compile(("" if "/" in pattern.rstrip("/") else "(?:.*/)?") + text + "(?:/.*)?")


def judge(rules: dict[str, str], paths: list[str]) -> tuple[float, float, float]:
    """Return seconds to make ready, and for each path fresh and again."""
    start = time.perf_counter()
    engine = policy.loads(json.dumps({"version": 1, "rules": {"delete": rules}}))
    engine.effect("a", "delete", "delete", "x")
    ready = time.perf_counter() - start
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        for path in paths:
            engine.effect("a", "delete", "delete", path)
        seconds.append((time.perf_counter() - start) / len(paths))
    return ready, seconds[0], seconds[1]


def loop(rules: dict[str, str], paths: list[str]) -> float:
    table = [(expression(pattern), effect) for pattern, effect in reversed(rules.items())]
    start = time.perf_counter()
    for path in paths:
        next((effect for test, effect in table if test.fullmatch(path)), "ask")
    return (time.perf_counter() - start) / len(paths)


def main() -> int:
    print(
        f"{'rules':>7} {'ready ms':>9} {'fresh us':>9} {'again us':>9} {'loop us':>9} {'fresh, 10 = 1':>14}"
    )
    first = ratio = 0.0
    for count in COUNTS:
        made = rules(count)
        paths = fresh_paths(count, seed=1)
        ready, fresh, again = judge(made, paths)
        looped = loop(made, paths[: max(200, 200_000 // count)])
        first = first or fresh
        if count == 1_000:
            ratio = fresh / first
        times = f"{fresh * 1e6:9.1f} {again * 1e6:9.1f} {looped * 1e6:9.1f}"
        print(f"{count:7,} {ready * 1e3:9.1f} {times} {fresh / first:14.1f}")
    print(f"1,000 rules cost {ratio:.1f} times as much as 10; claimed: at most {AT_MOST:.0f}")
    return int(ratio > AT_MOST)


if __name__ == "__main__":
    sys.exit(main())

"""Claim: 100 realistic rules are checked, proved and compared in under 2 s each, 300 in under 10 s each.

A hostile policy ends with an answer or with "too complex", in bounded time and memory.
"""

from __future__ import annotations

import random
import resource
import sys
import time

from policy import Effect, Policy, loads
from policy.compare import compare
from policy.lint import lint
from policy.model import Invariant
from policy.prove import prove

CLAIMS = {100: 2.0, 300: 10.0}
AREAS = ["src", "docs", "tests", "build", "tmp", "infra", "web", "api", "db", "tools"]
ENDS = ["py", "go", "md", "ts", "json", "yaml", "sql", "txt", "log", "pem"]


def realistic(count: int, seed: int = 1) -> str:
    """A policy as teams write them: folders, endings, a few names at any depth, three keys, two agents."""
    rng = random.Random(seed)
    maps: dict[str, dict[str, str]] = {key: {"*": "ask"} for key in ("read", "write", "delete")}
    agents: dict[str, dict[str, str]] = {"coder": {}, "review-*": {}}
    for number in range(count - 3):
        area, other, end = rng.choice(AREAS), rng.choice(AREAS), rng.choice(ENDS)
        shapes = (f"{area}/{other}{number}/**", f"{area}/**/*{number % 30}.{end}", f"*{number % 50}.{end}")
        shapes += (f"{area}/mod{number}/*.{end}", f"/{area}/{other}/{number}/", f"**/{other}{number}/*.{end}")
        target = rng.choice([*maps.values(), *agents.values()])
        target[rng.choice(shapes)] = rng.choice(["allow", "ask", "deny"])
    out = ["version: 1", "rules:"]
    for key, rules in maps.items():
        out += [f"  {key}:", *(f'    "{pattern}": {effect}' for pattern, effect in rules.items())]
    out.append("agents:")
    for name, rules in agents.items():
        out += [f'  "{name}":', "    rules:", "      write:"]
        out += [f'        "{pattern}": {effect}' for pattern, effect in ({"x": "ask"} | rules).items()]
    return "\n".join(out) + "\n"


def hostile(count: int) -> str:
    """Patterns with many stars at any depth."""
    rules = (
        f'    "**/{"*".join("ab"[(n >> k) & 1] for k in range(6))}*/**/*{n}*a*": {("allow", "deny")[n % 2]}'
        for n in range(count)
    )
    return "\n".join(["version: 1", "rules:", "  read:", *rules]) + "\n"


def look(text: str) -> dict[str, float]:
    """Seconds for each of the three."""
    policy: Policy = loads(text)
    changed = loads(text.replace("    rules:", "    rules:", 1).replace(": deny", ": allow", 1))
    out = {}
    start = time.perf_counter()
    findings = lint(policy)
    out["check"] = time.perf_counter() - start
    start = time.perf_counter()
    prove(policy, [Invariant("never", "*", "write", "secrets/**", Effect.ALLOW)])
    out["prove"] = time.perf_counter() - start
    start = time.perf_counter()
    found = compare(policy, changed)
    out["diff"] = time.perf_counter() - start
    complex_ones = sum(finding.code == "too-complex" for finding in findings) + len(found.undecided)
    print(f"   {len(findings)} findings, {len(found.changes)} changes, {complex_ones} too complex")
    return out


def main(counts: list[int]) -> int:
    failed = 0
    for count in counts:
        times = look(realistic(count))
        worst = max(times.values())
        failed += worst > CLAIMS.get(count, 60.0)
        shown = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
        print(f"{count} rules: {shown}")
    times = look(hostile(60))
    print("60 hostile rules:", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {peak} MiB")
    return 1 if failed or peak > 1024 else 0


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [100, 300]))

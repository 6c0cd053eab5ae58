"""Claim: 100 realistic rules are checked, proved and compared in under 2 s, 300 in 10 s, 1,000 in 60 s.

`check` alone takes under 8 s for 1,000 realistic rules and under 60 s for 5,000, and answers everything.
Hostile policies end with an answer or with "too complex", within two minutes and 1 GiB. The seconds are those
of the processor.

    python benchmarks/analysis.py [COUNT...]
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable

from _size import size

from ringfence.policy import Effect, Policy, loads
from ringfence.policy.analysis.diff import compare
from ringfence.policy.analysis.prove import prove
from ringfence.policy.lint.run import lint
from ringfence.policy.model import Invariant

CLAIMS = {100: 2.0, 300: 10.0, 1000: 60.0}
CHECKED = {1000: 8.0, 5000: 60.0}  # by `check` alone
AT_MOST = 120.0  # for what is hostile
MAX_MIB = 1024
AREAS = ["src", "docs", "tests", "build", "tmp", "infra", "web", "api", "db", "tools"]
ENDS = ["py", "go", "md", "ts", "json", "yaml", "sql", "txt", "log", "pem"]


def realistic(count: int, seed: int = 1) -> str:
    """A policy as teams write them: folders, endings, a few names at any depth, three keys, two agents."""
    rng = random.Random(seed)
    maps: dict[str, dict[str, str]] = {key: {"*": "ask"} for key in ("read", "write", "delete")}
    agents: dict[str, dict[str, str]] = {"coder": {}, "review-*": {}}
    for number in range(count - 3):
        area, other, end = rng.choice(AREAS), rng.choice(AREAS), rng.choice(ENDS)
        shapes: tuple[str, ...]
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


def _read(rules: list[tuple[str, str]]) -> str:
    lines = (f"    '{pattern}': {effect}" for pattern, effect in rules)
    return "\n".join(["version: 1", "rules:", "  read:", *lines]) + "\n"


def _effect(number: int) -> str:
    return ("allow", "deny", "ask")[number % 3]


def _crossing(count: int) -> str:
    """Many stars at any depth."""
    return _read(
        [
            (f"**/{'*'.join('ab'[(n >> k) & 1] for k in range(6))}*/**/*{n}*a*", _effect(n))
            for n in range(count)
        ]
    )


def _positions(count: int) -> str:
    """An `a` that many characters from the end of a name, for many numbers: a product of them explodes."""
    return _read([("*a" + "?" * n, _effect(n)) for n in range(1, count)] + [("b*", "deny")])


def _braces(count: int) -> str:
    """Patterns of 256 alternatives each."""
    some = "{" + ",".join("abcdefghijklmnop") + "}"
    return _read([(f"**/{some}*{n}/**/*{some}", _effect(n)) for n in range(count)])


def _classes(count: int) -> str:
    """Ranges that overlap, so that there are many kinds of characters."""
    return _read(
        [(f"*[{chr(0x4E00 + n)}-{chr(0x4E80 + n)}]*[!{chr(0x4E40 + n)}]", _effect(n)) for n in range(count)]
    )


def _deep(count: int) -> str:
    """Patterns as long as they can be."""
    return _read([("**/a*/" * 160 + f"*{n}", _effect(n)) for n in range(count)])


HOSTILE: dict[str, tuple[Callable[[int], str], int]] = {
    "crossing stars": (_crossing, size(100, 5)),
    "counted positions": (_positions, size(40, 5)),
    "braces": (_braces, size(12, 1)),
    "classes": (_classes, size(60, 5)),
    "long patterns": (_deep, size(20, 2)),
}


def checked(count: int) -> bool:
    """Whether `check` answers everything about so many realistic rules within its time."""
    policy = loads(realistic(count))
    start = time.process_time()
    findings = lint(policy)
    seconds = time.process_time() - start
    unanswered = sum(finding.code == "too-complex" for finding in findings)
    print(
        f"{count} rules: check {seconds:.2f} s, {len(findings)} findings, {unanswered} too complex",
        flush=True,
    )
    return seconds <= CHECKED.get(count, AT_MOST) and not unanswered


def look(text: str) -> dict[str, float]:
    """Seconds of the processor for each of the three."""
    policy: Policy = loads(text)
    changed = loads(text.replace(": deny", ": allow", 1))
    out = {}
    start = time.process_time()
    findings = lint(policy)
    out["check"] = time.process_time() - start
    start = time.process_time()
    proofs = prove(policy, [Invariant("never", "*", "write", "secrets/**", Effect.ALLOW)])
    proofs += prove(policy, [Invariant("never", "*", "read", "**/a*/**/*b", Effect.ALLOW)])
    out["prove"] = time.process_time() - start
    start = time.process_time()
    found = compare(policy, changed)
    out["diff"] = time.process_time() - start
    unanswered = sum(finding.code == "too-complex" for finding in findings)
    unanswered += sum(proof.holds is None for proof in proofs) + len(found.undecided)
    print(f"   {len(findings)} findings, {len(found.changes)} changes, {unanswered} too complex", flush=True)
    return out


def main(counts: list[int]) -> int:
    failed = False
    for count in counts or size((1000, 5000), (10,)):
        failed |= not checked(count)
    counts = counts or list(size((100, 300, 1000), (10,)))
    rows = [(f"{count} rules", realistic(count), CLAIMS.get(count, 60.0)) for count in counts]
    rows += [(f"{count} of {name}", make(count), AT_MOST) for name, (make, count) in HOSTILE.items()]
    for name, text, claim in rows:
        times = look(text)
        failed |= sum(times.values()) > claim
        shown = ", ".join(f"{each} {seconds:.2f} s" for each, seconds in times.items())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{name}: {shown}; peak memory so far {peak} MiB", flush=True)
        failed |= peak > MAX_MIB
    return int(failed)


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]]))

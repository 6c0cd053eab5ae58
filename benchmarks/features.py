"""Claim: 1,000 rules that use every feature of the language cost at most 1.5 times as many that use none.

Of the rules, a fifth have a kind of writing as their key, and one in ten an end, a trial or a condition on
content; a set stands in place of patterns, and the floor has exceptions for agents. Compared are loading to
the first verdict, from the sources and from the cache, and verdicts on 2,000 paths, new ones and ones judged
before, asked of the policy at a time. Processor time, the lowest of several.

    python benchmarks/features.py
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from _size import size
from decide import rules
from loading import lowest

from ringfence.policy import Policy

COUNT = size(1_000, 50)
PATHS = [f"src/m{n % 37}/p{n}/file{n}.py" for n in range(size(2_000, 20))]
AT_MOST = 1.5
NOW = 1_800_000_000.0
SPECIAL = (
    "{{effect: {0}, until: 2099-12-31}}",
    "{{effect: {0}, trial: true}}",
    "{{effect: deny, content: [jwt]}}",
)


def plain() -> str:
    """Return a policy of COUNT rules that uses no feature."""
    lines = [f'    "{pattern}": {effect}\n' for pattern, effect in rules(COUNT).items()]
    floor = "mandatory:\n  - {deny: [read, write, delete], paths: ['*.pem', '.env*']}\n"
    return f"version: 1\n{floor}rules:\n  write:\n" + "".join(lines)


def featured() -> str:
    """Return a policy of about as many rules that uses all features."""
    keys: dict[str, list[str]] = {"write": [], "write.edit": []}
    for number, (pattern, effect) in enumerate(rules(COUNT).items()):
        said = SPECIAL[number // 10 % 3].format(effect) if number % 10 == 0 else effect
        keys["write.edit" if number % 5 == 1 else "write"].append(f'    "{pattern}": {said}\n')
    keys["write"].append('    "@secrets": deny\n')
    floor = "  - {deny: [read, write, delete], paths: '@secrets', except_agents: [release, 'release/*']}\n"
    maps = "".join(f"  {key}:\n{''.join(lines)}" for key, lines in keys.items())
    return f"version: 1\nsets: {{secrets: ['*.pem', '.env*']}}\nmandatory:\n{floor}rules:\n{maps}"


def first_verdict(file: Path, *, kept: bool) -> None:
    """Load a policy and ask it for one verdict."""
    Policy.load(file, kept=kept).at(NOW).effect("a", "edit_file", "write.edit", "src/a.py")


def verdicts(make: Callable[[], Policy], *, again: bool) -> Callable[[], None]:
    """Return the work of judging all paths with one policy; `again`: they were judged before."""
    known = make()

    def judge() -> None:
        policy = known if again else make()
        at = policy.at(NOW)
        for path in PATHS:
            at.effect("coder", "edit_file", "write.edit", path)

    judge()
    return judge


def main() -> int:
    """Print the table, and return 1 if the claim does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RINGFENCE_CACHE"] = os.path.join(folder, "cache")
        files = []
        for name, text in (("plain", plain()), ("featured", featured())):
            files.append(Path(folder, f"{name}.yaml"))
            files[-1].write_text(text)
        loads = [functools.partial(Policy.loads, file.read_text()) for file in files]
        rows: dict[str, list[Callable[[], object]]] = {
            "loading, from sources": [functools.partial(first_verdict, file, kept=False) for file in files],
            "loading, from the cache": [functools.partial(first_verdict, file, kept=True) for file in files],
            "loading and verdicts on new paths": [verdicts(load, again=False) for load in loads],
            "verdicts on known paths": [verdicts(load, again=True) for load in loads],
        }
        print(f"{'':34} {'plain ms':>9} {'features ms':>12} {'times':>6}")
        worst = 0.0
        for name, works in rows.items():
            without, using = lowest(*works)
            worst = max(worst, using / without)
            print(f"{name:34} {without * 1e3:9.2f} {using * 1e3:12.2f} {using / without:6.2f}")
    print(f"with all features at most {worst:.2f} times; claimed: {AT_MOST}")
    return int(worst > AT_MOST)


if __name__ == "__main__":
    sys.exit(main())

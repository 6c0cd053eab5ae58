"""Claim: `import policy` and `import toolkit` bring in nothing heavy, which is imported at its first use.

Over a bare interpreter, `policy` takes at most half and `toolkit` at most as much processor time as importing
the heavy dependencies takes (the validator, fsspec, SQLite, the terminal's colours); neither brings one in.

    python benchmarks/imports.py
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

TURNS = 15
HEAVY = ("jsonschema", "fsspec", "sqlite3", "rich.console")
NOT_BROUGHT = (*HEAVY, "referencing", "platformdirs", "asyncio", "shtab", "argparse")
AT_MOST = {"policy": 0.5, "toolkit": 1.0}


def run(code: str) -> float:
    """Return the processor seconds of a new interpreter; other work on the machine does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds(codes: list[str]) -> list[float]:
    """Return the median time of each, run in turns so that a busy moment meets all of them."""
    for code in codes:
        run(code)
    rounds = [[run(code) for code in codes] for _ in range(TURNS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def brought(name: str) -> list[str]:
    """Return the modules that importing `name` should not have brought in."""
    code = f"import sys, {name}; print(*(m for m in {NOT_BROUGHT!r} if m in sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()


def main() -> int:
    names = (*AT_MOST, "toolkit.cli")
    heavy_code = f"import {', '.join(HEAVY)}"
    bare, heavy, *taken = seconds(["pass", heavy_code, *(f"import {name}" for name in names)])
    print(f"{'bare':12} {bare * 1e3:7.1f} ms")
    print(f"{'heavy':12} {heavy * 1e3:7.1f} ms   {', '.join(HEAVY)}")
    kept = True
    for name, time_taken in zip(names, taken, strict=True):
        ratio = (time_taken - bare) / (heavy - bare)
        limit = AT_MOST.get(name)
        said = "no claim" if limit is None else f"at most {limit:g}"
        found = brought(name)
        print(f"{name:12} {time_taken * 1e3:7.1f} ms   {ratio:.2f} of the heavy ones ({said})", *found)
        kept = kept and (limit is None or (ratio <= limit and not found))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

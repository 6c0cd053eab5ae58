"""Claim: `ringfence.policy` and `ringfence.toolkit` import nothing heavy, which is imported when first used.

Over a bare interpreter, `policy` takes at most half and `toolkit` at most as much processor time as importing
the heavy dependencies takes (the validator, fsspec, SQLite, the terminal's colours); neither brings one in.

    python benchmarks/imports.py
"""

from __future__ import annotations

import sys
from functools import partial

from _child import PYTHON, in_turns, run
from _size import size

TURNS = size(15, 1)
HEAVY = ("jsonschema", "fsspec", "sqlite3", "rich.console")
NOT_BROUGHT = (*HEAVY, "referencing", "platformdirs", "asyncio", "shtab", "argparse")
AT_MOST = {"policy": 0.5, "toolkit": 1.0}


def seconds(codes: list[str]) -> list[float]:
    """Return the median processor time of a new interpreter that runs each."""
    return in_turns([partial(cost, code) for code in codes], TURNS)


def cost(code: str) -> float:
    return run([PYTHON, "-c", code])[0]


def brought(name: str) -> list[str]:
    """Return the modules that importing `name` should not have brought in."""
    code = f"import sys, {name}; print(*(m for m in {NOT_BROUGHT!r} if m in sys.modules))"
    return run([PYTHON, "-c", code])[1].split()


def main() -> int:
    names = (*AT_MOST, "ringfence.toolkit.cli")
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

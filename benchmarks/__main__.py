"""Runs every benchmark, each in a process of its own, and writes what came out as a table and plots.

    python -m benchmarks [--quick] [FOLDER]       (default: build/benchmarks)

Writes results.md, results.json, and decisions.svg, calls.svg and deletion.svg; exits with 1 when a claim does
not hold or could not be measured.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _plots  # noqa: E402
from _size import QUICK  # noqa: E402

BECAME = {0: "as claimed", 1: "falls short", 2: "not measured"}
SAVES = ("peers", "calls", "delete_tree")  # these write their figures as JSON too


def run(name: str, folder: Path) -> tuple[int, str, float]:
    extra = ["--json", str(folder / f"{name}.json")] if name in SAVES else []
    extra += ["--quick"] if QUICK else []
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *extra],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.returncode, (done.stdout + done.stderr).strip(), time.perf_counter() - began


def became(code: int, said: str) -> str:
    """Return what became of a benchmark; a program that failed exits with 1, too."""
    return "broke" if "Traceback (most recent call last)" in said else BECAME.get(code, "broke")


def plots(folder: Path) -> None:
    """Draw what the benchmarks of this folder have written down."""
    found = {name: json.loads((folder / f"{name}.json").read_text()) for name in SAVES if _has(folder, name)}
    if rows := found.get("peers"):
        (folder / "decisions.svg").write_text(_plots.decisions(rows))
    if calls := found.get("calls"):
        (folder / "calls.svg").write_text(_plots.calls(pairs(calls)))
    if taken := found.get("delete_tree"):
        title = "deleting 10,000 files so that they can be had back"
        (folder / "deletion.svg").write_text(_plots.bars(title, "s", taken))


def pairs(found: dict[str, Any]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return what calls.py wrote as ours and raw, by store and tool."""
    columns = {"disk": ("disk", "os"), "memory": ("memory", "fsspec")}
    here = {
        store: {tool: (row[ours], row[raw]) for tool, row in found["calls"].items()}
        for store, (ours, raw) in columns.items()
    }
    away = {
        name: {tool: (row["ringfence"], row["fsspec"]) for tool, row in table.items()}
        for name, table in found["servers"].items()
    }
    return here | away


def _has(folder: Path, name: str) -> bool:
    return (folder / f"{name}.json").exists()


def main(words: list[str]) -> int:
    folder = Path(words[0] if words else "build/benchmarks")
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    lines = [
        "# What the benchmarks measured",
        "",
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} on"
        f" {os.cpu_count()} processors.",
    ]
    results = {}
    for name in names:
        code, said, took = run(name, folder)
        what = became(code, said)
        results[name] = {"held": code == 0, "seconds": round(took, 1), "said": said}
        print(f"{'ok' if code == 0 else what.upper():>12}  {name} ({took:.0f} s)", flush=True)
        lines += ["", f"## {name}: {what}", "", "```", said, "```"]
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.md").write_text("\n".join(lines) + "\n")
    plots(folder)
    return int(not all(result["held"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

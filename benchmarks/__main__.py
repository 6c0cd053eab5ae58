"""Runs every benchmark, each in a process of its own, and writes what came out as a table and plots.

    python -m benchmarks [FOLDER]       (default: build/benchmarks)

Writes results.md, results.json and decisions.svg; exits with 1 when a claim does not hold.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SAVES = ("peers", "calls")  # these write their figures as JSON too
COLOURS = ("#0b6e4f", "#c84630", "#5b7db1", "#d4a017", "#7d5ba6", "#555555")


def run(name: str, folder: Path) -> tuple[int, str, float]:
    extra = ["--json", str(folder / f"{name}.json")] if name in SAVES else []
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *extra],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.returncode, (done.stdout + done.stderr).strip(), time.perf_counter() - began


def chart(rows: dict[str, dict[str, float]]) -> str:
    """Draw microseconds a decision over the number of rules, both logarithmic, as SVG."""
    counts = [int(count) for count in next(iter(rows.values()))]
    top = max(value for row in rows.values() for value in row.values())

    def x(count: int) -> float:
        return 60 + 400 * (math.log10(count) - 1) / (math.log10(counts[-1]) - 1)

    def y(value: float) -> float:
        return 320 - 290 * math.log10(max(value, 0.5) / 0.5) / math.log10(top / 0.5)

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="620" height="360" font-family="sans-serif">']
    parts.append('<rect width="620" height="360" fill="white"/>')
    for power in range(math.ceil(math.log10(top)) + 1):
        at = y(10**power)
        parts.append(f'<line x1="60" x2="460" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="52" y="{at + 4:.1f}" font-size="11" text-anchor="end">{10**power:,}</text>')
    parts += [
        f'<text x="{x(count):.1f}" y="340" font-size="11" text-anchor="middle">{count:,}</text>'
        for count in counts
    ]
    parts.append('<text x="260" y="356" font-size="11" text-anchor="middle">rules</text>')
    parts.append('<text x="60" y="16" font-size="11">microseconds a decision, paths never seen</text>')
    for (name, row), colour in zip(rows.items(), COLOURS, strict=False):
        points = " ".join(f"{x(int(count)):.1f},{y(value):.1f}" for count, value in row.items())
        last = y(row[str(counts[-1])]) + 4
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="468" y="{last:.1f}" font-size="12" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


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
        results[name] = {"held": code == 0, "seconds": round(took, 1), "said": said}
        print(f"{'ok' if code == 0 else 'FELL SHORT':>10}  {name} ({took:.0f} s)", flush=True)
        lines += ["", f"## {name}: {'as claimed' if code == 0 else 'falls short'}", "", "```", said, "```"]
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.md").write_text("\n".join(lines) + "\n")
    peers = folder / "peers.json"
    if peers.exists():
        (folder / "decisions.svg").write_text(chart(json.loads(peers.read_text())))
    return int(not all(result["held"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

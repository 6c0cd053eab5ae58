"""Claim: none is held. What calls cost by tool and store beside the same done raw, and what a start costs.

Raw is `os` by name on disk and fsspec's own calls in memory: no check, no history, no audit. Nothing waits
on either side. Processor time, that other work on the machine changes least; `--profile` shows its parts.

    python benchmarks/calls.py [--json FILE] [--profile]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _child import PYTHON, run
from fsspec.implementations.memory import MemoryFileSystem

from policy import Policy
from toolkit import Session

CALLS = 300
POLICY = 'version: 1\ndurable: false\nrules: {"*": allow}\nlimits: {delete: {max_files: 100000}}\n'
TEXT = "line of text\n" * 80
# Each with its arguments, and what does the same without us: on disk, and by fsspec.
TOOLS: dict[str, dict[str, Any]] = {
    "create_file": {"path": "d/n{}", "content": TEXT},
    "read_file": {"path": "d/n{}"},
    "edit_file": {"path": "d/n{}", "old_str": "line of text\n" * 80, "new_str": "two\n"},
    "get_file_info": {"path": "d/n{}"},
    "list_directory": {"path": "e"},
    "move_file": {"source": "d/n{}", "destination": "d/m{}"},
    "delete_file": {"path": "d/m{}"},
}


def raw_disk(root: str) -> dict[str, Callable[[int], object]]:
    def write(number: int, text: str = TEXT) -> None:
        Path(root, f"d/n{number}").write_text(text)

    def edit(number: int) -> None:
        write(number, Path(root, f"d/n{number}").read_text().replace(TEXT, "two\n"))

    return {
        "create_file": write,
        "read_file": lambda number: Path(root, f"d/n{number}").read_text(),
        "edit_file": edit,
        "get_file_info": lambda number: os.stat(f"{root}/d/n{number}"),
        "list_directory": lambda _: [entry.stat() for entry in os.scandir(f"{root}/e")],
        "move_file": lambda number: os.rename(f"{root}/d/n{number}", f"{root}/d/m{number}"),
        "delete_file": lambda number: os.unlink(f"{root}/d/m{number}"),
    }


def raw_memory() -> dict[str, Callable[[int], object]]:
    fs = MemoryFileSystem()
    for number in range(10):
        fs.pipe_file(f"/raw/e/f{number}", b"x")
    text = TEXT.encode()

    def edit(number: int) -> None:
        fs.pipe_file(f"/raw/d/n{number}", fs.cat_file(f"/raw/d/n{number}").replace(text, b"two\n"))

    return {
        "create_file": lambda number: fs.pipe_file(f"/raw/d/n{number}", text),
        "read_file": lambda number: fs.cat_file(f"/raw/d/n{number}"),
        "edit_file": edit,
        "get_file_info": lambda number: fs.info(f"/raw/d/n{number}"),
        "list_directory": lambda _: fs.ls("/raw/e", detail=True),
        "move_file": lambda number: fs.mv(f"/raw/d/n{number}", f"/raw/d/m{number}"),
        "delete_file": lambda number: fs.rm_file(f"/raw/d/m{number}"),
    }


def each(work: Callable[[int], object]) -> float:
    start = time.process_time()
    for number in range(CALLS):
        work(number)
    return CALLS / (time.process_time() - start)


def by_call(session: Session, tool: str) -> Callable[[int], object]:
    def work(number: int) -> None:
        arguments = {key: value.format(number) for key, value in TOOLS[tool].items()}
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok, result

    return work


def table(folder: str) -> dict[str, dict[str, float]]:
    """Return calls a second: by tool, for each store with us and raw."""
    root = os.path.join(folder, "root")
    other = os.path.join(folder, "raw")
    for place in (root, other):
        os.makedirs(f"{place}/d")
        os.makedirs(f"{place}/e")
        for number in range(10):
            Path(place, f"e/f{number}").write_text("x")
    policy = Policy.loads(POLICY)
    found: dict[str, dict[str, float]] = {}
    with (
        Session(root, policy, state=os.path.join(folder, "s")) as disk,
        Session("memory://bench", policy, state=":memory:") as memory,
    ):
        for number in range(10):
            by = {"path": f"e/f{number}", "content": "x"}
            assert memory.call({"tool": "create_file", "arguments": by}).ok
        raw, kept = raw_disk(other), raw_memory()
        for tool in TOOLS:
            found[tool] = {
                "disk": each(by_call(disk, tool)),
                "os": each(raw[tool]),
                "memory": each(by_call(memory, tool)),
                "fsspec": each(kept[tool]),
            }
    return found


def start(code: str) -> tuple[float, float]:
    """Return the lowest milliseconds and the peak memory in MB of a new interpreter that runs this."""
    said = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    command = [PYTHON, "-c", f"{code}\n{said}"]
    run(command)  # writes the byte code
    found = [run(command) for _ in range(7)]
    return min(took for took, _ in found) * 1e3, int(found[-1][1].split()[-1]) / 1024


def starts(folder: str) -> dict[str, tuple[float, float]]:
    from decide import rules

    lines = [f'    "{pattern}": {effect}\n' for pattern, effect in rules(1_000).items()]
    file = Path(folder, "ringfence.yaml")
    file.write_text("version: 1\nrules:\n  delete:\n" + "".join(lines))
    os.environ["RINGFENCE_CACHE"] = os.path.join(folder, "cache")
    one = (
        f"import policy; policy.Policy.load({str(file)!r}, kept={{}}).effect('a', 'delete', 'delete', 'x/y')"
    )
    command = "from toolkit.cli import main; main({})"
    return {
        "a bare interpreter": start("pass"),
        "--version": start(command.format(["--version"])),
        "a verdict under 1,000 rules, from YAML": start(one.format(False)),
        "the same from the kept form": start(one.format(True)),
        "explain": start(command.format(["explain", "--root", folder, "delete", "x"])),
        "a session, ready for calls": start(
            f"from toolkit import Session; Session({folder!r}, state=':memory:').close()"
        ),
    }


def profile(folder: str) -> None:
    import cProfile
    import pstats

    root = os.path.join(folder, "root")
    os.makedirs(f"{root}/d")
    with Session(root, Policy.loads(POLICY), state=os.path.join(folder, "s")) as session:
        work = by_call(session, "create_file")
        work(10**6)
        profiler = cProfile.Profile()
        profiler.runcall(each, work)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


def main(words: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        if "--profile" in words:
            profile(folder)
            return 0
        calls, cold = table(folder), starts(folder)
    if "--json" in words:
        place = words[words.index("--json") + 1]
        Path(place).write_text(json.dumps({"calls": calls, "starts": cold}, indent=1) + "\n")
    print(f"{'calls a CPU s':>16} {'disk':>9} {'os':>9} {'memory':>9} {'fsspec':>9}")
    for tool, row in calls.items():
        print(f"{tool:>16} " + " ".join(f"{value:9,.0f}" for value in row.values()))
    bare = cold["a bare interpreter"][0]
    for title, (took, memory) in cold.items():
        print(f"{title:>40} {took:7.1f} ms, {took / bare:4.1f} of a bare start, {memory:5.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

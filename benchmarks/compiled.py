"""Claim: no call becomes 1.5 times as fast when its modules are compiled with Cython, so none is compiled.

The modules that calls use are compiled in a copy of the package, and the same calls made with it and without,
in processor time. Needs a C compiler and Cython.

    python benchmarks/compiled.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from _calls import POLICY, TOOLS, by_call, fill
from _child import PYTHON
from _size import QUICK, not_measured, size

import ringfence
from ringfence.policy import Policy
from ringfence.toolkit import Session

CALLS, ROUNDS, TURNS, MODULES = size((150, 5, 3, 1_000), (2, 1, 1, 1))
WORTH_IT = 1.5
# What Cython may assume: nothing from types, since our annotations are no promise to a compiler.
CYTHON = ("-3", "-X", "annotation_typing=False")
COMPILER = ("-shared", "-fPIC", "-O2", "-fwrapv", "-w")
RULES = [f"src/p{n}/q{n % 10}/**/*.{end}" for n in range(250) for end in ("py", "go", "md", "ts")]
PATHS = [f"src/p{n % 250}/q{n % 10}/d{n % 50}/f{n}.{'py' if n % 2 else 'c'}" for n in range(5_000)]


def every_tool(session: Session) -> dict[str, float]:
    """Return the least microseconds of a call, by tool."""
    taken = dict.fromkeys(TOOLS, float("inf"))
    for turn in range(ROUNDS):
        for tool in TOOLS:
            work, start = by_call(session, tool), time.process_time()
            for number in range(turn * CALLS, (turn + 1) * CALLS):
                work(number)
            taken[tool] = min(taken[tool], (time.process_time() - start) / CALLS * 1e6)
    return taken


def decisions() -> float:
    """Return the least microseconds of a decision on a path that was not asked about before."""
    lines = "\n".join(f"    '{each}': deny" for each in RULES)
    best = float("inf")
    for _ in range(ROUNDS):
        policy = Policy.loads(f"version: 1\nrules:\n  read:\n    '**': ask\n{lines}")
        start = time.process_time()
        for path in PATHS:
            policy.effect("agent", "read_file", "read", path)
        best = min(best, (time.process_time() - start) / len(PATHS) * 1e6)
    return best


def measured() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/root/d")
        with Session(f"{folder}/root", Policy.loads(POLICY), state=f"{folder}/state") as session:
            fill(session)
            return {**every_tool(session), "a decision": decisions()}


def modules() -> list[str]:
    """Return the package's files whose functions calls run, those that run most first."""
    runs: dict[str, int] = {}

    def count(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and "ringfence" in name:
            runs[name] = runs.get(name, 0) + 1

    sys.setprofile(count)
    try:
        measured()
    finally:
        sys.setprofile(None)
    package = Path(next(iter(ringfence.__path__)))
    used = sorted((name for name in runs if Path(name).is_relative_to(package)), key=runs.__getitem__)
    return [str(Path(name).relative_to(package)) for name in reversed(used)][:MODULES]


def compiled(package: Path, module: str) -> bool:
    """Compile a module beside its source; False if Cython cannot."""
    source = package / module
    text, library = source.with_suffix(".c"), source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    made = subprocess.run([PYTHON, "-m", "cython", *CYTHON, source, "-o", text], capture_output=True)
    if made.returncode != 0:
        return False
    include = f"-I{sysconfig.get_paths()['include']}"
    subprocess.run(["cc", *COMPILER, include, text, "-o", library], check=True)
    return True


def run(folder: Path) -> dict[str, float]:
    words = [PYTHON, __file__, *(["--quick"] if QUICK else []), "measure"]
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parent}", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(measured()))
        return 0
    if shutil.which("cc") is None or find_spec("Cython") is None:
        return not_measured("a C compiler and Cython")
    with tempfile.TemporaryDirectory() as folder:
        plain, built = Path(folder, "plain"), Path(folder, "built")
        for each in (plain, built):
            shutil.copytree(next(iter(ringfence.__path__)), each / "ringfence")
        given, start = modules(), time.monotonic()
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            done = list(workers.map(partial(compiled, built / "ringfence"), given))
        print(f"{sum(done)} of {len(given)} modules compiled in {time.monotonic() - start:.0f} s")
        runs = [(run(plain), run(built)) for _ in range(TURNS)]
    gains = {}
    for name in runs[0][0]:
        ours, theirs = min(one[name] for one, _ in runs), min(other[name] for _, other in runs)
        gains[name] = ours / theirs
        print(f"{name:15} {ours:7.1f} µs   compiled {theirs:7.1f} µs   {gains[name]:.2f} times as fast")
    best = max(gains.values())
    print(f"at most {best:.2f} times as fast; a build would be worth it from {WORTH_IT:g} times on")
    return 0 if best < WORTH_IT else 1


if __name__ == "__main__":
    sys.exit(main())

"""Every benchmark runs through in its smallest size, where its figures say nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
SAVES = ("peers", "calls", "delete_tree")
HELD, MISSED, NOT_MEASURED = 0, 1, 2


def run(place: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    return subprocess.run(
        [sys.executable, *words], cwd=place, env=environment, capture_output=True, text=True, timeout=100
    )


def test_there_are_benchmarks() -> None:
    assert len(NAMES) >= 19


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs_through(name: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    done = run(tmp_path, str(FOLDER / f"{name}.py"), "--quick", *(["--json", str(saved)] * (name in SAVES)))
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (HELD, MISSED, NOT_MEASURED), done.stderr
    quick, *said = done.stdout.splitlines()
    assert "its figures say nothing" in quick
    assert said
    if done.returncode == NOT_MEASURED:
        assert said[-1].startswith("not measured: ")
    elif name in SAVES:
        assert json.loads(saved.read_text())
    assert [path.name for path in tmp_path.iterdir() if path != saved] == []  # all is tidied up


@pytest.mark.parametrize(
    ("name", "package"), [("accelerators", "fastjsonschema"), ("review", "starlette"), ("delete_tree", "git")]
)
def test_what_one_needs_and_has_not_is_said(name: str, package: str, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    (hidden / package).mkdir(parents=True)
    (hidden / package / "__init__.py").write_text(f"raise ModuleNotFoundError(name={package!r})\n")
    done = run(
        tmp_path,
        str(FOLDER / f"{name}.py"),
        "--quick",
        PYTHONPATH=os.pathsep.join([str(hidden), str(ROOT)]),
        PATH="/nowhere",
    )
    assert done.returncode == NOT_MEASURED, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"not measured: {package} ")


def test_running_all_tells_one_that_broke_from_a_claim_that_does_not_hold(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    for shared in ("__main__", "_plots", "_size"):
        (folder / f"{shared}.py").write_text((FOLDER / f"{shared}.py").read_text())
    for name, program in {
        "broken": "raise ValueError",
        "held": "import sys; print(sys.argv[1:])",
        "missed": "raise SystemExit(1)",
        "unmeasured": "raise SystemExit(2)",
    }.items():
        (folder / f"{name}.py").write_text(program)
    done = run(tmp_path, "-m", "benchmarks", "--quick", "out", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1, done.stderr
    assert [line.split(" (")[0].strip() for line in done.stdout.splitlines()[1:]] == [
        "BROKE  broken",
        "ok  held",
        "FALLS SHORT  missed",
        "NOT MEASURED  unmeasured",
    ]
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["held"]["said"] == "['--quick']"
    assert {name: each["held"] for name, each in found.items()} == {
        "broken": False, "held": True, "missed": False, "unmeasured": False
    }  # fmt: skip
    assert "## broken: broke" in (tmp_path / "out" / "results.md").read_text()

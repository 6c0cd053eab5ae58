"""The harnesses of examples/ as their readers would start them: a person answers, the agent's calls go on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_docs import ROOT, environment, folder

__all__ = ["folder"]
EXAMPLES = ROOT / "examples"
Harness = Callable[[str], str]

LICENSE = "--- a/LICENSE\n+++ /dev/null\n@@ -1 +0,0 @@\n-be kind\n"
BEGINNING = """\
0 ok: ✓ Created file: old/notes.txt
1 ok: ✓ Created file: LICENSE
? Delete directory old (1 file, 2 total lines) (agent coder, call 2)
  it says: "left over"
old/notes.txt  (10 B, 2 lines)
  y, a or n: """
# What the person types, first about old/ and then about LICENSE, and what is there in the end.
TYPED = {
    "y\ny\n": [],
    "y\nn\n": ["LICENSE"],
    "n\ny\n": ["old"],
    "": ["LICENSE", "old"],
}


def built(folder: Path) -> list[str]:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go: apt-get install golang-go")
    program = folder.parent / "harness"
    source = EXAMPLES / "harness-go" / "main.go"
    done = subprocess.run(
        [go, "build", "-o", str(program), str(source)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return [str(program)]


@pytest.fixture(params=["python", "go"])
def harness(request: pytest.FixtureRequest, folder: Path) -> Harness:
    """Runs the example in the folder, with what the person types on its stdin."""
    if request.param == "python":
        command = [sys.executable, "-W", "error", str(EXAMPLES / "harness-python" / "harness.py")]
    else:
        command = built(folder)

    def run(typed: str) -> str:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(folder),
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def test_a_person_answers(harness: Harness, folder: Path) -> None:
    for typed, left in TYPED.items():
        shown = harness(typed)
        assert shown.startswith(BEGINNING)
        assert LICENSE in shown
        assert sorted(path.name for path in folder.glob("[!.]*")) == sorted([*left, "ringfence.yaml"])
        # Nobody's typing is echoed, so what comes next stands behind the question.
        results = re.findall(r"\b[23] (?:ok|denied)(?=:)", shown)
        verdicts = {True: "denied", False: "ok"}
        assert results == [f"2 {verdicts['old' in left]}", f"3 {verdicts['LICENSE' in left]}"]
        for name in left:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_the_go_example_is_formatted_and_vetted(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go: apt-get install golang-go")
    source = str(EXAMPLES / "harness-go" / "main.go")
    vetted = subprocess.run([go, "vet", source], capture_output=True, text=True, timeout=300)
    assert vetted.returncode == 0, vetted.stderr
    if shutil.which("gofmt"):
        formatted = subprocess.run(["gofmt", "-l", source], capture_output=True, text=True, timeout=60)
        assert formatted.stdout == ""

"""What `doctor` tells of a machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

DEVELOPMENT = {"test", "dev", "bench", "examples"}


def doctor(root: Path, *more: str) -> str:
    command = [sys.executable, "-m", "ringfence", "doctor", "--root", str(root), *more]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_it_knows_every_extra_and_nothing_else(tmp_path: Path) -> None:
    told = json.loads(doctor(tmp_path, "--json"))["extras"]
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    assert set(told) == set(project["project"]["optional-dependencies"]) - DEVELOPMENT
    assert told["serve"] == (find_spec("uvicorn") is not None)


def test_for_people(tmp_path: Path) -> None:
    said = doctor(tmp_path)
    assert "resolves by" in said
    assert str(tmp_path) in said

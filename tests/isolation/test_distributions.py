"""The files of a release: a wheel from the source distribution holds what one from the checkout holds."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"


def built(what: str, source: Path, place: Path) -> Path:
    place.mkdir()
    command = [sys.executable, "-c", BUILD, what, str(place)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / done.stdout.split()[-1]


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "dist-info" not in name}


def test_the_source_distribution_builds_the_same_wheel(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="builds the distributions")
    source = built("build_sdist", ROOT, tmp_path / "source")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    made = contents(built("build_wheel", unpacked, tmp_path / "from-source"))
    assert made.keys() == contents(built("build_wheel", ROOT, tmp_path / "from-checkout")).keys()
    assert made["ringfence/toolkit/testing/faults/stores.yaml"]
    assert len([name for name in made if name.startswith("ringfence/rules/")]) > 5

"""`--version` and the servers give the version that is installed."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

import pytest

from ringfence.toolkit.version import version, version_line


def test_it_is_what_is_installed() -> None:
    try:
        wanted = installed("ringfence")
    except PackageNotFoundError:
        wanted = "0"
    assert version() == wanted


def test_what_is_found_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in ("9.8.7", "1.2.3"):
        (tmp_path / number / f"ringfence-{number}.dist-info").mkdir(parents=True)
    monkeypatch.setattr(
        sys, "path", [str(tmp_path / "none"), str(tmp_path / "9.8.7"), str(tmp_path / "1.2.3")]
    )
    assert version() == "9.8.7"
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert version() == "0"


def test_an_interrupted_upgrade_has_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two installations in one folder: both texts name the one that the metadata names."""
    for number in ("1.2.3", "9.8.7"):
        folder = tmp_path / f"ringfence-{number}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: ringfence\nVersion: {number}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert version() == installed("ringfence")
    assert version_line() == f"ringfence {installed('ringfence')}"


def test_nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert (version(), version_line()) == ("0", "ringfence (not installed)")

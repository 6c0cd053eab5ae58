"""The version that the servers give is the one that is installed."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

import pytest

from ringfence.toolkit.version import version


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

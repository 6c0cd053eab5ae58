"""Which names a root takes for one: asked of the file system, never left to a name that somebody chose."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Folding, Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import name_folding

HELD = Policy.loads('version: 1\nrules: {"*": {"*": allow, "secrets/": deny, "café/": deny}}\n')


def folding(root: Path) -> Folding:
    fd = os.open(root, os.O_RDONLY)
    try:
        return name_folding.folding_of(fd, str(root))
    finally:
        os.close(fd)


def like(monkeypatch: pytest.MonkeyPatch, same: Callable[[str], str]) -> None:
    """Make `os.stat` find a name by another one, as a file system does for which `same` makes them equal."""
    real = os.stat

    def stat(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        if isinstance(path, str):
            head, name = os.path.split(path)
            there = os.listdir(head or dir_fd)
            path = os.path.join(head, next((each for each in there if same(each) == same(name)), name))
        return real(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(name_folding.os, "stat", stat)


def form(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def test_a_usual_disk_of_linux_tells_every_name_apart(tmp_path: Path) -> None:
    for name in ("a", "B", "café", "cafe\u0301"):
        (tmp_path / name).touch()
    assert folding(tmp_path) is Folding.NONE


@pytest.mark.parametrize("names", [[], ["a"], ["!\u0131.txt"], ["!\u00df", "\u0149", "src"], ["1", "2", "Z"]])
def test_one_name_in_another_case_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for name in names:
        (root / name).touch()
    like(monkeypatch, str.lower)
    assert folding(root) is Folding.CASE


@pytest.mark.parametrize("name", ["café", "cafe\u0301"])
def test_a_name_in_its_other_form_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).touch()
    like(monkeypatch, form)
    assert folding(tmp_path) is Folding.FORM


@pytest.mark.parametrize("ignored", [True, False])
def test_the_flag_of_an_apple_disk_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: bool
) -> None:
    (tmp_path / "a").touch()
    monkeypatch.setattr(name_folding.sys, "platform", "darwin")
    monkeypatch.setattr(name_folding.os, "fpathconf", lambda fd, name: 0 if ignored else 1)
    assert folding(tmp_path) is (Folding.CASE if ignored else Folding.FORM)


def test_the_flag_of_a_directory_of_linux_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_folding, "_flags", lambda fd: name_folding._CASEFOLD)
    assert folding(tmp_path) is Folding.CASE


def test_an_agent_cannot_talk_it_away(fs: Any) -> None:
    """It makes a name that sorts first and has no other case, and looks again with a new session."""
    fs.is_case_sensitive = False
    fs.create_file("/fake/work/secrets/key", contents="TOPSECRET")
    for name in ("before", "!\u0131.txt", "!\u00df", "!1"):
        with Session("/fake/work", HELD, state=":memory:") as session:
            read = session.call({"tool": "read_file", "arguments": {"path": "SECRETS/key"}})
            assert read.error is not None and read.error["code"] == "denied_by_policy", name
            made = session.call({"tool": "create_file", "arguments": {"path": name, "content": ""}})
            assert made.ok


def test_two_forms_of_a_name_are_one_where_the_disk_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "café").mkdir()
    (tmp_path / "café/k").write_text("TOPSECRET")
    like(monkeypatch, form)
    with Session(tmp_path, HELD, state=":memory:") as session:
        assert session.fold == Folding.FORM
        for path, code in (
            ("café/k", "denied_by_policy"),
            ("cafe\u0301/k", "denied_by_policy"),
            ("CAFÉ/k", "not_found"),
        ):
            answer = session.call({"tool": "read_file", "arguments": {"path": path}})
            assert answer.error is not None and answer.error["code"] == code, path

"""A host's own folders: which they are, and that nobody else can make one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ringfence.toolkit.hooks import hosts


@pytest.mark.parametrize("kind", ["folder", "link", "open to all", "another's"])
def test_the_folder_that_all_users_could_make(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    if kind == "link":
        place = tmp_path / "link"
        place.symlink_to("shared")
    elif kind == "open to all":
        place.chmod(0o777)
    elif kind == "another's":
        uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    assert hosts._is_private(str(place)) == (kind == "folder")
    assert not hosts._is_private(str(tmp_path / "none"))


@pytest.mark.parametrize("host", hosts.EVENTS)
def test_no_file_that_holds_hooks_is_in_a_folder_of_its_own(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    files = hosts.settings_files(str(tmp_path))
    assert len(files) >= 5
    for own in hosts.own_places(host):
        assert not [file for file in files if file == own or file.startswith(f"{own}/")]
    assert all(hosts.holds_hooks(os.path.relpath(file, tmp_path)) for file in files)


@pytest.mark.parametrize("kind", ["file", "link", "hard link", "folder", "another's", "another name"])
def test_a_file_with_output_that_copilot_made(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder where everybody may make files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    name = "1795964253664-copilot-tool-output-18758-a4c3b05b.txt"
    place, secret = tmp_path / (f"x{name}" if kind == "another name" else name), tmp_path / "secret"
    secret.write_text("x", encoding="utf-8")
    if kind == "link":
        place.symlink_to(secret)
    elif kind == "hard link":
        place.hardlink_to(secret)
    elif kind == "folder":
        place.mkdir()
    else:
        place.write_text("x", encoding="utf-8")
    if kind == "another's":
        uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    assert (str(place) in hosts.own_places("copilot")) == (kind == "file")
    assert str(place) not in hosts.own_places("codex")


@pytest.mark.parametrize("variable", ["TMPDIR", "CLAUDE_CODE_TMPDIR"])
def test_output_of_commands_moves_with_the_temporary_folder(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAUDE_CODE_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "other"))
    monkeypatch.setenv(variable, str(tmp_path))
    output = tmp_path / f"claude-{os.getuid()}"
    assert str(output) not in hosts.own_places("claude-code")
    output.mkdir(mode=0o700)
    assert str(output) in hosts.own_places("claude-code")
    assert str(output) not in hosts.own_places("codex")

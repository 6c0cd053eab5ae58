"""What is trusted because it was found is ours or root's, and nobody else can write to it."""

from __future__ import annotations

import grp
import os
import pwd
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ringfence.toolkit import file_ownership as ownership
from ringfence.toolkit.cli import main
from ringfence.toolkit.file_ownership import Untrusted
from ringfence.toolkit.project_root import MARKS, find_root

ALLOW = 'version: 1\nrules: {"*": allow}\n'
NOBODY, STRANGER = 65534, 65533
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp, in which everybody can make names, with a folder of ours in it."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        folder = Path(name, "shared")
        (folder / "me/work").mkdir(parents=True)
        (folder / "me/work/note").write_text("keep")
        folder.chmod(0o1777)
        yield folder


def by(user: int, act: Callable[[], str]) -> str:
    """What `act` says in a process of another user; whatever it needs is imported by now."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.umask(0o022)
            said = act()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        return answer.read().decode()


def found(start: Path) -> str:
    folder, mark = find_root(str(start))
    return f"{folder} by {mark}"


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_mark_in_a_folder_that_others_can_write_to_is_refused(
    shared: Path, mark: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "me" / mark).mkdir()
    assert found(shared / "me/work") == f"{shared}/me by {mark}"
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group(("team", "x", gid, [])))
    (shared / "me").chmod(mode)
    with pytest.raises(Untrusted, match="can be written to by other users"):
        find_root(str(shared / "me/work"))


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_that_others_can_write_to_is_refused(shared: Path, mark: str) -> None:
    (shared / "me" / mark).write_text(ALLOW)
    (shared / "me" / mark).chmod(0o666)
    with pytest.raises(Untrusted, match=f"{mark} can be written to by other users"):
        find_root(str(shared / "me/work"))


def test_the_group_of_one_user_is_no_other_users(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shared / "me/ringfence.yaml").write_text(ALLOW)
    for place in (shared / "me/ringfence.yaml", shared / "me"):
        os.chown(place, -1, pwd.getpwuid(os.geteuid()).pw_gid)
        place.chmod(place.stat().st_mode | 0o020)
    user = pwd.getpwuid(os.geteuid()).pw_name
    members: list[str] = [user]
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((user, "x", gid, members)))
    assert found(shared / "me/work") == f"{shared}/me by ringfence.yaml"
    members.append("another")
    with pytest.raises(Untrusted):
        find_root(str(shared / "me/work"))


def test_another_users_mark_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership.os, "geteuid", lambda: STRANGER)
    (shared / "me/.git").mkdir()
    if os.stat(shared).st_uid == 0:
        assert found(shared / "me/work") == f"{shared}/me by .git", "what is root's is trusted"
    else:
        with pytest.raises(Untrusted, match="belongs to another user"):
            find_root(str(shared / "me/work"))


def test_a_link_to_what_is_not_trusted_is_not_trusted(shared: Path) -> None:
    (shared / "theirs.yaml").write_text(ALLOW)
    (shared / "theirs.yaml").chmod(0o666)
    (shared / "me/ringfence.yaml").symlink_to(shared / "theirs.yaml")
    with pytest.raises(Untrusted, match=r"theirs\.yaml can be written to"):
        find_root(str(shared / "me/work"))


def test_a_folder_of_ours_in_one_that_all_can_write_to_is_ours(shared: Path) -> None:
    (shared / "me/ringfence.yaml").write_text(ALLOW)
    assert found(shared / "me/work") == f"{shared}/me by ringfence.yaml"
    (shared / "ringfence.yaml").write_text(ALLOW)
    (shared / "me/ringfence.yaml").unlink()
    assert found(shared / "me/work") == f"{shared} by ringfence.yaml", "only its owner can replace it"


@as_root
@pytest.mark.parametrize("mark", MARKS)
def test_what_one_user_plants_above_another_is_refused(shared: Path, mark: str) -> None:
    by(STRANGER, lambda: str((shared / mark).mkdir()))
    assert (shared / mark).stat().st_uid == STRANGER
    os.chown(shared / "me", NOBODY, NOBODY)
    said = by(NOBODY, lambda: found(shared / "me/work"))
    assert said.startswith(f"Untrusted: {shared}/{mark} belongs to another user")
    assert "--root" in said
    assert by(STRANGER, lambda: found(shared / "me/work")) == f"{shared} by {mark}"
    # A nearer mark of one's own is the first that is found.
    by(NOBODY, lambda: str((shared / "me/.hg").mkdir()))
    assert by(NOBODY, lambda: found(shared / "me/work")).startswith(f"{shared}/me by ")


@as_root
def test_root_takes_no_policy_of_another_user_but_that_of_who_called_sudo(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by(NOBODY, lambda: str((shared / "ringfence.yaml").write_text(ALLOW)))
    with pytest.raises(Untrusted, match="belongs to another user"):
        find_root(str(shared / "me/work"))
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert found(shared / "me/work") == f"{shared} by ringfence.yaml"
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    with pytest.raises(Untrusted):
        find_root(str(shared / "me/work"))


@as_root
def test_every_command_stops_at_another_users_policy_and_names_the_way_out(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    by(NOBODY, lambda: str((shared / "ringfence.yaml").write_text(ALLOW)))
    monkeypatch.chdir(shared / "me/work")
    state = ["--state", str(shared / "me/state")]
    delete = ["call", "delete_file", '{"path": "note"}', *state]
    for words in (delete, ["check"], ["explain", "delete", "note"], ["doctor"], ["log", *state]):
        assert main(words) == 2, words
        told = capsys.readouterr()
        assert (told.out, "belongs to another user" in told.err, "--root" in told.err) == ("", True, True)
    assert main([*delete, "--policy", str(shared / "ringfence.yaml")]) == 2, "the workspace was found as well"
    assert main([*delete, "--root", "."]) == 1
    assert (shared / "me/work/note").exists()
    assert main(["call", "read_file", '{"path": "me/work/note"}', "--root", str(shared), *state]) == 0

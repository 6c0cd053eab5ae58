"""Levels below overlay: the copy, with and without namespaces, and Landlock in place."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.toolkit.sandbox import (
    LEVELS,
    Limits,
    SandboxError,
    Spec,
    copying,
    levels,
    resolving,
    run,
    runner,
)
from ringfence.toolkit.sandbox.errors import ERRORS
from ringfence.toolkit.sandbox.levels import APPARMOR_PROFILE, hint
from tests.sandbox.conftest import PYTHON

WORKS = {report.level: report for report in levels()}


def needs(level: str) -> pytest.MarkDecorator:
    report = WORKS[level]  # type: ignore[index] # one of LEVELS
    return pytest.mark.skipif(not report.works, reason=f"level {level}: {report.missing}; {report.hint}")


def spec(place: Path, line: str, **given: object) -> Spec:
    return Spec(("/bin/sh", "-c", line), str(place / "workspace"), str(place / "scratch"), **given)  # type: ignore[arg-type] # the test knows the fields


@pytest.fixture
def full(place: Path) -> Path:
    """A workspace with a hidden file, a link, a program and a directory."""
    workspace = place / "workspace"
    (workspace / "sub").mkdir()
    (workspace / "sub" / "key").write_text("secret")
    (workspace / "sub" / "plain").write_text("plain")
    (workspace / "program").write_text("#!/bin/sh\necho ran\n")
    (workspace / "program").chmod(0o755)
    (workspace / "link").symlink_to("sub/plain")
    return place


@pytest.fixture(params=["namespaces", "landlock"])
def without_namespaces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways of level copy: the second as on a machine whose kernel gives no user namespaces."""
    if request.param == "namespaces":
        return False
    kept = runner._attempt

    def attempt(request, *rest):  # type: ignore[no-untyped-def] # passes on what it gets
        if request.namespaces:
            return runner._Outcome(error=SandboxError("namespaces_forbidden", "forbidden for the test"))
        return kept(request, *rest)

    monkeypatch.setattr(runner, "_attempt", attempt)
    return True


@needs("copy")
@needs("landlock")
def test_the_copy_is_changed_and_the_workspace_is_not(full: Path, without_namespaces: bool) -> None:
    secret = f"cat {full}/workspace/sub/key sub/key 2>&1"
    line = f"./program; cat link; ls sub; echo new > made; rm link; {secret}; pwd"
    ended = run(spec(full, line, hidden=("sub/key",), level="copy"))
    assert ended.level == "copy"
    assert b"ran\nplain" in ended.output
    assert b"secret" not in ended.output
    copy = full / "scratch" / "copy"
    assert sorted(os.listdir(copy)) == ["made", "program", "sub"]
    assert os.listdir(copy / "sub") == ["plain"]
    assert (copy / "program").stat().st_mode & 0o777 == 0o755
    assert sorted(os.listdir(full / "workspace")) == ["link", "program", "sub"]
    inside = copy if without_namespaces else full / "workspace"
    assert ended.output.endswith(f"{inside}\n".encode())
    assert bool(ended.notes) == without_namespaces
    assert sorted(os.listdir(full / "scratch")) == ["copy"]


CONFINED = {
    "write outside": ("echo x > {place}/outside", b"enied"),
    "write in the workspace": ("echo x > {place}/workspace/made", b"enied"),
    "read the workspace": ("cat {place}/workspace/sub/plain", b"enied"),
    "read a secret of the home": ("cat {home}/.ssh/id", b"enied"),
    "write in the temporary directory": ("echo x > /tmp/ringfence-made", b"enied"),
    "signal the caller": ("kill -0 {pid}", b"ermitted"),
    "a socket": (PYTHON + " -c 'import socket; socket.socket(socket.AF_UNIX)'", b"ermitted"),
    "the network": (PYTHON + " -c 'import socket; socket.socket()'", b"not supported"),
    "a namespace": ("unshare -U true", b"ermitted"),
}


@needs("landlock")
@pytest.mark.parametrize("name", CONFINED)
@pytest.mark.parametrize("without_namespaces", ["landlock"], indirect=True)
def test_without_namespaces_the_copy_is_confined(
    full: Path, name: str, without_namespaces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = full / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    resolving._own.cache_clear()
    line, said = CONFINED[name]
    ended = run(spec(full, line.format(place=full, home=home, pid=os.getpid()), level="copy"))
    resolving._own.cache_clear()
    assert ended.status != 0
    assert said in ended.output, ended.output
    assert not (full / "outside").exists()


@needs("landlock")
@pytest.mark.parametrize("without_namespaces", ["landlock"], indirect=True)
def test_without_namespaces_the_private_directory_works_and_orphans_end(
    full: Path, without_namespaces: bool
) -> None:
    mark = f"5678{os.getpid()}"
    ended = run(
        spec(full, f"echo x > $TMPDIR/t && cat $TMPDIR/t; setsid sleep {mark} & exit 4", level="copy")
    )
    assert (ended.status, ended.output) == (4, b"x\n")
    assert subprocess.run(["pgrep", "-f", mark], stdout=subprocess.DEVNULL, check=False).returncode == 1


@needs("landlock")
def test_landlock_in_place(full: Path) -> None:
    (full / "workspace" / "build").mkdir()
    line = "echo x > build/made; echo x > made; echo x > ../made; cat sub/plain; cat sub/key; ls sub"
    ended = run(spec(full, line, level="landlock", writable=("build",), hidden=("sub/key",)))
    assert ended.level == "landlock"
    assert b"plain" in ended.output
    assert b"secret" not in ended.output
    assert (full / "workspace" / "build" / "made").read_text() == "x\n"
    assert sorted(os.listdir(full / "workspace")) == ["build", "link", "program", "sub"]


@needs("landlock")
def test_a_writable_directory_cannot_hold_a_hidden_name(full: Path) -> None:
    with pytest.raises(SandboxError) as caught:
        run(spec(full, "true", level="landlock", writable=("sub",), hidden=("sub/key",)))
    assert (caught.value.code, caught.value.place) == ("bad_request", "writable")


@needs("landlock")
@pytest.mark.parametrize("name", ["outside", "outside/below", "missing"])
def test_a_writable_directory_cannot_be_reached_by_a_link(full: Path, name: str) -> None:
    (full / "elsewhere" / "below").mkdir(parents=True)
    (full / "workspace" / "outside").symlink_to(full / "elsewhere")
    with pytest.raises(SandboxError) as caught:
        run(spec(full, "true", level="landlock", writable=(name,)))
    assert (caught.value.code, caught.value.place) == ("bad_request", "writable")


def test_level_none_confines_nothing(full: Path) -> None:
    ended = run(spec(full, "echo x > made; cat sub/key", level="none", hidden=("sub/key",)))
    assert (ended.level, ended.output) == ("none", b"secret")
    assert (full / "workspace" / "made").exists()


@pytest.mark.parametrize(("name", "value"), [("MOST_ENTRIES", 3), ("MOST_BYTES", 8), ("_MOST_LEVELS", 0)])
def test_a_copy_has_bounds(full: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(copying, name, value)
    with pytest.raises(SandboxError) as caught:
        run(spec(full, "true", level="copy"))
    assert caught.value.code == "too_large"


def test_a_copy_keeps_times_links_and_odd_entries_out(full: Path) -> None:
    workspace = full / "workspace"
    os.utime(workspace / "sub" / "plain", (1_000_000, 1_000_000))
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(workspace / "socket"))
        copying.copy_tree(str(workspace), str(full / "copy"), (), ("sub",))
    assert sorted(os.listdir(full / "copy")) == ["link", "program", "sub"]
    assert os.readlink(full / "copy" / "link") == "sub/plain"
    assert os.listdir(full / "copy" / "sub") == []
    shutil.rmtree(full / "copy")
    copying.copy_tree(str(workspace), str(full / "copy"), (), ())
    assert (full / "copy" / "sub" / "plain").stat().st_mtime == 1_000_000


def test_every_level_is_reported_and_what_fails_says_what_to_do() -> None:
    found = levels()
    assert [report.level for report in found] == list(LEVELS)
    assert all(report.works or (report.missing and report.hint) for report in found)


def test_another_system_has_only_level_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    found = levels()
    assert [report.works for report in found] == [False, False, False, True]
    assert "not on this system (darwin)" in found[0].missing
    with pytest.raises(SandboxError, match="no sandbox"):
        run(Spec(("true",), "/nowhere", "/nowhere"))


def test_the_first_windows_subsystem_has_only_level_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: "4.4.0-19041-Microsoft")
    assert "WSL1" in levels()[0].missing


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a user namespace without room for others")
def test_a_machine_that_allows_no_user_namespaces_is_diagnosed(place: Path) -> None:
    code = (
        "from ringfence.toolkit.sandbox import levels; import dataclasses, json;"
        "print(json.dumps([dataclasses.asdict(r) for r in levels()]))"
    )
    line = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    command = ["unshare", "-U", "-r", "sh", "-c", line, "sh", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    import json

    overlay, copy, landlock, none = json.loads(done.stdout)
    assert not overlay["works"]
    assert "limited to none" in overlay["missing"]
    assert "sysctl user.max_user_namespaces" in overlay["hint"]
    assert (copy["works"], landlock["works"], none["works"]) == (True, True, True)
    assert "Landlock alone" in copy["missing"]


def test_the_hint_for_apparmor_names_the_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ringfence.toolkit.sandbox import levels as module

    setting = tmp_path / "restricted"
    setting.write_text("1\n")
    found = sys.modules[module.__module__]
    monkeypatch.setattr(found, "_APPARMOR", setting)
    monkeypatch.setattr(found, "_CONTAINERS", ())
    monkeypatch.setattr(found, "_SETTINGS", ())
    assert str(APPARMOR_PROFILE) in hint(SandboxError("namespaces_forbidden", "no rights"))
    assert "profile ringfence" in APPARMOR_PROFILE.read_text(encoding="utf-8")


def test_every_error_code_has_a_hint_and_is_raised_somewhere() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(copying.__file__).parent.glob("*.py"))
    assert [code for code in ERRORS if source.count(f'"{code}"') < 2] == []
    assert all(ERRORS.values())


def test_limits_are_those_of_the_design() -> None:
    assert Limits() == Limits(600, 1 << 20, 4 << 30, 512, 4 << 30)

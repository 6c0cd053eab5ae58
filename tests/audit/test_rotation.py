"""An audit log that is put aside while it is written: each record is in one of the files, and in one only."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit.hash_chain import Checked
from ringfence.toolkit.cli import main
from ringfence.toolkit.session.session import Session
from tests.audit.lines import check_lines

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\n')


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "audit.jsonl"


def opened(log: Path) -> Session:
    root = log.parent.parent
    return Session(root / "ws", ALLOW, state=root / "state", audit_log=log)


def calls(session: Session, count: int) -> None:
    for _ in range(count):
        assert session.call({"tool": "get_project_root", "arguments": {}}).ok


def renamed(log: Path) -> Path:
    return log.rename(f"{log}.1")


def renamed_and_made(log: Path) -> Path:
    aside = renamed(log)
    log.touch(0o640)
    return aside


def dated(log: Path) -> Path:
    aside = log.rename(f"{log}-20261128")
    log.touch()
    return aside


def copied_and_emptied(log: Path) -> Path:
    aside = Path(shutil.copy(log, f"{log}.1"))
    os.truncate(log, 0)
    return aside


def with_a_torn_end(log: Path) -> Path:
    """Copied while a line was written."""
    aside = copied_and_emptied(log)
    os.truncate(aside, aside.stat().st_size - 20)
    return aside


def among_older_ones(log: Path) -> Path:
    """With packed and unpacked ones before it, and files of others."""
    lines = log.read_bytes().splitlines(keepends=True)
    log.with_name("audit.jsonl.2").write_bytes(lines[0])
    log.with_name("audit.jsonl.3.gz").write_bytes(gzip.compress(b"".join(lines)))
    log.with_name("audit.jsonl.note").write_text("not a log\n")
    log.with_name("audit.jsonl.folder").mkdir()
    os.mkfifo(log.with_name("audit.jsonl.pipe"))
    # A log of another workspace, with more records than this one has.
    with Session(log.parent.parent, ALLOW, state=":memory:", audit_log=f"{log}.other") as other:
        calls(other, 50)
    return renamed(log)


WAYS = [renamed, renamed_and_made, dated, copied_and_emptied, with_a_torn_end, among_older_ones]


@pytest.mark.parametrize("aside", WAYS)
@pytest.mark.parametrize("who", ["the same", "a new one", "another that was at work"])
def test_the_next_file_goes_on_where_the_last_one_ended(
    log: Path, aside: Callable[[Path], Path], who: str
) -> None:
    with opened(log) as one, opened(log) as two:
        calls(one, 2)
        calls(two, 3)
        old = aside(log)
        if who == "a new one":
            with opened(log) as new:
                calls(new, 2)
        calls(two if who == "another that was at work" else one, 1)
        calls(two, 1)
        calls(one, 1)
        last = 10 if who == "a new one" else 8
    text = old.read_text()
    torn = [5] if aside is with_a_torn_end else []
    assert check_lines(text) == Checked([], 5 - len(torn), torn)
    # The torn line of a copy is followed by nothing in its file, and by the whole record in the next.
    whole = text if not torn else text[: text.rindex("\n") + 1]
    assert check_lines(whole + log.read_text()) == Checked([], last)
    assert len(log.read_text().splitlines()) == last - 5 + len(torn)


def test_a_log_that_was_put_elsewhere_is_gone_on_with_by_who_had_it(log: Path, tmp_path: Path) -> None:
    with opened(log) as session:
        calls(session, 3)
        old = log.rename(tmp_path / "elsewhere")
        calls(session, 1)
    assert check_lines(old.read_text() + log.read_text()) == Checked([], 4)


def test_a_log_that_is_nowhere_any_more_is_written_anew(log: Path) -> None:
    """Packed before everybody had let go of it, or deleted: what is not known to be kept is there again."""
    with opened(log) as session:
        calls(session, 3)
        log.unlink()
        calls(session, 1)
    assert check_lines(log.read_text()) == Checked([], 4)


def test_a_file_made_for_others_to_read_stays_so(log: Path) -> None:
    with opened(log) as session:
        calls(session, 1)
        renamed_and_made(log)
        log.chmod(0o640)
        calls(session, 1)
    assert log.stat().st_mode & 0o777 == 0o640


def test_nothing_is_left_open(log: Path) -> None:
    with opened(log) as session:
        calls(session, 1)
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        for n in range(5):
            log.rename(f"{log}.{n}")
            calls(session, 2)
        after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert before == after


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="no logrotate: apt-get install logrotate")
def test_with_the_settings_for_logrotate_that_the_page_shows(log: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "audit.md"
    settings = re.search(r"```\n(/var/log/ringfence/\*\.jsonl \{.*?\n\})\n```", page.read_text(), re.DOTALL)
    assert settings is not None
    conf = log.with_name("conf")
    conf.write_text(settings[1].replace("/var/log/ringfence", str(log.parent)))
    log.parent.chmod(0o755)
    conf.chmod(0o644)
    with opened(log) as session:
        for _ in range(4):
            calls(session, 2)
            command = ["logrotate", "--force", "--state", log.with_name("status"), conf]
            subprocess.run(command, check=True)
            assert log.stat().st_size == 0
        calls(session, 1)
    old = [gzip.decompress(log.with_name(f"audit.jsonl.{n}.gz").read_bytes()).decode() for n in (4, 3, 2)]
    text = "".join([*old, log.with_name("audit.jsonl.1").read_text(), log.read_text()])
    assert check_lines(text) == Checked([], 9)


def test_rotating_under_writers_loses_and_repeats_nothing(log: Path) -> None:
    root, count = log.parent.parent, 150
    (root / "ws" / "ringfence.yaml").write_text('version: 1\nrules: {"*": allow}\ndurable: false\n')
    (root / "calls").write_text('{"tool": "get_project_root", "arguments": {}}\n' * count)
    where = ["--root", str(root / "ws"), "--state", str(root / "state"), "--audit-log", str(log)]
    command = [sys.executable, "-m", "ringfence", "run", *where, str(root / "calls")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    done = threading.Event()
    parts: list[Path] = []

    def rotate() -> None:
        while not done.wait(0.02):
            if log.exists() and log.stat().st_size:
                parts.append(log.rename(f"{log}.{len(parts):06}"))

    rotating = threading.Thread(target=rotate)
    rotating.start()
    try:
        answers = [process.communicate()[0].splitlines() for process in running]
    finally:
        done.set()
        rotating.join()
    assert [json.loads(line)["status"] for lines in answers for line in lines] == ["ok"] * 3 * count
    assert len(parts) > 1
    text = "".join(part.read_text() for part in [*parts, *([log] if log.exists() else [])])
    assert check_lines(text) == Checked([], 3 * count)


# --------------------------------------------------------------- a log in the workspace


LOCKED = ("audit", "audit.1", "audit.1.gz", "audit-20261128", "audit.jsonl", "audit.d/1")
OTHERS = ("audit2", "audits", "my-audit.1", "audit_1")


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[tuple[Session, Path]]:
    """A session whose log lies in its workspace, with files of all the names beside it."""
    folder = tmp_path / "ws" / "logs"
    (folder / "audit.d").mkdir(parents=True)
    for name in (*LOCKED[1:], *OTHERS):
        (folder / name).write_text("a\n")
    with Session(tmp_path / "ws", ALLOW, state=tmp_path / "state", audit_log=folder / "audit") as session:
        yield session, folder


def ways(path: str) -> dict[str, dict[str, Any]]:
    return {
        "create_file": {"path": path, "content": "", "allow_overwrite": True},
        "edit_file": {"path": path, "old_str": "a", "new_str": "b"},
        "insert_at_line": {"path": path, "content": "b", "line": 0},
        "move_file": {"source": path, "destination": "elsewhere"},
        "delete_file": {"path": path},
        "delete": {"path": path},
        "copy_file": {"source": "logs/audits", "destination": path, "allow_overwrite": True},
    }


def code(session: Session, tool: str, arguments: dict[str, Any]) -> str:
    return str((session.call({"tool": tool, "arguments": arguments}).error or {}).get("code"))


@pytest.mark.parametrize("name", LOCKED)
def test_no_tool_changes_what_was_put_aside_or_passes_for_it(inside: tuple[Session, Path], name: str) -> None:
    session, folder = inside
    before = (folder / name).read_bytes()
    for tool, arguments in ways(f"logs/{name}").items():
        assert code(session, tool, arguments) == "protected_path", tool
    (folder / name).unlink()
    # Nor is one made: where the log begins is read from such files.
    assert code(session, "create_file", {"path": f"logs/{name}", "content": ""}) == "protected_path"
    arguments = {"source": "logs/audits", "destination": f"logs/{name}"}
    assert code(session, "move_file", arguments) == "protected_path"
    (folder / name).write_bytes(before)
    assert session.call({"tool": "read_file", "arguments": {"path": f"logs/{name}"}}).ok
    for tool in ("delete", "move_file"):
        whole = {"path": "logs"} if tool == "delete" else {"source": "logs", "destination": "l"}
        assert code(session, tool, whole) == "protected_path"


@pytest.mark.parametrize("name", OTHERS)
def test_names_that_only_look_alike_are_not_locked(inside: tuple[Session, Path], name: str) -> None:
    session, _ = inside
    assert session.call({"tool": "delete_file", "arguments": {"path": f"logs/{name}"}}).ok


def test_a_link_to_the_folder_is_no_way_round(inside: tuple[Session, Path]) -> None:
    session, folder = inside
    os.symlink("logs", folder.parent / "way")
    for name in ("audit", "audit.1"):
        for tool, arguments in ways(f"way/{name}").items():
            assert code(session, tool, arguments) == "protected_path", tool


def test_a_log_beside_which_an_agent_laid_a_copy_misses_nothing(tmp_path: Path) -> None:
    """What the lock is for: a copy with the newest record would be taken for where the log ended."""
    root = tmp_path / "ws"
    root.mkdir()
    log = root / "audit"
    with Session(root, ALLOW, state=tmp_path / "state", audit_log=log) as session:
        calls(session, 2)
        assert code(session, "copy_file", {"source": "audit", "destination": "audit.9"}) == "protected_path"
        log.unlink()
        calls(session, 1)
    assert check_lines(log.read_text()) == Checked([], 4)


# ------------------------------------------------------------ a log that rotates itself


def rotating(log: Path, rotate: str) -> Session:
    root = log.parent.parent
    return Session(root / "ws", ALLOW, state=root / "state", audit_log=log, audit_log_rotate=rotate)


def parts_of(log: Path) -> list[Path]:
    """The log and what was put aside of it, oldest first."""
    numbered = [path for path in log.parent.iterdir() if path.name != log.name]
    return [*sorted(numbered, key=lambda path: -int(path.suffix[1:])), *([log] if log.exists() else [])]


def test_a_full_log_is_put_aside_and_the_chain_goes_through_all_of_it(log: Path) -> None:
    with rotating(log, "2KiB:50") as session:
        calls(session, 40)
    parts = parts_of(log)
    assert len(parts) > 5
    assert all(2048 <= part.stat().st_size < 4096 for part in parts if part != log)
    assert check_lines("".join(part.read_text() for part in parts)) == Checked([], 40)


def test_no_more_of_them_stay_than_were_asked_for(log: Path) -> None:
    with rotating(log, "1KiB:3") as session:
        calls(session, 30)
        rows = session.state.rows("SELECT seq, hash FROM audit")
    parts = parts_of(log)
    assert [part.name for part in parts if part != log] == [f"{log.name}.{n}" for n in (3, 2, 1)]
    text = "".join(part.read_text() for part in parts)
    first = json.loads(text.splitlines()[0])
    assert (first["seq"] - 1, first["prev"]) in [tuple(row) for row in rows]
    assert json.loads(text.splitlines()[-1])["seq"] == 30


def test_a_log_that_is_begun_late_is_rotated_while_it_is_filled(log: Path) -> None:
    root = log.parent.parent
    with Session(root / "ws", ALLOW, state=root / "state") as session:
        calls(session, 600)
    with rotating(log, "20KiB:99"):
        pass
    assert len(parts_of(log)) > 1
    assert check_lines("".join(part.read_text() for part in parts_of(log))) == Checked([], 600)


def test_processes_that_rotate_one_log_lose_and_repeat_nothing(log: Path) -> None:
    root, count = log.parent.parent, 100
    (root / "ws" / "ringfence.yaml").write_text('version: 1\nrules: {"*": allow}\ndurable: false\n')
    (root / "calls").write_text('{"tool": "get_project_root", "arguments": {}}\n' * count)
    where = ["--root", str(root / "ws"), "--state", str(root / "state"), "--audit-log", str(log)]
    command = [sys.executable, "-m", "ringfence", "run", *where, "--audit-log-rotate", "4KiB:200"]
    running = [subprocess.Popen([*command, str(root / "calls")], stdout=subprocess.PIPE) for _ in range(3)]
    for process in running:
        process.communicate()
    assert len(parts_of(log)) > 5
    assert check_lines("".join(part.read_text() for part in parts_of(log))) == Checked([], 3 * count)


@pytest.mark.parametrize("rotate", ["10", "10MB:3", "0:3", "1MiB:0", "1MiB:", "1MiB:1000", "1MiB:two"])
def test_what_is_no_rotation_is_refused(log: Path, rotate: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--root", str(log.parent.parent / "ws"), "--audit-log", str(log)]
    assert main(["call", "get_project_root", "{}", *where, "--audit-log-rotate", rotate]) == 2
    assert "100MiB:10" in capsys.readouterr().err

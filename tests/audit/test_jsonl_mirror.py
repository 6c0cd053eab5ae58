"""The audit as lines of JSON: whole whoever wrote, and what was done to it is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.hash_chain import Checked, Fault, as_anchor, line, seal
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from tests.audit.lines import check_lines

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
KEY = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def opened(tmp_path: Path, state_place: str) -> Callable[..., Session]:
    (tmp_path / "ws").mkdir()

    def opened(**options: Any) -> Session:
        options = {"audit_log": tmp_path / "log", "state": state_place, **options}
        return Session(tmp_path / "ws", ALLOW, **options)

    return opened


def calls(session: Session, count: int) -> None:
    for n in range(count):
        session.call({"tool": "get_file_info", "arguments": {"path": f"f{n}"}, "id": "ü\n\u2028"})


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(one) for one in log.read_text().splitlines()]


# --------------------------------------------------------------------- what is in it


def test_every_record_is_a_line_with_its_fields(opened: Callable[..., Session], tmp_path: Path) -> None:
    with opened() as session:
        calls(session, 3)
        told = lines(tmp_path / "log")
        assert [{k: v for k, v in one.items() if k not in ("hash", "prev")} for one in told] == list(
            audit.records(session.state)
        )
    assert check_lines((tmp_path / "log").read_text()) == Checked([], 3)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_what_others_wrote_is_added_and_nothing_twice(opened: Callable[..., Session], tmp_path: Path) -> None:
    with opened(audit_log=None) as quiet:
        calls(quiet, 2)
        with opened() as one, opened() as two:
            assert len(lines(tmp_path / "log")) == 2
            for session in (one, two, quiet, two, one):
                calls(session, 2)
    assert [one["seq"] for one in lines(tmp_path / "log")] == list(range(1, 13))


def test_a_record_longer_than_what_is_looked_at_first(opened: Callable[..., Session], tmp_path: Path) -> None:
    with opened() as session:
        session.call(
            {"tool": "create_file", "arguments": {"path": "a", "content": "", "description": "x" * 99_999}}
        )
    with opened() as session:
        calls(session, 1)
    assert [one["seq"] for one in lines(tmp_path / "log")] == [1, 2]


@pytest.mark.parametrize("cut", [1, 20, 70, 150, 200])
def test_a_torn_last_line_is_named_and_followed_by_the_whole(
    opened: Callable[..., Session], tmp_path: Path, cut: int
) -> None:
    with opened() as session:
        calls(session, 3)
    log = tmp_path / "log"
    whole = log.read_bytes()
    end = whole.rindex(b"\n", 0, -1) + 1 + cut
    log.write_bytes(whole[:end])
    assert check_lines(log.read_text()) == Checked([], 2, [3])
    with opened() as session:
        calls(session, 1)
    assert check_lines(log.read_text()) == Checked([], 4, [3])
    assert log.read_bytes().startswith(whole[:end] + b"\n")


@pytest.mark.slow
def test_two_processes_after_a_torn_line_lose_no_record(
    opened: Callable[..., Session], tmp_path: Path, state_place: str
) -> None:
    with opened() as session:
        calls(session, 2)
    log = tmp_path / "log"
    log.write_bytes(log.read_bytes()[:-40])
    call = '{"tool": "get_file_info", "arguments": {"path": "."}}\n'
    (tmp_path / "ws" / "ringfence.yaml").write_text('version: 1\nrules: {"*": allow}\n')
    where = ["--root", str(tmp_path / "ws"), "--state", state_place, "--audit-log", str(log)]
    command = [sys.executable, "-m", "ringfence", "run", *where]
    settings: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    running = [subprocess.Popen(command, **settings) for _ in range(2)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(call.encode() * 200)
        process.stdin.close()
    assert [process.wait() for process in running] == [0, 0]
    assert check_lines(log.read_text()) == Checked([], 402, [2])
    assert len(log.read_text().splitlines()) == 403


def test_another_workspaces_log_is_refused(opened: Callable[..., Session], tmp_path: Path) -> None:
    other = {"seq": 1, "event": "call"}
    body = json.dumps(other)
    (tmp_path / "log").write_text(line(body, "0" * 64, seal("0" * 64, body)))
    with pytest.raises(CallError, match="belongs to another workspace"):
        opened()
    assert len(lines(tmp_path / "log")) == 1


@pytest.mark.parametrize("text", ["notes\n", "# a page", '{"a": 1}\n', "version: 1\n", "\0", '[{"hash":"'])
def test_a_file_of_something_else_is_no_log(
    opened: Callable[..., Session], tmp_path: Path, text: str
) -> None:
    """Named by mistake, it is left as it is."""
    (tmp_path / "log").write_text(text)
    with pytest.raises(CallError, match="has other content"):
        opened()
    assert (tmp_path / "log").read_text() == text


@pytest.mark.parametrize("text", ["", "\n", '{"ha', '{"hash":"00'])
def test_an_empty_file_or_the_piece_of_a_first_record_is_one(
    opened: Callable[..., Session], tmp_path: Path, text: str
) -> None:
    (tmp_path / "log").write_text(text)
    with opened() as session:
        calls(session, 2)
    assert check_lines((tmp_path / "log").read_text()).records == 2


def test_a_log_that_cannot_be_written_is_an_error_at_the_start_and_a_warning_later(
    opened: Callable[..., Session], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CallError) as caught:
        opened(audit_log=tmp_path / "nowhere" / "log")
    assert caught.value.code == "history_unavailable"
    with opened() as session:
        assert session._recorder.mirror is not None
        real = session._recorder.mirror._write

        def full(data: bytes) -> None:
            raise OSError(28, "No space left on device")

        session._recorder.mirror._write = full  # type: ignore[method-assign]
        assert session.call({"tool": "get_project_root", "arguments": {}}).ok
        assert "No space left" in caplog.text
        session._recorder.mirror._write = real  # type: ignore[method-assign]
        calls(session, 1)
    assert len(lines(tmp_path / "log")) == 2


def test_no_tool_writes_the_log(opened: Callable[..., Session], tmp_path: Path) -> None:
    with opened(audit_log=tmp_path / "ws" / "log") as session:
        result = session.call(
            {"tool": "create_file", "arguments": {"path": "log", "content": "", "allow_overwrite": True}}
        )
        assert (result.error or {}).get("code") == "protected_path"


# ---------------------------------------------------------------- what was done to it


@pytest.fixture
def log() -> list[str]:
    return chained(6)


def chained(count: int, key: bytes | None = None, prev: str = "0" * 64, start: int = 1) -> list[str]:
    found = []
    for seq in range(start, start + count):
        body = json.dumps({"event": "call", "seq": seq, "tool": "read_file"}, separators=(",", ":"))
        found.append(line(body, prev, seal(prev, body, key)))
        prev = seal(prev, body, key)
    return found


def faults(text: str, key: bytes | None = None, **options: Any) -> list[tuple[int, str]]:
    return [(fault.seq, fault.what) for fault in check_lines(text, key, **options).faults]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ([0, 1, 2, 3, 4, 5], []),
        ([0, 2, 3, 4, 5], [(2, "missing")]),
        ([3, 4, 5], [(1, "missing"), (2, "missing"), (3, "missing")]),
        ([0, 2, 1, 3, 4, 5], [(2, "swapped"), (3, "swapped")]),
        ([0, 4, 2, 3, 1, 5], [(2, "swapped"), (5, "swapped")]),
        ([0, 1, 1, 2, 3, 4, 5], [(2, "repeated")]),
        ([0, 3, 2, 5], [(2, "missing"), (3, "swapped"), (4, "swapped"), (5, "missing")]),
    ],
)
def test_which_line_and_what(log: list[str], order: list[int], found: list[tuple[int, str]]) -> None:
    assert faults("".join(log[n] for n in order)) == found


def test_one_bit_anywhere_is_found_at_its_record(log: list[str]) -> None:
    whole = "".join(log[:3]).encode()
    ends = [len("".join(log[: n + 1])) for n in range(3)]
    for at in range(len(whole) - 1):
        for bit in (0, at % 7 + 1):
            changed = bytearray(whole)
            changed[at] ^= 1 << bit
            record = next(n for n, end in enumerate(ends, 1) if at < end)
            checked = check_lines(changed.decode("utf-8", "replace"))
            # A line break that went joins two records; one that came cuts one in two.
            assert {fault.seq for fault in checked.faults} & {record, record + 1}, (at, bit)
            assert {fault.seq for fault in checked.faults} <= {record, record + 1}, (at, bit, checked)


def test_a_piece_in_the_middle_that_nothing_follows_is_no_torn_line(log: list[str]) -> None:
    assert faults(log[0] + log[1][:50] + "\n" + log[2]) == [(2, "unreadable")]
    assert faults(log[0] + log[1][:50] + "\n" + log[1] + log[2]) == []


def test_a_log_written_anew_is_found_by_its_key_or_an_anchor_alone() -> None:
    true, anew = "".join(chained(4, KEY)), "".join(chained(4))
    assert faults(true, KEY) == []
    assert check_lines(true) == Checked([], 4, unchecked=4)
    assert faults(anew) == []
    assert faults(anew, KEY) == [(4, "unkeyed")]
    assert [what for _, what in faults("".join(chained(4, KEY[::-1])), KEY)] == ["altered"] * 4
    anchor = as_anchor("3:" + json.loads(chained(4, KEY)[2])["hash"])
    assert faults(true, KEY, anchors=[anchor]) == []
    assert faults(anew, anchors=[anchor]) == [(3, "anchor")]
    assert faults("".join(chained(2, KEY)), KEY, anchors=[anchor]) == [(3, "anchor")]


def test_a_key_may_begin_later_and_not_stop() -> None:
    plain = chained(2)
    keyed = chained(2, KEY, json.loads(plain[-1])["hash"], 3)
    after = chained(1, None, json.loads(keyed[-1])["hash"], 5)
    assert faults("".join(plain + keyed), KEY) == []
    assert faults("".join(plain + keyed + after), KEY) == [(5, "unkeyed")]


def test_a_part_of_a_log_is_held_to_the_record_before_it(log: list[str]) -> None:
    for cut in range(6):
        seal_ = json.loads(log[cut])["prev"]
        for n in range(cut, 6):
            gone = [one for at, one in enumerate(log) if at >= cut and at != n]
            expected = [(n + 1, "missing")] if n < 5 else []
            assert faults("".join(gone), after=(cut, seal_)) == expected
        assert faults("".join(log[cut:]), after=(cut, seal_)) == []
        assert faults("".join(log[cut:]), after=(cut, "1" * 64)) == [(cut + 1, "altered")]
    keyed = chained(3, KEY)
    seal_ = json.loads(keyed[-1])["hash"]
    plain = "".join(chained(2, None, seal_, 4))
    assert faults(plain, KEY, after=(3, seal_)) == [(4, "unkeyed"), (5, "unkeyed")]


@pytest.mark.parametrize("text", ["", "3", "3:", "x:" + "0" * 64, "3:" + "0" * 63, "-1:" + "0" * 64])
def test_what_is_no_anchor(text: str) -> None:
    with pytest.raises(ValueError):
        as_anchor(text)


# --------------------------------------------------------------------- with a session


@pytest.fixture
def keyed(opened: Callable[..., Session], tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "key").write_bytes(KEY + b"\n")
    with opened(audit_key=tmp_path / "key") as session:
        calls(session, 4)
        yield session


def test_records_are_sealed_with_the_key_in_both(keyed: Session, tmp_path: Path) -> None:
    assert audit.verify(keyed.state) == []
    assert audit.checked(keyed.state).unchecked == 4
    assert check_lines((tmp_path / "log").read_text(), KEY) == Checked([], 4)
    seq, head = audit.head(keyed.state)
    with keyed.state.transaction() as db:
        # What one would do who has the database and not the key.
        db.execute("DELETE FROM audit")
        for _ in range(5):
            audit.append(db, {"event": "call"}, None)
    assert audit.checked(keyed.state).faults == []
    assert audit.verify(keyed.state) == [Fault(5, "unkeyed")]
    assert audit.checked(keyed.state, anchors=[(seq, head)]).faults == [Fault(4, "anchor")]


@pytest.mark.parametrize(
    ("write", "says"),
    [(b"short\n", "5 bytes"), (None, "cannot be read")],
)
def test_a_key_that_is_none(
    opened: Callable[..., Session], tmp_path: Path, write: bytes | None, says: str
) -> None:
    if write is not None:
        (tmp_path / "key").write_bytes(write)
    with pytest.raises(CallError, match=says):
        opened(audit_key=tmp_path / "key")


def test_a_key_that_the_agents_could_read_is_refused(opened: Callable[..., Session], tmp_path: Path) -> None:
    (tmp_path / "ws" / "key").write_bytes(KEY)
    os.symlink(tmp_path / "ws" / "key", tmp_path / "link")
    for name in ("ws/key", "link"):
        with pytest.raises(CallError, match="lies in the workspace"):
            opened(audit_key=tmp_path / name)

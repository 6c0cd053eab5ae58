"""Retention: by default, beside the calls and at the end, on record, one process at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.policy.analysis.diff import compare
from ringfence.policy.model import Retention
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.history import pruning
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session import automatic_retention, retention_schedule
from ringfence.toolkit.session.session import Session

ALLOW = 'version: 1\nrules: {"*": allow, delete_file: ask}\ndurable: false\n'
SMALL = Policy.loads(f"{ALLOW}retention: {{days: unlimited, max_bytes: 1KiB, keep: 1}}\n")
DEFAULT = Policy.loads(ALLOW)
DAY = 86400.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def opened(root: Path, policy: Any = SMALL, **more: Any) -> Session:
    return Session(root, policy, state=root.parent / "state", session="s", **more)


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def write(session: Session, count: int, size: int = 400) -> None:
    for n in range(count):
        text = f"{n:04}" + os.urandom(size // 2).hex()[4:]
        assert call(session, "create_file", path="f", content=text, allow_overwrite=True).ok


def at(session: Session, sql: str) -> None:
    with session.state.transaction() as db:
        db.execute(sql)


def kept(session: Session) -> int:
    return int(session.state.rows("SELECT coalesce(sum(size), 0) FROM blob")[0][0])


def events(session: Session, event: str) -> list[dict[str, Any]]:
    return [record for record in audit.records(session.state) if record.get("event") == event]


# ---------------------------------------------------------------------- the policy


def test_it_is_there_by_default_and_each_field_may_be_set_by_itself(tmp_path: Path) -> None:
    assert Policy.loads("version: 1").retention == Retention(30, 2 << 30, 1000)
    (tmp_path / "base.yaml").write_text("version: 1\nretention: {days: 7, max_bytes: 1MiB}\n")
    text = "version: 1\nextends: base.yaml\nretention: {max_bytes: unlimited, keep: 5}\n"
    assert Policy.loads(text, base=tmp_path).retention == Retention(7, None, 5)


@pytest.mark.parametrize(
    ("one", "other", "said", "looser"),
    [
        ("{days: 30}", "{days: 7}", ("retention: shorter",), True),
        ("{days: 30}", "{days: unlimited}", ("retention: longer",), False),
        ("{max_bytes: 2GiB}", "{max_bytes: 1GiB, keep: 2000}", ("retention: shorter",), True),
        ("{keep: 1000}", "{keep: 999}", ("retention: shorter",), True),
        ("{max_bytes: 2048}", "{max_bytes: 2KiB}", (), False),
    ],
)
def test_a_shorter_one_is_a_looser_policy(one: str, other: str, said: tuple[str, ...], looser: bool) -> None:
    found = compare(*(Policy.loads(f"version: 1\nretention: {each}\n") for each in (one, other)))
    assert (found.settings, found.widens) == (said, looser)


# ------------------------------------------------------------------- what goes when


def test_what_is_old_goes_when_a_session_ends_and_the_newest_stay(root: Path) -> None:
    policy = Policy.loads(f"{ALLOW}retention: {{days: 1, max_bytes: unlimited, keep: 2}}\n")
    with opened(root, policy) as session:
        write(session, 5)
        at(session, f"UPDATE op SET started = started - {2 * DAY}")
    with opened(root, policy) as session:
        assert len(session.state.rows("SELECT 1 FROM blob")) == 3  # two calls: a content before, two after
        (told,) = events(session, "retention")
        assert (told["calls"], told["contents"]) == (3, 2)
        assert not audit.verify(session.state)


def test_nothing_goes_within_the_bounds_nor_for_who_only_looks(root: Path) -> None:
    with opened(root, DEFAULT) as session:
        write(session, 5)
        before = kept(session)
    with opened(root, DEFAULT) as session:
        assert kept(session) == before
        at(session, f"UPDATE op SET started = started - {100 * DAY}")
        at(session, "DELETE FROM meta")
    with opened(root, Policy.loads(f"{ALLOW}retention: {{keep: 0}}")) as session:
        assert session.versions("f")
    with opened(root, DEFAULT) as session:
        assert kept(session) == before


@pytest.mark.parametrize("how", ["a policy that does not load", "a dry run", "unlimited"])
def test_who_may_not_forget_does_not(root: Path, how: str) -> None:
    for_ever = Policy.loads(f"{ALLOW}retention: {{days: unlimited, max_bytes: unlimited, keep: 0}}")
    with opened(root, for_ever) as session:
        write(session, 5)
        at(session, f"UPDATE op SET started = started - {100 * DAY}")
        before = kept(session)
    (root.parent / "p.yaml").write_text("version: 1\nretention: {days: 1, keep: 0}\nrules: 5\n")
    policy: Any = {
        "a policy that does not load": root.parent / "p.yaml",
        "a dry run": SMALL,
        "unlimited": for_ever,
    }[how]
    with opened(root, policy, dry_run=how == "a dry run") as session:
        call(session, "read_file", path="f")
    with opened(root, DEFAULT) as session:
        assert kept(session) == before


def test_it_is_carried_out_beside_the_calls(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention_schedule, "OFTEN", 8)
    with opened(root) as session:
        write(session, 8)
        thread = session._retention._thread
        assert thread is not None
        thread.join()
        assert kept(session) <= 1024
        assert [record["outcome"] for record in events(session, "retention")] == ["done"]


def test_a_call_that_comes_meanwhile_is_answered_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_ROWS", 1)
    with opened(root) as session:
        write(session, 20)
        at(session, "UPDATE op SET started = started - 1000")
        session._retention.call_began()  # and is at work
        thread = threading.Thread(target=session._retention._run)
        thread.start()
        full = kept(session)
        thread.join(0.3)
        assert thread.is_alive()
        assert kept(session) >= full - 400  # at most the portion that had begun
        session._retention.call_ended()
        thread.join()
        assert kept(session) <= 1024


def test_one_process_at_a_time_and_the_turn_of_a_dead_one_is_free(root: Path) -> None:
    with opened(root) as one, opened(root) as other:
        write(one, 10)
        assert automatic_retention._take_turn(one.state)
        assert not automatic_retention._take_turn(other.state)
        automatic_retention.carry_out(other.context, other.policy, lambda: True)
        assert kept(one) > 1024
        automatic_retention._end_turn(one.state)
        at(one, "UPDATE meta SET value = 'gone|0|0' WHERE name = 'retention'")
        automatic_retention.carry_out(other.context, other.policy, lambda: True)
        assert kept(one) <= 1024


def test_what_is_left_between_two_portions_is_found_by_the_next(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "_ROWS", 1)
    with opened(root) as session:
        write(session, 10)
        steps = iter([True, True, True, True, False])
        automatic_retention.carry_out(session.context, session.policy, lambda: next(steps, False))
        assert kept(session) > 1024
        automatic_retention.carry_out(session.context, session.policy, lambda: True)
        assert kept(session) <= 1024


def test_what_a_call_needs_that_came_after_the_look_stays(root: Path) -> None:
    with opened(root) as session:
        assert call(session, "create_file", path="a", content="needed").ok
        write(session, 10)
        content_files = session.history.content_files
        assert content_files is not None
        rule = automatic_retention.rule_of(session.policy)
        assert rule is not None
        choice = pruning.choose(session.state, rule)
        again = call(session, "create_file", path="b", content="needed")
        assert call(session, "create_file", path="b", content="x", allow_overwrite=True).ok
        for _ in pruning.forget(session.state, content_files, session.workspace, choice):
            pass
        assert session.restore("b", "v1").ok, again


def test_each_run_looks_only_at_what_is_still_kept(root: Path) -> None:
    with opened(root) as session:
        write(session, 10)
        session.prune()
        assert pruning.choose(session.state, pruning.Rule()).first >= 7
        write(session, 1)
        assert session.prune(keep=0).ok
        assert session.state.rows("SELECT count(*) FROM blob") == [(0,)]


# --------------------------------------------------------- questions and grants


def answered(session: Session, scope: str) -> None:
    result = call(session, "delete_file", path="g")
    session.approvals.answer(result.data["approval"]["id"], Answer(True, scope=scope, confirmed=True))


@pytest.mark.parametrize(
    "what", ["a question that ran out", "a grant not used", "a grant for the session", "a refusal"]
)
def test_no_question_and_no_grant_keeps_a_history_for_ever(root: Path, what: str) -> None:
    with opened(root, DEFAULT) as session:
        assert call(session, "create_file", path="g", content="g").ok
        write(session, 5)
        match what:
            case "a question that ran out":
                call(session, "delete_file", path="f")
                at(session, f"UPDATE approval SET asked = asked - {2 * DAY}")
                assert [r.state for r in session.approvals.listing(every=True)] == ["expired"]
            case "a grant not used":
                answered(session, "once")
            case "a grant for the session":
                answered(session, "session")
            case "a refusal":
                result = call(session, "delete_file", path="f")
                session.approvals.answer(result.data["approval"]["id"], Answer(False))
        assert session.prune(keep=0).data["left"] == 0


def test_a_question_that_waits_keeps_the_last_change_at_its_paths_alone(root: Path) -> None:
    with opened(root, DEFAULT) as session:
        write(session, 2)
        assert call(session, "create_file", path="g", content="before").ok
        assert call(session, "create_file", path="h", content="another").ok
        assert call(session, "create_file", path="g", content="what is asked about", allow_overwrite=True).ok
        assert call(session, "delete_file", path="g").status == "approval_required"
        assert session.prune(keep=0).data["left"] == len("before" + "what is asked about")


# -------------------------------------------------------------------- the disk


def size(root: Path) -> int:
    return sum(file.stat().st_size for file in (root.parent / "state").rglob("*") if file.is_file())


@pytest.mark.parametrize("made", ["now", "by an earlier version"])
def test_pruning_gives_the_space_back(root: Path, made: str) -> None:
    with opened(root, DEFAULT) as session:
        if made == "by an earlier version":
            session.state.rows("PRAGMA auto_vacuum = NONE")
            session.state.rows("VACUUM")
        write(session, 40, 100_000)
        assert size(root) > 2_000_000
        assert session.prune(keep=1).ok
        assert size(root) < 700_000


def test_retention_gives_space_back_as_it_goes(root: Path) -> None:
    with opened(root) as session:
        write(session, 40, 100_000)
        pages = session.state.rows("PRAGMA page_count")[0][0]
        automatic_retention.carry_out(session.context, session.policy, lambda: True)
        assert session.state.rows("PRAGMA page_count")[0][0] < pages / 4


def test_what_a_killed_process_left_beside_the_state_goes(root: Path) -> None:
    with opened(root) as session:
        (root / "large").write_bytes(b"L" * (LARGE + 1))
        assert call(session, "create_file", path="large", content="x", allow_overwrite=True).ok
        (content,) = (root.parent / "state").rglob("content")
        (content / "part-0123").write_bytes(b"half")
        (content / ("0" * 64)).write_bytes(b"named by no row")
        automatic_retention.carry_out(session.context, session.policy, lambda: True)
        assert len(list(content.iterdir())) == 1


# ------------------------------------------------------------------ the command


def test_the_command_says_what_retention_lets_go(root: Path) -> None:
    (root / "ringfence.yaml").write_text(f"{ALLOW}retention: {{max_bytes: 1KiB, keep: 1}}\n")
    with opened(root, DEFAULT) as session:
        write(session, 10)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ringfence", "prune", *arguments]
        command += ["--root", str(root), "--state", str(root.parent / "state")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    seen = json.loads(run("--dry-run", "--json").stdout)
    assert (seen["contents"], seen["left"]) == (8, 800)
    assert json.loads(run("--max-bytes", "2KiB", "--dry-run", "--json").stdout)["contents"] == 5
    assert run("--max-bytes", "2KB", "--dry-run").returncode == 2
    assert "Forgot" in run("--yes").stdout
    with opened(root, DEFAULT) as session:
        assert kept(session) == 800


def test_requests_that_are_over_are_forgotten_and_no_answer_is(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic_retention, "ENDED", 2)
    with opened(root) as session:
        names = ["refused", "granted", "used1", "expired", "used2", "used3", "waits"]
        for name in names:
            assert call(session, "create_file", path=name, content=name).ok
        found: dict[str, str] = {}
        for name in names:
            found[name] = call(session, "delete_file", path=name).data["approval"]["id"]
            if name == "expired":
                at(session, f"UPDATE approval SET asked = asked - {2 * DAY} WHERE id = '{found[name]}'")
            elif name != "waits":
                session.approvals.answer(found[name], Answer(name != "refused"))
            if name.startswith("used"):
                assert call(session, "delete_file", path=name).ok
        automatic_retention.carry_out(session.context, session.policy, lambda: True)
        left = {request.id for request in session.approvals.listing(every=True)}
        assert left == {found[name] for name in ("refused", "granted", "used2", "used3", "waits")}
        assert call(session, "delete_file", path="refused").error["code"] == "approval_refused"
        assert call(session, "delete_file", path="granted").ok

"""The lines that an editor is told: what they say, when, and how the process that says them ends."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.cli import main
from ringfence.toolkit.cli.commands.bridge import LISP
from ringfence.toolkit.monitoring.change_feed import Bridge
from ringfence.toolkit.session.session import Session
from tests.bridge.conftest import PROGRAM, Place

OPEN = Policy.loads('version: 1\nrules: {"*": {"*": allow}}\n')


class Desk:
    """An agent's session and a bridge beside it, in one process."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root, self.state = root, state
        self.looker = Session(root, Policy.empty(), state=state)

    def call(self, tool: str, session: str = "night", **arguments: Any) -> str:
        with Session(self.root, OPEN, agent="coder", session=session, state=self.state) as agent:
            result = agent.call({"tool": tool, "arguments": arguments})
        assert result.status == "ok", result.content
        return str(result.data["call_id"])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "w").mkdir()
    desk = Desk(tmp_path / "w", tmp_path / "state")
    yield desk
    desk.looker.close()


def told(bridge: Bridge) -> list[tuple[str, ...]]:
    return [(e["event"], e["path"], *([e["to"]] if "to" in e else [])) for e in bridge.look()]


def test_one_line_says_all_of_a_change(desk: Desk) -> None:
    bridge = Bridge(desk.looker)
    call = desk.call("create_file", path="a.txt", content="x")
    (event,) = bridge.look()
    assert event == {
        "event": "created",
        "path": "a.txt",
        "file": str(desk.root / "a.txt"),
        "type": "file",
        "session": "night",
        "agent": "coder",
        "tool": "create_file",
        "call": call,
    }
    assert bridge.look() == []


def test_each_kind_of_change_has_its_word(desk: Desk) -> None:
    desk.call("create_file", path="before.txt", content="x")
    bridge = Bridge(desk.looker)
    desk.call("create_file", path="a.txt", content="x")
    desk.call("edit_file", path="a.txt", old_str="x", new_str="y")
    desk.call("move_file", source="a.txt", destination="b.txt")
    call = desk.call("delete", path="b.txt")
    assert told(bridge) == [
        ("created", "a.txt"),
        ("updated", "a.txt"),
        ("moved", "a.txt", "b.txt"),
        ("deleted", "b.txt"),
    ]
    desk.looker.undo(call)
    assert told(bridge) == [("restored", "b.txt")]


def test_a_move_says_where_to_on_this_machine(desk: Desk) -> None:
    desk.call("create_file", path="a.txt", content="x")
    bridge = Bridge(desk.looker)
    desk.call("move_file", source="a.txt", destination="b.txt")
    (event,) = bridge.look()
    assert (event["file"], event["to_file"]) == (str(desk.root / "a.txt"), str(desk.root / "b.txt"))


def test_a_call_that_is_under_way_is_told_when_it_is_done(desk: Desk) -> None:
    """Also when later ones are done, and told, before it."""
    desk.call("create_file", path="slow.txt", content="x")
    with desk.looker.state.transaction() as db:
        # As one of a process that lives: nobody settles it.
        db.execute("UPDATE op SET state = 'pending', owner = ?", (desk.looker.state.owner,))
    early = Bridge(desk.looker)
    desk.call("create_file", path="quick.txt", content="x")
    assert told(early) == [("created", "quick.txt")]
    with desk.looker.state.transaction() as db:
        db.execute("UPDATE op SET state = 'done' WHERE state = 'pending'")
    assert told(early) == [("created", "slow.txt")]
    assert told(early) == []


def test_what_did_not_happen_is_not_told(desk: Desk) -> None:
    bridge = Bridge(desk.looker)
    desk.call("create_file", path="a.txt", content="x")
    with desk.looker.state.transaction() as db:
        db.execute("UPDATE item SET state = 'aborted'")
        db.execute("UPDATE op SET state = 'aborted'")
    assert bridge.look() == []


def test_only_one_session_and_its_sub_sessions(desk: Desk) -> None:
    bridge = Bridge(desk.looker, "night")
    for number, name in enumerate(("night", "night/tests", "nightly", "day")):
        desk.call("create_file", session=name, path=f"{number}.txt", content="x")
    assert told(bridge) == [("created", "0.txt"), ("created", "1.txt")]


def test_a_store_has_no_files_on_this_machine() -> None:
    with Session("memory://", OPEN, agent="coder", state=":memory:") as session:
        bridge = Bridge(session)
        session.call({"tool": "create_file", "arguments": {"path": "a.txt", "content": "x"}})
        (event,) = bridge.look()
    assert (event["path"], event["file"]) == ("a.txt", None)


@contextmanager
def following(place: Place, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The command as its own process, once it follows."""
    process = subprocess.Popen(
        [*PROGRAM, "bridge", "json", *place.options, *options],
        env=place.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stderr
    try:
        assert json.loads(process.stdout.readline()) == {"event": "following", "root": str(place.root)}
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_another_process_is_followed_and_each_line_comes_at_once(place: Place) -> None:
    with following(place) as process:
        assert process.stdout
        place.call("create_file", path="é 😀.txt", content="x")
        event = json.loads(process.stdout.readline())
        assert (event["event"], event["path"], event["agent"]) == ("created", "é 😀.txt", "coder")
        place.call("delete", path="é 😀.txt")
        assert json.loads(process.stdout.readline())["event"] == "deleted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_the_plain_way_to_end_it(place: Place, number: signal.Signals) -> None:
    with following(place) as process:
        process.send_signal(number)
        assert process.wait(20) == 0
        assert process.stderr and process.stderr.read() == ""


def test_it_ends_when_nobody_reads_any_more(place: Place) -> None:
    with following(place) as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(20) == 0
        assert process.stderr and process.stderr.read() == ""


def test_once_ends_after_the_first_change(place: Place) -> None:
    with following(place, "--once") as process:
        place.call("create_file", path="a.txt", content="x")
        assert process.wait(20) == 0
        assert process.stdout
        (line,) = process.stdout.read().splitlines()
        assert json.loads(line)["path"] == "a.txt"


def test_emacs_is_told_where_its_file_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bridge", "emacs"]) == 0
    assert capsys.readouterr().out == f"{LISP}\n"
    assert main(["bridge", "emacs", "--print-lisp"]) == 0
    assert capsys.readouterr().out == LISP.read_text(encoding="utf-8")

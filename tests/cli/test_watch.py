"""The terminal program, driven by its pilot: what is shown, what each key does, and what it never does."""

from __future__ import annotations

import asyncio
import html
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textual", reason="no Textual: pip install 'ringfence[watch]'")

from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, RichLog, Static, TextArea

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.cli.watch.app import Watch
from ringfence.toolkit.cli.watch.dialogs import Choice, Sure
from ringfence.toolkit.monitoring.dashboard import Board, doing, label
from ringfence.toolkit.session.session import Session

HERE = Path(__file__).parents[2]
POLICY = 'version: 1\nrules: {"*": {"*": allow}, delete: {"*": ask}}\n'


class Desk:
    """A workspace with an agent at work, and the program beside it."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root, self.state = root, state
        self.agent = self.act_as("coder", "night")
        self.looker = Session(root, Policy.empty(), state=state)

    def act_as(self, agent: str, name: str) -> Session:
        return Session(self.root, Policy.loads(POLICY), agent=agent, session=name, state=self.state)

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.agent.call({"tool": tool, "arguments": arguments})

    def watch(
        self,
        act: Callable[[Watch, Pilot[None]], Awaitable[None]],
        *,
        hold: float = 0.0,
        clock: Callable[[], float] = lambda: 0.0,
        size: tuple[int, int] = (120, 40),
        source: Path | None = None,
        **how: Any,
    ) -> None:
        async def run() -> None:
            board = Board(self.looker, **how)
            app = Watch(board, self.act_as, source, every=3600, hold=hold, clock=clock)
            async with app.run_test(size=size) as pilot:
                await until(pilot, lambda: bool(lines(app)))
                await pilot.pause()
                await act(app, pilot)

        asyncio.run(run())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "w").mkdir()
    for name in ("a", "b"):
        (tmp_path / "w" / name).write_text(f"{name} one\n{name} two\n")
    found = Desk(tmp_path / "w", tmp_path / "state")
    yield found
    found.agent.close()
    found.looker.close()


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait for a condition, for half a minute at most."""
    for _ in range(300):
        if holds():
            return
        await pilot.pause(0.1)
    raise AssertionError("it has not come true")


async def question(app: Watch, pilot: Pilot[None]) -> str:
    """What `Sure` shows, once it is on the screen."""
    await until(pilot, lambda: isinstance(app.screen, Sure))
    await pilot.pause()
    return "\n".join(str(one.content) for one in app.screen.query(Static))


def shown(app: Watch) -> str:
    return str(app.query_one("#detail", Static).content)


def said(app: Watch) -> str:
    return str(app.query_one("#said", Static).content)


def lines(app: Watch) -> list[str]:
    listed = app.query_one("#list", OptionList)
    return [str(listed.get_option_at_index(n).prompt) for n in range(listed.option_count)]


async def settled(app: Watch, pilot: Pilot[None]) -> None:
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()


async def choose(app: Watch, pilot: Pilot[None], text: str) -> None:
    listed = app.query_one("#list", OptionList)
    listed.highlighted = next(n for n, line in enumerate(lines(app)) if text in line)
    await pilot.pause()


def test_what_waits_is_shown_with_its_rule_and_its_diff(desk: Desk) -> None:
    desk.call("delete", path="a", description="no longer needed")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        assert lines(app)[0].startswith("Approvals (1)")
        text = shown(app)
        for part in ("delete: a", "agent: coder", 'delete "*"', "no longer needed", "-a one"):
            assert part in text
        assert any("[delete a]" in line.text for line in app.query_one(RichLog).lines)

    desk.watch(act)


def test_approving_once(desk: Desk) -> None:
    desk.call("delete", path="a")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("a")
        await settled(app, pilot)
        assert lines(app)[0].startswith("Approvals (0)")

    desk.watch(act)
    assert desk.call("delete", path="a").ok
    assert desk.call("delete", path="b").status == "approval_required"


def test_approving_for_the_session(desk: Desk) -> None:
    desk.call("delete", path="a")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, Choice))
        await pilot.press("end", "enter")
        assert 'delete "*" asks of agent coder with delete' in await question(app, pilot)
        await pilot.press("y")
        await settled(app, pilot)
        assert "x: take it back" in said(app)

    desk.watch(act)
    assert desk.call("delete", path="a").ok
    assert desk.call("delete", path="b").ok


def test_approving_paths_shows_what_that_opens(desk: Desk) -> None:
    desk.call("delete", path="a")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, Choice))
        listed = app.screen.query_one(OptionList)
        choices = [str(listed.get_option_at_index(n).prompt) for n in range(listed.option_count)]
        assert choices[0].startswith("these paths: /a") and "opens 1 path that is there now" in choices[0]
        assert choices[-1].startswith("this session (night)"), "the widest comes last"
        await pilot.press("home", "enter")
        told = await question(app, pilot)
        assert "for these paths until" in told and "/a, all that" in told
        assert "opens 1 path that is there now; all of them are shown" in told
        await pilot.press("y")
        await settled(app, pilot)

    desk.watch(act)
    assert desk.call("delete", path="a").ok
    assert desk.call("delete", path="b").status == "approval_required"


def test_a_second_press_does_not_grant_what_has_just_come_onto_the_screen(desk: Desk) -> None:
    desk.call("delete", path="a")
    desk.call("delete", path="b")
    now = [0.0]

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        now[0] += 2.0
        await pilot.press("a")
        await settled(app, pilot)
        assert "delete: b" in shown(app)
        for _ in range(5):  # a key that is held down, or pressed again and again, never answers
            now[0] += 0.9
            await pilot.press("a")
            await settled(app, pilot)
        assert lines(app)[0].startswith("Approvals (1)")

    desk.watch(act, hold=1.0, clock=lambda: now[0])
    assert desk.call("delete", path="a").ok
    assert desk.call("delete", path="b").status == "approval_required"


def test_what_was_refused_is_listed_and_answered_after_reopening(desk: Desk) -> None:
    desk.agent.approvals.answer(desk.call("delete", path="a").data["approval"]["id"], Answer(False))

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        assert "Answered; x takes an answer back" in lines(app)
        await choose(app, pilot, "⊘ refused: Delete file a")
        for key in ("a", "x", "a"):
            await pilot.press(key)
            await settled(app, pilot)
            if key != "x":
                refused = desk.call("delete", path="a").error
                if refused is not None:
                    assert refused["code"] == "approval_refused"

    desk.watch(act)
    assert not (desk.root / "a").exists()


def test_refusing_with_a_reason_that_the_agent_is_told(desk: Desk) -> None:
    desk.call("delete", path="a")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("r")
        await pilot.pause()
        app.screen.query_one(Input).value = "move it to .trash/ [b]instead[/b]"
        await pilot.press("enter")
        await settled(app, pilot)

    desk.watch(act)
    assert "move it to .trash/ [b]instead[/b]" in desk.call("delete", path="a").content


def test_escape_refuses_nothing(desk: Desk) -> None:
    desk.call("delete", path="a")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("r")
        await pilot.pause()
        await pilot.press("escape")
        await settled(app, pilot)

    desk.watch(act)
    assert [one.state for one in desk.looker.approvals.listing()] == ["pending"]


def test_changing_the_arguments(desk: Desk) -> None:
    desk.call("delete", path="a")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("e")
        await pilot.pause()
        app.screen.query_one(TextArea).text = "{"
        await pilot.press("ctrl+s")
        await pilot.pause()
        app.screen.query_one(TextArea).text = '{"path": "b"}'
        await pilot.press("ctrl+s")
        for _ in range(50):
            await pilot.pause(0.1)
            if app.screen.query("Static") and "-b one" in str(app.screen.query(Static).last().content):
                break
        await pilot.press("y")
        await settled(app, pilot)

    desk.watch(act)
    assert '{"path": "b"}' in desk.call("delete", path="a").content
    assert desk.call("delete", path="b").ok
    assert (desk.root / "a").exists()


def test_an_answer_given_elsewhere_is_told_and_not_given_again(desk: Desk) -> None:
    asked = desk.call("delete", path="a").data["approval"]["id"]

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        desk.agent.approvals.answer(asked, Answer(False, reason="no"))
        await pilot.press("a")
        await settled(app, pilot)
        desk.call("delete", path="b")
        await app.update_board()
        await pilot.pause()
        assert "waits" not in shown(app)

    desk.watch(act)
    assert desk.call("delete", path="b").status == "approval_required"


def test_the_answer_goes_to_what_is_on_the_screen(desk: Desk) -> None:
    desk.call("delete", path="b")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        desk.call("delete", path="a")
        await app.update_board()
        await pilot.press("a")
        await settled(app, pilot)

    desk.watch(act)
    assert desk.call("delete", path="b").ok
    assert desk.call("delete", path="a").status == "approval_required"


def test_changes_with_their_diff_and_the_way_back(desk: Desk) -> None:
    desk.call("edit_file", path="a", old_str="one", new_str="1")
    desk.call("create_file", path="new", content="fresh\n")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        assert any("a  +1 -1" in line for line in lines(app))
        await choose(app, pilot, "a  +1")
        assert "-a one" in shown(app)
        assert "+a 1" in shown(app)
        await pilot.press("u")
        for _ in range(50):
            await pilot.pause(0.1)
            if len(app.screen_stack) > 1:
                break
        await pilot.press("y")
        await settled(app, pilot)

    desk.watch(act)
    assert (desk.root / "a").read_text() == "a one\na two\n"
    assert (desk.root / "new").exists()


def test_a_version_comes_back(desk: Desk) -> None:
    desk.call("create_file", path="a", content="new\n", allow_overwrite=True)

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await choose(app, pilot, "a  +1 -2")
        await pilot.press("b")
        for _ in range(50):
            await pilot.pause(0.1)
            if len(app.screen_stack) > 1:
                break
        await pilot.press("home", "enter")
        for _ in range(50):
            await pilot.pause(0.1)
            if len(app.screen_stack) > 1 and app.screen.query("VerticalScroll"):
                break
        await pilot.press("y")
        await settled(app, pilot)

    desk.watch(act)
    assert (desk.root / "a").read_text() == "a one\na two\n"


def test_sub_agents_are_shown_under_who_they_work_for(desk: Desk) -> None:
    desk.call("create_file", path="mine", content="x\n")
    with desk.act_as("coder/tests", "night/tests") as sub:
        sub.call({"tool": "create_file", "arguments": {"path": "theirs", "content": "y\n"}})

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        found = lines(app)
        assert "night (2 files)" in found
        assert found.index("  coder/tests") < next(n for n, line in enumerate(found) if "theirs" in line)

    desk.watch(act)
    desk.watch(act, only="night")


def test_hostile_names_and_texts_are_shown_as_text(desk: Desk) -> None:
    name = "x[bold]\u202egnp.txt"
    (desk.root / name).write_text("\x1b[2Jwiped [red]\n")
    desk.call("delete", path=name, description="fine\x1b[38D\x1b[Kapproved [link=x]")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        text = shown(app)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold]" in text
        assert "[red]" in text
        assert "[link=x]" in text

    desk.watch(act)


def test_a_very_long_line_is_counted_and_what_decides_stays(desk: Desk) -> None:
    (desk.root / "long").write_text("x" * 1_000_000)
    desk.call("delete", path="long")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        assert "delete: long" in shown(app)
        assert "more characters, v shows all" in shown(app)

    desk.watch(act)


def test_labels() -> None:
    assert (
        label({"tool": "delete_tasks", "tasks": {"succeeded": 2, "failed": 1}}) == "[delete_tasks tasks: 3]"
    )
    assert label({"tool": "delete", "paths": ["a"]}) == "[delete a]"
    assert label({"tool": "move_file", "paths": ["a", "b"]}) == "[move_file a and 1 more]"
    assert label({"event": "approval"}) == "[approval]"
    assert [doing(tool) for tool in ("delete", "delete_tasks", "edit_file")] == [
        "Deleting…",
        "Deleting…",
        "Editing…",
    ]


@contextmanager
def real_terminal(desk: Desk, folder: Path, size: tuple[int, int]) -> Iterator[Callable[..., str]]:
    """The program in tmux, by a function that presses a key until some words are on the screen."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux: apt-get install tmux")
    server = ["tmux", "-S", str(folder / "socket"), "-f", "/dev/null"]
    places = ["--root", str(desk.root), "--state", str(desk.state)]
    program = shlex.join([sys.executable, "-m", "ringfence", "watch", *places])
    command = [*server, "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), program]
    subprocess.run(command, check=True, env={**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(HERE)})

    def screen(wanted: str, press: str | None = None, *, times: int = 30) -> str:
        for turn in range(30):
            if press is not None and turn < times:
                subprocess.run([*server, "send-keys", press], check=True)
            for _ in range(7):  # longer than the hold, which each key that comes too early begins anew
                found = subprocess.run(
                    [*server, "capture-pane", "-p"], capture_output=True, text=True, check=False
                ).stdout
                if wanted in found:
                    return found
                time.sleep(0.2)
        raise AssertionError(f"{wanted!r} is not on the screen:\n{found}")

    try:
        yield screen
        subprocess.run([*server, "send-keys", "q"], check=True)
    finally:
        subprocess.run([*server, "kill-server"], check=False, capture_output=True)


def test_in_a_real_terminal(desk: Desk, tmp_path: Path) -> None:
    """As a person would: in tmux, by keys, looking at the screen."""
    (desk.root / "ringfence.yaml").write_text(POLICY)
    desk.call("delete", path="a", description="no longer needed")
    with real_terminal(desk, tmp_path, (120, 40)) as screen:
        assert "Approvals (1)" in screen("no longer needed")
        assert "x: take it back" in screen("Approvals (0)", "a")
        assert desk.call("delete", path="a", description="no longer needed").ok
        screen("night (1 file)")
        assert "-a two" in screen("deleted in session", "End", times=1)


def test_a_rule_in_a_small_real_terminal(desk: Desk, tmp_path: Path) -> None:
    (desk.root / "ringfence.yaml").write_text(POLICY)
    desk.call("delete", path="a")
    with real_terminal(desk, tmp_path, (80, 24)) as screen:
        screen("✕ deletes 1 file: a; undo can restore")
        assert "this file: /a; opens nothing else" in screen("A rule for: Delete file a", "c")
        screen("Write this rule into ringfence.yaml?", "Enter", times=1)
        screen("answered by rule r-", "y")
        assert '"/a": {effect: allow, until:' in (desk.root / "ringfence.yaml").read_text()


def test_the_pictures_and_the_page_have_every_key() -> None:
    keys = [one for one in Watch.BINDINGS if isinstance(one, Binding)]
    assert len(keys) > 5
    page = (HERE / "docs" / "how-to" / "watch-agents-at-work.md").read_text(encoding="utf-8")
    assert [one.key for one in keys if f"| `{one.key}` |" not in page] == []
    of_a_request = [one for one in keys if one.action not in ("undo", "restore", "take_back")]
    for name, wanted in {"watch": [*of_a_request, keys[7]], "watch-80x24": of_a_request}.items():
        drawn = (HERE / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        picture = html.unescape(re.sub(r"<[^>]*>", "", drawn)).replace("\xa0", " ")
        words = " ".join(picture.split())
        missing = [one.description for one in wanted if f"{one.key} {one.description}" not in words]
        assert missing == [], "run `python docs/images/watch.py`"

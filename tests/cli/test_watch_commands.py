"""Commands in the terminal program: requests before and after a run, the list, the detail, the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("textual", reason="no Textual: pip install 'ringfence[watch]'")

from textual.pilot import Pilot
from textual.widgets import RichLog

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.cli.watch.app import Watch
from ringfence.toolkit.cli.watch.dialogs import Sure
from ringfence.toolkit.sandbox import levels
from ringfence.toolkit.session.session import Session
from tests.cli.test_watch import Desk, choose, lines, question, settled, shown
from tests.cli.test_watch import desk as desk

pytestmark = pytest.mark.skipif(
    not any(one.works and one.level in ("overlay", "copy") for one in levels()),
    reason="this machine cannot confine a command",
)
POLICY = """\
version: 1
rules: {"*": allow, run: {"*": allow, "rm *": ask}, delete: {"*": ask}}
commands: {require: copy}
"""


class Commands(Desk):
    """A desk whose agent may run commands."""

    def act_as(self, agent: str, name: str) -> Session:
        return Session(self.root, Policy.loads(POLICY), agent=agent, session=name, state=self.state)


@pytest.fixture
def at(desk: Desk) -> Commands:
    desk.agent.close()
    desk.__class__ = Commands
    assert isinstance(desk, Commands)
    desk.agent = desk.act_as("coder", "night")
    return desk


def test_a_request_says_whether_the_command_ran(at: Commands) -> None:
    asked = at.call("run_command", command="rm a; echo gone")
    seen: list[str] = []

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        seen.append(shown(app))

    at.watch(act)
    assert "the command has not run yet" in seen[0]
    assert "run: rm a" in seen[0]
    at.looker.approvals.answer(asked.data["approval"]["id"], Answer(True, by="ann"))
    at.call("run_command", command="rm a; echo gone")
    at.watch(act)
    order = ["nothing is changed yet", "delete: a", "-a one", "| gone"]
    places = [seen[1].index(text) for text in order]
    assert places == sorted(places)


def test_a_command_is_listed_with_its_end_and_undone_alone(at: Commands) -> None:
    at.call("create_file", path="c", content="by hand\n")
    at.call("run_command", command="echo more >> b; : '\x1b[2K'; exit 2")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        line = r"$ echo more >> b; : '\x1b[2K'; exit 2"
        assert any(line in one and "exit 2" in one and "1 replaced" in one for one in lines(app))
        assert any(f"[{line} (exit 2" in one.text for one in app.query_one(RichLog).lines)
        await choose(app, pilot, "$ echo more")
        for part in (line, "changes: 1 replaced", "output: 0 B", "in session night by coder", "+more"):
            assert part in shown(app)
        await pilot.press("u")
        assert "+more" not in await question(app, pilot)
        assert isinstance(app.screen, Sure)
        await pilot.press("y")
        await settled(app, pilot)

    at.watch(act)
    assert (at.root / "b").read_text() == "b one\nb two\n"
    assert Path(at.root, "c").exists()

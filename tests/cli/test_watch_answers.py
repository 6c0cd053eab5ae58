"""The approver's screen: losses first, nothing cut, confirmations with their reversal, answers by a rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("textual", reason="no Textual: pip install 'ringfence[watch]'")

from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.cli.watch.app import Watch
from ringfence.toolkit.cli.watch.dialogs import Sure
from ringfence.toolkit.cli.watch.entries import LONGEST, shortened
from ringfence.toolkit.cli.watch.key_hold import KeyHold
from ringfence.toolkit.cli.watch.rule_screens import Others, RuleOffers
from ringfence.toolkit.session.session import Session
from tests.cli.test_watch import Desk, choose, lines, question, said, settled, shown, until
from tests.cli.test_watch import desk as desk

TEXT = """\
version: 1
# ours
rules: {"*": {"*": allow}, delete: {"*": ask}, write: {"*": allow, "docs/**": ask}}
"""
SIZES = [(80, 24), (160, 48), (30, 10)]


class Office(Desk):
    """A desk with a policy file, in which rules can be written, and a folder of documents."""

    def act_as(self, agent: str, name: str) -> Session:
        place = self.root / "ringfence.yaml"
        return Session(self.root, place, agent=agent, session=name or None, state=self.state)


@pytest.fixture
def office(desk: Desk) -> Office:
    desk.agent.close()
    (desk.root / "ringfence.yaml").write_text(TEXT)
    (desk.root / "docs" / "old").mkdir(parents=True)
    for name in ("a.md", "b.md", "c.md", "old/d.md"):
        (desk.root / "docs" / name).write_text("one\n")
    desk.__class__ = Office
    assert isinstance(desk, Office)
    desk.agent = desk.act_as("coder", "night")
    return desk


def edit(office: Desk, name: str) -> str:
    result = office.call("edit_file", path=f"docs/{name}", old_str="one", new_str="two")
    assert result.status == "approval_required", result.content
    return str(result.data["approval"]["id"])


def policy_text(office: Desk) -> str:
    return (office.root / "ringfence.yaml").read_text()


def screen(app: Watch) -> str:
    """All that is on the screen, line by line."""
    rows = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows)


# ------------------------------------------------------------- order and what is shown


def test_what_destroys_comes_first_with_its_session_and_is_marked(office: Office) -> None:
    edit(office, "a.md")
    office.call("delete", path="docs/b.md")
    with office.act_as("platform", "net") as other:
        other.call({"tool": "delete", "arguments": {"path": "docs/old"}})

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        found = lines(app)
        assert "✕ 2 destroy something" in found[0]
        wanted = ["in session net", "✕ Delete directory docs/old", "in session night"]
        wanted += ["✕ Delete file docs/b.md", "· Edit file docs/a.md"]
        assert [line for line in found[1:6] if not any(map(line.startswith, wanted))] == []
        places = [next(n for n, line in enumerate(found) if line.startswith(text)) for text in wanted]
        assert places == sorted(places)
        order = [
            "✕ deletes the whole directory docs/old",
            "delete: Delete directory",
            "? delete: docs/old (asks)",
        ]
        order += ["asks because of", "agent: platform", "asked: ", " UTC", "the agent was told", "d.md"]
        text = shown(app)
        assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
        for words, first in (
            ("losses first", "✕ Delete directory"),
            ("oldest first", "· Edit file docs/a.md"),
        ):
            await pilot.press("g")
            await pilot.pause()
            assert words in lines(app)[0] and lines(app)[1].startswith(first)

    office.watch(act)


def test_requests_that_one_answer_could_settle_are_together_and_approved_after_all_are_shown(
    office: Office,
) -> None:
    for name in ("a.md", "b.md"):
        edit(office, name)

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await choose(app, pilot, "one answer could settle these 2")
        assert shown(app).count("+two") == 2
        await pilot.press("a")
        told = await question(app, pilot)
        assert told.count("+two") == 2 and "approve 2 changes, each once" in told
        await pilot.press("y")
        await settled(app, pilot)
        assert lines(app)[0].startswith("Approvals (0)")

    office.watch(act)
    for name in ("a.md", "b.md"):
        assert office.call("edit_file", path=f"docs/{name}", old_str="one", new_str="two").ok
    edit(office, "c.md")


# ----------------------------------------------------------------- answers and reversal


def test_the_loss_of_a_tree_takes_a_confirmation_that_repeats_it(office: Office) -> None:
    office.call("delete", path="docs/old")
    now = [0.0]

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        now[0] += 1.0
        await pilot.press("a")
        told = await question(app, pilot)
        assert "y: approve, which deletes the whole directory docs/old (1 file)" in told
        await pilot.press("y")  # too early
        assert isinstance(app.screen, Sure)
        now[0] += 1.0
        await pilot.press("y")
        await settled(app, pilot)
        assert "granted for this change, once" in said(app)

    office.watch(act, hold=1.0, clock=lambda: now[0])
    assert office.call("delete", path="docs/old").ok


@pytest.mark.parametrize("key", ["a", "r", "m", "c", "e"])
def test_what_has_just_appeared_takes_no_key(office: Office, key: str) -> None:
    name = edit(office, "a.md")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press(key)
        await settled(app, pilot)
        assert len(app.screen_stack) == 1

    office.watch(act, hold=1.0)
    assert office.looker.approvals.get(name).state == "pending"


def test_a_hold_begins_anew_with_each_key_that_comes_too_early() -> None:
    now = [10.0]
    hold = KeyHold(lambda: now[0], 1.0)
    for _ in range(20):
        now[0] += 0.5
        assert not hold.is_over()
    now[0] += 1.0
    assert hold.is_over()
    hold.begin()
    assert not hold.is_over()


@pytest.mark.parametrize(
    ("key", "says", "state"),
    [("a", "granted for this change, once", "revoked"), ("r", "refused: ", "pending")],
)
def test_each_answer_is_confirmed_and_x_takes_it_back(
    office: Office, key: str, says: str, state: str
) -> None:
    name = edit(office, "a.md")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        assert "x take back" not in screen(app)
        await pilot.press(key)
        if key == "r":
            await until(pilot, lambda: len(app.screen_stack) > 1)
            await pilot.press("enter")
        await settled(app, pilot)
        assert says in said(app) and "  x: " in said(app)
        await pilot.press("x")
        await settled(app, pilot)
        assert "x: " not in said(app), "what is taken back needs no reversal"

    office.watch(act)
    assert office.looker.approvals.get(name).state == state


# -------------------------------------------------------------------- answers by a rule


async def write_rule(app: Watch, pilot: Pilot[None], width: str) -> str:
    """Choose the rule of a width and write it; what was shown of it."""
    await pilot.press("c")
    await until(pilot, lambda: isinstance(app.screen, RuleOffers))
    listed = app.screen.query_one(OptionList)
    choices = [str(listed.get_option_at_index(n).prompt) for n in range(listed.option_count)]
    listed.highlighted = next(n for n, text in enumerate(choices) if text.startswith(f"{width}: "))
    await pilot.pause()
    offered = str(app.screen.query_one("#offer", Static).content)
    await pilot.press("enter")
    assert "Write this rule into ringfence.yaml?" in await question(app, pilot)
    await pilot.press("y")
    return offered


def test_a_rule_is_offered_written_and_taken_out(office: Office) -> None:
    name = edit(office, "a.md")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        offered = await write_rule(app, pilot, "this file")
        for part in ("until ", "opens nothing else", "proved for every possible path", "+agents:"):
            assert part in offered
        await until(pilot, lambda: "answered by rule" in said(app))
        assert "x: take the rule out of the policy" in said(app)
        assert '"/docs/a.md": {effect: allow, until:' in policy_text(office), "a rule with an end comes first"
        assert "# ours" in policy_text(office)
        await settled(app, pilot)
        await choose(app, pilot, "✓ rule until")
        assert "/docs/a.md" in shown(app)
        await pilot.press("x")
        assert '-        "/docs/a.md"' in await question(app, pilot)
        await pilot.press("y")
        await until(pilot, lambda: "revoked: rule" in said(app))
        await settled(app, pilot)
        assert not any("✓ rule" in line for line in lines(app))

    office.watch(act, source=office.root / "ringfence.yaml")
    assert policy_text(office) == TEXT
    assert office.looker.approvals.get(name).state == "revoked"


def test_other_requests_that_a_rule_settles_are_offered_and_none_is_chosen(office: Office) -> None:
    names = [edit(office, name) for name in ("a.md", "b.md", "c.md")]

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        offered = await write_rule(app, pilot, "this folder")
        assert "opens 4 paths more that are there now" in offered and "also answers what waits" in offered
        await until(pilot, lambda: isinstance(app.screen, Others))
        listed = app.screen.query_one(OptionList)
        rows = [str(listed.get_option_at_index(n).prompt) for n in range(2)]
        assert all(row.startswith("[ ] · Edit file docs/") for row in rows), "none is chosen"
        await pilot.press("down", "space", "s")
        await settled(app, pilot)
        assert "settled with it" in said(app)

    office.watch(act, source=office.root / "ringfence.yaml")
    states = [office.looker.approvals.get(name).state for name in names]
    assert sorted(states) == ["pending", "settled", "settled"] and states[0] == "settled"
    assert office.call("edit_file", path="docs/c.md", old_str="one", new_str="two").ok


def test_the_end_is_a_week_then_today_then_none_and_escape_writes_nothing(office: Office) -> None:
    edit(office, "a.md")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("c")
        for words, ends in (("in a week", True), ("at the end of today", True), ("without an end", False)):
            told = f"it ends {words}"
            await until(pilot, partial(lambda told: told in screen(app), told))
            await pilot.pause()
            offered = str(app.screen.query_one("#offer", Static).content)
            assert ("until:" in offered) is ends
            await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, RuleOffers))
        await pilot.press("escape")
        await settled(app, pilot)

    office.watch(act, source=office.root / "ringfence.yaml")
    assert policy_text(office) == TEXT


def test_no_rule_where_none_can_be(office: Office) -> None:
    office.call("delete", path="docs/old")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await pilot.press("c")
        await settled(app, pilot)
        assert len(app.screen_stack) == 1
        assert any("No rule is offered" in note.message for note in app._notifications)

    office.watch(act, source=office.root / "ringfence.yaml")
    office.watch(lambda app, pilot: _warned(app, pilot, "There is no policy file"))


async def _warned(app: Watch, pilot: Pilot[None], words: str) -> None:
    await pilot.press("c")
    await settled(app, pilot)
    assert any(words in note.message for note in app._notifications)


def test_answers_of_a_week_propose_a_rule_which_c_opens_for_what_waits(office: Office) -> None:
    for name in ("a.md", "b.md", "old/d.md"):
        office.agent.approvals.answer(edit(office, name), Answer(True))
        assert office.call("edit_file", path=f"docs/{name}", old_str="one", new_str="two").ok
    (office.root / "docs" / "e.md").write_text("one\n")
    for name in ("a.md", "b.md"):
        office.call("edit_file", path=f"docs/{name}", old_str="two", new_str="one")
        waiting = office.looker.approvals.waiting()
        office.agent.approvals.answer(waiting[-1].id, Answer(True))
    edit(office, "e.md")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        await until(
            pilot, lambda: any("answers were yes under docs/: a rule?" in line for line in lines(app))
        )
        await choose(app, pilot, "answers were yes under docs/")
        assert "proved for every possible path" in shown(app) and "+agents:" in shown(app)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, RuleOffers))
        assert "docs/e.md" in screen(app)

    office.watch(act, source=office.root / "ringfence.yaml")


# -------------------------------------------------------------------- sizes and names


def long_names(office: Office) -> list[str]:
    """Paths that differ only where a narrow screen would cut."""
    folder = "docs/architecture/decisions/a-very-long-name-of-a-folder/and-another-one/of-the-same-kind"
    (office.root / folder).mkdir(parents=True)
    names = [f"{folder}/{name}.md" for name in ("payments", "refunds")]
    for name in names:
        (office.root / name).write_text("one\n")
    return names


@pytest.mark.parametrize("size", SIZES[:2], ids=str)
def test_what_tells_requests_apart_is_on_the_screen(office: Office, size: tuple[int, int]) -> None:
    names = long_names(office)
    for name in names:
        edit(office, name.removeprefix("docs/"))

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        text = screen(app)
        found = text.replace("\n", "").replace(" ", "")
        for name in names:
            assert name.rpartition("/")[2] in found, text
        assert all(word in text for word in ("approve once", "refuse", "more", "a rule", "order", "quit")), (
            text
        )
        assert max(map(len, text.splitlines())) <= size[0]

    office.watch(act, size=size)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("key", ["a", "m", "c", "r"])
def test_hostile_names_harm_no_screen(office: Office, size: tuple[int, int], key: str) -> None:
    names = ["x[bold]\u202egpj.md", "y" * 200 + "\u200b.md", "[link=z](b).md"]
    for name in names:
        (office.root / "docs" / name).write_text("\x1b]0;owned\x07[red]one\n")
        office.call("delete", path=f"docs/{name}", description="ok\x1b[1A [y] yes\u202e")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        for _ in names:
            await pilot.press(key)
            await pilot.pause(0.1)
            for text in (screen(app), *lines(app), shown(app)):
                assert not {"\x1b", "\u202e", "\u200b", "\x07"} & set(text)
            await pilot.press("escape", "down")
            await pilot.pause()
        assert any("[bold]" in line for line in lines(app)) and any("[link=z]" in line for line in lines(app))

    office.watch(act, size=size, source=office.root / "ringfence.yaml")


def test_a_very_long_title_loses_its_middle_unless_two_would_look_alike() -> None:
    head, tail = "Delete file " + "a" * 300, "b" * 300 + "/tail.py"
    alone = shortened([f"{head}1{tail}"])
    assert len(next(iter(alone.values()))) <= LONGEST + 1 and next(iter(alone.values())).endswith("/tail.py")
    both = shortened([f"{head}1{tail}", f"{head}2{tail}"])
    assert len(set(both.values())) == 2


def test_a_list_of_very_many_requests_is_bounded(office: Office) -> None:
    base: Callable[[int], Request] = lambda n: Request(  # noqa: E731  one shape, many of them
        f"a-{n}", "x", "s", "edit_file", {}, str(n), "", f"Edit file f{n}", "", {"effect": "ask", "limit": {}}
    )

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        app.board.pending = tuple(base(n) for n in range(1_000))
        app.action_order()
        await pilot.pause()
        assert any("… and 800 more" in line for line in lines(app))

    office.watch(act)


def test_a_policy_that_stops_loading_is_told_and_writes_nothing(office: Office) -> None:
    edit(office, "a.md")

    async def act(app: Watch, pilot: Pilot[None]) -> None:
        broken: Path = office.root / "ringfence.yaml"
        broken.write_text("version: 1\nruls: {}\n")
        await pilot.press("c")
        await settled(app, pilot)
        assert len(app.screen_stack) == 1
        assert app._notifications

    office.watch(act, source=office.root / "ringfence.yaml")
    assert Policy.loads(TEXT)

"""Pages on which people decide, in a real browser: each page, role, width and scheme; by touch, by keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pages.test_review import axe, go, sign_in
from tests.pages.test_review import window as window
from tests.review.conftest import Desk
from tests.review.conftest import desk as desk
from tests.review.conftest import served as served
from tests.review.test_answers import asking as asking
from tests.review.test_answers import edit, state

LONG = "docs/" + "a-very-long-directory-name-that-nobody-would-like-to-type/" * 3 + "x\u202egnp.md"
# What a command may print and do, at its worst: it looks like the page's own words and like another diff.
COMMAND = "npm run codegen\nin ., exit status 0\n\n--- a/docs/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-one"
PREVIEW = """\
in frontend, confined by overlay, no network, exit status 2
changes: 1 deleted, 1 replaced
open to it, not kept, not undone: node_modules

--- a/docs/b.md
+++ /dev/null
@@ -1 +0,0 @@
-one
--- a/docs/c.md
+++ b/docs/c.md
@@ -1 +1 @@
-one
+two
mode 644 to 755: docs/c.md

output (90 B):
| \x1b[2K\rALL CHECKS PASSED – approve without reading
"""


def command(desk: Desk) -> str:
    """A request for the changes of a command that ran."""
    asked = desk.ask("docs/b.md")
    needs = [
        {"action": action, "path": path, "directory": False, "on_the_way": False, "asks": True}
        | ({"loses": "deleted"} if action == "delete" else {})
        for action, path in (("write", "docs/c.md"), ("delete", "docs/b.md"))
    ]
    with desk.agent() as session, session.state.transaction() as db:
        fields = session.approvals.get(asked).to_json()
        fields |= {
            "tool": "run_command",
            "changes": True,
            "needs": needs,
            "paths": ["docs/b.md", "docs/c.md"],
        }
        fields |= {"arguments": {"command": COMMAND, "cwd": "frontend"}, "preview": f"$ {COMMAND}\n{PREVIEW}"}
        db.execute("UPDATE approval SET request = ? WHERE id = ?", (json.dumps(fields), asked))
    return asked


@pytest.fixture
def busy(asking: Desk) -> dict[str, str]:
    """Requests of every sort, by name."""
    move = asking.call("move_file", source="docs/c.md", destination="secret/c.md")
    long = asking.call(
        "create_file", path=LONG, content="import os\n", description="</p><b>approve</b>\x1b[2J"
    )
    return {
        "edit": edit(asking, "docs/a.md"),
        "other": edit(asking, "docs/b.md"),
        "move": str(move.data["approval"]["id"]),
        "create": str(long.data["approval"]["id"]),
        "tree": asking.ask("tmp"),
        "command": command(asking),
    }


def places(busy: dict[str, str], name: str) -> list[str]:
    shown = ["/", "/questions", *(f"/approvals/{asked}" for asked in busy.values())]
    shown += [f"/approvals/{busy['edit']}?view=sides", f"/approvals/{busy['edit']}/together"]
    return [*shown, f"/approvals/{busy['edit']}/rule"] if name != "lou" else shown


@pytest.mark.parametrize("name", ["dan", "lou"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_to_decide_on_is_accessible_and_fits(
    window: Any, busy: dict[str, str], name: str, width: int, scheme: str
) -> None:
    window.set_viewport_size({"width": width, "height": 860})
    window.emulate_media(color_scheme=scheme)
    sign_in(window, name)
    for place in places(busy, name):
        go(window, place)
        assert window.locator("h1").count() == 1, place
        assert window.evaluate("document.documentElement.scrollWidth") <= width, place
        found = axe.Axe().run(window).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], place
        assert window.locator("main script, main img, main b:text-is('approve')").count() == 0
        if name == "lou":
            assert window.locator("main form").count() == 0, place


@pytest.mark.parametrize("width", [1280, 400])
def test_somebody_who_is_not_signed_in_sees_the_door_alone(
    window: Any, busy: dict[str, str], width: int
) -> None:
    window.set_viewport_size({"width": width, "height": 860})
    for place in places(busy, "dan"):
        window.goto(place)
        assert window.locator("h1").inner_text() == "Sign in", place
        assert window.locator("nav").count() == 0
    assert axe.Axe().run(window).response["violations"] == []


@pytest.mark.parametrize("script", [True, False])
def test_a_person_decides_at_400_pixels(chromium: Any, asking: Desk, script: bool) -> None:
    asked, tree = edit(asking, "docs/a.md"), asking.ask("tmp")
    context = chromium.new_context(
        java_script_enabled=script,
        base_url=f"http://127.0.0.1:{asking.port}",
        viewport={"width": 400, "height": 860},
        has_touch=True,
    )
    page = context.new_page()
    sign_in(page, "dan")
    go(page, f"/approvals/{asked}")
    buttons = page.locator(".bar button")
    assert [buttons.nth(n).inner_text() for n in (0, 1)] == ["Refuse", "Approve this change"]
    left, right = (buttons.nth(n).bounding_box() for n in (0, 1))
    assert left["x"] < right["x"] and left["y"] == right["y"] and 760 < left["y"] < 860
    assert min(left["height"], right["height"]) >= 40
    buttons.nth(1).tap()
    page.wait_for_selector("text=Approved once:")
    assert state(asking, asked) == "granted"
    go(page, f"/approvals/{tree}")
    assert page.locator(".bar button").count() == 0, "it needs the tick, which stands above the decision"
    page.locator("#answer button.lose").tap()
    assert page.evaluate("document.querySelector('#seen').validity.valueMissing") if script else True
    assert state(asking, tree) == "pending"
    page.check("#seen")
    page.locator("#answer button.lose").tap()
    page.wait_for_selector("text=Approved once:")
    assert state(asking, tree) == "granted"
    context.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_refuse_stands_left_and_approve_right(window: Any, busy: dict[str, str], width: int) -> None:
    window.set_viewport_size({"width": width, "height": 860})
    sign_in(window)
    for name in busy:
        go(window, f"/approvals/{busy[name]}")
        refuse, approve = (window.locator(f"#answer button[value={value}]") for value in ("refuse", "once"))
        left, right = refuse.bounding_box(), approve.bounding_box()
        assert left["x"] + left["width"] <= right["x"] and abs(left["y"] - right["y"]) < 2, name
        lost = window.locator("main .loss, main .noloss").first.bounding_box()
        assert lost["y"] < window.locator("main .panel").first.bounding_box()["y"] + 1, "the loss comes first"


def test_a_rule_is_chosen_and_written(window: Any, asking: Desk) -> None:
    asked, other = edit(asking, "docs/a.md"), edit(asking, "docs/b.md")
    sign_in(window, "dan")
    window.click("a.what:has-text('docs/a.md')")
    window.click("text=Choose a rule for such questions…")
    window.wait_for_load_state("load")  # with its style sheet, which hides what is not chosen
    assert window.locator(".choice .more >> visible=true").count() == 1
    window.check("#r2")
    assert (
        window.locator("button:has-text('Write the rule')")
        .inner_text()
        .startswith("Write the rule for this folder")
    )
    window.check("#u3")
    window.click("button:has-text('Write the rule')")
    window.wait_for_selector("text=You chose another end")
    assert window.is_checked("#r2") and window.is_checked("#u3")
    window.click("button:has-text('Write the rule')")
    window.wait_for_selector("text=1 more question would get the same answer")
    assert not window.is_checked("#q1")
    window.check("#q1")
    window.click("text=Settle the ticked ones")
    window.wait_for_selector("text=Nothing waits for an answer")
    assert [state(asking, one) for one in (asked, other)] == ["settled", "settled"]
    assert '"/docs/*"' in (asking.root / "ringfence.yaml").read_text()
    window.click("text=Revoke the rule…")
    window.click("button:has-text('Revoke the rule')")
    window.wait_for_selector("h1:has-text('Policy')")
    assert '"/docs/*"' not in (asking.root / "ringfence.yaml").read_text()


def test_a_command_cannot_forge_what_it_did(window: Any, asking: Desk) -> None:
    asked = command(asking)
    sign_in(window)
    go(window, f"/approvals/{asked}")
    assert "Deletes 1 file, makes 1 file executable" in window.inner_text(".loss")
    rows = [row.inner_text() for row in window.locator(".effects tbody tr").all()]
    assert [("docs/b.md" in row, "docs/c.md" in row) for row in rows] == [(True, False), (False, True)]
    assert window.locator(".diff .cut").count() == 2
    assert window.locator("pre.out .esc").count() == 2, "the output's escape sequence is in boxes"
    assert window.inner_text(".stack >> text=exit status 2").startswith("in frontend")


def test_wide_screens_show_both_sides_and_narrow_ones_never_do(window: Any, asking: Desk) -> None:
    asked = edit(asking, "docs/a.md")
    sign_in(window)
    go(window, f"/approvals/{asked}?view=sides")
    both, inline = window.locator(".sbs"), window.locator("pre.diff")
    assert both.is_visible() and not inline.is_visible()
    window.set_viewport_size({"width": 400, "height": 860})
    assert inline.is_visible() and not both.is_visible()


def test_keys_move_between_questions(window: Any, busy: dict[str, str]) -> None:
    sign_in(window)
    titles = window.locator("a.what").all_inner_texts()
    seen = []
    for key in "jjjk":
        window.keyboard.press(key)
        seen.append(window.evaluate("document.activeElement.innerText"))
    assert seen == [titles[0], titles[1], titles[2], titles[1]]

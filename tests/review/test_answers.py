"""Answers on the pages: what takes one, what it settles beside, rules that are written, and reversals."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from ringfence.toolkit.approvals.requests import Request
from tests.review.conftest import Browser, Desk, Page

POLICY = """\
version: 1
# our own rules
rules:
  read: allow
  write: {"*": ask, "secrets/": deny}   # see ADR-31
  delete: ask
"""


@pytest.fixture
def asking(served: Desk) -> Desk:
    """The server of a workspace whose policy asks about every change."""
    (served.root / "ringfence.yaml").write_text(POLICY)
    for name in ("docs/a.md", "docs/b.md", "docs/c.md"):
        (served.root / name).parent.mkdir(exist_ok=True)
        (served.root / name).write_text("one\n")
    return served


def edit(desk: Desk, path: str, to: str = "two") -> str:
    result = desk.call("edit_file", path=path, old_str="one", new_str=to)
    assert result.status == "approval_required", result.content
    return str(result.data["approval"]["id"])


def stored(desk: Desk, name: str) -> Request:
    with desk.agent() as session:
        return session.approvals.get(name)


def state(desk: Desk, name: str) -> str:
    return stored(desk, name).state


def rule_fields(page: Page, width: str, **more: str) -> dict[str, str]:
    names = ("form", "shown_end", "until", f"digest-{width}")
    return {name: page.hidden(name) for name in names} | {
        "rule": width,
        "end": page.hidden("shown_end"),
        **more,
    }


@pytest.mark.parametrize("decision", ["once", "refuse"])
@pytest.mark.parametrize("shown", ["now", "", "soon", "nan", "inf"])
def test_a_page_that_has_just_appeared_takes_no_answer(
    asking: Desk, ann: Browser, decision: str, shown: str
) -> None:
    asked = edit(asking, "docs/a.md")
    page = ann.get(f"/approvals/{asked}")
    fields = {"form": page.form, "decision": decision}
    early = ann.post(f"/approvals/{asked}", shown=page.hidden("shown") if shown == "now" else shown, **fields)
    assert "Nothing was recorded" in early.text
    assert state(asking, asked) == "pending"
    ann.post(f"/approvals/{asked}", shown=f"{time.time() - 2:.3f}", **fields)
    assert state(asking, asked) == {"once": "granted", "refuse": "refused"}[decision]


@pytest.mark.parametrize("end", ["answered", "together", "rule"])
def test_no_other_page_takes_an_early_answer(asking: Desk, ann: Browser, end: str) -> None:
    first, second = edit(asking, "docs/a.md"), edit(asking, "docs/b.md")
    if end == "answered":
        ann.post(f"/approvals/{first}", form=ann.get("/").form, decision="once")
    page = ann.get(f"/approvals/{first}/{end}")
    fields = {f"q-{second}": "1", "decision": "once", "shown": page.hidden("shown")}
    fields |= rule_fields(page, "narrow") if end == "rule" else {"form": page.form}
    assert "Nothing was recorded" in ann.post(f"/approvals/{first}/{end}", **fields).text
    assert state(asking, second) == "pending"
    assert (asking.root / "ringfence.yaml").read_text() == POLICY


def test_a_tree_needs_its_tick(asking: Desk, ann: Browser) -> None:
    asked = asking.ask("docs")
    page = ann.get(f"/approvals/{asked}")
    assert "✕ Destroys 3 files, 12 B" in page.plain
    assert 'name="seen" value="1" required' in page.text
    assert 'class="bar"><a class="btn" href="#decide"' in page.text
    assert ann.post(f"/approvals/{asked}", form=page.form, decision="once").status == 400
    assert state(asking, asked) == "pending"
    ann.post(f"/approvals/{asked}", form=page.form, decision="once", seen="1")
    assert state(asking, asked) == "granted"


def test_what_cannot_be_restored_is_named_first_and_needs_its_tick(asking: Desk, ann: Browser) -> None:
    import json

    asked = edit(asking, "docs/a.md")
    with asking.agent() as session, session.state.transaction() as db:
        fields = session.approvals.get(asked).to_json()
        fields["decision"] |= {"not_recoverable": ["docs/a.md"]}
        db.execute("UPDATE approval SET request = ? WHERE id = ?", (json.dumps(fields), asked))
    page = ann.get(f"/approvals/{asked}")
    assert page.plain.index("✕ 1 file cannot be restored") < page.plain.index("What changes")
    assert "1 file cannot be restored" in ann.get("/").plain
    assert "Choose a rule" not in page.text, "a loss is answered once"
    assert ann.post(f"/approvals/{asked}", form=page.form, decision="once").status == 400
    assert state(asking, asked) == "pending"


def test_an_answer_is_confirmed_with_its_reversal(asking: Desk, ann: Browser) -> None:
    asked = edit(asking, "docs/a.md")
    page = ann.post(f"/approvals/{asked}", form=ann.get("/").form, decision="once")
    assert "✓ Approved once: Edit file docs/a.md at line 1 by agent coder." in page.plain
    assert "The agent may now send the same call again." in page.plain
    assert "Approved once" not in Browser(asking.port).sign_in("dan").get("/").text, "it is ann's answer"
    ann.post(f"/approvals/{asked}", form=page.form, decision="revoke")
    assert state(asking, asked) == "revoked"
    again = edit(asking, "docs/a.md")
    page = ann.post(f"/approvals/{again}", form=page.form, decision="refuse", reason="not now")
    assert "⊘ Refused: Edit file docs/a.md at line 1, because “not now”." in page.plain
    ann.post(f"/approvals/{again}", form=page.form, decision="reopen")
    assert state(asking, again) == "pending"


@pytest.mark.parametrize("decision", ["once", "refuse"])
def test_the_same_answer_for_what_is_ticked_and_nothing_else(
    asking: Desk, ann: Browser, decision: str
) -> None:
    first, second, third = (edit(asking, f"docs/{name}.md") for name in "abc")
    tree = asking.ask("tmp")
    page = ann.post(f"/approvals/{first}", form=ann.get("/").form, decision=decision)
    assert "2 more questions would get the same answer" in page.plain
    assert "checked" not in page.text and tree not in page.text
    ann.post(f"/approvals/{first}/answered", form=page.form, **{f"q-{second}": "1", f"q-{tree}": "1"})
    done = {"once": "granted", "refuse": "refused"}[decision]
    assert [state(asking, one) for one in (first, second, third, tree)] == [done, done, "pending", "pending"]


def test_a_bundle_is_answered_together(asking: Desk, ann: Browser) -> None:
    first, second, third = (edit(asking, f"docs/{name}.md") for name in "abc")
    assert "One answer would settle these 3." in ann.get("/").plain
    page = ann.get(f"/approvals/{second}/together")
    assert page.diff.count("+two") == 3
    assert page.text.count(" checked ") == 3
    fields = {f"q-{first}": "1", f"q-{third}": "1"}
    ann.post(f"/approvals/{second}/together", form=page.form, decision="once", **fields)
    assert [state(asking, one) for one in (first, second, third)] == ["granted", "pending", "granted"]
    assert stored(asking, first).by == "ann"
    assert asking.call("edit_file", path="docs/a.md", old_str="one", new_str="two").ok
    assert (
        asking.call("edit_file", path="docs/a.md", old_str="two", new_str="3").status == "approval_required"
    )


def test_a_rule_is_written_with_its_comments_and_can_be_taken_out(asking: Desk, ann: Browser) -> None:
    asked, other = edit(asking, "docs/a.md"), edit(asking, "docs/b.md")
    page = ann.get(f"/approvals/{asked}/rule")
    for part in (
        "This file", "This folder", "This kind of file", "narrowest", "Proved for every possible path",
        'write "/docs/*": allow', "docs/x", "Keeps denied/docs/**/secrets/",
        "2 other paths: docs/b.md, docs/c.md", "One week",
    ):  # fmt: skip
        assert part in page.plain
    assert page.plain.index("One week") < page.plain.index("Without an end")
    found = ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "folder"))
    assert "Answered by rule r-" in found.plain
    assert "1 more question would get the same answer" in found.plain
    text = (asking.root / "ringfence.yaml").read_text()
    assert text.startswith(POLICY) and '"/docs/*": {effect: allow, until: 20' in text
    ann.post(f"/approvals/{asked}/answered", form=page.form, **{f"q-{other}": "1"})
    assert [stored(asking, one).state for one in (asked, other)] == ["settled", "settled"]
    assert asking.call("edit_file", path="docs/c.md", old_str="one", new_str="two").ok
    figures = ann.get("/questions").plain
    assert 'write "/docs/*": allow' in figures
    rule = stored(asking, asked).settled_by
    assert f"/policy/rules/{rule}" in ann.get(f"/approvals/{asked}").text
    assert ann.post(f"/policy/rules/{rule}", form=page.form).status == 200
    assert (asking.root / "ringfence.yaml").read_text() == POLICY
    assert (
        asking.call("edit_file", path="docs/c.md", old_str="two", new_str="3").status == "approval_required"
    )


def test_another_end_is_shown_before_it_is_written(asking: Desk, ann: Browser) -> None:
    asked = edit(asking, "docs/a.md")
    page = ann.get(f"/approvals/{asked}/rule")
    page = ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "narrow", end="never"))
    assert "You chose another end" in page.text
    assert not any("until" in line for line in page.diff)
    assert (asking.root / "ringfence.yaml").read_text() == POLICY
    ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "narrow"))
    text = (asking.root / "ringfence.yaml").read_text()
    assert "until" not in text and '"/docs/a.md"' in text
    assert "Without an end" in page.plain and state(asking, asked) == "settled"


def test_a_rule_is_written_only_as_it_was_shown(asking: Desk, ann: Browser) -> None:
    asked = edit(asking, "docs/a.md")
    page = ann.get(f"/approvals/{asked}/rule")
    far = str(int(page.hidden("until")) + 86_400)
    for wrong in ({"until": far}, {"digest-narrow": "0" * 64}, {"rule": "everything"}):
        assert ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "narrow") | wrong).status == 200
    assert ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "narrow", until="1")).status == 400
    assert (asking.root / "ringfence.yaml").read_text() == POLICY
    (asking.root / "ringfence.yaml").write_text(POLICY + "# changed meanwhile\n")
    late = ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "narrow"))
    assert "has changed since this page was shown" in late.text
    assert "r-" not in (asking.root / "ringfence.yaml").read_text()
    assert state(asking, asked) == "pending"


def test_only_a_person_who_may_decide_writes_a_rule(asking: Desk, ann: Browser) -> None:
    asked = edit(asking, "docs/a.md")
    fields = rule_fields(ann.get(f"/approvals/{asked}/rule"), "narrow")
    lou = Browser(asking.port).sign_in("lou")
    assert lou.get(f"/approvals/{asked}/rule").status == 403
    assert lou.post(f"/approvals/{asked}/rule", **fields | {"form": lou.get("/").form}).status == 403
    assert ann.post(f"/approvals/{asked}/rule", **fields | {"form": "x"}).status == 403
    stranger = Browser(asking.port)
    assert stranger.send("POST", f"/approvals/{asked}/rule", "rule=narrow").status == 401
    for end in ("together", "answered"):
        assert lou.post(f"/approvals/{asked}/{end}", form=lou.get("/").form, decision="once").status == 403
    assert (asking.root / "ringfence.yaml").read_text() == POLICY
    assert state(asking, asked) == "pending"


def test_a_refused_change_takes_no_rule(asking: Desk, ann: Browser) -> None:
    asked = edit(asking, "docs/a.md")
    page = ann.get(f"/approvals/{asked}/rule")
    ann.post(f"/approvals/{asked}", form=page.form, decision="refuse")
    assert ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "narrow")).status == 409
    assert "No rule can be written" in ann.get(f"/approvals/{asked}/rule").plain
    assert (asking.root / "ringfence.yaml").read_text() == POLICY


def test_a_rule_goes_to_the_file_that_the_policy_extends(asking: Desk, ann: Browser) -> None:
    policy, beside = asking.root / "ringfence.yaml", asking.root / "answered-rules.yaml"
    beside.write_text("version: 1\n")
    policy.write_text(POLICY.replace("version: 1\n", "version: 1\nextends: [answered-rules.yaml]\n"))
    real = asking.root.parent / "elsewhere"
    real.mkdir()
    policy.replace(real / "ringfence.yaml")
    policy.symlink_to(real / "ringfence.yaml")  # a link to another folder is not written to
    (real / "answered-rules.yaml").symlink_to(beside)
    asked = edit(asking, "docs/a.md")
    page = ann.get(f"/approvals/{asked}/rule")
    assert "What is written to answered-rules.yaml" in page.plain
    ann.post(f"/approvals/{asked}/rule", **rule_fields(page, "narrow"))
    assert '"/docs/a.md"' in beside.read_text() and "r-" not in policy.read_text()


def test_without_a_policy_file_no_rule_is_offered(desk: Desk, tmp_path: Path) -> None:
    (desk.root / "ringfence.yaml").unlink()
    desk.start()
    browser = Browser(desk.port).with_token(desk.said.split()[-1])
    from ringfence.policy import Policy
    from ringfence.toolkit.session.session import Session

    with Session(desk.root, Policy.empty(), state=desk.state) as session:
        result = session.call({"tool": "delete", "arguments": {"path": "a.txt"}})
    page = browser.get(f"/approvals/{result.data['approval']['id']}/rule")
    assert "There is no policy file" in page.plain


def test_a_directory_that_goes_is_offered_no_rule(asking: Desk, ann: Browser) -> None:
    asked = asking.ask("docs")
    assert "No rule is offered here" in ann.get(f"/approvals/{asked}").plain
    assert "No rule is offered" in ann.get(f"/approvals/{asked}/rule").plain


def test_the_inbox_puts_first_what_destroys(asking: Desk, ann: Browser) -> None:
    edit(asking, "docs/a.md")
    with asking.agent("other", "later") as session:
        session.call({"tool": "delete", "arguments": {"path": "b.txt"}})
    page = ann.get("/").plain
    assert page.index("Delete file b.txt") < page.index("Edit file docs/a.md")
    assert "2 questions wait" in page and "1 of them destroys something; it comes first" in page
    assert re.search(r"The oldest waits for \d+ s\.", page)


def test_figures_count_questions_and_answers(asking: Desk, ann: Browser) -> None:
    asked = edit(asking, "docs/a.md")
    ann.post(f"/approvals/{asked}", form=ann.get(f"/approvals/{asked}").form, decision="refuse")
    page = ann.get("/questions").plain
    assert "1 question, 1.0 on a day with any" in page
    assert re.search(r"refused ?1", page)


def test_somebody_else_at_the_same_file_is_named(asking: Desk, ann: Browser) -> None:
    arguments = {"path": "docs/a.md", "old_str": "one", "new_str": "one!"}
    with asking.agent("helper", "by-hand") as session:
        session.call({"tool": "edit_file", "arguments": arguments})
        (waiting,) = session.approvals.waiting()
        ann.post(f"/approvals/{waiting.id}", form=ann.get("/").form, decision="once")
        assert session.call({"tool": "edit_file", "arguments": arguments}).ok
    page = ann.get(f"/approvals/{edit(asking, 'docs/a.md')}").plain
    assert "Somebody else works here. Session by-hand (agent helper) changed" in page

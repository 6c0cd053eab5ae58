"""Answers that are rules, from the command line: offered, written, listed, taken out, and counted."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.toolkit.cli import approval_prompt
from ringfence.toolkit.cli.approval_prompt import Terminal
from ringfence.toolkit.cli.rule_dialog import answer_by_rule
from ringfence.toolkit.cli.rule_offers_shown import rule_end
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.session.session import Session
from tests.cli.conftest import Done, Ringfence

TEXT = "version: 1\n# ours\nrules: {read: allow, delete: ask}\n"
Delete = Callable[[str], Done]


@pytest.fixture
def delete(ringfence: Ringfence, policy: Callable[[str], Path], workspace: Path) -> Delete:
    policy(TEXT)
    (workspace / "src").mkdir()
    for name in "abcd":
        (workspace / "src" / f"{name}.py").write_text("1", encoding="utf-8")

    def call(path: str) -> Done:
        given = json.dumps({"path": path})
        return ringfence(
            "call", "delete_file", given, "--agent", "coder", "--session", "s", "--ask", "queue", "--json"
        )

    return call


def asked(done: Done) -> str:
    return str(done.json["data"]["approval"]["id"])


def test_from_the_offer_to_the_revoked_rule(ringfence: Ringfence, delete: Delete, workspace: Path) -> None:
    first, second = asked(delete("src/a.py")), asked(delete("src/b.py"))
    assert f"{first} and {second}" in ringfence("approvals", "list").err
    assert [row["group"] for row in ringfence("approvals", "list", "--json").json] == [0, 0]
    shown = ringfence("approvals", "show", first).out
    for text in (
        "this file",
        "this folder",
        "this kind of file",
        "no deny, no mandatory rule and no limit",
        "--always=kind",
    ):
        assert text in shown
    offers = ringfence("approvals", "show", first, "--json").json["rules"]["offers"]
    assert [(offer["width"], offer["opens"]["paths"]) for offer in offers] == [
        ("narrow", 0),
        ("folder", 3),
        ("kind", 3),
    ]
    assert all(offer["until"] for offer in offers), "one with an end comes first"
    refused = ringfence("approvals", "grant", first, "--always=folder")
    assert (refused.status, "add --yes" in refused.err) == (2, True)
    assert (workspace / "ringfence.yaml").read_text() == TEXT, "without a yes nothing is written"
    done = ringfence("approvals", "grant", first, "--always=folder", "--yes", "--with-others", "--json").json
    assert done["settled"] == [second] and done["request"]["state"] == "settled"
    rule = done["rule"]["id"]
    assert "# ours" in (workspace / "ringfence.yaml").read_text()
    assert delete("src/a.py").json["status"] == "ok"
    listed = ringfence("approvals", "rules", "--json").json
    assert [(each["id"], each["request"]) for each in listed] == [(rule, first)]
    assert "/src/*" in ringfence("approvals", "rules").out
    figures = ringfence("log", "--stats", "--json").json
    assert (figures["questions"], figures["answers"]["rule"]) == (2, 2)
    assert (figures["answered_by_rule"], figures["rules"]) == ({rule: 1}, {rule: 3})
    assert f"{rule}: allowed 1 call; matches 3 paths" in ringfence("log", "--stats").out
    assert ringfence("approvals", "revoke-rule", rule, "--reason", "too wide").status == 0
    assert (workspace / "ringfence.yaml").read_text() == TEXT
    assert delete("src/b.py").json["status"] == "approval_required"
    assert ringfence("approvals", "revoke-rule", rule).status == 1
    assert ringfence("approvals", "rules").out == ""


def test_what_the_rule_answers_and_was_not_settled_is_marked(ringfence: Ringfence, delete: Delete) -> None:
    first, second = asked(delete("src/a.py")), asked(delete("src/b.py"))
    done = ringfence("approvals", "grant", first, "--always=kind", "--until", "never", "--yes")
    assert second in done.out and "without an end" in done.out
    assert "the policy allows it now" in ringfence("approvals", "list").out


def test_a_grant_for_the_session_settles_what_it_covers(ringfence: Ringfence, delete: Delete) -> None:
    first, second = asked(delete("src/a.py")), asked(delete("src/b.py"))
    done = ringfence("approvals", "grant", first, "--scope", "session", "--yes", "--with-others")
    assert f"settled with it: {second}" in done.out
    assert f"settled, by the grant {first}" in " ".join(ringfence("approvals", "list", "--all").out.split())
    assert delete("src/b.py").json["status"] == "ok"


def test_rules_are_proposed_where_most_answers_were_yes(ringfence: Ringfence, delete: Delete) -> None:
    for name in "abc":
        ringfence("approvals", "grant", asked(delete(f"src/{name}.py")))
    found = ringfence("suggest", "--rules", "--json").json
    assert [(each["yes"], each["answered"], each["patterns"]) for each in found] == [(3, 3, ["/src/*"])]
    assert "3 of 3 answers were yes under src/" in ringfence("suggest", "--rules").out
    assert len(ringfence("suggest", "--rules", "--since", "1h", "--json").json) == 1
    later = "2100-01-01T00:00:00Z"
    assert ringfence("suggest", "--rules", "--since", later, "--json").json == []
    assert ringfence("suggest", "--rules", "--since", "soon").status == 2
    ringfence("approvals", "refuse", asked(delete("src/d.py")))
    assert ringfence("suggest", "--rules", "--json").json == [], "what was refused would be allowed"


@pytest.mark.parametrize(
    "words", [("--until", "soon"), ("--until", "2000-01-01"), ("--scope", "session"), ("--json",)]
)
def test_what_makes_no_rule(ringfence: Ringfence, delete: Delete, words: tuple[str, ...]) -> None:
    yes = () if words == ("--json",) else ("--yes",)
    assert ringfence("approvals", "grant", asked(delete("src/a.py")), "--always", *yes, *words).status == 2


def test_ends() -> None:
    now = 1_800_000_001.5
    assert rule_end("never", now) is None
    assert rule_end(None, now) == rule_end("week", now) == 1_800_604_860
    today = rule_end("today", now)
    assert today is not None and now < today <= now + 25 * 3600
    with pytest.raises(UsageError):
        rule_end("tomorrowish", now)


def test_the_prompt_offers_the_rules_and_writes_the_confirmed_one(
    ringfence: Ringfence, delete: Delete, workspace: Path
) -> None:
    first = asked(delete("src/a.py"))
    place = workspace / "ringfence.yaml"
    with Session(str(workspace), place, agent="coder", session="s") as session:
        request = session.approvals.get(first)

        def typed(text: str) -> tuple[object, str]:
            out = io.StringIO()
            terminal = Terminal(io.StringIO(text), out)
            given = approval_prompt.answer(
                request, terminal, lambda _: [], lambda: answer_by_rule(session, place, request, terminal)
            )
            return given, out.getvalue()

        given, shown = typed("r\nn\nn\n")
        assert given is not None and place.read_text() == TEXT
        assert "r: a rule of the policy" in shown and "another end" in shown
        given, shown = typed("r\ne\nx\n2\ny\n")
        assert given is None and "answered by rule" in shown
        assert '"/src/*": {effect: allow, reason:' in place.read_text()
        assert session.approvals.get(first).state == "settled"

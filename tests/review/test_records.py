"""The pages of sessions, files, audit, policy and matrix, as text: what each says of one story."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.review import audit_search
from tests.review import story
from tests.review.conftest import Browser, Desk


@pytest.fixture
def played(desk: Desk) -> Desk:
    """A server whose workspace has the story behind it; `said` is the id of the written rule."""
    rule = story.told(story.prepared(desk))
    story.started(desk).said = rule
    return desk


def test_the_sessions_with_their_agents(played: Desk) -> None:
    page = Browser(played.port).sign_in("lou").get("/sessions").words
    assert "4 active now, 4 sessions in all" in page
    row = page[page.index("redesign frontend") :]
    assert re.match(r"redesign frontend [0-9:]+ – now 3 files 1 file –", row), row[:80]
    assert re.search(r"redesign/snapshots frontend/helper [0-9:]+ – now 1 file 0 –", page)
    assert re.search(r"cleanup platform [0-9:]+ – now 1 file 0 2 wait", page)


def test_a_session_deleted_files_first_and_what_an_undo_leaves_alone(played: Desk) -> None:
    ann = Browser(played.port).sign_in("ann")
    page = ann.get("/sessions/redesign")
    names = re.findall(r'<a class="what" href="[^"]*/files/([^"]*)"', page.text)
    assert names[:3] == ["web/old.ts", "web/basket.ts", "web/retry.ts"]
    words = page.words
    assert "1 deleted, can be restored" in words
    assert "Changed since by session release-1" in words
    assert "an undo leaves this file alone" in words
    assert "3 of 4 files go back to how they were before this session. 1 file is left alone" in words
    assert "approved once by ann" in words
    assert "approved for the session by ann" in words
    assert "allowed by ringfence.yaml:11" in words
    assert "frontend · 3 files" in words
    assert "frontend/helper · 1 file" in words
    # The plan itself agrees with what was said before.
    fields = {"form": page.form, "session": "redesign", "next": "/sessions/redesign"}
    plan = ann.post("/back", **fields).words
    assert "Left alone 1 path" in plan and "web/basket.ts" in plan[plan.index("Left alone") :]
    assert "Undo…" not in Browser(played.port).sign_in("dan").get("/sessions/redesign").text


def test_an_undone_deletion_is_no_longer_counted(played: Desk) -> None:
    ann = Browser(played.port).sign_in("ann")
    fields = {"form": ann.get("/").form, "session": "redesign", "path": "web/old.ts"}
    ann.post("/back", digest=ann.post("/back", **fields).hidden("digest"), **fields)
    assert (played.root / "web/old.ts").exists()
    assert re.search(r"redesign frontend [^–]*– now 3 files 0 –", ann.get("/sessions").words)
    assert "0 deleted" in ann.get("/sessions/redesign").words
    story_of_file = ann.get("/files/web/old.ts").words
    assert "restored by ann (undo of session redesign" in story_of_file or "restored by ann" in story_of_file


def test_a_session_that_changed_nothing(played: Desk) -> None:
    with played.agent("reader", "only-looks") as one:
        story.call(one, "read_file", path="docs/a.md")
    page = Browser(played.port).sign_in("lou").get("/sessions/only-looks").words
    assert "Nothing has been changed in this session It made 1 call." in page
    assert "No session of this name" in Browser(played.port).sign_in("lou").get("/sessions/nobody").words


def test_a_file_with_its_story(played: Desk) -> None:
    page = Browser(played.port).sign_in("lou").get("/files/web/basket.ts")
    words = page.words
    assert "3 versions by 2 sessions" in words
    story_at = words[words.index("Versions") :]
    order = [
        story_at.index(part)
        for part in ("release-1", "approved once by kofi", "allowed by ringfence.yaml:11")
    ]
    assert order == sorted(order)
    assert "as session redesign found it" in story_at
    assert page.diff == ["-new", "-line 1", "+newer"]
    assert 'class="sbs"' in page.text and 'class="diff only-narrow"' in page.text
    deleted = Browser(played.port).sign_in("lou").get("/files/web/old.ts").words
    assert "approved once by ann, “CHG-77”" in deleted


def test_one_row_for_each_call_with_who_approved_it(played: Desk) -> None:
    page = Browser(played.port).sign_in("lou").get("/audit")
    words = page.words
    assert "Today, " in words
    assert words.count("delete destroys web/old.ts asked") == 1
    assert re.search(
        r"web/old.ts asked [0-9:]+ approved [0-9:]+ done [0-9:]+ ask delete, ringfence.yaml:6 ann", words
    )
    assert "ann once, “CHG-77” done" in words
    assert re.search(r"backend/app.py asked [0-9:]+ refused [0-9:]+ sent again [0-9:]+ ask", words)
    assert "kofi “not without a window” refused" in words
    assert "mandatory “keys never leave the machine”, rules/baseline.yaml:27" in words
    assert "a rule from an answer: the request done" in words
    assert "kofi by a rule, “migration week” a rule answers it" in words
    assert "nobody yet waits" in words
    assert "U+202E" in words and "\u202e" not in page.text
    rows = page.text.count("<tr") - 2  # without the head and the day
    with played.agent() as looking:
        calls = [r for r in audit.records(looking.state) if r["event"] == "call"]
    # One row a call, but a call that asked and was sent again is one row, and so is a refused one.
    again = sum(
        1
        for r in calls
        if r["outcome"] == "approval_refused" or (r.get("scope") and not r.get("granted_for"))
    )
    assert rows == len(calls) - again


@pytest.mark.parametrize(
    ("query", "there", "gone"),
    [
        ("effect=deny", ["infra/db.key"], ["web/old.ts", "docs/a.md"]),
        ("destroys=1", ["web/old.ts", "backend"], ["web/basket.ts", "infra/db.key", "backend/app.py"]),
        ("changes=1", ["web/old.ts", "infra/db.key"], ["docs/a.md"]),
        ("by=kofi", ["backend/app.py", "web/basket.ts"], ["web/old.ts"]),
        ("path=web/**", ["web/basket.ts", "web/old.ts"], ["docs/a.md", "backend/app.py"]),
        ("session=cleanup&tool=read_file", ["odd/x"], ["docs/a.md", "infra/db.key"]),
        ("to=2001-01-01", ["No record fits these filters"], ["web/"]),
        ("from=2001-01-01&to=2999-01-01&agent=frontend", ["web/retry.ts", "helper"], ["infra/"]),
    ],
)
def test_filters(played: Desk, query: str, there: list[str], gone: list[str]) -> None:
    lou = Browser(played.port).sign_in("lou")
    words = lou.get(f"/audit?{query}").words
    table = words[words.index("Records") :]
    assert [part for part in there if part not in table] == []
    assert [part for part in gone if part in table] == []
    assert words.count("Remove the filter") >= query.count("=")
    lines = lou.get(f"/audit/records.jsonl?{query}").text.splitlines()
    shown = lou.get("/audit/records.jsonl").text.splitlines()
    assert set(lines) <= set(shown)
    assert [json.loads(line)["seq"] for line in shown] == list(range(1, len(shown) + 1))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("from=yesterday", "is no date"),
        ("path=a[", "is not closed"),
        ("to=9999-12-31", "is no date"),
        ("command=pu*", "wild"),
    ],
)
def test_a_filter_that_is_none(played: Desk, query: str, said: str) -> None:
    page = Browser(played.port).sign_in("lou").get(f"/audit?{query}")
    assert page.status == 400
    assert said in page.words


def test_offered_filters_leave_as_many_as_they_say(played: Desk) -> None:
    lou = Browser(played.port).sign_in("lou")
    page = lou.get("/audit").text
    chips = re.findall(
        r'<a class="chip" href="[^"]*/audit\?([^"]+)">[^<]*(?:<[^>]*>)*[^<]*<span class="num">([0-9]+)', page
    )
    assert len(chips) >= 6
    for query, count in chips:
        found = lou.get("/audit?" + query.replace("&amp;", "&")).words
        said = re.search(
            r"approved it\. ([0-9]+) calls? fits? these filters", found.replace(" fit", " fit", 1)
        )
        assert said and said[1] == count, query


def test_a_long_audit_is_read_in_parts_and_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk.agent() as session:
        with session.state.transaction() as db:
            for n in range(1_050):
                fields = {
                    "event": "call",
                    "call": f"c-{n}",
                    "time": 1e9 + n,
                    "tool": "read_file",
                    "outcome": "done",
                }
                audit.append(db, {**fields, "session": "s", "agent": "a", "paths": [f"f{n}"]}, None)
        for most in ("COUNTED", "EXAMINED"):
            monkeypatch.setattr(audit_search, most, 400)
        search = audit_search.search_of({})
        seen: list[str] = []
        before: int | None = None
        for _ in range(20):
            found = audit_search.find(session, search, before)
            assert len(found.rows) <= audit_search.SHOWN
            assert (found.counted, found.more) == (400, True)
            seen += [row.paths[0] for row in found.rows]
            if found.older is None:
                break
            before = int(found.older.partition("before=")[2])
        assert seen == [f"f{n}" for n in range(1_049, -1, -1)]
        # A filter that is no condition of the index looks at a bounded number and goes on from there.
        none = audit_search.find(session, audit_search.search_of({"destroys": "1"}), None)
        assert (none.rows, none.more) == ([], True)
        assert none.older is not None


def test_the_policy_own_rules_first(played: Desk) -> None:
    page = Browser(played.port).sign_in("lou").get("/policy")
    words = page.words
    places = [
        words.index(part)
        for part in (
            "Given by people",
            "Your rules",
            "Agent frontend",
            "Everybody",
            "Floor:",
            "inherited from",
        )
    ]
    assert places == sorted(places)
    assert re.search(r"write \"web/\*\*\" 11 2 calls [0-9:]+", words)
    assert 'delete "*" 6 5 calls' in words
    assert 'run "git push *" 7 never –' in words
    assert "“tests decide”" in words
    assert "until 5 Dec 2999" in words
    assert "1 case passes" in words
    assert re.search(r"mandatory items in rules/baseline.yaml · 1 call decided in 7 days", words)
    assert re.search(r"[0-9]+ calls in 7 days", words)
    assert "4 / 1 / 2" in words, "approved, refused, without an answer"
    assert "by kofi" in words and "migration week" in words
    assert "Revoke…" not in words, "a viewer may not revoke"


def test_a_rule_from_an_answer_is_revoked_after_its_diff_was_shown(played: Desk) -> None:
    dan = Browser(played.port).sign_in("dan")
    before = (played.root / "ringfence.yaml").read_text()
    assert played.said in before
    place = f"/policy/rules/{played.said}"
    assert f'href="{dan.base}{place}"' in dan.get("/policy").text
    shown = dan.get(place)
    assert f"rule {played.said}, from a person" in shown.words
    assert (played.root / "ringfence.yaml").read_text() == before
    lou = Browser(played.port).sign_in("lou")
    assert lou.post(place, form=lou.get("/").form).status == 403
    assert '<button class="main">Revoke the rule' not in lou.get(place).text
    done = dan.post(place, form=shown.form, reason="over")
    assert "✓ Revoked:" in done.words
    assert played.said not in (played.root / "ringfence.yaml").read_text()
    assert dan.get(place).status == 404
    with played.agent("platform", "cleanup") as one:
        assert (
            story.call(one, "create_file", path="backend/new2.sql", content="z").status == "approval_required"
        )
        revoked = [r for r in audit.records(one.state) if r.get("outcome") == "revoked"]
    assert [(r["by"], r["reason"]) for r in revoked] == [("dan", "over")]


def test_a_policy_that_no_longer_loads_is_said(played: Desk) -> None:
    (played.root / "ringfence.yaml").write_text("version: 1\nrules: {reed: allow}\n")
    words = Browser(played.port).sign_in("lou").get("/policy").words
    assert "The policy's file does not load" in words.replace("’", "'")
    assert "reed" in words


def test_the_matrix_of_own_files(played: Desk) -> None:
    lou = Browser(played.port).sign_in("lou")
    words = lou.get("/policy/matrix").words
    assert "3 kinds of agents" in words
    assert ".git/ and ignored files are left out" in words
    assert "built/" not in words and "HEAD" not in words
    every = lou.get("/policy/matrix?all=1").words
    assert "built/" in every and "▸ .git/" in every
    opened = lou.get("/policy/matrix?at=web/tests").words
    assert "pay/" in opened and story.LONG.rpartition("/")[2] in opened
    cell = lou.get("/policy/matrix?at=web/tests&why=web/tests/pay&agent=frontend&action=write").words
    why = cell[cell.index("Why: ") :]
    assert why.startswith("Why: frontend, write, web/tests/pay/")
    assert 'write.edit: "web/tests/pay/**" says allow' in why
    assert "6 Dec 2999, 00:00:00, then ask" in why
    assert "edit: allow until 5 Dec 2999" in cell


@pytest.mark.parametrize(
    ("query", "there", "gone"),
    [
        ("q=pay+SPEC", ["1 path has these words", "web/tests/pay/pay.spec.ts"], ["basket"]),
        ("show=differ", ["web/", "infra/", "backend/"], ["docs/"]),
        ("show=denied", ["infra/", "ringfence.yaml"], ["docs/", "web/"]),
        ("show=delete", ["No path fits"], ["web/"]),
        ("q=" + quote("\u202e"), ["U+202E"], ["docs/"]),
        ("at=no/such/folder&why=no&agent=x&action=read", ["docs/"], ["Why:"]),
        ("agents=99&show=nonsense", ["frontend", "docs/"], []),
    ],
)
def test_filters_of_the_matrix(played: Desk, query: str, there: list[str], gone: list[str]) -> None:
    page = Browser(played.port).sign_in("lou").get(f"/policy/matrix?{query}")
    assert page.status == 200
    words = page.words[page.words.index("or for a kind of writing") :]
    assert [part for part in there if part not in words] == []
    assert [part for part in gone if part in words] == []


def test_an_empty_workspace_has_sentences(desk: Desk) -> None:
    for path in sorted(desk.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    story.started(desk)
    lou = Browser(desk.port).sign_in("lou")
    for path, said in (
        ("/sessions", "No agent has called yet"),
        ("/audit", "No agent has called yet"),
        ("/policy", "No rules yet: every call asks"),
        ("/policy/matrix", "There is no file here yet"),
    ):
        assert said in lou.get(path).words, path


def test_the_chain_is_verified_on_demand(played: Desk) -> None:
    lou = Browser(played.port).sign_in("lou")
    assert "not verified since the server started" in lou.get("/audit").words
    assert "chain intact" in lou.get("/audit/verify").words
    assert "chain intact verified" in lou.get("/audit").words
    with played.agent() as one, one.state.transaction() as db:
        db.execute("UPDATE audit SET body = replace(body, 'redesign', 'redesigm') WHERE seq = 3")
    assert "chain broken" in lou.get("/audit/verify").words
    assert "chain broken" in lou.get("/audit").words


def test_each_page_has_a_strict_policy_and_no_inline_style(played: Desk) -> None:
    lou = Browser(played.port).sign_in("lou")
    paths = ("/sessions", "/sessions/redesign", "/files/web/basket.ts", "/audit", "/policy", "/policy/matrix")
    for path in (*paths, f"/policy/rules/{played.said}", "/audit/verify", "/trash"):
        page = lou.get(path)
        assert "default-src 'none'" in page.headers["content-security-policy"], path
        assert "unsafe" not in page.headers["content-security-policy"]
        assert not re.search(r"<[^>]* style=|<style|<script(?! src)|<[^>]* on[a-z]+=", page.text), path
    assert lou.get("/../../static/records.css").status >= 400
    assert Path("toolkit/review/static/records.css").exists()

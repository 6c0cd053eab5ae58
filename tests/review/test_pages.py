"""What each page shows and each form does, over HTTP."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from tests.review.conftest import TOKENS, Browser, Desk

EVERYTHING = 'version: 1\nrules: {"*": allow}\n'


def test_the_inbox_shows_what_waits(served: Desk, ann: Browser) -> None:
    assert "Nothing waits for an answer" in ann.get("/").text
    asked = served.ask(description="no longer needed")
    page = ann.get("/")
    for part in (asked, "Delete file a.txt", "coder", "night", "no longer needed", "(1) Inbox", "Deletes"):
        assert part in page.plain


def test_an_approval_shows_the_whole_plan(served: Desk, ann: Browser) -> None:
    (served.root / "d").mkdir()
    for n in range(3):
        (served.root / "d" / f"f{n}").write_text(f"text {n}\n")
    page = ann.get(f"/approvals/{served.ask('d')}")
    for part in (
        "d/f0",
        "d/f1",
        "d/f2",
        "Destroys 3 files, 21 B",
        "d/ and what is in it",
        'delete "*": ask · ringfence.yaml:4',
        "I know that this deletes 3 files",
    ):
        assert part in page.plain
    assert 'name="seen" value="1" required' in page.text


@pytest.mark.parametrize("scope", ["once", "session"])
def test_approving(served: Desk, ann: Browser, scope: str) -> None:
    asked = served.ask()
    form = ann.get(f"/approvals/{asked}").form
    page = ann.post(f"/approvals/{asked}", form=form, decision=scope)
    if scope == "session":
        for part in (
            "this session (night): all that",
            "opens",
            "the first that was not shown: b.txt",
            "nearly every path",
        ):
            assert part in page.text
        assert ">waits<" in ann.get(f"/approvals/{asked}").text, "it is asked a second time"
        page = ann.post(f"/approvals/{asked}", form=form, decision=scope, confirmed="1")
    assert page.status == 200
    assert served.call("delete", path="a.txt").ok
    assert (served.call("delete", path="b.txt").status == "ok") == (scope == "session")


def test_approving_a_pattern_until_a_time_and_taking_it_back(served: Desk, ann: Browser) -> None:
    asked = served.ask()
    page = ann.get(f"/approvals/{asked}")
    wrong = ann.post(f"/approvals/{asked}", form=page.form, decision="pattern", pattern="x/*", until="2h")
    assert "does not match what was asked for" in wrong.text
    late = ann.post(f"/approvals/{asked}", form=page.form, decision="pattern", pattern="*.txt", until="soon")
    assert "such as 2h" in late.text
    sure = ann.post(f"/approvals/{asked}", form=page.form, decision="pattern", pattern="*.txt", until="2h")
    assert "for these paths until" in sure.text and "*.txt, all that" in sure.text
    fields = {"pattern": sure.hidden("pattern"), "until": sure.hidden("until"), "confirmed": "1"}
    ann.post(f"/approvals/{asked}", form=page.form, decision="pattern", **fields)
    assert served.call("delete", path="b.txt").ok
    assert "for these paths until" in ann.get(f"/approvals/{asked}").text
    assert ann.post(f"/approvals/{asked}", form=page.form, decision="revoke").status == 200
    assert served.call("delete", path="a.txt").status == "approval_required"


def test_refusing_with_a_reason(served: Desk, ann: Browser) -> None:
    asked = served.ask()
    ann.post(f"/approvals/{asked}", form=ann.get("/").form, decision="refuse", reason="move it to .trash/")
    assert "move it to .trash/" in served.call("delete", path="a.txt").content


def test_a_stale_page_does_not_overrule_a_refusal(served: Desk, ann: Browser) -> None:
    asked = served.ask()
    dan = Browser(served.port).sign_in("dan")
    form = dan.get(f"/approvals/{asked}").form
    ann.post(f"/approvals/{asked}", form=ann.get("/").form, decision="refuse", reason="keep it")
    for decision in ("once", "session"):
        late = dan.post(f"/approvals/{asked}", form=form, decision=decision, confirmed="1")
        assert late.status == 409
        assert "already refused by ann: keep it" in late.text
    assert served.call("delete", path="a.txt").error["code"] == "approval_refused"
    assert "Reopen" in dan.get(f"/approvals/{asked}").text
    dan.post(f"/approvals/{asked}", form=form, decision="reopen")
    dan.post(f"/approvals/{asked}", form=form, decision="once")
    assert served.call("delete", path="a.txt").ok


def test_changing_the_arguments(served: Desk, ann: Browser) -> None:
    asked = served.ask()
    fields = {"form": ann.get("/").form, "arguments": '{"path": "b.txt"}'}
    page = ann.post(f"/approvals/{asked}", decision="change", **fields)
    assert "-b.txt one" in page.diff
    fields |= {"digest": page.hidden("digest"), "arguments": page.hidden("arguments")}
    ann.post(f"/approvals/{asked}", decision="send", **fields)
    assert '{"path": "b.txt"}' in served.call("delete", path="a.txt").content
    assert served.call("delete", path="b.txt").ok
    assert (served.root / "a.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [('{"path": "secrets/d.txt"}', "denied_by_policy"), ("{", "invalid_json"), ("[]", "invalid_json")],
)
def test_a_change_lifts_nothing(served: Desk, ann: Browser, arguments: str, code: str) -> None:
    asked = served.ask()
    page = ann.post(f"/approvals/{asked}", form=ann.get("/").form, decision="change", arguments=arguments)
    assert code in page.text
    assert ">waits<" in ann.get(f"/approvals/{asked}").text


def test_two_people_at_once(served: Desk, ann: Browser) -> None:
    dan = Browser(served.port).sign_in("dan")
    asked = served.ask()
    pages = []

    def answer(who: Browser, decision: str) -> None:
        pages.append(who.post(f"/approvals/{asked}", form=who.get("/").form, decision=decision))

    ends = [threading.Thread(target=answer, args=pair) for pair in ((ann, "once"), (dan, "once"))]
    for one in ends:
        one.start()
    for one in ends:
        one.join()
    assert sorted(page.status for page in pages) == [200, 409]
    assert "already granted" in "".join(page.text for page in pages)


def test_an_answer_to_what_was_answered_or_is_unknown(served: Desk, ann: Browser) -> None:
    asked = served.ask()
    with served.agent() as session:
        session.approvals.answer(asked, Answer(True))
    form = ann.get("/").form
    assert ann.post(f"/approvals/{asked}", form=form, decision="once").status == 409
    assert ann.post("/approvals/a-none", form=form, decision="once").status == 404
    assert ann.post(f"/approvals/{asked}", form=form, decision="maybe").status == 400


def test_sessions_changes_and_the_way_back(served: Desk, ann: Browser) -> None:
    served.call("edit_file", path="a.txt", old_str="one", new_str="two")
    served.call("create_file", path="new.txt", content="fresh\n")
    with served.agent("coder/tests", "night/tests") as sub:
        sub.call({"tool": "create_file", "arguments": {"path": "sub.txt", "content": "x\n"}})
    listed = ann.get("/sessions").text
    assert listed.index(">night<") < listed.index(">night/tests<")
    page = ann.get("/sessions/night")
    for part in ("3 files", "a.txt", "+1", "−1", "sub.txt", "3 of 3 files go back"):
        assert part in page.words
    assert {"-a.txt one", "+a.txt two"} <= set(page.diff)
    fields = {"form": page.form, "session": "night", "path": "a.txt", "next": "/sessions/night"}
    shown = ann.post("/back", **fields)
    assert "+a.txt one" in shown.diff
    assert (served.root / "a.txt").read_text() == "a.txt two\n"
    done = ann.post("/back", digest=shown.hidden("digest"), **fields)
    assert done.status == 200
    assert (served.root / "a.txt").read_text() == "a.txt one\n"
    assert (served.root / "new.txt").exists()
    with served.agent() as looking:
        (*_, last) = audit.records(looking.state)
    assert (last["tool"], last["agent"], last["by"]) == ("undo", "person:ann", "ann")


def test_what_was_shown_is_what_is_put_back(served: Desk, ann: Browser) -> None:
    served.call("edit_file", path="a.txt", old_str="one", new_str="two")
    fields = {"form": ann.get("/").form, "session": "night", "path": "a.txt"}
    digest = ann.post("/back", **fields).hidden("digest")
    (served.root / "a.txt").write_text("somebody else's\n")
    assert ann.post("/back", digest=digest, **fields).status == 409
    assert (served.root / "a.txt").read_text() == "somebody else's\n"


def test_a_files_versions_side_by_side_and_restored(served: Desk, ann: Browser) -> None:
    served.call("edit_file", path="a.txt", old_str="one", new_str="two")
    served.call("edit_file", path="a.txt", old_str="two", new_str="three")
    page = ann.get("/files/a.txt?left=night:initial&right=night:v2")
    assert page.diff == ["-a.txt one", "+a.txt three"]
    assert 'aria-label="Change of a.txt, side by side"' in page.text
    fields = {"form": page.form, "path": "a.txt", "version": "night:v1", "next": "//evil.example/"}
    digest = ann.post("/back", **fields).hidden("digest")
    assert "<h1>Sessions" in ann.post("/back", digest=digest, **fields).text
    assert (served.root / "a.txt").read_text() == "a.txt two\n"
    assert ann.get("/files/none.txt").status == 404
    assert ann.get("/files/../etc/passwd").status >= 400


def test_a_pruned_version_that_the_file_still_has(served: Desk, ann: Browser) -> None:
    served.call("edit_file", path="a.txt", old_str="one", new_str="two")
    with served.agent() as session:
        session.prune(keep=0)
    page = ann.get("/files/a.txt").text
    assert page.count("no longer kept") == 1
    assert page.count("only in the workspace") == 1
    (served.root / "a.txt").write_text("a.txt 222\n")
    assert ann.get("/files/a.txt").text.count("no longer kept") == 2


def test_the_audit_its_filters_and_its_verification(served: Desk, ann: Browser) -> None:
    served.call("read_file", path="a.txt")
    served.call("delete", path="secrets/d.txt")
    page = ann.get("/audit?effect=deny").words
    assert "secrets/d.txt" in page
    assert "read_file" not in page
    allowed = {"effect": "allow", "action": "read", "path": "tried.txt", "rule": None}
    record = {"event": "call", "time": 1.0, "paths": ["tried.txt"], "decision": allowed}
    with served.agent() as session, session.state.transaction() as db:
        audit.append(db, {**record, "would": {**allowed, "effect": "ask"}}, None)
    tried = ann.get("/audit?would=ask").words
    assert "tried.txt" in tried
    assert " a.txt" not in tried
    assert "allow would ask" in tried
    assert "Every record follows" in ann.get("/audit/verify").text


def test_the_policy_with_its_hits_and_its_matrix(served: Desk, ann: Browser) -> None:
    served.call("delete", path="tmp/c.txt")
    page = ann.get("/policy")
    assert "1 call" in page.text
    assert "never" in page.text
    assert "secrets/" in ann.get("/policy/matrix").words
    assert "d.txt" in ann.get("/policy/matrix?at=secrets").words


def test_roles(served: Desk) -> None:
    lou, dan = Browser(served.port).sign_in("lou"), Browser(served.port).sign_in("dan")
    asked = served.ask()
    served.call("create_file", path="new.txt", content="x\n")
    assert "Delete 1 file" not in lou.get(f"/approvals/{asked}").text
    assert lou.post(f"/approvals/{asked}", form=lou.get("/").form, decision="once").status == 403
    assert "Take" not in dan.get("/sessions/night").text
    back = {"session": "night", "form": dan.get("/").form}
    assert dan.post("/back", **back).status == 403
    assert dan.post(f"/approvals/{asked}", form=dan.get("/").form, decision="refuse").status == 200
    assert (served.root / "new.txt").exists()


@pytest.mark.parametrize(
    "path", ["/", "/sessions", "/audit", "/policy", "/events", "/approvals/a-1", "/none"]
)
def test_nothing_is_shown_to_nobody(served: Desk, path: str) -> None:
    stranger = Browser(served.port)
    page = stranger.get(path)
    assert "<h1>Sign in" in page.text
    assert stranger.get(path, Accept="*/*").status == 401
    assert stranger.post("/sign-in", token="wrong").status == 401
    assert str(served.root) not in page.text


def test_a_form_of_another_page_does_nothing(served: Desk, ann: Browser) -> None:
    asked = served.ask()
    form = ann.get("/").form
    for fields in (
        {},
        {"form": "x"},
        {"form": "é"},
        {"form": Browser(served.port).sign_in("dan").get("/").form},
    ):
        assert ann.post(f"/approvals/{asked}", decision="once", **fields).status == 403
    place = f"{ann.base}/approvals/{asked}"
    foreign = ann.send("POST", place, f"form={form}&decision=once", Origin="http://evil.example")
    assert foreign.status == 403
    assert ann.send("POST", place, "{}", Content_Type="application/json").status == 400
    assert served.call("delete", path="a.txt").status == "approval_required"


def test_by_another_name_it_is_not_there(served: Desk, ann: Browser) -> None:
    assert ann.get("/", Host="evil.example").status == 403
    assert ann.get("/", Host="localhost").status == 200


def test_what_a_browser_is_told_to_keep_to(served: Desk, ann: Browser) -> None:
    page = ann.get("/")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    body = f"token={TOKENS['lou'][1]}"
    connection.request("POST", "/sign-in", body, {"Content-Type": "application/x-www-form-urlencoded"})
    cookie = connection.getresponse().headers["set-cookie"].lower()
    connection.close()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_signing_out(served: Desk, ann: Browser) -> None:
    before = Browser(served.port, ann.cookie, ann.base)
    assert "Inbox – Ringfence" in before.get("/").text
    ann.post("/sign-out", form=ann.get("/").form)
    assert "<h1>Sign in" in before.get("/").text


def test_a_cookie_alone_is_worth_nothing(served: Desk, ann: Browser) -> None:
    """Browsers send cookies to every port of a machine, so whoever listens on another one may have it."""
    asked = served.ask()
    thief = Browser(served.port, ann.cookie)
    dan = Browser(served.port).sign_in("dan")
    for base in ("", "/in", "/in/", "/in//", "/in/x", dan.base, f"{ann.base}x", ann.base.upper()):
        thief.base = base
        page = thief.get(f"/approvals/{asked}")
        assert "<h1>Sign in" in page.text and ann.base not in page.text, base
        assert thief.get("/", Accept="*/*").status in (401, 404), base
    assert Browser(served.port, dan.cookie, ann.base).get("/", Accept="*/*").status == 401
    assert Browser(served.port, "", ann.base).get("/", Accept="*/*").status == 401, "nor is the place"


def test_two_servers_of_one_person_have_cookies_of_their_own(served: Desk, ann: Browser) -> None:
    assert ann.cookie.startswith(f"ringfence-{served.port}=")
    assert ann.base.startswith("/in/") and len(ann.base) > 30
    assert ann.base != Browser(served.port).sign_in("ann").base


def test_an_address_without_a_sign_in_is_gone_on_with_after_it(served: Desk) -> None:
    asked = served.ask()
    stranger = Browser(served.port)
    page = stranger.get(f"/approvals/{asked}")
    there = page.hidden("next")
    assert there == f"/approvals/{asked}"
    for place, shown in (
        (there, "Why this asks"),
        ("//evil.example/", "Inbox – Ringfence"),
        ("\\\\evil", "Inbox – Ringfence"),
    ):
        page = Browser(served.port).post("/sign-in", token=TOKENS["dan"][1], next=place)
        assert shown in page.text


def test_a_persons_sign_ins_end_none_of_another(served: Desk, ann: Browser) -> None:
    first = Browser(served.port).sign_in("lou")
    for _ in range(50):
        Browser(served.port).sign_in("lou")
    assert first.get("/", Accept="*/*").status == 401, "her own oldest one made room"
    assert ann.get("/", Accept="*/*").status == 200


def test_hostile_texts_are_shown_as_text(served: Desk, ann: Browser) -> None:
    name = 'x"><script>alert(1)</script>\u202e.txt'.replace("/", "\u2215")
    (served.root / name).write_text("<img src=x onerror=alert(2)>\x1b[2J\n" + "y" * 1_000_000)
    asked = served.ask(name, description="<b>fine</b>\x1b[38D\u2066 approved {{ 7*7 }}")
    for page in (ann.get("/"), ann.get(f"/approvals/{asked}"), ann.get("/audit")):
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert not set("\x1b\u202e\u2066") & set(page.text)
        assert "{{ 7*7 }}" in page.text or "/audit" in page.text
    assert "Delete 1 file" in ann.get(f"/approvals/{asked}").text


SECRET = "proxy-secret-0123456789abcdef"


def private(place: Path, text: str) -> str:
    place.write_text(text)
    place.chmod(0o600)
    return str(place)


def test_a_proxy_says_who_it_is(desk: Desk) -> None:
    people = private(desk.state.parent / "people", "decide pat -\n")
    secret = private(desk.state.parent / "proxy", f"{SECRET}\n")
    desk.start("--people", people, "--user-header", "X-User", "--proxy-secret", secret)
    asked = desk.ask()
    proxy = {"X-User": "pat", "X-Ringfence-Proxy": SECRET}
    browser = Browser(desk.port, headers=proxy)
    page = browser.get(f"/approvals/{asked}")
    assert "· approver" in page.text and ">pat<" in page.text
    for headers in (
        {"X-User": "pat"},  # as any user of this machine could say
        {"X-User": "pat", "X-Ringfence-Proxy": f"{SECRET}x"},
        {"X-User": "pat", "X-Ringfence-Proxy": ""},
        {"X-User": "eve", "X-Ringfence-Proxy": SECRET},
        {"X-Ringfence-Proxy": SECRET},
        {},
    ):
        other = Browser(desk.port, headers=headers)
        assert "<h1>Sign in" in other.get(f"/approvals/{asked}").text, headers
        posted = other.send("POST", f"/approvals/{asked}", f"form={page.form}&decision=once")
        assert posted.status == 401, headers
    assert desk.call("delete", path="a.txt").status == "approval_required"
    browser.post(f"/approvals/{asked}", form=page.form, decision="once")
    assert desk.call("delete", path="a.txt").ok


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--user-header", "X-User"), "--proxy-secret"),
        (("--proxy-secret", "proxy"), "--user-header"),
        (("--user-header", "X-User", "--proxy-secret", "missing"), "No such file"),
        (("--user-header", "X-User", "--proxy-secret", "short"), "at least 24 characters"),
        (("--user-header", "X-User", "--proxy-secret", "open"), "chmod 600"),
    ],
)
def test_a_header_alone_is_not_believed(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    private(tmp_path / "people", "decide pat -\n")
    private(tmp_path / "proxy", SECRET)
    private(tmp_path / "short", "short")
    (tmp_path / "open").write_text(SECRET)
    (tmp_path / "open").chmod(0o644)
    words = ["serve", "review", "--root", str(desk.root), "--state", str(desk.state), "--people", "people"]
    done = subprocess.run(
        [sys.executable, "-m", "ringfence", *words, "--port", "0", *more],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_a_form_that_does_not_come_is_not_waited_for(desk: Desk) -> None:
    desk.start("--read-timeout", "1")
    head = (
        "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken="
    )
    with socket.create_connection(("127.0.0.1", desk.port), timeout=60) as line:
        line.sendall(head.encode())
        said = b"".join(iter(lambda: line.recv(1000), b""))
    assert said.startswith(b"HTTP/1.1 408 ")


def test_nobody_keeps_anybody_from_signing_in(served: Desk, ann: Browser) -> None:
    head = (
        "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken="
    )
    lou = Browser(served.port).sign_in("lou")
    mine = head.replace("/sign-in", f"{lou.base}/back").replace(
        "localhost", f"localhost\r\nCookie: {lou.cookie}"
    )
    held = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(300)]
    try:
        for n, line in enumerate(held):
            line.sendall((head if n % 2 else mine).encode())
        assert Browser(served.port).sign_in("dan").get("/").status == 200
        assert ann.get("/").status == 200
    finally:
        for line in held:
            line.close()


def test_the_token_that_is_printed(desk: Desk) -> None:
    desk.start()
    browser = Browser(desk.port)
    browser.with_token(desk.said.split()[-1])
    assert "· administrator" in browser.get("/").text


def test_news_reach_an_open_page(served: Desk, ann: Browser) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request("GET", f"{ann.base}/events", headers={"Cookie": ann.cookie})
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    assert answer.readline() == b"retry: 2000\n"
    served.ask()
    lines = [answer.readline() for _ in range(5)]
    connection.close()
    assert b"event: news\n" in lines
    assert b"data: 1\n" in lines


def test_the_trash_of_task_folders(desk: Desk) -> None:
    task = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
    store = desk.root.parent / "tasks"
    (store / task).mkdir(parents=True)
    (store / task / "ui_messages.json").write_text('[{"ts": 1, "type": "say", "text": "Fix <b>it</b>"}]')
    (store / task / "api_conversation_history.json").write_text("[]")
    desk.start("--tasks", str(store))
    ann = Browser(desk.port)
    ann.with_token(desk.said.split()[-1])
    assert "The task trash is empty" in ann.get("/trash").text
    with Session(desk.root, Policy.loads(EVERYTHING), tasks=store, state=desk.state) as session:
        assert session.call({"tool": "delete_tasks", "arguments": {"task_ids": [task]}}).ok
    page = ann.get("/trash")
    assert "Fix &lt;b&gt;it&lt;/b&gt;" in page.text
    assert "Successfully restored" in ann.post("/trash", form=page.form, task=task).text
    assert (store / task / "ui_messages.json").exists()
    assert ann.post("/trash", form=page.form, task=task).status == 409


def test_without_task_folders_there_is_no_trash(served: Desk, ann: Browser) -> None:
    assert "No task folders are given" in ann.get("/trash").text


def test_nothing_falls_between_a_page_and_its_stream(served: Desk, ann: Browser) -> None:
    mark = ann.get("/").text.partition('data-mark="')[2].partition('"')[0]
    served.ask()
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request("GET", f"{ann.base}/events?mark={mark}", headers={"Cookie": ann.cookie})
    answer = connection.getresponse()
    assert b"event: news\n" in [answer.readline() for _ in range(3)]
    connection.close()


def test_a_long_diff_can_be_seen_to_its_end(served: Desk, ann: Browser) -> None:
    (served.root / "long").write_text("".join(f"line {n}\n" for n in range(5000)))
    asked = served.ask("long")
    page = ann.get(f"/approvals/{asked}")
    assert "-line 0" in page.diff and "-line 4999" not in page.diff
    assert "more lines of this diff" in page.text
    assert "-line 4999" in ann.get(f"/approvals/{asked}?whole=1").diff


def test_a_move_is_shown_by_what_it_needs_at_each_end(served: Desk, ann: Browser) -> None:
    result = served.call("move_file", source="a.txt", destination="secrets/a.txt")
    page = ann.get(f"/approvals/{result.data['approval']['id']}")
    rows = re.findall(
        r'<tr><th [^>]*>(.*?)</th><td data-l="Action">(\w+)</td><td [^>]*>(.*?)</td>', page.text
    )
    told = [
        (re.sub("<[^>]*>", "", path), action, re.sub("<[^>]*>", "", effect)) for path, action, effect in rows
    ]
    shown = {(action, path): effect.strip() for path, action, effect in told}
    assert shown == {("delete", "a.txt"): "ask", ("write", "secrets/a.txt"): "allow"}
    assert "send the same call again" not in page.text
    ann.post(f"/approvals/{result.data['approval']['id']}", form=ann.get("/").form, decision="once")
    assert "ann" in ann.get("/audit?by=ann").text
    assert "There is nothing here" in ann.get("/approvals/a-none").text

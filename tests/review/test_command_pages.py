"""Commands on the pages: records, the session's list, and requests before and after a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from tests.review.conftest import Browser, Desk

RAN: dict[str, Any] = {
    "command": "make <b>all</b>\u202e", "cwd": ".", "status": 2, "signal": None, "stopped": None,
    "seconds": 1.5,
    "level": "overlay", "network": False, "output_bytes": 9, "hidden": 0,
    "effects": {"deleted": 1, "created": 2}, "discarded": 3, "dropped": [["pipe", "not a file"]],
    "denied": ["secrets/k"], "through": ["built"],
}  # fmt: skip


def record(desk: Desk, **more: Any) -> None:
    with Session(desk.root, Policy.empty(), state=desk.state) as session:
        fields = {
            "time": 1_700_000_000.0, "event": "call", "call": "c-1", "session": "night", "agent": "coder",
            "tool": "run_command", "paths": [], "decision": None, "outcome": "done", "command": RAN,
        } | more  # fmt: skip
        with session.state.transaction() as db:
            audit.append(db, fields, session.state.key)


FACTS = (
    "make <b>all</b>U+202E", "exit 2, overlay", "1 deleted, 2 created",
    "discarded, as the policy says: 3 changes", "denied, so left out: secrets/k",
    "left out: pipe (not a file)",
    "open to it, not kept, not undone: built",
)  # fmt: skip


def test_the_records_show_the_command(served: Desk, ann: Browser) -> None:
    record(served)
    record(served, call="c-2", command={"command": "git push", "cwd": "."}, outcome="denied_by_policy")
    page = ann.get("/audit?tool=run_command").words
    for part in (*FACTS, "git push did not run"):
        assert part in page
    found = ann.get("/audit?command=git+*").words
    assert "git push" in found and "make" not in found
    wrong = ann.get("/audit?command=git+pu*")
    assert wrong.status == 400 and "wildcard" in wrong.text


def test_a_session_lists_its_commands(served: Desk, ann: Browser) -> None:
    record(served)
    page = ann.get("/sessions/night")
    for part in (*FACTS, "output: 9 B"):
        assert part in page.words
    assert 'name="call" value="c-1"' in page.text
    assert 'name="call"' not in Browser(served.port).sign_in("lou").get("/sessions/night").text


@pytest.mark.parametrize(
    ("changes", "notice", "hidden"),
    [
        (False, "The command has not run yet", "What changes"),
        (True, "The command ran in the sandbox; nothing is changed yet", "Why this asks"),
    ],
)
def test_a_request_says_whether_the_command_ran(
    served: Desk, ann: Browser, changes: bool, notice: str, hidden: str
) -> None:
    asked = served.ask()
    with Session(served.root, Policy.empty(), state=served.state) as session:
        fields = {**session.approvals.get(asked).to_json(), "tool": "run_command", "changes": changes}
        fields |= {"arguments": {"command": RAN["command"]}, "preview": "-gone\n"}
        with session.state.transaction() as db:
            db.execute("UPDATE approval SET request = ? WHERE id = ?", (json.dumps(fields), asked))
    page = ann.get(f"/approvals/{asked}").text
    assert notice in page
    assert '<code>make &lt;b&gt;all&lt;/b&gt;<span class="esc">U+202E</span></code>' in page
    assert hidden not in page
    assert notice[1:] in ann.get("/").text

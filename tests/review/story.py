"""A story for the pages of records: sessions, answers of people, losses, odd names and a written rule."""

from __future__ import annotations

import time
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.rule_offers import answering
from ringfence.toolkit.session.session import Session
from tests.review.conftest import TOKENS, Desk

POLICY = """\
version: 1
extends: [baseline]
rules:
  read: allow
  write: {"*": ask, "docs/**": allow}
  delete: {"*": ask}
  run: {"git push *": deny}
agents:
  frontend:
    rules:
      write: {"web/**": allow, "web/tests/**": {effect: ask, reason: tests decide}}
      write.edit: {"web/tests/pay/**": {effect: allow, until: 2999-12-05}}
  platform:
    rules: {write: {"infra/**": ask, "infra/**/*.md": allow}}
cases:
  - {agent: frontend, action: read, path: docs/a.md, want: allow}
"""
ODD = 'odd/x"><img src=x onerror=alert(1)>\u202egnp.exe'
LONG = "web/tests/a-very-long-name-that-somebody-made-from-the-title-of-the-test-case.spec.ts.snap"
FILES = (
    "web/basket.ts", "web/old.ts", "web/tests/pay/pay.spec.ts", LONG, "docs/a.md", "infra/README.md",
    "infra/main.tf", "infra/db.key", "backend/app.py", "backend/lib.sql", ODD, "built/x.o", ".git/HEAD",
)  # fmt: skip


def prepared(desk: Desk) -> Desk:
    """Write the story's files and its policy, before the server starts."""
    for name in FILES:
        (desk.root / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.root / name).write_text("".join(f"line {n} of {name!r}\n" for n in range(12)))
    (desk.root / ".gitignore").write_text("built/\n")
    (desk.root / "ringfence.yaml").write_text(POLICY)
    return desk


def started(desk: Desk) -> Desk:
    """Start the server for all people."""
    people = desk.root.parent / "people"
    people.write_text("".join(f"{role} {name} {token}\n" for name, (role, token) in TOKENS.items()))
    people.chmod(0o600)
    desk.start("--people", str(people))
    return desk


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def answered(
    session: Session,
    by: str,
    tool: str,
    *,
    yes: bool = True,
    scope: str = "once",
    reason: str = "",
    **given: Any,
) -> Any:
    """Ask for a call, answer it as a person, and send the call again."""
    asked = call(session, tool, **given).data["approval"]["id"]
    session.approvals.answer(asked, Answer(yes, by=by, reason=reason, scope=scope, confirmed=True))
    return call(session, tool, **given)


def told(desk: Desk) -> str:
    """Play the story; returns the id of the rule that an answer wrote."""

    def put(path: str, text: str) -> dict[str, Any]:
        return {"path": path, "content": text, "allow_overwrite": True}

    with desk.agent("frontend", "redesign") as one:
        assert call(one, "read_file", path="docs/a.md").ok
        assert call(one, "create_file", **put("web/basket.ts", "new\nline 1\n")).ok
        assert call(one, "create_file", path="web/retry.ts", content="x\n").ok
        assert answered(one, "ann", "delete", path="web/old.ts", reason="CHG-77").ok
        refused = answered(
            one, "kofi", "delete", yes=False, path="backend/app.py", reason="not without a window"
        )
        assert refused.error["code"] == "approval_refused"
    with desk.agent("frontend/helper", "redesign/snapshots") as one:
        assert answered(one, "ann", "create_file", scope="session", **put(LONG, "snap\n")).ok
    with desk.agent("release", "release-1") as one:
        assert answered(one, "kofi", "create_file", **put("web/basket.ts", "newer\n")).ok
    with desk.agent("platform", "cleanup") as one:
        assert call(one, "delete_file", path="infra/db.key").error["code"] == "denied_by_policy"
        assert call(one, "read_file", path=ODD).ok
        asked = call(one, "create_file", **put(ODD, "odd\n"), description="I am \u202e sorry")
        assert asked.status == "approval_required"
        assert call(one, "delete", path="backend").status == "approval_required"
        return _ruled(desk, one)


def _ruled(desk: Desk, session: Session) -> str:
    source = desk.root / "ringfence.yaml"
    asked = call(session, "create_file", path="backend/new.sql", content="z\n")
    request = session.approvals.get(asked.data["approval"]["id"])
    policy = Policy.load(source)
    found, file = answering.offers_for(
        session.workspace, policy, source, request, now=time.time(), until=int(time.time()) + 7 * 86400
    )
    offer = found.offers[0]
    answering.write(session.approvals, request, offer, file, by="kofi", reason="migration week")
    with desk.agent("platform", "cleanup") as again:
        assert call(again, "create_file", path="backend/new.sql", content="z\n").ok
    return str(offer.id)

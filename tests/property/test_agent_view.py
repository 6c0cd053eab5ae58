"""Whatever an agent is sent, by whatever door, holds no byte of what it may not read, no name that it may not
know, no rule and no digest from which either could be guessed; requests and questions included."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy
from ringfence.policy.model import WRITE_KINDS
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.catalog.mcp_definitions import tool_result
from ringfence.toolkit.mcp.elicitation import Seals, question
from ringfence.toolkit.session import agent_view
from ringfence.toolkit.session.session import Session
from tests.property.test_session_secrets import calls, names, plant, trees, way

CASES = int(os.environ.get("AGENT_VIEW_CASES", "2000"))
effects = st.sampled_from(["allow", "ask", "deny", "deny"])
changing = st.sampled_from(["allow", "ask", "ask"])
MARK = "PATTERN-NOBODY-SEES"


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Rules by the very names of files: an agent's answers show none of them."""
    spelt = st.sampled_from([*names, *(f"{name}/" for name in names), *(f"/{name}/*" for name in names[:4])])
    patterns = spelt.map(lambda pattern: f"{{{pattern},{MARK}}}" if not pattern.startswith("/") else pattern)
    read = {"*": draw(st.sampled_from(["allow", "allow", "deny"]))}
    read |= draw(st.dictionaries(patterns, effects, min_size=1, max_size=5))
    rules = {"read": read, "write": draw(changing), "delete": draw(changing)}
    tried = patterns.map(lambda pattern: {pattern: {"effect": "deny", "trial": True}})
    rules |= draw(st.dictionaries(st.sampled_from(WRITE_KINDS), changing | tried, max_size=2))
    return Policy.loads(json.dumps({"version": 1, "durable": False, "rules": rules}))


class Sent:
    """All that went to the agent in one story."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.granted: list[str] = []  # after a person said yes, to reading what asks for instance
        self.plans: list[str] = []

    def answer(self, session: Session, call: dict[str, Any]) -> None:
        result = session.call(call)
        assert result.error is None or result.error["code"] != "internal_error", result
        self.texts += [result.to_line(), json.dumps(tool_result(call["tool"], result))]
        if "approval" not in result.data:
            return
        held = session.approvals.get(result.data["approval"]["id"])
        self.plans.append(held.digest)
        self.texts.append(json.dumps(agent_view.request_fields(held)))
        sealed = Seals().seal(held).partition(".")[0]
        state = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4)).decode()
        self.texts += [json.dumps(question(held)), json.dumps(question(held, titled=False)), state]
        session.approvals.answer(held.id, Answer(True))
        self.granted.append(session.call(call).to_line())


def digests(content: str) -> list[str]:
    return [hashlib.sha256(content.encode()).hexdigest()]


@settings(max_examples=CASES // 4, deadline=None)
@given(st.data(), trees(), policies())
def test_nothing_that_an_agent_is_sent_shows_what_it_may_not_read(
    data: st.DataObject, tree: dict[str, str], policy: Policy
) -> None:
    for call in data.draw(st.lists(calls(tree), min_size=4, max_size=4)):
        with tempfile.TemporaryDirectory() as root:
            plant(root, tree)
            sent = Sent()
            with Session(root, policy, state=":memory:") as session:
                sent.answer(session, call)
            unasked = "\n".join(sent.texts)
            texts = "\n".join([*sent.texts, *sent.granted])
        said = json.dumps(call)
        assert MARK not in texts
        assert policy.revision not in texts
        assert not [plan for plan in sent.plans if plan in texts]
        for path, what in tree.items():
            effect = policy.effect("default", "read", "read", path, what == "/")
            if effect != Effect.ALLOW and what.startswith("m"):
                shown = texts if effect == Effect.DENY else unasked
                assert what.split()[0] not in shown, (path, call)
                assert not [digest for digest in digests(what) if digest in shown], (path, call)
            name = path.rpartition("/")[2]
            if effect == Effect.DENY and name not in said:
                leads_to = way(tree, policy, path)
                assert leads_to != Effect.DENY or name not in texts, (path, call)
                assert leads_to == Effect.ALLOW or name not in unasked, (path, call)


def test_the_property_looks_at_requests_too(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/k").write_text("TOPSECRET-ONE\n")
    policy = Policy.loads(
        'version: 1\nrules: {read: {"*": allow, "{secrets,merger-acme}/": deny}, write: ask, delete: ask}\n'
    )
    sent = Sent()
    with Session(tmp_path, policy, state=":memory:") as session:
        write = {"path": "secrets/k", "content": "x", "allow_overwrite": True}
        sent.answer(session, {"tool": "create_file", "arguments": write})
        (tmp_path / "secrets/k").write_text("TOPSECRET-ONE\n")
        sent.answer(session, {"tool": "delete", "arguments": {"path": "secrets"}})
        people = json.dumps([one.to_json() for one in session.approvals.listing(every=True)])
    assert len(sent.texts) == 2 * 6
    texts = "\n".join([*sent.texts, *sent.granted])
    for secret in ("TOPSECRET", "merger-acme", "secrets/k/", hashlib.sha256(b"TOPSECRET-ONE\n").hexdigest()):
        assert secret not in texts
    assert "TOPSECRET-ONE" in people, "a person is shown it"

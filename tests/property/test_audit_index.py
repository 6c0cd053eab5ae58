"""The log finds by its index exactly what reading every record finds, in both directions."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.policy.patterns.matcher import matches
from ringfence.toolkit.audit import index as audit_index
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import audit_columns

NAMES = ("a", "b.md", "docs", "src", "x%y", "x_y", "é", "long name")
AGENTS = ("coder", "coder/helper", "review", None)
TOOLS = ("read_file", "delete", "nonsense", None)
PATTERNS = (
    "*.md", "docs", "docs/", "/docs", "docs/**", "docs/*", "**/b.md", "a/**/src", "x%y", "x_y", "[ab]",
    "{a,docs}/*", "?", "é", "src/[a-z]*", "./a", "long name", "nothing/here", "*", "**",
)  # fmt: skip

path = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
record = st.fixed_dictionaries(
    {
        "event": st.sampled_from(["call", "approval", "policy"]),
        "time": st.sampled_from([float(n) for n in range(8)]),
        "session": st.sampled_from(["one", "one/sub", "two", None]),
        "agent": st.sampled_from(AGENTS),
        "tool": st.sampled_from(TOOLS),
        "outcome": st.sampled_from(["done", "answered", "denied_by_policy", "unknown_tool"]),
        "paths": st.lists(path, max_size=3),
        "by": st.sampled_from([None, "ann"]),
        "decision": st.sampled_from(
            [None, {"effect": "allow"}, {"effect": "deny", "rule": {"tier": "global"}}]
        ),
    },
    optional={"would": st.sampled_from([{"effect": "ask"}, {"effect": "deny", "rule": None}])},
)
wanted = st.fixed_dictionaries(
    {},
    optional={
        "session": st.sampled_from(["one", "two", "three"]),
        "agent": st.sampled_from(["coder", "review", "nobody"]),
        "tool": st.sampled_from(["read_file", "delete", "nonsense"]),
        "path": st.sampled_from(PATTERNS),
        "effect": st.sampled_from(["allow", "deny"]),
        "would": st.sampled_from(["allow", "ask", "deny"]),
        "outcome": st.sampled_from(["done", "unknown_tool"]),
        "by": st.just("ann"),
        "since": st.sampled_from([2.0, 9.0]),
        "until": st.sampled_from([0.0, 5.0]),
    },
)


def expected(records: list[dict[str, Any]], want: dict[str, Any]) -> list[int]:
    """By reading each record, in words of its own."""
    found = []
    for one in records:
        agent, decision = str(one["agent"] or ""), one["decision"] or {}
        fits = [
            want.get("session") in (None, one["session"]),
            "agent" not in want or agent == want["agent"] or agent.startswith(want["agent"] + "/"),
            want.get("tool") in (None, one["tool"]),
            "path" not in want or any(matches(want["path"], path, directory=True) for path in one["paths"]),
            want.get("effect") in (None, decision.get("effect")),
            want.get("would") in (None, one.get("would", {}).get("effect")),
            want.get("outcome") in (None, one["outcome"]),
            want.get("by") in (None, one["by"]),
            one["time"] >= want.get("since", 0.0),
            one["time"] < want.get("until", 99.0),
        ]
        if all(fits):
            found.append(one["seq"])
    return found


@settings(max_examples=100)
@given(
    records=st.lists(record, max_size=30),
    wants=st.lists(wanted, min_size=1, max_size=8),
    many=st.sampled_from([1, 5_000]),
    part=st.sampled_from([1, 4, 256]),
)
def test_what_is_found_is_what_reading_all_finds(
    records: list[dict[str, Any]], wants: list[dict[str, Any]], many: int, part: int
) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        Session("memory://", Policy.loads("version: 1\n"), state=":memory:") as session,
    ):
        patch.setattr(audit_index, "_PAGE", 3)
        patch.setattr(audit_index, "MANY", many)
        patch.setattr(audit_columns, "PART", part)
        with session.state.transaction() as db:
            for one in records:
                audit.append(db, one, None)
        kept = [json.loads(json.dumps(one)) for one in audit.records(session.state)]
        for want in wants:
            right = expected(kept, want)
            asked = audit.RecordFilter(**want)
            assert [r["seq"] for r in audit.matching(session.state, asked)] == right
            assert [r["seq"] for r in audit.matching(session.state, asked, back=True)] == right[::-1]
            assert [r["seq"] for r in audit.newest(session.state, asked, 4)] == right[-4:]
            assert [r["seq"] for r in audit.matching(session.state, asked, after=7)] == [
                n for n in right if n > 7
            ]


@given(pattern=st.sampled_from(PATTERNS) | st.text("ab/*?[]{},._% ", min_size=1, max_size=8), path=path)
def test_what_the_database_leaves_out_fits_no_pattern(pattern: str, path: str) -> None:
    if not audit_index.fits(pattern, path):
        return
    start, like = audit_index.coarse(pattern)
    assert path.startswith(start)
    db = sqlite3.connect(":memory:")
    assert db.execute("SELECT ? LIKE ? ESCAPE '!'", (path, like)).fetchone() == (1,)

"""Content in calls: what a person is asked, what a grant permits, and what is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals import Answer
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory

SECRET = "pw-471155"
RULES = {
    "read": {"*": "allow", "a*": {"effect": "ask", "content": {"match": "pw-[0-9]+"}}},
    "write": {"*": "allow", "w*": {"effect": "ask", "content": {"match": "pw-[0-9]+"}}},
}


class Scene:
    def __init__(self, rules: dict[str, Any] | None = None, **more: Any) -> None:
        self.fs = private_memory()
        self.fs.makedirs("/w")
        self.put("a", f"x\n{SECRET}\n")
        policy = Policy.loads(json.dumps({"version": 1, "rules": rules or RULES, **more}))
        self.session = Session("/w", policy, fs=self.fs, state=":memory:")

    def put(self, path: str, text: str) -> None:
        self.fs.pipe_file(f"/w/{path}", text.encode())

    def call(self, tool: str, **arguments: Any) -> Result:
        return self.session.call({"tool": tool, "arguments": arguments})

    def grant(self, result: Result, **more: Any) -> None:
        self.session.approvals.answer(result.data["approval"]["id"], Answer(True, by="ann", **more))

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(row[0]) for row in self.session.state.rows("SELECT body FROM audit ORDER BY seq")]


def test_a_grant_lets_one_answer_through() -> None:
    scene = Scene()
    asked = scene.call("read_file", path="a")
    assert asked.status == "approval_required"
    scene.grant(asked)
    assert SECRET in scene.call("read_file", path="a").content
    assert scene.call("read_file", path="a").status == "approval_required"


def test_a_grant_is_for_these_finds() -> None:
    scene = Scene()
    scene.grant(scene.call("read_file", path="a"))
    scene.put("a", f"x\n{SECRET}\npw-2\n")
    again = scene.call("read_file", path="a")
    assert again.error is not None and again.error["code"] == "approval_stale" and "pw-2" not in again.content


@pytest.mark.parametrize("scope", ["session", "pattern"])
def test_a_grant_for_content_has_no_wider_scope(scope: str) -> None:
    scene = Scene()
    asked = scene.call("read_file", path="a")
    with pytest.raises(CallError, match=r".+"):
        scene.grant(asked, scope=scope, pattern="a" if scope == "pattern" else None)


def test_a_person_learns_detector_path_and_line_and_the_agent_no_line() -> None:
    scene = Scene()
    asked = scene.call("read_file", path="a")
    request = scene.session.approvals.get(asked.data["approval"]["id"])
    assert request.decision["reason"] == "match: pw-[0-9]+ in 'a' at line 2"
    assert [need["content"] for need in request.needs if need["asks"]] == [["match: pw-[0-9]+, line 2"]]
    sent = json.dumps([asked.to_json(), request.shown])
    assert "match" in sent and "[0-9]" not in sent and "line 2" not in sent


def test_no_record_has_the_secret() -> None:
    scene = Scene()
    scene.grant(scene.call("read_file", path="a"))
    scene.call("read_file", path="a")
    scene.call("create_file", path="w", content=SECRET)
    records = scene.records()
    found = [record["content"] for record in records if "content" in record]
    assert len(found) == 3
    assert found[0] == [
        {"detector": "match: pw-[0-9]+", "path": "a", "line": 2, "action": "read", "effect": "ask"}
    ]
    assert SECRET not in json.dumps(records)


def test_monitoring_records_and_hides_nothing() -> None:
    scene = Scene(mode="monitor")
    assert SECRET in scene.call("read_file", path="a").content
    assert [record["content"][0]["effect"] for record in scene.records() if "content" in record] == ["ask"]


def test_a_digest_is_keyed_where_content_is_hidden() -> None:
    mask = {"read": {"*": "allow", "a*": {"effect": "ask", "content": {"match": "pw-[0-9]+"}, "mask": True}}}
    one, other = Scene(mask), Scene(mask)
    first = one.call("read_file", path="a").data["digest"]
    assert first == one.call("read_file", path="a").data["digest"]
    assert first != other.call("read_file", path="a").data["digest"]
    one.put("a", "changed\n")
    stale = one.call("create_file", path="a", content="x", allow_overwrite=True)
    assert stale.error is not None and stale.error["code"] in ("stale_read", "approval_required")


def test_a_mark_is_not_written_in_the_place_of_a_secret() -> None:
    scene = Scene(
        {
            "read": {"*": "allow", "a*": {"effect": "ask", "content": {"match": "pw-[0-9]+"}, "mask": True}},
            "write": "allow",
        }
    )
    shown = scene.call("read_file", path="a").content
    for path in ("a", "b"):
        told = scene.call("create_file", path=path, content=shown, allow_overwrite=True)
        assert told.error is not None and told.error["code"] == "masked_content"
    assert scene.call("create_file", path="b", content="[hidden match 000000]").ok
    assert scene.call("edit_file", path="a", old_str="x\n", new_str="y\n").ok
    assert scene.fs.cat_file("/w/a") == f"y\n{SECRET}\n".encode()


@pytest.mark.parametrize("size", [(16 << 20) + 1])
def test_what_is_too_large_counts_as_found(size: int) -> None:
    scene = Scene()
    scene.put("big", "x" * size)
    told = scene.call("copy_file", source="big", destination="w")
    assert told.status == "approval_required"
    request = scene.session.approvals.get(told.data["approval"]["id"])
    assert "too large to be searched" in request.decision["reason"]

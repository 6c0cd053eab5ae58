"""One row on one root: its steps, and what is left after them."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.cli import main
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW, check
from tests.seeds.rows import AFTER, STEPS, WANT
from tests.seeds.world import World


class Run:
    """One row on one root: its sessions, the last answer, and the last call that changed something."""

    def __init__(self, world: World, row: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
        self.world, self.row, self.capsys = world, row, capsys
        self.text = row.get("policy", ALLOW)
        world.policy_file.write_text(self.text)
        self.sessions: dict[str, Session] = {}
        self.result: Result | None = None
        self.call: dict[str, Any] = {}

    @property
    def session(self) -> Session:
        return self.session_of(self.row.get("agent", "default"))

    def session_of(self, agent: str) -> Session:
        if agent not in self.sessions:
            self.sessions[agent] = self.world.open(Policy.loads(self.text), agent)
        return self.sessions[agent]

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()

    def step(self, step: dict[str, Any]) -> None:
        (kind,) = STEPS & set(step)
        getattr(self, f"_{kind}")(step)

    # -- the kinds of steps

    def _tool(self, step: dict[str, Any]) -> None:
        self._send({key: step[key] for key in ("tool", "arguments") if key in step}, step)

    def _raw(self, step: dict[str, Any]) -> None:
        self._send({"raw": step["raw"]}, step)

    def _again(self, step: dict[str, Any]) -> None:
        self._send(self.call, step)

    def _send(self, call: dict[str, Any], step: dict[str, Any]) -> None:
        self.call, want = call, step.get("want", {})
        session = self.session_of(step.get("as", self.row.get("agent", "default")))
        known = {key: value for key, value in want.items() if key in WANT}
        self.result = check(session, self.world.tree_of, call, known)
        self._compare({key: value for key, value in want.items() if key not in WANT})

    def _compare(self, want: dict[str, Any]) -> None:
        assert self.result is not None
        for name, expected in want.items():
            if name == "hint":
                assert self.result.error is not None
                contains(self.result.error["hint"], expected)
            elif name == "decision":
                fits(self._recorded()["decision"], expected)
            else:
                contains(getattr(self._request(), name), expected)

    def _recorded(self) -> dict[str, Any]:
        """The record of the last call: the rule that decided is there, and not in the agent's answer."""
        assert self.result is not None
        records = audit.records(self.session_of(self.session.agent).state)
        return [row for row in records if row.get("call") == self.result.data["call_id"]][-1]

    def _request(self) -> Request:
        return self.session.approvals.listing(every=True)[-1]

    def _person(self, step: dict[str, Any]) -> None:
        granted = {"grants": True, "refuses": False}[step["person"]]
        self.session.approvals.answer(self._request().id, Answer(granted, reason="asked", by="somebody"))

    def _meanwhile(self, step: dict[str, Any]) -> None:
        for path, what in step["meanwhile"].items():
            self.world.replace(path, what)

    def _undo(self, step: dict[str, Any]) -> None:
        assert self.result is not None
        self.result = self.session.undo(self.result.data["call_id"])
        fits(self.result.status, step["undo"])

    def _cli(self, step: dict[str, Any]) -> None:
        want = step.get("want", {})
        self.capsys.readouterr()
        status = main(self.world.words(step["cli"]))
        out, err = self.capsys.readouterr()
        wanted = want.get("exit", 0)
        assert status in (wanted if isinstance(wanted, list) else [wanted]), out + err
        contains(out, want.get("prints", []))
        contains(err, want.get("complains", []))
        for text in texts(want.get("lacks", [])):
            assert text not in out + err

    # -- what is left

    def look(self) -> None:
        for name in AFTER & set(self.row):
            getattr(self, f"_look_{name}")(self.row[name])

    def _look_tree(self, want: dict[str, Any]) -> None:
        assert self.world.tree() == self.world.expected(want)

    def _look_outside_after(self, want: dict[str, Any]) -> None:
        assert self.world.outside() == self.world.expected(want)

    def _look_tasks_after(self, want: list[str]) -> None:
        assert sorted(self.world.task_names()) == sorted(want)

    def _look_requests(self, want: int) -> None:
        assert len(self.session.approvals.listing(every=True)) == want

    def _look_records(self, want: list[dict[str, Any]]) -> None:
        """The records of the last calls, oldest first."""
        found = [row for row in audit.records(self.session.state) if row["event"] == "call"]
        fits(found[-len(want) :], want)
        assert audit.verify(self.session.state) == []

    def _look_versions(self, want: dict[str, Any]) -> None:
        for path, expected in want.items():
            found = self.session.versions(path)
            contents = [None if v.gone else self.session.history.content(v.digest or "") for v in found]
            named = [[v.name, c if c is None else c.decode()] for v, c in zip(found, contents, strict=True)]
            assert named == expected

    def _look_changes(self, want: dict[str, Any]) -> None:
        found = {
            c.path: {"kind": c.kind, "removals": c.removals, "diff": c.diff} for c in self.session.changes()
        }
        assert set(found) == set(want)
        fits(found, want)


def texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def contains(text: str, wanted: Any) -> None:
    for one in texts(wanted):
        assert one in text, f"{one!r} is not in {text!r}"


def fits(found: Any, want: Any) -> None:
    """Equal, where `want` may leave fields of a mapping out; `{any: true}` is whatever is not empty."""
    if want == {"any": True}:
        assert found not in (None, "", [], {})
    elif isinstance(want, dict):
        assert isinstance(found, dict), found
        for key, value in want.items():
            fits(found.get(key), value)
    elif isinstance(want, list) and isinstance(found, list | tuple):
        assert len(found) == len(want), found
        for one, other in zip(found, want, strict=True):
            fits(one, other)
    else:
        assert found == want

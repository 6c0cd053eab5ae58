"""Calls of run_command through a session, as a table: what runs, what is asked, what is applied."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.approvals import Answer
from ringfence.toolkit.call import Result
from ringfence.toolkit.commands import running
from ringfence.toolkit.sandbox import SandboxError, Spec
from ringfence.toolkit.session.session import Session

TABLE = yaml.safe_load(Path(__file__).with_name("calls.yaml").read_text(encoding="utf-8"))

pytestmark = pytest.mark.usefixtures("overlay_works")


class Scene:
    """One case's workspace and session, and how often a command ran in it."""

    def __init__(self, case: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.state = place / "workspace", place / "state"
        for name, content in (TABLE["tree"] | case.get("tree_more", {})).items():
            self.write(name, content)
        policy = case.get("policy", TABLE["policy"])
        self.write("ringfence.yaml", policy)
        self.session = Session(
            self.root,
            Policy.loads(policy),
            policy_file=self.root / "ringfence.yaml",
            state=self.state,
            session="s",
            dry_run=case.get("dry_run", False),
        )
        self.runs = 0
        real = running.run_in_sandbox

        def counted(spec: Spec, **named: Any) -> Any:
            if spec.level not in case.get("levels", (spec.level,)):
                raise SandboxError("namespaces_forbidden", f"no level {spec.level} on this machine")
            self.runs += 1
            return real(spec, **named)

        monkeypatch.setattr(running, "run_in_sandbox", counted)

    def write(self, name: str, content: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def step(self, step: dict[str, Any], before: str) -> Result:
        self.prepare(step)
        result = self.session.call({"tool": "run_command", "arguments": step["call"]})
        assert result.status == step["status"], result
        self.check_answer(step, result, before)
        self.check_tree(step, result)
        return result

    def prepare(self, step: dict[str, Any]) -> None:
        if "grant" in step or "refuse" in step:
            (request,) = self.session.approvals.waiting()
            answer = Answer(True, scope=step["grant"]) if "grant" in step else Answer(False)
            self.session.approvals.answer(request.id, answer)
        for name, content in step.get("meanwhile", {}).items():
            self.write(name, content)
        if step.get("lose_scratch"):
            for scratch in self.scratches():
                shutil.rmtree(scratch)

    def check_answer(self, step: dict[str, Any], result: Result, before: str) -> None:
        if "code" in step:
            assert result.error is not None
            assert result.error["code"] == step["code"]
        for name, value in step.get("data", {}).items():
            assert result.data[name] == value, name
        for text in step.get("output", ()):
            assert text in result.data["output"]
        for text in step.get("not_output", ()):
            assert text not in result.data["output"]
        for text in step.get("content", ()):
            assert text in result.content
        if "effects" in step:
            assert {name: n for name, n in result.data["effects"].items() if n} == step["effects"]
        if "same_as_output" in step:
            assert (self.root / step["same_as_output"]).read_text() == before
        if "record" in step:
            ((body,),) = self.session.state.rows("SELECT body FROM audit ORDER BY seq DESC LIMIT 1")
            record = json.loads(body)
            assert step["record"].items() <= record["command"].items()

    def check_tree(self, step: dict[str, Any], result: Result) -> None:
        for name, executable in step.get("executable", {}).items():
            assert os.access(self.root / name, os.X_OK) == executable
        if step.get("undo"):
            done = self.session.undo(result.data["call_id"])
            assert done.ok, done
        for name, content in step.get("after", {}).items():
            path = self.root / name
            assert (path.read_text() if path.exists() else None) == content, name
        if "runs" in step:
            assert self.runs == step["runs"]
        if "waiting" in step:
            assert len(self.scratches()) == step["waiting"]

    def scratches(self) -> list[Path]:
        return [path for path in self.state.glob("*/commands/*") if path.is_dir()]


@pytest.mark.parametrize("case", TABLE["cases"], ids=[case["name"] for case in TABLE["cases"]])
def test_calls(case: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(case, place, monkeypatch)
    before = ""
    with scene.session:
        for step in case["steps"]:
            result = scene.step(step, before)
            before = str(result.data.get("output", ""))
        waiting = sum(request.changes for request in scene.session.approvals.listing())
    assert len(scene.scratches()) == waiting, "a scratch belongs to an open request, or is gone"

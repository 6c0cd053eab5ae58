"""The cases of cases.yaml: each call gets the verdict, and the server what was judged, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence import Session
from tests.upstream.answering import Answering, servers, tool

CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))


def filled(value: Any, root: str) -> Any:
    """The value with ${ws} replaced by the root."""
    if isinstance(value, str):
        return value.replace("${ws}", root)
    if isinstance(value, list):
        return [filled(each, root) for each in value]
    return {name: filled(each, root) for name, each in value.items()} if isinstance(value, dict) else value


def laid_out(root: Path, files: dict[str, Any]) -> None:
    for name, given in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(given, dict):
            path.symlink_to(given["link"])
        else:
            path.write_text(given, encoding="utf-8")


def test_there_are_cases() -> None:
    assert len(CASES) > 15
    assert all(len(case["calls"]) == len(case["expect"]) for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_call_is_judged(case: dict[str, Any], tmp_path: Path) -> None:
    root = (tmp_path / "ws").resolve()
    root.mkdir()
    laid_out(root, case.get("files", {}))
    policy = root / "ringfence.yaml"
    policy.write_text(f"version: 1\n{case['policy']}", encoding="utf-8")
    listed = [tool(**({"name": each} if isinstance(each, str) else each)) for each in case["tools"]]
    transport = Answering(listed)
    with Session(str(root), str(policy), state=":memory:") as session:
        session.forward_to(servers(transport, words=case.get("command", ["server"])))
        for call, expected in zip(case["calls"], case["expect"], strict=True):
            before = len(transport.calls)
            arguments = filled(call["arguments"], str(root))
            result = session.call({"tool": f"s.{call['tool']}", "arguments": arguments})
            sent = transport.calls[before:]
            if "allow" in expected:
                assert result.ok, (call, result)
                found = sent[0]["arguments"]
                assert sent[0]["name"] == call["tool"]
                assert found == filled(expected["allow"], str(root)), call
                continue
            assert sent == [], (call, result)
            if "code" in expected:
                assert result.error is not None
                assert result.error["code"] == expected["code"], (call, result)
            else:
                status = "approval_required" if "ask" in expected else "denied"
                assert result.status == status, (call, result)
            assert expected.get("says", "") in result.content

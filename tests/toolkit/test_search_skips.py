"""A search says what it did not look into, and one file that cannot be read does not end it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from toolkit.errors import CallError
from toolkit.session import Session


@pytest.mark.parametrize(
    ("code", "said", "field"),
    [
        ("permission_denied", "1 file without read permission", "skipped_unreadable"),
        ("not_found", "1 file that changed meanwhile", "skipped_changed"),
        ("path_changed", "1 file that changed meanwhile", "skipped_changed"),
    ],
)
def test_what_cannot_be_read_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str, field: str
) -> None:
    for name in "ab":
        (tmp_path / name).write_text("needle\n")
    with Session(tmp_path, Policy.loads("version: 1\nrules: {read: allow}\n"), state=":memory:") as session:
        read = session.workspace.backend.read

        def fails(spot: Any, *rest: Any) -> bytes:
            if spot.path == "a":
                raise CallError(code, "no", where="a")
            return read(spot, *rest)

        monkeypatch.setattr(session.workspace.backend, "read", fails)
        answer = session.call({"tool": "search_text", "arguments": {"query": "needle"}})
        one = session.call({"tool": "search_text", "arguments": {"query": "needle", "path": "a"}})
    assert answer.content == f"b:1: needle\n\n1 matching line in 1 file (not searched: {said})"
    assert answer.data[field] == 1
    assert one.error is not None and one.error["code"] == code

"""The task tools behind an API endpoint: asked about, granted by a person, done, and brought back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.serving.conftest import Server

TASK = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"


def test_a_task_is_deleted_over_http_once_a_person_has_granted_it(
    server: Callable[..., Server], workspace: Path
) -> None:
    folder = workspace.parent / "storage" / "tasks" / TASK
    folder.mkdir(parents=True)
    rows = [{"ts": 1736260222000, "type": "say", "say": "text", "text": "Fix authentication bug"}]
    (folder / "ui_messages.json").write_text(json.dumps(rows))
    (folder / "api_conversation_history.json").write_text("[]")
    one = server("--tasks", str(folder.parent))
    assert one.call("list_tasks")["data"]["total"] == 1
    asked = one.call("delete_tasks", task_ids=[TASK])
    assert (asked["status"], folder.exists()) == ("approval_required", True)
    shown = one.send("GET", f"/approvals/{asked['data']['approval']['id']}", token="alice").json
    assert "### Task: Fix authentication bug" in shown["preview"]
    path = f"/approvals/{asked['data']['approval']['id']}"
    assert one.send("POST", path, {"decision": "grant"}, token="alice").status == 200
    done = one.call("delete_tasks", task_ids=[TASK])
    assert (done["status"], done["data"]["succeeded"], folder.exists()) == ("ok", 1, False)
    back = one.call("restore_tasks", task_ids=[TASK])
    assert back["status"] == "approval_required"

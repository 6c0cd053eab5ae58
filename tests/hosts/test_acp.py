"""Real agents behind `ringfence serve acp`, with scripted models and a scripted editor.

Checked is what the model learned, what the editor's person was asked, the files, and the records.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.hosts.dialects.common import Call
from tests.hosts.hosts import RINGFENCE, TABLE, Place, prepare
from tests.hosts.model import Model
from tests.hosts.play import _environment, lay, ringfence, started
from tests.hosts.programs import Missing, program

EDITOR = str(Path(__file__).parent / "editor.py")
POLICY = """\
version: 1
rules:
  read: {"*": allow, "secret*": {effect: deny, reason: secrets stay here}}
  write: {"src/": allow, "docs/": ask, "secret*": {effect: deny, reason: secrets stay here}}
  run: {"*": ask, "rm *": {effect: deny, reason: no removing}}
"""
FILES = {
    "ringfence.yaml": POLICY,
    "src/app.py": "one\ntwo\n",
    "docs/a.md": "old\n",
    "secret.txt": "the key\n",
}
AGENTS = {"gemini": ("-m", "gemini-2.5-flash", "--acp"), "opencode": ("acp",)}


class Played(NamedTuple):
    """What a run left: the model's results, what the editor saw, and the project."""

    place: Place
    results: list[Any]
    asked: list[dict[str, Any]]
    log: list[dict[str, Any]]


def play(agent: str, folder: Path, calls: Sequence[Call], files: Mapping[str, str]) -> Played:
    """Run an agent behind Ringfence, whose model sends these calls."""
    try:
        words = program(agent)
    except Missing as missing:
        pytest.skip(str(missing))
    with started() as (listening, start):
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        place = Place(*lay(folder, files), url, ())
        prepare(agent, "acp", place)

        def script(results: list[Any]) -> Call | None:
            return calls[len(results)] if len(results) < len(calls) else None

        with Model(listening, TABLE[agent].dialect, script) as model:
            serving = threading.Thread(
                target=model.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
            )
            serving.start()
            door = [*RINGFENCE, "serve", "acp", "--state", str(place.state), "--", *words, *AGENTS[agent]]
            output = start([sys.executable, EDITOR, *door], place.project, _environment(agent, place))
            model.shutdown()
            serving.join(timeout=10)
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert {"stopped": "end_turn"} in lines, output
    asked = [line["asked"] for line in lines if "asked" in line]
    return Played(place, model.results, asked, ringfence(place, "log"))


def outcomes(log: Sequence[Mapping[str, Any]], event: str) -> list[tuple[str, str]]:
    """The tools and outcomes of one kind of records."""
    return [(record["tool"], record["outcome"]) for record in log if record["event"] == event]


def permissions(asked: Sequence[Mapping[str, Any]]) -> list[str]:
    """The titles of what the editor's person was asked."""
    found = [each["params"]["toolCall"] for each in asked if each["method"] == "session/request_permission"]
    return [call["title"] for call in found]


def test_gemini_writes_through_the_proxy(tmp_path: Path) -> None:
    """Its files are the editor's, so that nothing of it is written but by Ringfence."""
    calls = [
        Call("write_file", {"file_path": "src/new.py", "content": "made\n"}),
        Call(
            "replace",
            {"file_path": "src/app.py", "old_string": "two", "new_string": "three", "instruction": "x"},
        ),
        Call("write_file", {"file_path": "docs/a.md", "content": "new\n"}),
        Call("write_file", {"file_path": "secret.txt", "content": "mine\n"}),
        Call("run_shell_command", {"command": "rm src/app.py"}),
        Call("run_shell_command", {"command": "touch src/touched"}),
    ]
    played = play("gemini", tmp_path / "run", calls, FILES)
    results = [json.dumps(each) for each in played.results]
    assert ["Success" in each for each in results[:3]] == [True, True, True]
    assert "secrets stay here" in results[3]
    assert "canceled" in results[4]
    assert "error" not in results[5]
    project = played.place.project
    assert (project / "src/new.py").read_text() == "made\n"
    assert (project / "src/app.py").read_text() == "one\nthree\n"
    assert (project / "docs/a.md").read_text() == "new\n"
    assert (project / "secret.txt").read_text() == "the key\n"
    assert permissions(played.asked) == ["Writing to docs/a.md", "touch src/touched"]
    assert not [each for each in played.asked if each["method"] == "fs/write_text_file"]
    assert outcomes(played.log, "permission") == [
        ("edit_file", "allowed"),
        ("edit_file", "allowed"),
        ("edit_file", "granted"),
        ("run_command", "denied_by_policy"),
        ("run_command", "granted"),
    ]
    made = [each for each in outcomes(played.log, "call") if each == ("create_file", "done")]
    assert len(made) == 3
    newest = [record for record in played.log if record["event"] == "call" and record["outcome"] == "done"][
        -1
    ]
    ringfence(played.place, "undo", newest["call"], "--yes")
    assert (project / "docs/a.md").read_text() == "old\n"


def test_opencode_asks_and_is_answered(tmp_path: Path) -> None:
    """It writes by itself once it may; the policy answers what it asks."""
    calls = [
        Call("read", {"filePath": "src/app.py"}),
        Call("write", {"filePath": "src/new.py", "content": "made\n"}),
        Call("edit", {"filePath": "src/app.py", "oldString": "two", "newString": "three"}),
        Call("write", {"filePath": "secret.txt", "content": "mine\n"}),
    ]
    files = {**FILES, "opencode.json": json.dumps({"permission": {"edit": "ask", "bash": "ask"}})}
    played = play("opencode", tmp_path / "run", calls, files)
    project = played.place.project
    assert (project / "src/new.py").read_text() == "made\n"
    assert (project / "src/app.py").read_text() == "one\nthree\n"
    assert (project / "secret.txt").read_text() == "the key\n"
    assert permissions(played.asked) == []
    assert outcomes(played.log, "permission") == [
        ("edit_file", "allowed"),
        ("edit_file", "allowed"),
        ("edit_file", "denied_by_policy"),
    ]

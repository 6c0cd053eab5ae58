"""`demo`: the whole story on a throw-away workspace, through the same session that everyone uses.

Touches nothing but a temporary folder, which is gone afterwards.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ringfence.policy import Policy
from ringfence.toolkit.call import Result
from ringfence.toolkit.cli.approval_prompt import heading
from ringfence.toolkit.cli.output import STYLES, Screen
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT
from ringfence.toolkit.text import because

if TYPE_CHECKING:
    from ringfence.toolkit.approvals.requests import Answer, Request
    from ringfence.toolkit.session.session import Session

POLICY = """\
version: 1
extends: [baseline]
rules:
  write: {"*": ask, "src/**": allow}
  delete: {"*": ask, "tmp/**": allow}
limits:
  delete: {max_files: 3, over: deny}
"""

FILES: Mapping[str, str] = MappingProxyType(
    {
        "src/app.py": 'GREETING = "helo"\n\n\ndef greet(name):\n    return f"{GREETING}, {name}"\n',
        "old/parser.py": "def parse(text):\n    return text.split()\n",
        "old/README.md": "The first parser. Replaced in 2.0.\n",
        ".env": "API_KEY=do-not-leak\n",
        "tmp/scratch.txt": "try things here\n",
        "logs/1.log": "one\n",
        "logs/2.log": "two\n",
        "logs/3.log": "three\n",
        "logs/4.log": "four\n",
        "LICENSE": "Take it and be kind.\n",
    }
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One call, what it shows, how the scripted person answers, and what has to come of it."""

    title: str
    tool: str
    arguments: Mapping[str, Any]
    wants: str
    grant: bool = False


SCENES = (
    Scene("Reading is allowed.", "read_file", {"path": "src/app.py"}, "ok"),
    Scene(
        "So is changing src/: a rule says so.",
        "edit_file",
        {"path": "src/app.py", "old_str": '"helo"', "new_str": '"hello"'},
        "ok",
    ),
    Scene(
        "Secrets are held by the policy's floor, even from reading.", "read_file", {"path": ".env"}, "denied"
    ),
    Scene(
        "The workspace is the boundary, whatever the policy says.",
        "create_file",
        {"path": "../outside.txt", "content": "hello"},
        "error",
    ),
    Scene("tmp/ is free.", "delete_file", {"path": "tmp/scratch.txt"}, "ok"),
    Scene(
        "Deleting anything else asks. Here the person says no.",
        "delete_file",
        {"path": "LICENSE", "description": "harmless\x1b[2K clean-up"},
        "denied",
    ),
    Scene("Four files are more than the limit of three.", "delete", {"path": "logs"}, "denied"),
    Scene(
        "A directory, with every file in it shown. Here the person says yes.",
        "delete",
        {"path": "old", "description": "replaced in 2.0"},
        "ok",
        grant=True,
    ),
)


def demo(arguments: argparse.Namespace, screen: Screen) -> int:
    """Play the scenes, then look back and take the deletion back."""
    with TemporaryDirectory(prefix="ringfence-demo-") as folder:
        root = Path(folder) / "project"
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return DONE if _play(root, Path(folder) / "state", screen) else FELL_SHORT


def _play(root: Path, state: Path, screen: Screen) -> bool:
    from ringfence.toolkit.session.session import Session

    screen.line("A small project, and this policy:", "bold")
    screen.line(textwrap.indent(POLICY, "    "))
    person = _Person(screen)
    before = _contents(root / "old")
    with Session(
        root, Policy.loads(POLICY, file="ringfence.yaml"), agent="coder", state=state, approver=person.answer
    ) as session:
        as_wanted = True
        for number, scene in enumerate(SCENES, 1):
            person.grants = scene.grant
            screen.line(f"{number}. {scene.title}", "bold")
            screen.line(f"   agent: {scene.tool} {json.dumps(dict(scene.arguments))}", "cyan")
            call = {"id": str(number), "tool": scene.tool, "arguments": dict(scene.arguments)}
            result = session.call(call)
            _show(result, screen, _deciding(session, result))
            as_wanted = as_wanted and result.status == scene.wants
        _show_log(session, screen)
        undone = session.undo(result.data["call_id"])
        screen.line("Now `ringfence undo` undoes the deletion.", "bold")
        _show(undone, screen)
    screen.line(
        "Done; the temporary directory was removed. Next: run `ringfence init` in your project.", "bold"
    )
    return as_wanted and undone.ok and before == _contents(root / "old")


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _show(result: Result, screen: Screen, rule: str = "") -> None:
    for line in result.content.strip().splitlines():
        screen.line(f"   {line}", "" if result.ok else STYLES[result.status])
    if rule:
        screen.line(f"   rule: {rule}", "dim")
    screen.line()


def _deciding(session: Session, result: Result) -> str:
    """The rule that kept a call from being done, which is on record and not in the agent's answer."""
    from ringfence.toolkit.audit import log as audit

    if result.ok:
        return ""
    calls = [
        record for record in audit.records(session.state) if record.get("call") == result.data["call_id"]
    ]
    decision = calls[-1]["decision"]
    return because(decision) if decision and decision.get("rule") else ""


def _show_log(session: Session, screen: Screen) -> None:
    screen.line("What the session changed:", "bold")
    rows = [(change.path, f"+{change.additions}", f"-{change.removals}") for change in session.changes()]
    screen.table(("file", "added", "removed"), rows)
    screen.line()


class _Person:
    """Answers as the scene says, after being shown what a person at a terminal is shown."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.grants = False

    def answer(self, request: Request) -> Answer:
        from ringfence.toolkit.approvals.requests import Answer

        for text, style in heading(request):
            self._screen.line(f"   | {text}", style)
        for line in request.preview.strip().splitlines():
            self._screen.line(f"   | {line}", "dim")
        self._screen.line(f"   | Allow it? {'yes' if self.grants else 'no'}", "bold")
        return Answer(granted=self.grants, scope="once")

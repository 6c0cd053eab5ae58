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

from policy import Policy
from toolkit.cli.perform import DONE, FELL_SHORT
from toolkit.cli.screen import Screen

if TYPE_CHECKING:
    pass

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
    from toolkit.session import Session

    screen.line("A small project, and this policy:", "bold")
    screen.line(textwrap.indent(POLICY, "    "))
    person = _Person(screen)
    before = _contents(root)
    with Session(root, Policy.loads(POLICY), agent="coder", state=state, approver=person.answer) as session:
        as_wanted = True
        for number, scene in enumerate(SCENES, 1):
            person.grants = scene.grant
            screen.line(f"{number}. {scene.title}", "bold")
            screen.line(f"   agent:     {scene.tool} {json.dumps(dict(scene.arguments))}", "cyan")
            result = session.call({"id": str(number), "tool": scene.tool, "arguments": dict(scene.arguments)})
            _show(result, screen)
            as_wanted = as_wanted and result.status == scene.wants
        as_wanted = as_wanted and _look_back(session, result, screen)
    same = {name: text for name, text in _contents(root).items() if name.startswith("old/")}
    return as_wanted and same == {name: text for name, text in before.items() if name.startswith("old/")}

"""Draws watch.svg: `ringfence watch` beside an agent at work.

python docs/images/watch.py
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from ringfence import Policy, Session
from ringfence.toolkit.cli.watch.app import Watch
from ringfence.toolkit.monitoring.dashboard import Board

POLICY = """\
version: 1
rules:
  "*": {"*": allow}
  delete: {"*": ask, "tmp/": allow}
"""
DRAWN = ("def&#160;old", "approval_required", "quit")  # the pane, the log and the keys


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "project")
        (root / "src").mkdir(parents=True)
        (root / "tmp").mkdir()
        (root / "src/legacy.py").write_text("def old():\n    return 1\n")
        (root / "src/app.py").write_text("import legacy\n\nprint(legacy.old())\n")
        (root / "tmp/notes.txt").write_text("later\n")
        state = Path(place, "state")

        def act_as(agent: str, name: str) -> Session:
            return Session(
                root, Policy.loads(POLICY, file="ringfence.yaml"), agent=agent, session=name, state=state
            )

        with act_as("coder", "night") as agent, act_as("coder/tests", "night/tests") as tests:
            edit = {
                "path": "src/app.py",
                "old_str": "import legacy\n\nprint(legacy.old())",
                "new_str": "print(1)",
            }
            agent.call({"tool": "edit_file", "arguments": edit})
            agent.call({"tool": "delete", "arguments": {"path": "tmp/notes.txt"}})
            tests.call(
                {"tool": "create_file", "arguments": {"path": "src/test_app.py", "content": "import app\n"}}
            )
            why = {"path": "src/legacy.py", "description": "nothing imports it any more"}
            agent.call({"tool": "delete", "arguments": why})
        with Session(root, Policy.empty(), state=state) as session:

            async def draw() -> str:
                app = Watch(Board(session), act_as, every=3600)
                async with app.run_test(size=(130, 32)) as pilot:
                    app.sub_title = "~/project"  # what is drawn names no machine
                    picture = ""
                    while not all(word in picture for word in DRAWN):
                        await pilot.pause(0.1)
                        picture = app.export_screenshot(title="ringfence watch")
                    return picture

            # Without the fonts that the drawing would have a reader's browser load from elsewhere.
            picture = re.sub(r"@font-face \{.*?\}", "", asyncio.run(draw()), flags=re.DOTALL)
            Path(__file__).with_suffix(".svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()

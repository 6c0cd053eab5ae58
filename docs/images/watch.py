"""Draws `ringfence watch` beside two agents at work.

watch.svg has 160 columns and 48 lines, watch-80x24.svg is small, watch-rule.svg offers rules for a request.

python docs/images/watch.py
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ringfence import Policy, Session
from ringfence.toolkit.cli.watch.app import Watch
from ringfence.toolkit.monitoring.dashboard import Board

POLICY = """\
version: 1
rules:
  read: allow
  write: {"*": allow, "docs/**": ask}  # the docs are reviewed
  delete: {"*": ask, "tmp/": allow}
"""
FILES = {
    "src/legacy.py": "def old():\n    return 1\n",
    "src/app.py": "import legacy\n\nprint(legacy.old())\n",
    "infra/modules/legacy-network/main.tf": 'resource "aws_vpc" "old" {}\n',
    "infra/modules/legacy-network/outputs.tf": 'output "id" {}\n',
    "docs/architecture/payments.md": "The retry limit is 3.\n",
    "docs/architecture/refunds.md": "The retry limit is 3.\n",
    "docs/architecture/index.md": "See payments.\n",
    "tmp/notes.txt": "later\n",
}


@contextmanager
def workspace() -> Iterator[tuple[Path, Callable[[str, str], Session]]]:
    """A workspace in which two agents have worked and wait for answers."""
    with tempfile.TemporaryDirectory() as place:
        root, state = Path(place, "project"), Path(place, "state")
        for name, text in {**FILES, "ringfence.yaml": POLICY}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)

        def act_as(agent: str, name: str) -> Session:
            earlier = 540 if agent == "writer" else 2520  # seconds
            return Session(
                root,
                root / "ringfence.yaml",
                agent=agent,
                session=name,
                state=state,
                clock=lambda: time.time() - earlier,
            )

        with act_as("writer", "docs-nightly") as writer, act_as("platform", "network-cleanup") as platform:
            for name in ("payments", "refunds"):
                edit = {"path": f"docs/architecture/{name}.md", "old_str": "3", "new_str": "5"}
                call = {**edit, "description": "the retry limit is 5 now"}
                writer.call({"tool": "edit_file", "arguments": call})
            writer.call(
                {"tool": "create_file", "arguments": {"path": "src/test_app.py", "content": "import app\n"}}
            )
            platform.call({"tool": "delete", "arguments": {"path": "tmp/notes.txt"}})
            why = {"path": "src/legacy.py", "description": "nothing imports it any more"}
            platform.call({"tool": "delete", "arguments": why})
            gone = {"path": "infra/modules/legacy-network", "description": "we moved to pulumi"}
            platform.call({"tool": "delete", "arguments": gone})
        yield root, act_as


async def draw(size: tuple[int, int], place: Path, *steps: tuple[str, str]) -> None:
    """Draw the program after some steps: keys, and the words that are then on the screen."""
    with workspace() as (root, act_as), Session(root, Policy.empty(), state=root.parent / "state") as session:
        app = Watch(Board(session), act_as, root / "ringfence.yaml", every=3600, hold=0)
        async with app.run_test(size=size) as pilot:
            app.sub_title = "~/project"  # what is drawn names no machine
            picture = ""
            for keys, wanted in steps:
                for key in keys.split():
                    await pilot.press(key)
                until = time.monotonic() + 60
                picture = ""
                while not (wanted in picture.replace("&#160;", " ") and "quit" in picture):
                    if time.monotonic() > until:
                        raise SystemExit(f"{place.name}: {wanted!r} is not on the screen")
                    await pilot.pause(0.2)
                    picture = app.export_screenshot(title="ringfence watch")
    # Without the fonts that the drawing would have a reader's browser load from elsewhere.
    place.write_text(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL), encoding="utf-8")


def main() -> None:
    here, begins = Path(__file__).parent, ("", "we moved to pulumi")
    # In the wide one a file's deletion was approved, so that the confirmation is seen.
    asyncio.run(draw((160, 48), here / "watch.svg", begins, ("down", "nothing imports"), ("a", "x: take it")))
    asyncio.run(draw((80, 24), here / "watch-80x24.svg", begins))
    rule = [
        ("down down down", "retry limit is 5 now"),
        ("c", "proved for every"),
        ("down", "also answers what"),
    ]
    asyncio.run(draw((120, 36), here / "watch-rule.svg", begins, *rule))


if __name__ == "__main__":
    main()

"""A directory whose files are all judged at once is searched as if each were judged by itself."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.session.session import Session

NAMES = ("a", "b.py", "c.txt", ".env", "d", "e.pem", "@tasks", "é", "x\udcff", "build")
PATTERNS = (
    "*",
    "d/",
    "d/**",
    "**/a",
    "*.py",
    "/b.py",
    "**/d/*",
    "**",
    "a",
    "?.txt",
    "build/",
    "d/*/",
    "**/.env",
    "b*",
    "*v",
)
IGNORES = ("*.py\n", "build/\n", "!d\n*.txt\n", "/d\n", "*\n!*/\n", "")


def fill(root: Path, chance: random.Random, depth: int = 0) -> None:
    root.mkdir()
    if chance.random() < 0.3:
        (root / ".gitignore").write_text(chance.choice(IGNORES))
    for name in chance.sample(NAMES, chance.randint(0, len(NAMES))):
        if depth < 3 and chance.random() < 0.4:
            fill(root / name, chance, depth + 1)
        elif chance.random() < 0.1:
            (root / name).symlink_to(chance.choice(NAMES))
        else:
            (root / name).write_text("text\nneedle\n" if chance.random() < 0.5 else "text\n")


def answers(session: Session, chance: random.Random) -> list[Result]:
    shared: dict[str, Any] = {"path": ".", "include_ignored": chance.random() < 0.3}
    calls = (
        ("search_files", {"pattern": chance.choice(PATTERNS), **shared}),
        ("search_text", {"query": "needle", "pattern": chance.choice(PATTERNS), **shared}),
        ("search_text", {"query": "NEEDLE", "ignore_case": True, **shared}),
        ("directory_tree", shared),
    )
    return [session.call({"tool": tool, "arguments": arguments}) for tool, arguments in calls]


@pytest.mark.parametrize("seed", range(60))
def test_the_answers_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    fill(tmp_path / "root", chance)
    rules = {"*": "allow"} if chance.random() < 0.5 else {}
    rules |= {p: chance.choice(("allow", "allow", "deny", "deny", "ask")) for p in chance.sample(PATTERNS, 3)}
    text = "version: 1\ndurable: false\nrules:\n  read:\n" + "".join(
        f'    "{p}": {e}\n' for p, e in rules.items()
    )
    calls = random.Random(seed)
    at_once: list[bool] = []
    known = Attempt.allows_files

    def noted(*given: Any) -> bool:
        at_once.append(known(*given))
        return at_once[-1]

    with Session(tmp_path / "root", Policy.loads(text), state=":memory:") as session:
        monkeypatch.setattr(Attempt, "allows_files", noted)
        found = answers(session, random.Random(seed))
        monkeypatch.setattr(Attempt, "allows_files", lambda *_: False)
        alone = answers(session, calls)
    for one, other in zip(found, alone, strict=True):
        assert one.status == other.status
        assert one.content == other.content
        assert {**one.data, "call_id": ""} == {**other.data, "call_id": ""}
    if seed == 10:
        assert set(at_once) == {True, False}  # else nothing is compared

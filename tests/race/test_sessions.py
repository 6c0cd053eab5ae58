"""Whole calls against names that are swapped: what a call comes back to is what was judged, or is left alone.

The link leads to a folder *inside* the workspace that the policy denies. RACE_TRIES as beside this file.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from tests.race.harness import attacker, swapping
from toolkit.session import Session

TRIES = int(os.environ.get("RACE_TRIES", "300"))
POLICY = Policy.loads(
    """
version: 1
mandatory: [{deny: [read, write, delete], paths: ["secrets/"], reason: private}]
rules: {"*": allow}
"""
)
SECRET = "TOPSECRET"
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the attacker needs renameat2, which is Linux's"),
    pytest.mark.timeout(max(180, TRIES // 5)),
]


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return attacker(tmp_path_factory.mktemp("attacker"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder `a/dir`, a link `a/link` to `secrets`, and names in both that are the same."""
    root = tmp_path / "ws"
    for folder, content in (("a/dir", "inside"), ("secrets", SECRET)):
        for sub in ("", "sub"):
            (root / folder / sub).mkdir(parents=True, exist_ok=True)
            for n in range(6):
                (root / folder / sub / f"f{n}").write_text(f"{content}\n")
    (root / "a/link").symlink_to("../secrets")
    return root


def picture(root: Path) -> dict[str, Any]:
    """Everything in the denied folder, wherever the links are."""
    found: dict[str, Any] = {}
    for place, folders, files in os.walk(root / "secrets"):
        for name in folders + files:
            info = os.lstat(os.path.join(place, name))
            found[os.path.join(place, name)] = (info.st_mode, info.st_ino, info.st_mtime_ns)
    return found


@pytest.fixture
def session(root: Path, tmp_path: Path) -> Iterator[Session]:
    with Session(root, POLICY, state=tmp_path / "state", session="s") as session:
        yield session


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def search(session: Session, n: int) -> Any:
    return call(session, "search_text", query="e", path="a")


def search_below(session: Session, n: int) -> Any:
    return call(session, "search_text", query=SECRET[:3], path="a/dir")


def tree(session: Session, n: int) -> Any:
    return call(session, "directory_tree", path="a")


def delete_and_undo(session: Session, n: int) -> Any:
    done = call(session, "delete", path="a/dir/sub")
    return done, session.undo(done.data["call_id"]) if done.data.get("call_id") else None


def move_and_undo(session: Session, n: int) -> Any:
    done = call(session, "move_file", source="a/dir/f1", destination=f"a/dir/m{n}")
    return done, session.undo(done.data["call_id"])


def edit_and_undo(session: Session, n: int) -> Any:
    done = call(session, "create_file", path="a/dir/f2", content=f"inside {n}\n", allow_overwrite=True)
    return done, session.undo(done.data["call_id"])


def delete_and_prune(session: Session, n: int) -> Any:
    done = call(session, "delete", path="a/dir/sub")
    return done, session.prune(keep=0), session.undo(done.data["call_id"])


ACTS: tuple[Callable[[Session, int], Any], ...] = (
    search, search_below, tree, delete_and_undo, move_and_undo, edit_and_undo, delete_and_prune,
)  # fmt: skip


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_a_call_never_reaches_what_is_denied(
    root: Path, session: Session, command: list[str], act: Callable[[Session, int], Any]
) -> None:
    before = picture(root)
    with swapping(command, root / "a/dir", root / "a/link"):
        leaks = [n for n in range(TRIES) if SECRET in str(act(session, n))]
    assert leaks == [], f"{len(leaks)} of {TRIES} answers show what is denied"
    assert picture(root) == before


def test_an_agent_gains_nothing_with_two_sessions(root: Path, tmp_path: Path) -> None:
    """One session renames without end, the other one searches: tools alone, no other process."""
    over = threading.Event()

    def rename() -> None:
        with Session(root, POLICY, state=tmp_path / "state", session="one") as one:
            while not over.is_set():
                for source, to in (("dir", "t"), ("link", "dir"), ("dir", "link"), ("t", "dir")):
                    call(one, "move_file", source=f"a/{source}", destination=f"a/{to}")

    with Session(root, POLICY, state=tmp_path / "state", session="two") as two:
        renaming = threading.Thread(target=rename)
        renaming.start()
        try:
            leaks = [n for n in range(TRIES) if SECRET in str(search_below(two, n))]
            leaks += [n for n in range(TRIES) if SECRET in str(search(two, n))]
        finally:
            over.set()
            renaming.join()
    assert leaks == []

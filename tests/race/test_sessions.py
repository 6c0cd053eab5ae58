"""Whole calls against names that are swapped: what a call comes back to is what was judged, or is left alone.

The link leads to a folder *inside* the workspace that the policy denies. RACE_TRIES as beside this file.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from tests.race.harness import attacker, swapping

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


def plant(root: Path, name: str) -> None:
    """A folder to delete, made in the real directory by its handle: the test itself never leaves it."""
    for place in ("a/dir", "a/link"):
        try:
            fd = os.open(root / place, os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # the link, at this moment
        try:
            os.mkdir(name, dir_fd=fd)
            os.close(os.open(f"{name}/f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        finally:
            os.close(fd)
        return


@pytest.mark.slow
@pytest.mark.parametrize("at", ["sync", "check", "release"])
def test_what_settles_after_a_death_never_reaches_it(
    root: Path, tmp_path: Path, command: list[str], at: str
) -> None:
    """A process dies while it deletes; the next one settles while the names are swapped."""
    before = picture(root)
    with swapping(command, root / "a/dir", root / "a/link"):
        for n in range(max(TRIES // 20, 10)):
            plant(root, f"t{n}")
            child = os.fork()
            if child == 0:
                dying = Session(root, POLICY, state=tmp_path / "state", session="dying")
                setattr(dying.workspace.backend, at, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
                call(dying, "delete", path=f"a/dir/t{n}")
                os._exit(0)
            os.waitpid(child, 0)
            with Session(root, POLICY, state=tmp_path / "state", session="next") as after:
                settled = [row for row in audit.records(after.state) if row["event"] == "settled"]
    assert picture(root) == before
    assert at != "sync" or settled, "nothing died half-way: there was nothing to settle"

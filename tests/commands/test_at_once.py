"""Commands of several sessions and processes in one workspace, and what becomes of scratches that wait."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals import Answer
from ringfence.toolkit.call import Result
from ringfence.toolkit.commands import running
from ringfence.toolkit.commands.scratches import Scratches
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.commands import scratches_of
from ringfence.toolkit.session.session import Session

POLICY = """
version: 1
rules:
  read: {"*": allow}
  write: {"*": allow, "docs/": ask}
  delete: {"*": allow}
  run: {"*": allow}
"""
BOUND = 60  # seconds that a thread may take

pytestmark = pytest.mark.usefixtures("overlay_works")


class Scene:
    """Sessions in one workspace, each with a connection of its own, as in processes of their own."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.root, self.state, self._stack = place / "workspace", place / "state", stack
        (self.root / "src").mkdir()
        (self.root / "docs").mkdir()
        (self.root / "src/a.txt").write_text("a\n")
        (self.root / "ringfence.yaml").write_text(POLICY)

    def session(self, name: str, agent: str = "default") -> Session:
        opened = Session(self.root, Policy.loads(POLICY), state=self.state, session=name, agent=agent)
        return self._stack.enter_context(opened)

    def open_and_close(self) -> None:
        Session(self.root, Policy.loads(POLICY), state=self.state).close()

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def command_line(self, *arguments: str) -> None:
        """Run `ringfence` in another process."""
        place = ["--root", str(self.root), "--state", str(self.state)]
        done = subprocess.run(
            [sys.executable, "-m", "ringfence", *arguments, *place],
            capture_output=True,
            timeout=BOUND,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture
def scene(place: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(place, stack)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that have run."""
    real, found = running.run_in_sandbox, list[str]()

    def counted(spec: Any, **more: Any) -> Any:
        found.append(spec.argv[-1])
        return real(spec, **more)

    monkeypatch.setattr(running, "run_in_sandbox", counted)
    return found


def run(session: Session, command: str, meanwhile: Callable[[], object] | None = None) -> Result:
    """The answer of a command; `meanwhile` is called once, when it has said something."""
    left = [] if meanwhile is None else [meanwhile]
    progress = Progress(output=lambda *_: left.pop()() if left else None)
    return session.call({"tool": "run_command", "arguments": {"command": command}}, progress)


def write(session: Session, path: str, content: str) -> Result:
    arguments = {"path": path, "content": content, "allow_overwrite": True}
    return session.call({"tool": "create_file", "arguments": arguments})


def code(result: Result) -> str | None:
    return None if result.error is None else str(result.error["code"])


def waiting(session: Session) -> int:
    folder = Path(scratches_of(session.context).folder)
    return sum(path.is_dir() for path in folder.iterdir()) if folder.is_dir() else 0


ASKED = "echo new > docs/n; echo go"


def asked(session: Session) -> str:
    result = run(session, ASKED)
    assert result.status == "approval_required", result
    return str(result.data["approval"]["id"])


# ------------------------------------------------------------------------------ at once


def test_commands_run_one_at_a_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [scene.session(f"s{n}", f"agent{n}") for n in range(3)]
    all_want, wanting, inside, most = threading.Event(), list[int](), list[int](), list[int]()
    turn, real = Scratches.turn, running.run_in_sandbox

    def counted(scratches: Scratches, *given: Any) -> Any:
        wanting.append(1)
        if len(wanting) == len(sessions):
            all_want.set()
        return turn(scratches, *given)

    def watched(spec: Any, **more: Any) -> Any:
        assert all_want.wait(BOUND)  # the others are at the door
        inside.append(1)
        most.append(len(inside))
        try:
            return real(spec, **more)
        finally:
            inside.pop()

    monkeypatch.setattr(Scratches, "turn", counted)
    monkeypatch.setattr(running, "run_in_sandbox", watched)
    with ThreadPoolExecutor(len(sessions)) as pool:
        results = list(pool.map(lambda s: run(s, f"echo {s.session} > src/{s.session}; echo go"), sessions))
    assert [result.status for result in results] == ["ok"] * len(sessions)
    assert most == [1] * len(sessions)
    assert {scene.text(f"src/s{n}") for n in range(3)} == {"s0\n", "s1\n", "s2\n"}


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("src/a.txt", "other\n", "stale_read"),
        ("src/a.txt", "new\n", None),  # the same content
        ("src/b.txt", "other\n", None),  # another file
    ],
)
def test_file_tools_go_on_while_a_command_runs(
    scene: Scene, path: str, content: str, expected: str | None
) -> None:
    one, other = scene.session("one"), scene.session("other", "helper")
    answers: list[Result] = []
    result = run(one, "echo new > src/a.txt; echo go", lambda: answers.append(write(other, path, content)))
    assert [answer.status for answer in answers] == ["ok"]
    assert code(result) == expected
    assert scene.text(path) == content
    assert scene.text("src/a.txt") == ("new\n" if expected is None else content)
    assert waiting(one) == 0


def test_a_living_process_keeps_its_scratch(scene: Scene) -> None:
    result = run(scene.session("one"), "echo new > src/n; echo go", scene.open_and_close)
    assert result.ok, result
    assert scene.text("src/n") == "new\n"


def test_a_session_does_not_take_the_scratch_of_another(scene: Scene, runs: list[str]) -> None:
    one, other, agent = scene.session("one"), scene.session("other"), scene.session("one", "helper")
    first = asked(one)
    assert len({first, asked(other), asked(agent)}) == 3
    assert (len(runs), waiting(one)) == (3, 3)
    one.approvals.answer(first, Answer(True))
    for session in (other, agent):
        assert run(session, ASKED).status == "approval_required"
    assert not (scene.root / "docs/n").exists()
    assert run(one, ASKED).ok
    assert scene.text("docs/n") == "new\n"
    assert (len(runs), waiting(one)) == (3, 2)


def test_a_person_grants_in_another_process(scene: Scene, runs: list[str]) -> None:
    session = scene.session("one")
    scene.command_line("approvals", "grant", asked(session))
    assert waiting(session) == 1
    assert run(session, ASKED).ok
    assert (len(runs), waiting(session), scene.text("docs/n")) == (1, 0, "new\n")


# ------------------------------------------------------------------------ scratches that end


def expire(session: Session, approval: str) -> None:
    with session.state.transaction() as db:
        db.execute("UPDATE approval SET asked = 0 WHERE id = ?", (approval,))


@pytest.mark.parametrize("how", ["refused", "revoked", "expired", "withdrawn"])
def test_a_scratch_goes_with_its_request(scene: Scene, how: str, runs: list[str]) -> None:
    session = scene.session("one")
    approval = asked(session)
    scene.open_and_close()
    assert waiting(session) == 1, "an open request keeps it"
    if how == "refused":
        session.approvals.answer(approval, Answer(False))
    elif how == "revoked":
        session.approvals.answer(approval, Answer(True))
        scene.open_and_close()
        assert waiting(session) == 1, "a grant keeps it"
        session.approvals.revoke(approval)
    elif how == "expired":
        expire(session, approval)
    else:
        session.approvals.withdraw(approval)
    scene.open_and_close()
    assert waiting(session) == 0
    assert not (scene.root / "docs/n").exists()


@pytest.mark.parametrize("how", ["refuse", "revoke"])
def test_the_command_line_takes_the_scratch_away(scene: Scene, how: str) -> None:
    session = scene.session("one")
    approval = asked(session)
    if how == "revoke":
        session.approvals.answer(approval, Answer(True))
    scene.command_line("approvals", how, approval)
    assert waiting(session) == 0


@pytest.mark.parametrize("swept", [False, True])
def test_a_refused_request_is_reopened(scene: Scene, runs: list[str], *, swept: bool) -> None:
    session = scene.session("one")
    approval = asked(session)
    session.approvals.answer(approval, Answer(False))
    if swept:
        scene.open_and_close()
    session.approvals.reopen(approval)
    session.approvals.answer(approval, Answer(True))
    result = run(session, ASKED)
    assert len(runs) == 1, "what was granted is never run again unasked"
    assert code(result) == ("approval_stale" if swept else None)
    assert (scene.root / "docs/n").exists() != swept


def test_a_session_that_only_reads_removes_nothing(scene: Scene) -> None:
    session = scene.session("one")
    session.approvals.answer(asked(session), Answer(False))
    Session(scene.root, Policy.empty(), state=scene.state, read_only=True).close()
    assert waiting(session) == 1


def test_a_folder_that_others_may_write_to_is_not_used(scene: Scene) -> None:
    session = scene.session("one")
    asked(session)
    Path(scratches_of(session.context).folder).chmod(0o777)
    assert code(run(session, ASKED)) == "history_unavailable"


def test_two_states_of_a_workspace_have_scratches_of_their_own(
    scene: Scene, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the scratches are in memory, as in a container."""
    monkeypatch.setattr(running, "_file_system", lambda _: "overlay")
    one = scene.session("one")
    asked(one)
    with Session(scene.root, Policy.loads(POLICY), state=place / "another", session="one") as other:
        assert waiting(other) == 0
        assert run(other, "echo new > src/n; echo go").ok
    folders = [Path(scratches_of(session.context).folder) for session in (one, other)]
    assert folders[0] != folders[1]
    assert waiting(one) == 1
    one.approvals.answer(one.approvals.waiting()[0].id, Answer(False))
    scene.open_and_close()
    assert waiting(one) == 0, "the sweep finds those in memory too"
    for folder in folders:
        (folder / "turn").unlink()
        folder.rmdir()


def test_a_scratch_may_go_while_another_process_looks(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    session = scene.session("one")
    asked(session)
    scratches = scratches_of(session.context)
    seen = [*scratches._paths(), f"{scratches.folder}/gone"]
    monkeypatch.setattr(Scratches, "_paths", lambda _: seen)
    assert scratches.sweep(lambda _: True) == 0
    assert scratches.waiting(call="another") is None


_KILLED = """
import os, signal, sys
from ringfence.policy import Policy
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session
session = Session(sys.argv[1], Policy.loads(sys.argv[2]), state=":memory:")
kill = Progress(output=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
session.call({"tool": "run_command", "arguments": {"command": "echo go"}}, kill)
"""


def test_a_killed_process_with_its_state_in_memory_leaves_its_folder_to_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    given = [sys.executable, "-c", _KILLED, str(scene.root), POLICY]
    assert subprocess.run(given, timeout=BOUND, check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    with Session(scene.root, Policy.loads(POLICY), state=":memory:") as session:
        assert run(session, "echo new > src/n; echo go").ok
        assert not left.exists()
        (own,) = tmp_path.iterdir()
        with Session(scene.root, Policy.loads(POLICY), state=":memory:") as other:
            assert run(other, "echo go").ok
        assert own.exists(), "its process lives"

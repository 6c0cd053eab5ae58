"""What nothing here can keep is never taken away without asking, and the question says so."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.paths import parts
from ringfence.toolkit.plan.changes import FILE, Delete, Entry, Move, Stat, Write
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.backend import BACKENDS, at
from ringfence.toolkit.storage.fsspec_store.view import CHUNK
from ringfence.toolkit.storage.guarantees import MAX_FILE, unrestorable
from tests.services.servers import BUCKET, moto, s3_file_system

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
SMALL = 1000  # what can be kept in these tests
LIMITS = [
    "storage.guarantees.MAX_FILE", "tools._messages.MAX_DIFF", "workspace.view._LARGE",
    "history.intent_writer.LARGE", "execution.intent.LARGE", "undo.overlay.LARGE",
]  # fmt: skip
CASES = yaml.safe_load(Path(__file__).with_name("losses.yaml").read_text())
NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with moto(tmp_path_factory.mktemp("moto")) as server:
        yield s3_file_system(server)


@pytest.fixture(params=["memory://", "local", "moto"])
def session(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Session]:
    for limit in LIMITS:
        monkeypatch.setattr(f"ringfence.toolkit.{limit}", SMALL)
    root, fs = request.param, None
    if root == "local":
        root = str(tmp_path / "ws")
        Path(root).mkdir()
    elif root == "moto":
        root, fs = f"{BUCKET}/loss{next(NUMBERS)}", request.getfixturevalue("bucket")
    with Session(root, ALLOW, fs=fs, state=tmp_path / "state") as session:
        place(session, "t", None)
        for path, size in {"t/large": SMALL + 1, "t/small": 10, "small": 10, "other": SMALL + 1}.items():
            place(session, path, path.encode() * (size // len(path) + 1))
        yield session


def place(session: Session, path: str, data: bytes | None) -> None:
    """Put something in the workspace that no call made."""
    backend = session.workspace.writable()
    spot = backend.resolve(parts(path), follow=False)
    try:
        if data is None:
            backend.make_directory(spot)
        else:
            backend.create(spot, data, None, ".ringfence-test")
    finally:
        backend.release(spot)


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def keeps(session: Session) -> bool:
    return session.workspace.backend.traits.quarantines


def content(session: Session, path: str) -> str | None:
    result = call(session, "read_file", path=path)
    return result.content if result.ok else None


cases = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


@cases
def test_a_loss_is_asked_about_where_nothing_can_be_kept(session: Session, case: dict[str, Any]) -> None:
    if keeps(session):
        pytest.skip("nothing is lost here")
    tool, arguments, lost = case["tool"], case["arguments"], case["lost"]
    result = call(session, tool, **arguments)
    assert result.status == "approval_required"
    assert result.error is not None
    assert result.error["code"] == "not_recoverable"
    assert "CANNOT BE RESTORED" in result.data["approval"]["title"]
    assert content(session, lost) is not None
    request = session.approvals.get(result.data["approval"]["id"])
    assert request.decision["not_recoverable"] == [lost]
    session.approvals.answer(request.id, Answer(True))
    result = call(session, tool, **arguments)
    assert result.ok
    assert result.data["not_recoverable"] == [lost]
    assert "cannot be restored" in result.content
    after = content(session, lost)
    assert (after is not None) is case.get("stands", False)
    # The history says that there was something, and that it has it not.
    [there] = [version for version in session.versions(lost) if not version.kept]
    assert there.size > SMALL
    assert not there.gone
    kinds = [one.kind for one in session.changes() if one.path == lost]
    assert kinds == ["updated" if case.get("stands") else "deleted"]
    back = session.undo(result.data["call_id"])
    assert content(session, lost) == (after if case.get("stays") else None)
    assert not back.ok or lost == "t/large"


@cases
def test_what_is_kept_piece_by_piece_is_not_asked_about(
    session: Session, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not keeps(session):
        pytest.skip("nothing is read piece by piece here")
    before = content(session, case["lost"])
    backend: Any = session.workspace.backend
    whole = type(backend).read

    def read(self: Any, *given: Any, **more: Any) -> bytes:
        data: bytes = whole(self, *given, **more)
        assert len(data) <= SMALL, "this much is never in memory at once"
        return data

    monkeypatch.setattr(type(backend), "read", read)
    done = call(session, case["tool"], **case["arguments"])
    assert done.ok, done.content
    undone = session.undo(done.data["call_id"])
    assert undone.ok, undone.content
    again = session.undo(undone.data["call_id"])
    assert again.ok, again.content
    assert session.undo(again.data["call_id"]).ok
    monkeypatch.undo()
    assert content(session, case["lost"]) == before


OVER = {"path": "other", "content": "new", "allow_overwrite": True}


def granted(session: Session) -> None:
    approval = call(session, "create_file", **OVER).data["approval"]["id"]
    session.approvals.answer(approval, Answer(True))


def test_a_yes_to_losing_one_content_is_none_to_losing_another(session: Session) -> None:
    if keeps(session):
        pytest.skip("nothing is lost here")
    granted(session)
    backend = session.workspace.writable()
    spot = backend.resolve(("other",), follow=False)
    found = backend.stat(spot)
    assert found is not None
    backend.replace(spot, b"y" * (SMALL + 1), found, None, "")
    error = call(session, "create_file", **OVER).error
    assert error is not None
    assert error["code"] == "approval_stale"


def test_what_becomes_of_a_loss_that_is_cut_short_is_not_guessed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    if keeps(session):
        pytest.skip("nothing is lost here")
    granted(session)

    def stops(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(type(session.workspace.backend), "replace", stops)
        call(session, "create_file", **OVER)
    granted(session)
    assert call(session, "create_file", **OVER).ok
    assert [r["outcome"] for r in audit.records(session.state) if r["event"] == "settled"] == ["unknown"]


def test_a_loss_is_agreed_to_once(session: Session) -> None:
    if keeps(session):
        pytest.skip("nothing is lost here")
    approval = call(session, "delete_file", path="other").data["approval"]["id"]
    with pytest.raises(Exception, match="once"):
        session.approvals.answer(approval, Answer(True, scope="session", confirmed=True))


def test_what_can_be_kept_is_not_asked_about(session: Session) -> None:
    assert call(session, "delete_file", path="small").ok


def test_a_dry_run_says_that_it_would_ask(session: Session) -> None:
    session.context = replace(session.context, dry_run=True)
    result = call(session, "delete_file", path="other")
    assert ("CANNOT BE RESTORED" in result.content) is not keeps(session)


@pytest.mark.parametrize("kind", sorted(BACKENDS))
def test_each_kind_of_store_asks_above_what_it_can_keep(kind: str) -> None:
    large, small = (Stat(FILE, size) for size in (MAX_FILE + 1, MAX_FILE))
    tree = Delete("d", Stat("directory"), (Entry("d/l", large), Entry("d/s", small)))
    over = Move("a", "b", small, large)
    anew = Write("c", b"", None, large)
    in_tasks = Delete("@tasks/1", large)
    kept = BACKENDS[kind].quarantines
    assert unrestorable((tree, over, anew), BACKENDS[kind]) == (() if kept else ("d/l", "b", "c"))
    assert unrestorable((in_tasks,), BACKENDS[kind]) == ("@tasks/1",)


def test_what_is_read_piece_by_piece_is_the_content(session: Session) -> None:
    data = bytes(range(256)) * (3 * CHUNK // 256) + b"and a bit"
    for path, content in {"long": data, "exact": data[: 2 * CHUNK], "short": b"s", "empty": b""}.items():
        place(session, path, content)
        with at(session.workspace.backend, path) as spot:
            pieces = list(session.workspace.backend.chunks(spot))
        assert b"".join(pieces) == content

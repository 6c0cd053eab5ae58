"""A store whose reply is lost: nothing that was done is called undone, and it can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "create_file": ({"path": "new", "content": "x"}, "pipe_file"),
    "edit_file": ({"path": "f", "old_str": "old", "new_str": "new"}, "pipe_file"),
    "delete_file": ({"path": "f"}, "rm_file"),
}
AFTER: dict[str, dict[str, bytes]] = {
    "create_file": {"f": b"old", "new": b"x"},
    "edit_file": {"f": b"new"},
    "delete_file": {},
}


class Silent:
    """A memory store that stops answering: one request is carried out (or not), and no reply comes."""

    def __init__(self) -> None:
        self.fs = private_memory()
        self.fs.makedirs("/ws")
        self.fs.pipe_file("/ws/f", b"old")
        self._late: Callable[[], Any] = lambda: None

    def loses(self, method: str, *, carried_out: bool, readable: bool = True) -> None:
        """Lose the reply of one request; unless `readable`, the store cannot be read after it either."""
        real, info = getattr(self.fs, method), self.fs.info

        def lost(*args: Any, **options: Any) -> Any:
            setattr(self.fs, method, real)
            if carried_out:
                real(*args, **options)
            else:
                self._late = lambda: real(*args, **options)
            if not readable:
                self.fs.info = silent
            raise TimeoutError("the line is dead")

        def silent(*args: Any, **options: Any) -> Any:
            raise TimeoutError("the line is dead")

        self._again = lambda: setattr(self.fs, "info", info)
        setattr(self.fs, method, lost)

    def answers_again(self, *, late: bool = False) -> None:
        self._again()
        if late:
            self._late()

    def tree(self) -> dict[str, bytes]:
        return {path.removeprefix("/ws/"): self.fs.cat_file(path) for path in self.fs.find("/ws")}

    def open(self) -> Session:
        return Session("/ws", ALLOW, fs=self.fs, state=":memory:", session="s")


@pytest.fixture
def store() -> Silent:
    return Silent()


def states(session: Session) -> list[str]:
    return [item.state for item in session.history.items("1 = 1", ())]


def records(session: Session) -> list[dict[str, Any]]:
    return list(audit.records(session.state))


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


@pytest.mark.parametrize("tool", CHANGES)
def test_what_was_done_is_done_though_no_reply_came(store: Silent, tool: str) -> None:
    arguments, method = CHANGES[tool]
    with store.open() as session:
        store.loses(method, carried_out=True)
        result = call(session, tool, **arguments)
        assert result.ok and result.data["resolved"] == [arguments["path"]], result
        assert "the store's answer was lost" in result.content
        assert store.tree() == AFTER[tool]
        assert states(session) == ["done"]
        assert records(session)[-1]["resolved"] == [arguments["path"]]
        assert session.undo(result.data["call_id"]).ok
        assert store.tree() == {"f": b"old"}


@pytest.mark.parametrize("tool", CHANGES)
@pytest.mark.parametrize("late", [True, False], ids=["carried out late", "never carried out"])
def test_what_is_not_known_yet_is_settled_before_the_next_call(store: Silent, tool: str, late: bool) -> None:
    arguments, method = CHANGES[tool]
    with store.open() as session:
        store.loses(method, carried_out=False, readable=not late)
        result = call(session, tool, **arguments)
        assert result.error and result.error["code"] == "no_reply", result
        assert states(session) == ["pending"]
        store.answers_again(late=late)
        assert call(session, "read_file", path="g").error["code"] == "not_found"
        assert states(session) == ["done" if late else "aborted"]
        settled = next(record for record in records(session) if record["event"] == "settled")
        assert settled["outcome"] == states(session)[0] and settled["call"] == result.data["call_id"]
        assert store.tree() == (AFTER[tool] if late else {"f": b"old"})
        undone = session.undo(result.data["call_id"])
        assert undone.ok and store.tree() == {"f": b"old"}, undone


def test_its_own_write_is_not_another_s(store: Silent) -> None:
    with store.open() as session:
        assert call(session, "read_file", path="f").ok
        store.loses("pipe_file", carried_out=True)
        assert call(session, "edit_file", path="f", old_str="old", new_str="new").ok
        assert call(session, "edit_file", path="f", old_str="new", new_str="newer").ok
        assert call(session, "create_file", path="f", content="x", allow_overwrite=True).ok


def test_a_store_that_stays_silent_has_nothing_called_undone(store: Silent) -> None:
    with store.open() as session:
        store.loses("pipe_file", carried_out=True, readable=False)
        result = call(session, "edit_file", path="f", old_str="old", new_str="new")
        assert result.error and result.error["code"] == "no_reply", result
        assert call(session, "read_file", path="f").error["code"] == "io_error"
        assert states(session) == ["pending"]
        store.answers_again()
        assert call(session, "read_file", path="f").content.startswith("new")
        assert states(session) == ["done"]

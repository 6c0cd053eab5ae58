"""Subscribers hear of every change after it is done, and cannot hurt a call."""

from __future__ import annotations

import threading
import time
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history import subscriptions
from ringfence.toolkit.history.subscriptions import Event
from ringfence.toolkit.session.session import Session

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


def call(session: Session, tool: str, **arguments: Any) -> Any:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.ok, result.content
    return result


def test_a_subscriber_hears_what_was_done_in_order() -> None:
    heard: list[Event] = []
    with Session("memory://", ALLOW, state=":memory:") as session:
        session.subscribe(heard.append)
        call(session, "create_file", path="a", content="1")
        call(session, "create_file", path="a", content="2", allow_overwrite=True)
        call(session, "read_file", path="a")
        call(session, "move_file", source="a", destination="b")
        gone = call(session, "delete_file", path="b")
        assert session.undo(gone.data["call_id"]).ok
    assert [(event.kind, event.path) for event in heard] == [
        ("created", "a"),
        ("updated", "a"),
        ("deleted", "a"),
        ("created", "b"),
        ("deleted", "b"),
        ("restored", "b"),
    ]


def test_a_failing_and_a_slow_subscriber_hurt_no_call() -> None:
    held = threading.Event()

    def fails(event: Event) -> None:
        raise RuntimeError

    with Session("memory://", ALLOW, state=":memory:") as session:
        failing = session.subscribe(fails)
        session.subscribe(lambda event: held.wait(5))
        started = time.monotonic()
        for n in range(20):
            call(session, "create_file", path=f"f{n}", content="")
        assert time.monotonic() - started < 4
        held.set()
    assert failing.missed == 20


def test_a_subscriber_that_wants_to_end_the_program_ends_nothing() -> None:
    heard: list[str] = []

    def leaves(event: Event) -> None:
        heard.append(event.path)
        raise SystemExit

    with Session("memory://", ALLOW, state=":memory:") as session:
        leaving = session.subscribe(leaves)
        for name in ("a", "b", "c"):
            call(session, "create_file", path=name, content="")
    assert heard == ["a", "b", "c"]
    assert leaving.missed == 3


def test_one_that_never_comes_back_misses_what_does_not_fit(monkeypatch: Any) -> None:
    monkeypatch.setattr(subscriptions, "_WAITING", 3)
    held = threading.Event()
    with Session("memory://", ALLOW, state=":memory:") as session:
        stuck = session.subscribe(lambda event: held.wait(20))
        heard: list[str] = []
        well = session.subscribe(lambda event: heard.append(event.path))
        for n in range(10):
            call(session, "create_file", path=f"f{n}", content="")
            while len(heard) <= n:
                time.sleep(0.001)
        assert stuck.missed >= 6
        assert well.missed == 0
        held.set()


def test_a_subscriber_may_call_and_may_leave() -> None:
    heard: list[str] = []
    with Session("memory://", ALLOW, state=":memory:") as session:

        def looks(event: Event) -> None:
            heard.append(session.call({"tool": "read_file", "arguments": {"path": event.path}}).status)

        subscription = session.subscribe(looks)
        call(session, "create_file", path="a", content="")
        while not heard:
            time.sleep(0.001)
        subscription.close()
        call(session, "create_file", path="b", content="")
    assert heard == ["ok"]


def test_what_was_done_is_told_even_if_the_record_has_to_wait(monkeypatch: Any) -> None:
    heard: list[tuple[str, str]] = []
    with Session("memory://", ALLOW, state=":memory:") as session:
        session.subscribe(lambda event: heard.append((event.kind, event.path)))

        def full(*_: object) -> str:
            raise CallError("history_unavailable", "full")

        with monkeypatch.context() as patch:
            patch.setattr(session.history, "_finish", full)
            call(session, "create_file", path="a", content="")
        call(session, "delete_file", path="a")
    assert heard == [("created", "a"), ("deleted", "a")]


def test_nothing_is_told_of_what_was_not_done() -> None:
    heard: list[Event] = []
    with Session("memory://", ALLOW, state=":memory:") as session:
        session.subscribe(heard.append)
        call(session, "create_file", path="a", content="1")
        session.call({"tool": "create_file", "arguments": {"path": "a", "content": "2"}})
        session.call({"tool": "delete_file", "arguments": {"path": "b"}})
    assert [event.path for event in heard] == ["a"]

"""Subscribers hear of every change after it is done, and cannot hurt a call."""

from __future__ import annotations

import threading
import time
from typing import Any

from policy import Policy
from toolkit.events import Event
from toolkit.session import Session

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

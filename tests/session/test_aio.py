"""The session that is awaited: the same answers, calls in order, and a cancellation that tells the truth."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import Answer, AsyncSession, CallError, Request, Session

POLICY = Policy.loads('version: 1\nrules: {"*": allow, write: {"asks/**": ask}}\n')


def write(path: str, content: str = "x") -> dict[str, Any]:
    return {"tool": "create_file", "arguments": {"path": path, "content": content}}


def test_it_answers_as_the_session_does() -> None:
    calls = [write("a"), write("a"), {"tool": "read_file", "arguments": {"path": "a"}}, {"tool": "none"}, "{"]

    async def awaited() -> list[tuple[str, str]]:
        async with AsyncSession("memory://", POLICY, state=":memory:") as session:
            return [(r.status, r.content) for r in [await session.call(call) for call in calls]]

    with Session("memory://", POLICY, state=":memory:") as session:
        plain = [(r.status, r.content) for r in [session.call(call) for call in calls]]
    assert asyncio.run(awaited()) == plain


def test_many_at_once_are_all_answered_and_recorded(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncSession(tmp_path, POLICY, state=":memory:") as session:
            results = await asyncio.gather(*(session.call(write(f"f{n}")) for n in range(30)))
            assert all(result.ok for result in results)
            assert len({result.data["call_id"] for result in results}) == 30
            undone = await session.undo(results[0].data["call_id"])
            assert undone.ok and not (tmp_path / "f0").exists()
            assert (await session.restore("f1", "initial")).status in ("ok", "error")

    asyncio.run(main())


def test_the_loop_goes_on_while_a_person_thinks() -> None:
    asked, answered = threading.Event(), threading.Event()

    def approver(_: Request) -> Answer:
        asked.set()
        assert answered.wait(30)
        return Answer(True)

    async def main() -> None:
        async with AsyncSession("memory://", POLICY, state=":memory:", approver=approver) as session:
            call = asyncio.create_task(session.call(write("asks/a")))
            while not asked.is_set():
                await asyncio.sleep(0)
            answered.set()  # said by the loop, which is free
            assert (await call).ok

    asyncio.run(main())


def test_cancelled_before_it_changes_anything_nothing_is_changed(tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def approver(_: Request) -> Answer:
        asked.set()
        assert go_on.wait(30)
        return Answer(True)

    async def main() -> None:
        async with AsyncSession(tmp_path, POLICY, state=":memory:", approver=approver) as session:
            call = asyncio.create_task(session.call(write("asks/a")))
            waiting = asyncio.create_task(session.call(write("b")))
            while not asked.is_set():
                await asyncio.sleep(0)
            call.cancel()
            waiting.cancel()
            await asyncio.sleep(0)
            go_on.set()
            for task in (call, waiting):
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert not (tmp_path / "asks").exists() and not (tmp_path / "b").exists()
            records = session.session.state.rows("SELECT body FROM audit ORDER BY seq")
            assert any("called off meanwhile" in body for (body,) in records)
            assert (await session.call(write("c"))).ok

    asyncio.run(main())


def test_cancelled_while_it_changes_files_it_is_finished_and_on_record(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def progress(what: str, done: int, total: int | None) -> None:
        if what != "keeping":
            begun.set()
            assert go_on.wait(30)

    async def main() -> None:
        for n in range(5):
            (tmp_path / "d").mkdir(exist_ok=True)
            (tmp_path / "d" / f"f{n}").write_text("x", encoding="utf-8")
        async with AsyncSession(tmp_path, POLICY, state=":memory:") as session:
            call = asyncio.create_task(
                session.call({"tool": "delete", "arguments": {"path": "d"}}, progress=progress)
            )
            while not begun.is_set() and not call.done():
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.sleep(0)
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert not (tmp_path / "d").exists()
            assert len(session.session.changes()) == 5

    asyncio.run(main())


def test_what_keeps_a_session_from_opening_is_raised() -> None:
    async def main() -> None:
        with pytest.raises(CallError):
            async with AsyncSession("/nonexistent-root", POLICY, state=":memory:"):
                pass

    asyncio.run(main())
    with pytest.raises(RuntimeError):
        _ = AsyncSession("memory://").session

"""Undo and restore from `watch`: what would be done is shown, and exactly that is done after a yes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ringfence.toolkit.cli.approval_prompt import whoami
from ringfence.toolkit.cli.watch.dialogs import Choice, Sure
from ringfence.toolkit.cli.watch.entries import Ran, Shown
from ringfence.toolkit.cli.watch.program import Program
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.monitoring.dashboard import Work
from ringfence.toolkit.text import escape


async def undo(program: Program, what: Shown) -> None:
    """Undo what a session did to a file, what a command did, or all that a session did."""
    if isinstance(what, Work):
        await _take_back(program, what.session, lambda session, **more: session.undo_to("initial", **more))
    elif isinstance(what, Ran):
        call = what.call
        await _take_back(program, what.session, lambda session, **more: session.undo(call, **more))
    elif isinstance(what, tuple):
        work, file = what
        path = file.source or file.path
        await _take_back(
            program, work.session, lambda session, **more: session.undo_to("initial", tree=path, **more)
        )


async def restore(program: Program, what: Shown) -> None:
    """Restore one of a file's versions."""
    if not isinstance(what, tuple):
        return
    work, file = what
    found = await asyncio.to_thread(program.board.session.versions, file.path)
    names = [f"{one.session}:{one.name}" for one in found]
    chosen = await program.ask(Choice(f"Versions of {escape(file.path)}", names))
    if chosen is not None:
        name = names[chosen]
        await _take_back(
            program, work.session, lambda session, **more: session.restore(file.path, name, **more)
        )


async def _take_back(program: Program, name: str, act: Callable[..., Any]) -> None:
    try:
        session = await asyncio.to_thread(program.act_as, "default", name)
        with session:
            seen = await asyncio.to_thread(lambda: act(session, dry_run=True))
            if not seen.ok:
                program.warn(seen.content)
                return
            question = Sure(seen.content, seen.data.get("preview") or "", "do this", program.hold())
            if await program.ask(question):
                digest = seen.data["digest"]
                seen = await asyncio.to_thread(lambda: act(session, digest=digest, by=whoami()))
                call = seen.data.get("call_id")
                program.tell(seen.content + (f"\nto reverse this: ringfence undo {call}" if call else ""))
    except CallError as error:
        program.fail(error)
    await program.update_board()

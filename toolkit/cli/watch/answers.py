"""Answers to requests from `watch`: approve, refuse, edit, and take an answer back.

The narrow answer comes first; everything wider, and what destroys a tree, is shown and confirmed before.
"""

from __future__ import annotations

import asyncio
import time

from rich.text import Text

from ringfence.toolkit.approvals.requests import (
    GRANTED,
    ONCE,
    REFUSED,
    RULE,
    SETTLED,
    Answer,
    Request,
)
from ringfence.toolkit.cli.approval_prompt import whoami
from ringfence.toolkit.cli.watch import rendering as drawing
from ringfence.toolkit.cli.watch.dialogs import Arguments, Choice, Reason, Sure
from ringfence.toolkit.cli.watch.entries import Bundle
from ringfence.toolkit.cli.watch.program import Program
from ringfence.toolkit.cli.watch.rule_answers import revoke_rule, settle_others
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.effects import effects, reach_of
from ringfence.toolkit.granting.losses import LOSS, loss, needs_second_look
from ringfence.toolkit.granting.scopes import Scope, lasts_in_words, scopes
from ringfence.toolkit.rule_offers.settling import by_grant
from ringfence.toolkit.session.amend import amend, amended
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import escape, plural


async def approve(program: Program, request: Request) -> None:
    """Permit this change, once; the loss of a tree, or of what cannot be restored, is confirmed before."""
    lost = loss(request)
    if needs_second_look(request):
        words = f"{LOSS} {lost.in_words()}"
        text = Text(words + "\n\n", style="bold red").append_text(drawing.drawn(request.preview))
        question = Sure(
            f"Approve: {escape(request.title)}?", text, f"approve, which {lost.in_words()}", program.hold()
        )
        if not await program.ask(question):
            return
    await _answer(program, request, Answer(True, ONCE, by=whoami()))


async def approve_together(program: Program, bundle: Bundle) -> None:
    """Permit each of some changes, once, after all of them are shown."""
    found = bundle.requests
    title = f"Approve these {plural(len(found), 'change')}, each once?"
    text = drawing.bundle(found, time.time())
    yes = f"approve {plural(len(found), 'change')}, each once"
    if not await program.ask(Sure(title, text, yes, program.hold())):
        return
    for request in found:
        await _answer(program, request, Answer(True, ONCE, by=whoami()))


async def approve_more(program: Program, request: Request) -> None:
    """Offer the wider scopes, each with what it opens now; the chosen one is confirmed."""
    found = [scope for scope in scopes(request) if scope.name != ONCE]
    if not found:
        program.warn("A limit is lifted once, and so is a loss.")
        return
    try:
        session = await asyncio.to_thread(program.act_as, request.agent, request.session)
        with session:
            words = await asyncio.to_thread(lambda: [_scope_in_words(session, request, one) for one in found])
            chosen = await program.ask(Choice("Approve more than this change, narrow first:", words))
            if chosen is None:
                return
            scope = found[chosen]
            until = None if scope.lasts is None else time.time() + scope.lasts
            answer = Answer(True, scope.name, "", whoami(), scope.pattern, until, confirmed=True)
            told = await asyncio.to_thread(effects, session, request, answer)
    except CallError as error:
        program.fail(error)
        return
    title = f"More than {escape(request.title)}: approve all of that?"
    if await program.ask(Sure(title, "\n".join(told), f"approve {told[0]}", program.hold())):
        await _answer(program, request, answer)


def _scope_in_words(session: Session, request: Request, scope: Scope) -> str:
    opens = reach_of(session, request, Answer(True, scope.name, pattern=scope.pattern))
    lasts = "" if scope.lasts is None else f" (for {lasts_in_words(scope.lasts)})"
    return f"{scope.words}{lasts}" + ("" if opens is None else f"; {opens.in_words()}")


async def refuse(program: Program, request: Request) -> None:
    """Ask for the reason, and refuse."""
    reason = await program.ask(Reason(f"Refuse: {escape(request.title)}"))
    if reason is not None:
        await _answer(program, request, Answer(False, reason=reason, by=whoami()))


async def edit(program: Program, request: Request) -> None:
    """Change the arguments and permit that; it is planned and judged first, and shown."""
    given = await program.ask(Arguments(f"Change: {escape(request.tool)}", request.arguments))
    if given is None:
        return
    try:
        session = await asyncio.to_thread(program.act_as, request.agent, request.session)
        with session:
            would = await asyncio.to_thread(amended, session, request.id, given)
            title = "The policy allows this without asking" if would is None else escape(would.title)
            preview = "" if would is None else would.preview
            yes = "refuse the agent's call, and tell it to send this one, which is granted once"
            if await program.ask(Sure(f"{title}. Send this instead?", preview, yes, program.hold())):
                digest = "" if would is None else would.digest
                await asyncio.to_thread(lambda: amend(session, request.id, given, digest=digest, by=whoami()))
                program.tell(f"The agent is told to send this instead: {title}")
    except CallError as error:
        program.fail(error)
    await program.update_board()


async def take_back(program: Program, request: Request) -> None:
    """Reverse an answer: revoke a grant that can still be used or a rule; reopen a refusal."""
    approvals = program.approvals
    try:
        request = await asyncio.to_thread(approvals.get, request.id)
        if request.state == SETTLED and request.scope == RULE:
            await revoke_rule(program, str(request.settled_by))
            return
        if request.state == REFUSED:
            request = await asyncio.to_thread(lambda: approvals.reopen(request.id, by=whoami()))
        elif request.state == SETTLED:
            name = str(request.settled_by)
            request = await asyncio.to_thread(lambda: approvals.revoke(name, by=whoami()))
        elif request.state == GRANTED:
            request = await asyncio.to_thread(lambda: approvals.revoke(request.id, by=whoami()))
        else:
            program.warn(f"There is no answer to take back: {escape(request.title)} is {request.state}.")
            return
    except CallError as error:
        program.fail(error)
    else:
        program.confirm(request)
    await program.update_board()


async def _answer(program: Program, request: Request, answer: Answer) -> None:
    try:
        answered = await asyncio.to_thread(program.approvals.answer, request.id, answer)
    except CallError as error:
        program.fail(error)
        await program.update_board()
        return
    program.confirm(answered)
    await program.update_board()
    if answer.granted and answer.scope != ONCE:
        others = await asyncio.to_thread(by_grant, program.approvals, answered, answer)
        await settle_others(program, answered, others, answered.id, answer.scope)

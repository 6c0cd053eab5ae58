"""Entries of the list in `watch`: requests by what they destroy, answers that can be reversed, and changes.

Pure. A title is never cut where that would make two of them look alike; a path keeps its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.cli.watch import rendering as drawing
from ringfence.toolkit.granting.losses import LOSS, by_session, loss, losses_first
from ringfence.toolkit.granting.scopes import granted_in_words
from ringfence.toolkit.history.session_diff import Changed
from ringfence.toolkit.monitoring.dashboard import Board, Work
from ringfence.toolkit.rule_offers.marks import AnsweredRule
from ringfence.toolkit.rule_offers.proposals import Proposal
from ringfence.toolkit.rule_offers.settling import together
from ringfence.toolkit.text import age, escape, plural, when

LISTED, FILES = 200, 100  # requests in the list, and files or commands of one session; more are counted
LONGEST = 240  # characters of a title in the list, unless two titles would look alike
BY_SESSION, BY_LOSS, BY_AGE = "by session", "losses first", "oldest first"
ORDERS = (BY_SESSION, BY_LOSS, BY_AGE)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that changed something in a session, with its audit record."""

    session: str
    record: dict[str, Any]

    @property
    def call(self) -> str:
        """The id of the call that ran it."""
        return str(self.record.get("call"))


@dataclass(frozen=True, slots=True)
class Bundle:
    """Waiting requests of one session that one answer could settle."""

    requests: tuple[Request, ...]


Shown = Request | Bundle | AnsweredRule | Proposal | tuple[Work, Changed] | Ran | Work | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: what it stands for (None: a heading, which cannot be selected) and its text."""

    what: Shown
    text: Text


def entries(
    board: Board,
    rules: Sequence[AnsweredRule] = (),
    proposed: Sequence[Proposal] = (),
    *,
    order: str = BY_SESSION,
    now: float,
) -> list[Entry]:
    """Return all entries, requests first; `now` is in POSIX seconds."""
    return [
        *_pending(board.pending, order, now),
        *(Entry(None, Text(escape(what), style="italic cyan")) for what in board.running),
        *(Entry(one, Text(f"{one.in_words()}: a rule?", style="bold cyan")) for one in proposed),
        *_answered(board, rules),
        *(entry for one in board.work for entry in _work(one)),
    ]


def key(what: Shown) -> object:
    """What an entry is known by in the next list."""
    match what:
        case Bundle():
            return "bundle", what.requests[0].id
        case Ran():
            return what.session, what.call, "command"
        case AnsweredRule():
            return "rule", what.id
        case Proposal():
            return "proposal", what.folder, what.offer.key
        case tuple():
            return what[0].session, what[1].path
        case Request():
            return what.id
        case Work():
            return what.session
    return None


def shortened(titles: Iterable[str]) -> dict[str, str]:
    """Return titles for the list, each by its whole text: the middle of a very long one is left out, unless
    another one would look like it.
    """
    found = {title: _short(escape(title)) for title in titles}
    seen: dict[str, int] = {}
    for short in found.values():
        seen[short] = seen.get(short, 0) + 1
    return {title: short if seen[short] == 1 else escape(title) for title, short in found.items()}


def _short(title: str) -> str:
    if len(title) <= LONGEST:
        return title
    return f"{title[: LONGEST // 3]}…{title[-(LONGEST * 2 // 3) :]}"


def _pending(pending: Sequence[Request], order: str, now: float) -> Iterator[Entry]:
    yield Entry(None, _summary(pending, order, now))
    titles = shortened(one.title for one in pending)
    shown = 0
    for session, found in _groups(pending, order):
        if session is not None:
            yield Entry(None, Text(f"in session {escape(session)}", style="bold"))
        for group in together(found):
            if len(group) > 1:
                words = f"one answer could settle these {len(group):,}"
                yield Entry(Bundle(tuple(group)), Text(words, style="bold cyan"))
            for request in group:
                shown += 1
                if shown <= LISTED:
                    yield Entry(request, _row(request, titles[request.title], now, inside=len(group) > 1))
    if shown > LISTED:
        yield _and_more(shown - LISTED)


def _groups(pending: Sequence[Request], order: str) -> list[tuple[str | None, list[Request]]]:
    if order == BY_SESSION:
        return list(by_session(pending))
    listed = losses_first(pending) if order == BY_LOSS else sorted(pending, key=lambda one: one.asked)
    return [(None, [one]) for one in listed]


def _summary(pending: Sequence[Request], order: str, now: float) -> Text:
    text = Text(f"Approvals ({len(pending):,})", style="bold")
    if pending:
        text.append(f" {order}; the oldest waits {age(now - min(one.asked for one in pending))}", style="dim")
        if lost := sum(loss(one).any for one in pending):
            text.append(f"; {LOSS} {lost:,} {'destroys' if lost == 1 else 'destroy'} something", style="red")
    return text


def _row(request: Request, title: str, now: float, *, inside: bool) -> Text:
    text = Text("  " if inside else "")
    text.append_text(drawing.mark(request))
    text.append(f" {title}")
    return text.append(f"  {age(now - request.asked)}, {escape(request.agent)}", style="dim")


def _answered(board: Board, rules: Sequence[AnsweredRule]) -> Iterator[Entry]:
    if not (board.granted or board.refused or rules):
        return
    yield Entry(None, Text("Answered; x takes an answer back", style="bold"))
    titles = shortened(one.title for one in (*board.granted, *board.refused))
    for rule in rules:
        patterns = ", ".join(dict.fromkeys(each.pattern for each in rule.rules))
        ends = f" until {when(rule.until)}" if rule.until is not None else ""
        yield Entry(rule, Text(f"✓ rule{ends}: {escape(f'{rule.rules[0].key} {patterns}')}", style="dim"))
    for request in board.granted:
        words = f"✓ {titles[request.title]}, {granted_in_words(request)}"
        yield Entry(request, Text(words, style="dim"))
    for request in board.refused:
        yield Entry(request, Text(f"⊘ refused: {titles[request.title]}", style="dim"))


def _work(one: Work) -> Iterator[Entry]:
    count = plural(len(one.files), "file") + (", earlier ones not counted" if one.earlier else "")
    yield Entry(one, Text(f"{escape(one.session)} ({count})", style="bold"))
    for record in one.commands[-FILES:]:
        yield Entry(Ran(one.session, record), Text("  ").append_text(drawing.command_line(record)))
    for agent, files in _by_agent(one).items():
        if agent:
            yield Entry(None, Text(f"  {escape(agent)}", style="cyan"))
        for file in files[:FILES]:
            yield Entry((one, file), Text("  ").append_text(drawing.counts(file)))
        if len(files) > FILES:
            yield _and_more(len(files) - FILES)


def _by_agent(one: Work) -> dict[str, list[Changed]]:
    """Return a session's files under who changed them, those deleted first; under nobody for one agent."""
    found: dict[str, list[Changed]] = {}
    for file in sorted(one.files, key=lambda file: file.kind != "deleted"):
        found.setdefault(file.agents[-1] if file.agents else "", []).append(file)
    if len(found) < 2:
        return {"": [file for files in found.values() for file in files]}
    return dict(sorted(found.items()))


def _and_more(left_out: int) -> Entry:
    return Entry(None, Text(f"… and {left_out:,} more", style="dim"))

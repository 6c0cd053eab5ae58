"""Approvals, changes and log records as styled text; every string of a call is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.cli.approval_prompt import heading
from ringfence.toolkit.cli.output import STYLES
from ringfence.toolkit.cli.rule_offers_shown import offer_lines
from ringfence.toolkit.granting.asker import told_lines
from ringfence.toolkit.granting.losses import LOSS, NO_LOSS, kind, loss
from ringfence.toolkit.history.session_diff import Changed
from ringfence.toolkit.monitoring.dashboard import label
from ringfence.toolkit.rule_offers.marks import AnsweredRule
from ringfence.toolkit.rule_offers.offers import Offer
from ringfence.toolkit.rule_offers.proposals import Proposal
from ringfence.toolkit.rule_offers.settling import Settled
from ringfence.toolkit.text import escape, plural, when, zoned

_MARKS = {"created": "+", "deleted": LOSS, "moved": "→"}
SHOWN = 64 * 1024  # characters of a diff in the pane; `v` shows all


def drawn(diff: str) -> Text:
    """A diff with its lines coloured by what they do; what does not fit the pane is counted."""
    shown = diff[:SHOWN]
    text = Text()
    for line in escape(shown, newlines=True).split("\n"):
        style = "bold" if line.startswith(("+++", "---")) else _DIFF.get(line[:1], "")
        text.append(line + "\n", style=style)
    if len(diff) > SHOWN:
        text.append(f"… {plural(len(diff) - SHOWN, 'more character')}, v shows all\n", style="bold yellow")
    return text


_DIFF = {"+": "green", "-": "red", "@": "cyan", "r": "bold"}


def asked(request: Request, now: float, last_call: float | None = None) -> Text:
    """A request as whoever decides has to see it: losses first, then what decides, then the preview.

    `now` and the `last_call` of its session are in POSIX seconds.
    """
    text = lines([*heading(request, now)[1:], *told_lines(request, now, last_call)])
    text.append(f"  id: {request.id}\n\n", style="dim")
    return text.append_text(drawn(request.preview))


def lines(found: Iterable[tuple[str, str]]) -> Text:
    """Lines with their styles."""
    text = Text()
    for line, style in found:
        text.append(line + "\n", style=style)
    return text


def mark(request: Request) -> Text:
    """The sign of a request, with what it does in words where its title begins with another word.

    Only what is destroyed is red.
    """
    words = f" {kind(request)}:" if request.of_command or " and " in kind(request) else ""
    sign, style = (LOSS, "bold red") if loss(request).any else (NO_LOSS, "dim")
    return Text(f"{sign}{words}", style=style)


def bundle(requests: Sequence[Request], now: float) -> Text:
    """Requests that one answer could settle, each with its diff."""
    text = Text(f"{plural(len(requests), 'request')} that one answer could settle\n", style="bold")
    text.append("  a approves each of them once; m and c on one of them offer more\n", style="dim")
    for request in requests:
        text.append("\n").append_text(asked(request, now))
    return text


def offer(found: Offer, settled: Settled | None = None) -> Text:
    """An offered rule: what it opens, its proof, and the policy's diff."""
    return lines(offer_lines(found, settled)).append("\n").append_text(drawn(found.diff))


def proposal(found: Proposal) -> Text:
    """A proposed rule with the answers that speak for it."""
    text = Text(f"{found.in_words()} in the last seven days\n", style="bold")
    text.append(f"  it would have answered {plural(found.gives, 'question')} of these\n\n")
    text.append_text(offer(found.offer))
    return text.append("\n  c writes it, as the answer to a request that waits there\n", style="dim")


def rule(found: AnsweredRule) -> Text:
    """A rule of the policy that an answer wrote."""
    text = Text(f"rule {found.id}, from a person's answer\n", style="bold")
    for each in found.rules:
        place = f" ({each.where.file}:{each.where.line})" if each.where else ""
        text.append(escape(f'  {each.agent}: {each.key} "{each.pattern}": {each.effect}{place}') + "\n")
    ends = "without an end" if found.until is None else f"until {zoned(found.until)}"
    return text.append(f"  {ends}\n  x takes it out of the policy\n", style="dim")


def changed(one: Changed, session: str) -> Text:
    """A changed file with its diff."""
    text = Text(f"{escape(one.path)}\n", style="bold")
    text.append(
        f"  {one.kind} in session {escape(session)} by {escape(', '.join(one.agents))}\n\n", style="dim"
    )
    return text.append_text(drawn(one.diff))


def counts(one: Changed) -> Text:
    """A changed file as one line: its name, and what was added and removed."""
    name = Text(f"{_MARKS.get(one.kind, '·')} {escape(one.path)}", style=STYLES.get(one.kind, ""))
    name.append(f"  +{one.additions}", style="green")
    return name.append(f" -{one.removals}", style="red")


def command_line(record: dict[str, Any]) -> Text:
    """A command as one line: the command line, how it ended, and its effects."""
    found = record["command"]
    text = Text(escape(command_records.line(found)), style="bold")
    text.append(
        f"  {escape(command_records.ended(found))}", style="green" if found.get("status") == 0 else "red"
    )
    made = command_records.counts(found)
    return text.append(f"  {escape(made)}", style="dim") if made else text


def command(record: dict[str, Any], diff: str) -> Text:
    """A command with all that its record has about it, and the diff of what it changed."""
    first, *lines = command_records.details(record["command"])
    text = Text(f"{escape(first, newlines=True)}\n", style="bold")
    for line in lines:
        text.append(f"  {escape(line)}\n")
    who = f"call {record.get('call')} in session {record.get('session')} by {record.get('agent')}"
    text.append(f"  {escape(who)}, {escape(str(record.get('outcome')))}\n", style="dim")
    text.append("  u undoes what it changed\n\n", style="dim")
    return text.append_text(drawn(diff))


def logged(record: dict[str, Any]) -> Text:
    """An audit record as one line."""
    status = str(record.get("outcome") or record.get("status") or "")
    text = Text(when(record.get("time")), style="dim")
    text.append(f" {escape(str(record.get('agent') or ''))} ")
    text.append(escape(label(record)), style="bold")
    text.append(f" {escape(status)}", style=STYLES.get(str(record.get("status") or status), ""))
    why = (record.get("decision") or {}).get("reason")
    return text.append(f"  {escape(str(why))}", style="dim") if why else text

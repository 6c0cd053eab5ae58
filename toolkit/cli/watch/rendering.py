"""Approvals, changes and log records as styled text; every string of a call is escaped here."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.cli.approval_prompt import heading
from ringfence.toolkit.cli.output import STYLES
from ringfence.toolkit.history.session_diff import Changed
from ringfence.toolkit.monitoring.dashboard import label
from ringfence.toolkit.text import escape, plural, when

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


def asked(request: Request) -> Text:
    """A request as whoever decides has to see it: what decides first, then the preview."""
    text = Text()
    for line, style in heading(request)[1:]:
        text.append(line + "\n", style=style)
    text.append(f"  id: {request.id}\n\n", style="dim")
    return text.append_text(drawn(request.preview))


def changed(one: Changed, session: str) -> Text:
    """A changed file with its diff."""
    text = Text(f"{escape(one.path)}\n", style="bold")
    text.append(
        f"  {one.kind} in session {escape(session)} by {escape(', '.join(one.agents))}\n\n", style="dim"
    )
    return text.append_text(drawn(one.diff))


def counts(one: Changed) -> Text:
    """A changed file as one line: its name, and what was added and removed."""
    name = Text(escape(one.path), style=STYLES.get(one.kind, ""))
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

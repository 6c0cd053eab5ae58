"""run_command: run a command in a sandbox and plan the changes that it would have made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.plan.changes import Move, Plan, path_of
from ringfence.toolkit.text import decode, escape, plural
from ringfence.toolkit.tools import _command_preview, _messages

if TYPE_CHECKING:
    from ringfence.toolkit.plan.command_run import CommandRun
    from ringfence.toolkit.workspace.view import View

_MAX_PATHS = 1_000
_NAMED = 20  # denied and dropped changes that the text names


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Run the command, and plan its changes. Raises CallError `command_failed` if it could not be run."""
    ran = view.run(arguments)
    data = fields(ran, lambda path: _may_name(view, path))
    return Plan(
        content=_content(arguments, ran, data),
        data=data,
        changes=ran.changes,
        title=title(ran),
        draw=lambda: _command_preview.preview(ran, view),
    )


def _may_name(view: View, path: str) -> bool:
    """Whether the agent may read a path; not what a command made at a name that no path can have."""
    try:
        return view.may_read(path)
    except ValueError:
        return False


def fields(ran: CommandRun, may_name: Callable[[str], bool]) -> dict[str, Any]:
    """Return how a command ended as fields of the answer, which names only paths that `may_name` accepts."""
    every = _paths(ran)
    known = [path for path in every if may_name(path)]
    return {
        "command": ran.command,
        "cwd": ran.cwd,
        "exit_status": ran.status,
        "stopped": ran.stopped,
        "seconds": round(ran.seconds, 3),
        "output": decode(ran.output),
        "output_bytes": ran.output_bytes,
        "level": ran.level,
        "network": ran.network,
        "hidden": ran.hidden,
        "effects": dict(ran.counts),
        "changed": known[:_MAX_PATHS],
        "changed_left_out": len(every) - len(known[:_MAX_PATHS]),
        "discarded": ran.discarded,
        "dropped": [f"{path}: {why}" for path, why in ran.dropped if may_name(path)][:_MAX_PATHS],
        "denied": [path for path in ran.denied if may_name(path)][:_MAX_PATHS],
        "through": list(ran.through),
    }


def title(ran: CommandRun) -> str:
    """Return the command and the number of its changes, in one line for a person."""
    count = len(_paths(ran))
    return (
        f"Apply {plural(count, 'change')} of: {escape(ran.command)}"
        if count
        else f"Run: {escape(ran.command)}"
    )


def _paths(ran: CommandRun) -> list[str]:
    return list(
        dict.fromkeys(
            change.destination if isinstance(change, Move) else path_of(change) for change in ran.changes
        )
    )


def _content(arguments: dict[str, Any], ran: CommandRun, data: dict[str, Any]) -> str:
    left_out = ran.output_bytes - len(ran.output)
    output = data["output"].rstrip("\n")
    if left_out > 0:
        output = f"({left_out:,} bytes of output are left out before this)\n{output}"
    return _messages.message(
        _ended(ran),
        output or "(no output)",
        _effects(ran, data),
        _messages.labelled("Reason", arguments),
    )


def _ended(ran: CommandRun) -> str:
    if ran.stopped is not None:
        return f"✗ Ended at the limit of {ran.stopped}, after {ran.seconds:.1f} s"
    if ran.signal is not None:
        return f"✗ Ended by signal {ran.signal}"
    mark = "✓" if ran.status == 0 else "✗"
    return f"{mark} Exit status {ran.status}"


def _effects(ran: CommandRun, data: dict[str, Any]) -> str:
    made = ", ".join(f"{count:,} {name}" for name, count in ran.counts.items() if count)
    lines = [f"Changes: {made or 'none'}"]
    if ran.discarded:
        lines.append(f"Discarded, as the policy says: {plural(ran.discarded, 'change')}")
    if ran.denied:
        lines.append(_list("Denied, so not applied", data["denied"], len(ran.denied)))
    if ran.dropped:
        lines.append(_list("Not applied", data["dropped"], len(ran.dropped)))
    if ran.through:
        lines.append(f"Open to it at once, and not recorded: {', '.join(map(escape, ran.through))}")
    lines += ran.notes
    return "\n".join(lines)


def _list(label: str, named: list[str], total: int) -> str:
    more = f" and {total - len(named[:_NAMED]):,} more" if total > len(named[:_NAMED]) else ""
    return f"{label}: {', '.join(map(escape, named[:_NAMED]))}{more}"

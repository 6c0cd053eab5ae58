"""`state`: check, adopt or salvage the state of a workspace. Only `check` is for a state in use."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.cli.approval_prompt import confirm, whoami
from ringfence.toolkit.cli.context import audit_key, open_to_look, place_of, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import UNKNOWN
from ringfence.toolkit.state_repair.check import StateReport, check_state
from ringfence.toolkit.text import plural

_FACTS = {
    "state": "state",
    "workspace": "workspace",
    "id": "id",
    "changes": "changes",
    "records": "audit records",
    "contents": "contents",
    "catches": "deleted trees",
}
_LEVELS = {"note": "dim", "error": "red"}


def check(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print what a state holds and what is wrong with it."""
    key = audit.read_key(audit_key(arguments))
    if arguments.folder is None:
        place = place_of(arguments)
    elif Path(arguments.folder).is_dir():
        place = str(Path(arguments.folder).absolute())
    else:
        raise UsageError(f"{arguments.folder}: no such directory")
    report = check_state(place, key)
    _show_report(report, screen)
    return DONE if report.sound else FELL_SHORT


def settle(arguments: argparse.Namespace, screen: Screen) -> int:
    """Settle what a power cut has left, and print what became of it."""
    try:
        session = open_to_look(arguments)
    except CallError as error:
        if error.code != "not_settled" or not arguments.give_up:
            raise
        from ringfence.toolkit.state_repair.adopt import give_up_unsynced

        give_up_unsynced(place_of(arguments))
        session = open_to_look(arguments)
    with session:
        settled = session.settled
    if screen.as_json:
        screen.json({"settled": [{"call_id": s.call, "tool": s.tool, "outcome": s.outcome} for s in settled]})
    else:
        for one in settled:
            screen.line(f"{one.tool} ({one.call}): {one.outcome}")
        screen.line(f"{plural(len(settled), 'change')} settled" if settled else "nothing to settle")
    return FELL_SHORT if any(one.outcome == UNKNOWN for one in settled) else DONE


def _show_report(report: StateReport, screen: Screen) -> None:
    if screen.as_json:
        problems = [
            {"what": p.what, "detail": p.detail, "hint": p.hint, "note": p.note} for p in report.problems
        ]
        screen.json({"sound": report.sound, **report.facts, "problems": problems})
        return
    for name, words in _FACTS.items():
        if report.facts.get(name) is not None:
            screen.line(f"{words}: {report.facts[name]}", "dim")
    for problem in report.problems:
        level = "note" if problem.note else "error"
        screen.line(f"{level}: {problem.what}: {problem.detail}", _LEVELS[level])
        if problem.hint:
            screen.line(f"  hint: {problem.hint}")
    wrong = sum(not problem.note for problem in report.problems)
    if report.sound:
        screen.line("the state is sound", "green")
    else:
        screen.line(f"the state is not sound: {plural(wrong, 'error')}", "red")


def adopt(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show which state would be taken over; take it over when that is wanted."""
    from ringfence.toolkit.state_repair.adopt import adopt_state, plan_adoption

    _check_asking(arguments, screen)
    root, _ = root_of(arguments)
    plan = plan_adoption(root, arguments.state, arguments.former, arguments.place)
    facts: dict[str, Any] = {"state": plan.folder, "former": plan.former, "aside": plan.aside}
    if not _agreed(arguments, screen, f"Take over the state of {plan.former}, with {plan.changes}", facts):
        return DONE if arguments.dry_run else FELL_SHORT
    settled = adopt_state(plan, whoami(), audit_key(arguments))
    if screen.as_json:
        screen.json({**facts, "adopted": True, "settled": settled})
        return DONE
    screen.line(f"the state of {plan.former} now belongs to this workspace, with {plan.changes}", "green")
    if settled:
        screen.line(f"settled: {plural(settled, 'change')} that had been left open")
    if plan.aside is not None:
        screen.line(f"the state that was created here meanwhile is kept in {plan.aside}")
    return DONE


def salvage(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show what can be recovered; put it in the place of the damaged state when that is wanted."""
    from ringfence.toolkit.state_repair.salvage import salvage_state

    _check_asking(arguments, screen)
    place = place_of(arguments)
    with salvage_state(place, audit.read_key(audit_key(arguments)), by=whoami()) as found:
        facts = found.to_json()
        if not screen.as_json:
            screen.table(
                ("what", "recovered", "lost"),
                [(name, str(count), found.lost_of(name)) for name, count in found.recovered.items()],
            )
            for line in found.remarks:
                screen.line(line, "yellow")
        if not _agreed(arguments, screen, "Put what was recovered in the place of the damaged state", facts):
            return DONE if arguments.dry_run else FELL_SHORT
        damaged = found.take_its_place()
    if screen.as_json:
        screen.json({**facts, "damaged": damaged})
    else:
        screen.line(f"the damaged state is kept in {damaged}")
    return DONE if found.whole else FELL_SHORT


def _check_asking(arguments: argparse.Namespace, screen: Screen) -> None:
    if not (arguments.yes or arguments.dry_run) and (screen.as_json or not screen.is_terminal):
        raise UsageError("no terminal for the confirmation: use --dry-run to preview, then --yes")


def _agreed(arguments: argparse.Namespace, screen: Screen, what: str, facts: dict[str, Any]) -> bool:
    """Whether it is to be done; --dry-run only prints it."""
    if arguments.dry_run:
        if screen.as_json:
            screen.json(facts)
        else:
            screen.line(f"would do: {what[0].lower()}{what[1:]}")
        return False
    if arguments.yes or confirm(f"{what}?"):
        return True
    screen.note("nothing was changed")
    return False

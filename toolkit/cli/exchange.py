"""`import` and `export`: other tools' settings as policies and back, and where the two disagree."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from policy import Policy
from toolkit.cli.newfile import write_new
from toolkit.cli.perform import DONE, FELL_SHORT, UsageError
from toolkit.cli.place import policy_file, root_of
from toolkit.cli.screen import Screen
from toolkit.formats.disagree import Comparison, Disagreement, compare
from toolkit.formats.flat import flat
from toolkit.formats.source import FormatError, Left, Setting
from toolkit.formats.table import FORMATS
from toolkit.formats.written import policy_text

DELETES = ("opencode", "opencode-fork")  # whose settings speak of deleting
_MAX_BYTES = 4 * 1024 * 1024


def import_(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the settings as a policy, what it leaves out, and where the two disagree."""
    given = FORMATS[arguments.format]
    try:
        imported = given.read(_text(arguments.file), _setting(arguments))
        text = policy_text(imported, f"Imported from {given.summary}, {Path(arguments.file).name}.")
    except FormatError as error:
        raise UsageError(_said(arguments.file, error)) from None
    compared = compare(imported.subjects, Policy.loads(text, file=arguments.out or "the policy"))
    put(arguments.out, text, screen)
    if screen.as_json:
        screen.json({"policy": text, "notes": imported.notes, **_json(imported.left, compared, out=False)})
    else:
        for note in imported.notes:
            screen.note(f"note: {note}")
        _show(imported.left, compared, screen, out=False)
    return DONE if _agree(imported.left, compared) else FELL_SHORT


def export(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print a policy as another tool's settings, what they cannot say, and where the two disagree."""
    given = FORMATS[arguments.format]
    assert given.write is not None
    policy = Policy.load(policy_file(arguments.policy_file))
    try:
        setting = _setting(arguments)
        written = given.write(flat(policy, arguments.agent, setting.root))
        back = given.read(written.text, setting)
    except FormatError as error:
        raise UsageError(_said(arguments.policy_file, error)) from None
    subjects = [subject for subject in back.subjects if subject.agent == "default"]
    if given.name not in DELETES:
        subjects = [subject for subject in subjects if subject.action != "delete"]
    compared = compare(_for_agent(subjects, arguments.agent), policy)
    left = list(dict.fromkeys([*written.left, *back.left]))
    put(arguments.out, written.text, screen)
    if screen.as_json:
        screen.json({"settings": written.text, **_json(left, compared, out=True)})
    else:
        _show(left, compared, screen, out=True)
    return DONE if _agree(left, compared) else FELL_SHORT


def _agree(left: list[Left], compared: Comparison) -> bool:
    """Whether the settings as they are and the policy say the same."""
    return compared.none and not _about_files(left)


def _about_files(left: list[Left]) -> int:
    return sum(not each.harmless for each in left)


def _for_agent(subjects: list[Any], agent: str) -> list[Any]:
    from dataclasses import replace

    return [replace(subject, agent=agent) for subject in subjects]


def _setting(arguments: argparse.Namespace) -> Setting:
    root, _ = root_of(arguments)
    return Setting(
        root=str(Path(root).resolve()),
        home=str(Path.home()),
        absolute=getattr(arguments, "absolute", False),
        any_case=getattr(arguments, "any_case", False),
    )


def _text(name: str) -> str:
    try:
        data = sys.stdin.buffer.read(_MAX_BYTES + 1) if name == "-" else _bytes(Path(name))
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{name}: larger than {_MAX_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8") from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES + 1)


def put(name: str | None, text: str, screen: Screen) -> None:
    """Write the result to a new file, or print it."""
    if name is None:
        if not screen.as_json:
            screen.line(text.rstrip("\n"))
        return
    write_new(Path(name), text)
    if not screen.as_json:
        screen.note(f"wrote {name}")


def _said(file: str, error: FormatError) -> str:
    where = f"{file}: {error.where}: " if error.where else f"{file}: "
    return where + error.message + (f"\n  hint: {error.hint}" if error.hint else "")


def _json(left: list[Left], compared: Comparison, *, out: bool) -> dict[str, Any]:
    """`out`: the settings are the result, and so what may be looser."""

    def row(found: Disagreement) -> dict[str, Any]:
        row = found.to_json()
        if out:
            row |= {"source": row["result"], "result": row["source"], "looser": not found.looser}
        return row

    return {
        "agree": _agree(left, compared),
        "left_out": [each.to_json() for each in left],
        "disagree": [row(each) for each in compared.found],
        "disagree_elsewhere": [row(each) for each in compared.elsewhere],
        "undecided": list(compared.undecided),
    }


def _show(left: list[Left], compared: Comparison, screen: Screen, *, out: bool) -> None:
    for each in left:
        screen.note(f"left out: {each.where}: {each.what}: {each.why}", "yellow")
    for said in compared.undecided:
        screen.note(f"undecided: {said}", "red")
    for found in compared.found:
        screen.note(_row(found, out), "red" if found.looser is not out else "yellow")
    apart = _apart(_about_files(left))
    if _agree(left, compared):
        screen.note("the two agree on every path", "green")
    elif compared.none:
        screen.note(f"the two agree on every path{apart}", "yellow")
    elif compared.found and not compared.elsewhere and not compared.undecided:
        screen.note(
            "all of it is below a name that the settings match by itself: there a policy's rule covers what"
            f" is below, too; everywhere else the two agree{apart}"
        )


def _apart(number: int) -> str:
    """What the last line says of the settings that were left out."""
    if not number:
        return ""
    return f", apart from {number} {'setting' if number == 1 else 'settings'} left out or made stricter"


def _row(found: Disagreement, out: bool) -> str:
    subject = found.subject
    word = "looser" if found.looser is not out else "stricter"
    who = "" if subject.agent == "default" else f"agent {subject.agent}, "
    because = f" ({found.rule})" if found.rule else ""
    settings, policy = _word(found, found.source), _word(found, found.result)
    said = f"the settings say {settings}, the policy {policy}"
    if out:
        said = f"the policy says {policy}, the settings {settings}"
    return f"disagree: {who}{subject.tool} {found.example}: {said}, which is {word}{because}"


def _word(found: Disagreement, effect: Any) -> str:
    return "no deny" if found.subject.denies_only and str(effect) != "deny" else str(effect)

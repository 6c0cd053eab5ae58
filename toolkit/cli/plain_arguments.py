"""Arguments of plain command lines, read without `argparse`, which takes longer to set up than a verdict.

Reads full option names, each with its value as the next word, and the positional arguments side by side. For
all else (an error, `--help`, an abbreviation, `--option=value`) the parser of the whole command line decides.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ringfence.toolkit.cli.table.options import Command, Option

# The tables of commands that are started often, by command.
TABLES = {
    **dict.fromkeys(("check", "prove", "diff", "explain"), ("policy", "POLICIES")),
    **dict.fromkeys(("run", "call"), ("run_call", "CALLS")),
}
_READ = {"action", "choices", "default", "dest", "metavar", "nargs", "type"}


class _Unread(Exception):
    """Words that only the whole parser understands."""


def plain(words: Sequence[str]) -> tuple[Command, Any] | None:
    """Return the command and its arguments, as `argparse` would; None if the whole parser must read them."""
    if not words or words[0] not in TABLES:
        return None
    module, name = TABLES[words[0]]
    table: Iterable[Command] = getattr(import_module(f"ringfence.toolkit.cli.table.{module}"), name)
    command = next(each for each in table if each.name == words[0])
    try:
        return command, SimpleNamespace(**_parsed(command, words[1:]))
    except _Unread:
        return None


def _parsed(command: Command, words: Sequence[str]) -> dict[str, Any]:
    flags = {flag: option for option in command.options for flag in option.flags if flag[0] == "-"}
    found: dict[str, Any] = {"command": command.name, "json": False}
    found |= {_name(option): _default(option.settings) for option in command.options}
    given, at = [], 0
    while at < len(words):
        if words[at][:1] == "-":
            at += _read_option(flags.get(words[at]), words[at + 1 : at + 2], found)
        else:
            given.append(at)
            at += 1
    if given and given[-1] - given[0] >= len(given):
        raise _Unread  # argparse takes positional arguments apart from each other in a way of its own
    rest = [words[at] for at in given]
    for option in command.options:
        if option.flags[0][0] != "-":
            _take(option, rest, found)
    if rest:
        raise _Unread
    return found


def _read_option(option: Option | None, after: Sequence[str], found: dict[str, Any]) -> int:
    """Note one option, whose value may be the word after it; gives the number of words."""
    if option is None or "nargs" in option.settings:
        raise _Unread
    name, action = _name(option), option.settings.get("action")
    if action == "store_true":
        found[name] = True
        return 1
    if not after or after[0][:1] == "-":
        raise _Unread
    value = _value(option.settings, after[0])
    found[name] = [*(found[name] or ()), value] if action == "append" else value
    return 2


def _take(option: Option, rest: list[str], found: dict[str, Any]) -> None:
    """Take the words of one positional argument from the rest."""
    settings = option.settings
    count = settings.get("nargs")
    if count in (None, "?"):
        if rest:
            found[_name(option)] = _value(settings, rest.pop(0))
        elif count is None:
            raise _Unread
    elif count == "*":
        found[_name(option)] = [_value(settings, word) for word in rest] or found[_name(option)] or []
        rest.clear()
    else:
        raise _Unread


def _name(option: Option) -> str:
    flag = next((flag for flag in option.flags if flag.startswith("--")), option.flags[0])
    name: str = option.settings.get("dest", flag.lstrip("-").replace("-", "_"))
    return name


def _default(settings: Mapping[str, Any]) -> Any:
    if not settings.keys() <= _READ or settings.get("action") not in (None, "store_true", "append"):
        raise _Unread
    default = settings.get("default", False if settings.get("action") == "store_true" else None)
    if isinstance(default, str) and "type" in settings:
        raise _Unread
    return default


def _value(settings: Mapping[str, Any], word: str) -> Any:
    try:
        value = settings["type"](word) if "type" in settings else word
    except Exception:  # noqa: BLE001  whatever it is, the whole parser names it
        raise _Unread from None
    if value not in settings.get("choices", (value,)):
        raise _Unread
    return value

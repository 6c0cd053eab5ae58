"""Options of a hook's command line, and a parser of their plain form that starts fast.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ringfence.toolkit.hooks.deadline import DEADLINE, seconds
from ringfence.toolkit.hooks.hosts import EVENTS, OUTSIDE_MODES, SHELL_MODES


class Options(NamedTuple):
    """The options of the command line; None for `ask` and `shell` is the host's default."""

    root: str | None = None
    policy: str | None = None
    agent: str = "default"
    ask: str | None = None
    deadline: float = DEADLINE
    shell: str | None = None
    state: str | None = None
    outside: str = OUTSIDE_MODES[0]


def quick(words: Sequence[str]) -> tuple[str, Options] | None:
    """Parse a command line in its plain form; None leaves it to the complete parser."""
    if not words or words[0] not in EVENTS:
        return None
    given: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        flag, sign, value = word.partition("=")
        value = value if sign else next(rest, "-")
        name = flag.removeprefix("--")
        if flag == name or name not in Options._fields or name in given or value.startswith("-"):
            return None
        given[name] = value
    modes = SHELL_MODES[words[0]]
    if given.get("ask", "host") not in ("host", "deny") or given.get("shell", modes[0]) not in modes:
        return None
    if given.get("outside", "host") not in OUTSIDE_MODES:
        return None
    try:
        given |= {"deadline": seconds(given["deadline"])} if "deadline" in given else {}
    except ValueError:
        return None
    return words[0], Options(**given)

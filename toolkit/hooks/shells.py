"""Shell calls of a host: the command in a call's arguments, and that command as a call of `ringfence shell`.

Pure, and runs nothing. The words of a command are a hint; `ringfence shell` judges what the command changes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from ringfence.policy.commands.words import UnknownWord, Words, parse, scan, written
from ringfence.toolkit.hooks.tool_table import TOOLS

# A shell of these hosts stays in the folder that a command went to, so `cd` must not vanish into a child.
_KEEPS_FOLDER: Final = ("claude-code",)
# Bytes that Linux takes as one argument, less what the host adds to the command.
MAX_LENGTH: Final = (128 << 10) - 8_192
_QUOTE: Final = 5  # characters for one quote, if the host quotes the whole command once more
_MAX_NESTED: Final = 8

_FOLDER = r"""(?:"[^"$`\\!\n-][^"$`\\!\n]*"|'[^'\n-][^'\n]*'|[\w./@%,:][\w./@%+,:=-]*)"""
_CD = re.compile(rf"[ \t\n]*cd[ \t]+({_FOLDER})[ \t]*(&&|;(?!;)|\n|\Z)")
# After `cd X &&`: anything that the shell would run even where `cd` fails, wherever it stands.
_RUNS_ANYWAY = re.compile(r";|\n|\|\||(?<![&<>])&(?!&)")


def line_of(host: str, tool: str, given: Mapping[str, Any]) -> str | None:
    """Return the command line that a host's call runs; None for a call that runs none.

    ValueError for a command that is not text.
    """
    known = TOOLS[host].get(tool.lower())
    keys = () if known is None else known.command
    found = [given[key] for key in keys if given.get(key) is not None]
    if not found:
        return None
    return "\n".join(_text(value) for value in found)


def wrapped(host: str, line: str, start: Sequence[str], is_inside: Callable[[str], bool]) -> str:
    """Return a command line that has `ringfence shell` run this one; `start` is its command up to the line.

    `is_inside` returns whether a folder, as a `cd` at the start names it, is in the root. A line that already
    is such a call is built anew, so that it has these options and no others.

    ValueError for a line that cannot be handed over.
    """
    head, rest = _parted(host, line, is_inside)
    if not rest.strip(" \t\n"):
        return line  # nothing but a change of the folder
    run = f"{head}{shlex.join((*start, _argument(unwrapped(rest))))}"
    if len(_encoded(run)) + _QUOTE * run.count("'") > MAX_LENGTH:
        raise ValueError("it is too long to be handed over; put it into a file, and run that")
    return run


def judged(host: str, line: str, is_inside: Callable[[str], bool]) -> str:
    """Return the line whose words are judged: without the call of `ringfence shell` around it."""
    head, rest = _parted(host, line, is_inside)
    return head + unwrapped(rest)


def is_wrapped(host: str, line: str, start: Sequence[str]) -> bool:
    """Whether a line that a host ran is a call that `wrapped` wrote, or only a `cd`."""
    _, rest = _parted(host, line, lambda _: True)
    found = scan(rest)
    if not rest.strip(" \t\n"):
        return True
    alone = found.whole and not found.extra and len(found.commands) == 1
    return alone and found.commands[0][:-1] == tuple(start)


def cd_of(host: str, line: str) -> str | None:
    """Return the folder that a line goes to first, where the host's shell stays in it."""
    found = _CD.match(line) if host in _KEEPS_FOLDER else None
    return None if found is None else shlex.split(found[1])[0]


def unwrapped(line: str) -> str:
    """Return what `ringfence shell -c` or `ringfence exec --` runs, if a line is such a call and no more."""
    for _ in range(_MAX_NESTED if len(line) <= MAX_LENGTH else 0):
        found = scan(line)
        if not found.whole or found.extra or len(found.commands) != 1:
            break
        inner = _inner(found.commands[0])
        if inner is None:
            break
        line = inner
    return line


def summary(line: str, most: int = 1_000) -> str:
    """Return the simple commands of a line for a record: without here-documents and redirections."""
    text = "; ".join(written(words) for words in parse(line).commands)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(value: object) -> str:
    """Return a command as a line of shell; a list of words may be the start of a shell with a line."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError("the command is not text")
    if len(value) == 3 and re.fullmatch(r"(?:.*/)?\w*sh", value[0]) and re.fullmatch(r"-\w*c", value[1]):
        return str(value[2])
    return written(tuple(value))


def _parted(host: str, line: str, is_inside: Callable[[str], bool]) -> tuple[str, str]:
    """Split a line after a `cd` that has to stay outside; "" and the line where there is none."""
    folder = cd_of(host, line)
    found = _CD.match(line)
    if folder is None or found is None or not is_inside(folder):
        return "", line
    rest = line[found.end() :]
    if found[2] == "&&" and (not rest.strip() or _RUNS_ANYWAY.search(rest)):
        return "", line
    return line[: found.end()] + (" " if found[2] in ("&&", ";") else ""), rest.lstrip(" \t")


def _argument(line: str) -> str:
    """Return a line as the value of `-c`. ValueError for characters that no argument can have."""
    if "\0" in line:
        raise ValueError("it has a NUL character")
    _encoded(line)
    return f" {line}" if line.startswith("-") else line  # or it would be read as an option


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("it has a character that is not Unicode text") from None


def _inner(words: Words) -> str | None:
    """Return the line that a call of ours runs; None for every other command."""
    if any(isinstance(word, UnknownWord) for word in words):
        return None
    name = words[0].rpartition("/")[2]
    if name == "ringfence":
        rest = words[1:]
    elif name.startswith("python") and ("-m", "ringfence") in pairwise(words):
        rest = words[words.index("ringfence") + 1 :]
    elif name == "ringfence-shell":
        rest = ("shell", *words[1:])
    else:
        return None
    if rest[:1] == ("shell",):
        return _line_of_shell(rest[1:])
    return _line_of_exec(rest[1:]) if rest[:1] == ("exec",) else None


def _line_of_shell(words: Words) -> str | None:
    after = _after_options(words)
    if len(after) != 2 or after[0] != "-c":
        return None
    return after[1][1:] if after[1].startswith(" -") else after[1]


def _line_of_exec(words: Words) -> str | None:
    after = _after_options(words)[1:]
    if not after:
        return None
    return after[0] if len(after) == 1 and " " in after[0] else written(after)


def _after_options(words: Words) -> Words:
    """Return the words from `-c` or `--` on; none where anything but options with values stands before."""
    at = 0
    while at < len(words) and words[at] not in ("-c", "--"):
        if not words[at].startswith("--"):
            return ()
        value = words[at + 1] if at + 1 < len(words) else "-"
        at += 1 if "=" in words[at] or value.startswith("-") else 2
    return words[at:]

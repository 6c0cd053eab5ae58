"""Manual page ringfence(1), made from the table of commands, as roff with the `man` macros.

Pure: from the tables to ASCII text. No date and no version is in it, so that the page changes only with the
tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.toolkit.cli.table import COMMANDS, PURPOSE, SECTIONS
from ringfence.toolkit.cli.table.environment import ENVIRONMENT, EXIT_STATUS, FILES
from ringfence.toolkit.cli.table.options import PATHS_FROM_HERE, Command, Option

_SHARED = 4  # an option of this many commands is described once, under OPTIONS
# What roff or a UTF-8 terminal would print as something else.
_LETTERS = {"\\": r"\e", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
_SEE_ALSO = (("git", 1), ("gitignore", 5), ("landlock", 7), ("openat2", 2))


def man_page() -> str:
    """The page; each line ends with a newline."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '.\\" Made by `python -m ringfence.toolkit.cli.reference_pages`; do not edit.'
    yield '.TH RINGFENCE 1 "" "Ringfence" "User Commands"'
    yield ".SH NAME"
    yield "ringfence \\- judge, record and undo the file tool calls of AI agents"
    yield ".SH SYNOPSIS"
    yield from _synopsis()
    yield ".SH DESCRIPTION"
    yield from _paragraphs([PURPOSE, PATHS_FROM_HERE])
    shared = shared_options()
    yield ".SH COMMANDS"
    for title, names in SECTIONS.items():
        yield f".SS {title.capitalize()}"
        for name in names:
            for command in _commands_of(name):
                yield from _command(command, shared)
    yield ".SH OPTIONS"
    yield from _paragraphs(
        ["These options have the same meaning for every command that has them.", "All commands have:"]
    )
    yield from _entry(r"\fB\-h\fR, \fB\-\-help\fR", "print the help of the command")
    yield from _entry(r"\fB\-V\fR, \fB\-\-version\fR", "print the version; only without a command")
    for option in shared:
        yield from _entry(_option(option), option.help)
    yield from _list("EXIT STATUS", {str(number): means for number, means in EXIT_STATUS.items()})
    yield from _list("ENVIRONMENT", ENVIRONMENT)
    yield from _list("FILES", FILES)
    yield ".SH EXAMPLES"
    yield from _examples()
    yield ".SH SEE ALSO"
    last = len(_SEE_ALSO) - 1
    for number, (name, section) in enumerate(_SEE_ALSO):
        yield f".BR {name} ({section})" + ("," if number < last else "")


def _synopsis() -> Iterator[str]:
    yield r"\fBringfence\fR \fICOMMAND\fR [\fIARGUMENTS\fR] [\fIOPTIONS\fR]"
    yield ".br"
    yield r"\fBringfence help\fR [\fICOMMAND\fR | \fB\-\-man\fR]"
    yield ".br"
    yield r"\fBringfence \-\-version\fR"


def _commands_of(name: str) -> list[Command]:
    """The command of a name of SECTIONS, or all commands of the group."""
    return [command for command in COMMANDS.values() if command.name.split()[0] == name]


def shared_options() -> list[Option]:
    """The options that many commands have with the same meaning, in the order of their flags."""
    found: list[Option] = []
    every = [option for command in COMMANDS.values() for option in command.options]
    for option in every:
        if option.flags[0].startswith("-") and option not in found and every.count(option) >= _SHARED:
            found.append(option)
    return sorted(found, key=lambda option: option.flags[-1])


def _command(command: Command, shared: list[Option]) -> Iterator[str]:
    own = [option for option in command.options if option not in shared]
    words = [_bold(f"ringfence {command.name}")]
    words += [_positional(option) for option in own if not option.flags[0].startswith("-")]
    about = f"{command.summary[0].upper()}{command.summary[1:]}. {command.about}".strip()
    if any(option.flags[0].startswith("-") for option in command.options):
        words.append(f"[{_italic('OPTIONS')}]")
    yield from _entry(" ".join(words), about)
    yield ".RS"
    for option in own:
        yield from _entry(_option(option), option.help)
    also = [option.flags[-1] for option in command.options if option in shared]
    if also:
        yield ".PP"
        yield _line(f"Also {', '.join(sorted(also))}: see OPTIONS.")
    yield ".RE"


def _positional(option: Option) -> str:
    shown = _italic(_metavar(option))
    many = option.settings.get("nargs")
    return {"?": f"[{shown}]", "*": f"[{shown} ...]", "+": f"{shown} ..."}.get(str(many), shown)


def _option(option: Option) -> str:
    if not option.flags[0].startswith("-"):
        return _italic(_metavar(option))
    flags = ", ".join(_bold(flag) for flag in option.flags)
    value = option.settings.get("metavar") or "|".join(option.settings.get("choices", ()))
    return f"{flags} {_italic(value)}" if value else flags


def _metavar(option: Option) -> str:
    return str(option.settings.get("metavar", option.flags[0]))


def _list(title: str, entries: Mapping[str, str]) -> Iterator[str]:
    yield f".SH {title}"
    for name, means in entries.items():
        yield from _entry(_bold(name), means)


def _entry(term: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield term
    yield _line(text)


def _paragraphs(texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if number:
            yield ".PP"
        yield _line(text)


def _examples() -> Iterator[str]:
    """The first example of each command, as it is typed."""
    yield ".EX"
    for command in COMMANDS.values():
        yield _code(command.examples[0])
    yield ".EE"


def _line(text: str) -> str:
    """One line of running text, words in backticks bold; a dot or apostrophe at its start is no request."""
    parts = text.split("`")
    line = "".join(_bold(part) if number % 2 else _prose(part) for number, part in enumerate(parts))
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _bold(text: str) -> str:
    return rf"\fB{_code(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_code(text)}\fR"


def _prose(text: str) -> str:
    """Text with hyphens inside words, and minus signs where a word begins with one: an option."""
    words = text.split(" ")
    return " ".join(_code(word) if word.lstrip("(").startswith("-") else _escaped(word) for word in words)


def _code(text: str) -> str:
    return _escaped(text).replace("-", r"\-")


def _escaped(text: str) -> str:
    """Text that roff prints unchanged, in ASCII."""
    return "".join(_LETTERS.get(one, one if one.isascii() else f"\\[u{ord(one):04X}]") for one in text)

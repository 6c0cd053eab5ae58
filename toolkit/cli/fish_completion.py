"""Completion script for fish, made from the table of commands: shtab, used for the other shells, has no fish.

Pure: from the table to text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ringfence.toolkit.cli.table.options import Command, Option

_HEAD = """# Completion of ringfence for fish; `ringfence completion fish` prints it.
function __ringfence_words
    # What was typed before the word at the cursor, without options.
    string match -v -- '-*' (commandline -opc)[2..]
end
function __ringfence_is
    # These words, and the next one is to come.
    set -l words (__ringfence_words)
    test "$words" = "$argv"
end
function __ringfence_in
    # These words, and maybe others after them.
    set -l words (__ringfence_words)
    test (count $words) -ge (count $argv); and test "$words[1..$(count $argv)]" = "$argv"
end
complete -c ringfence -f
complete -c ringfence -n '__ringfence_is' -l version -s V -d 'print the version and exit'
"""
_NO_VALUE = {"store_true", "store_const", "count", "help"}


def script(commands: Iterable[Command], groups: Mapping[str, str]) -> str:
    """The script; it completes commands, options, choices, files and directories."""
    return _HEAD + "\n".join(_lines(tuple(commands), groups)) + "\n"


def _lines(commands: tuple[Command, ...], groups: Mapping[str, str]) -> Iterator[str]:
    yield from _names("", commands, groups)
    for command in commands:
        for option in command.options:
            if option.completes == "command":
                yield from _names(command.name, commands, groups)
            else:
                yield _line(f"__ringfence_in {command.name}", _option(option), option.help)


def _names(before: str, commands: tuple[Command, ...], groups: Mapping[str, str]) -> Iterator[str]:
    """Lines that complete each word of a command's name, after the words `before`."""
    for name, summary in groups.items():
        yield _line(f"__ringfence_is {before}".rstrip(), f"-a {name}", summary)
    for command in commands:
        group, _, name = command.name.rpartition(" ")
        yield _line(" ".join(filter(None, ("__ringfence_is", before, group))), f"-a {name}", command.summary)


def _option(option: Option) -> str:
    names = [f"-l {flag[2:]}" for flag in option.flags if flag.startswith("--")]
    names += [f"-s {flag[1:]}" for flag in option.flags if flag.startswith("-") and flag[1] != "-"]
    if option.settings.get("action") in _NO_VALUE:
        return " ".join(names)
    if option.completes == "directory":
        what = "-a '(__fish_complete_directories)'"
    elif option.completes:
        what = "-F"
    else:
        what = f"-a {_quoted(' '.join(map(str, option.settings.get('choices') or ())))}"
    return " ".join([*names, *(["-r"] if names else []), what])


def _line(when: str, what: str, text: str) -> str:
    return f"complete -c ringfence -n '{when}' {what} -d {_quoted(text)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

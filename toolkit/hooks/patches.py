"""Files of a patch, in a tool's argument or inside a shell command, with the directory it is applied in.

Pure. ValueError for a patch without a file, and for a directory that only a shell can determine.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ringfence.toolkit.hooks.touch import DELETE, EDIT, WRITE, Touch

BEGINS, ENDS = "*** Begin Patch", "*** End Patch"
_FOLDER = ("workdir", "cwd", "dir_path", "directory")
_WORD = r"""(?:"[^"$`\\]+"|'[^']+'|[^\s"'$`\\*?\[\]{}()<>~;&|#-][^\s"'$`\\*?\[\]{}()<>;&|#]*)"""
_CD = rf"(?:cd|chdir)\s+(?:--\s+)?({_WORD})"
# The one form in which the host itself reads the directory, so the shell can be in no other.
_CERTAIN = re.compile(
    rf"""\s*(?:[\w./-]*sh\s+-\w*c\s+)?["']?\s*(?:{_CD}\s*&&\s*)+[\w./-]*apply_patch\b[^;&|\n]*"""
)
_MOVING = re.compile(r"(?<![\w./-])(?:cd|pushd|popd|chdir|env\s+(?:-C|--chdir))(?![\w.-])")


def of_tool(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Return the touches of a patch tool; every spelling of its argument is judged."""
    texts = [_joined(given[key]) for key in ("command", "input", "patch", "patchText") if key in given]
    if not texts:
        raise ValueError("no patch")
    for text in texts:
        yield from _judged(text, _bases(given))


def in_shell(given: Mapping[str, Any]) -> Iterator[Touch]:
    """Return the touches of a patch in a shell command, whatever its argument's name.

    Nothing without a patch.
    """
    for value in given.values():
        if isinstance(value, str | list) and BEGINS in (text := _joined(value)):
            yield from _judged(text, _bases(given))


def _bases(given: Mapping[str, Any]) -> list[str]:
    found = [given[key] for key in _FOLDER if given.get(key)]
    if not all(isinstance(folder, str) for folder in found):
        raise ValueError("the folder is not text")
    return list(dict.fromkeys(found)) or [""]


def _judged(text: str, bases: list[str]) -> Iterator[Touch]:
    """Yield the files of each patch of a text, in every directory that the shell may be in by then.

    A patch is assumed to extend to the next one, because a line of its content may look like its end.
    """
    command, *patches = text.split(BEGINS)
    bases, found = _moved(command, bases), False
    for patch in patches:
        for touch in _files(patch):
            found = True
            for base in bases:
                yield touch._replace(path=posixpath.join(base, touch.path))
        bases = list(dict.fromkeys([*bases, *_moved(patch.partition(ENDS)[2], bases)]))
    if not found:
        raise ValueError("the patch names no file")


def _moved(command: str, bases: list[str]) -> list[str]:
    """Return the directories in which a shell may be after a command that started in one of these."""
    if not (moves := _MOVING.findall(command)):
        return bases
    named = re.findall(rf"(?<![\w./-]){_CD}(?=\s*(?:[;\n&|)]|$))", command)
    if len(named) < len(moves):
        raise ValueError("a patch in a folder that only a shell can determine")
    certain = _CERTAIN.fullmatch(command.rstrip())
    found = list(bases)
    for folder in named:
        moved = [posixpath.join(base, folder.strip("\"'")) for base in found]
        # Otherwise `cd` may fail, or be an argument, and the shell stays where it was.
        found = moved if certain else list(dict.fromkeys([*found, *moved]))
    return found


def _files(patch: str) -> Iterator[Touch]:
    """Yield the files of a patch; a line that could be read as a file header counts as one."""
    last = ""
    for head, path in _heads(patch):
        if head == "Add File":
            yield Touch("create_file", WRITE, path)
        elif head == "Delete File":
            yield Touch("delete_file", DELETE, path)
        elif head == "Update File":
            last = path
            yield Touch("edit_file", EDIT, path)
        else:
            if last:
                yield Touch("move_file", ("read", "delete"), last)
            yield Touch("move_file", WRITE, path)


def _heads(patch: str) -> Iterator[tuple[str, str]]:
    for line in patch.split("\n"):
        found = re.match(r"\*\*\* (Add File|Delete File|Update File|Move to): (.*)", line.strip())
        if found:
            yield found[1], found[2].strip()


def _joined(value: object) -> str:
    """Return a command as one text; a list of words is joined."""
    found = " ".join(map(str, value)) if isinstance(value, list) else value
    if not isinstance(found, str) or not found:
        raise ValueError("the command is not text")
    return found

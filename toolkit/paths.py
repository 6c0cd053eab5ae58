"""Path arguments as text: returns the canonical workspace-relative form, or refuses.

Pure: reads no file system, so the workspace resolves links and checks what exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ringfence.policy import byte_names
from ringfence.toolkit.errors import CallError

ROOT = "."
MAX_LENGTH = 4096
MAX_NAME = 255
MAX_DEPTH = 200
# Not compiled: most paths need neither, and a hook starts anew for every call.
_BAD = r"[\x00-\x1f\x7f-\x9f\\]"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*://|[^/]*::"


def parts(path: str) -> tuple[str, ...]:
    """Return the names of a canonical path; the root has none."""
    return () if path == ROOT else tuple(path.split("/"))


def join(names: tuple[str, ...] | list[str]) -> str:
    """Return the path of these names; that of no name is the root."""
    return "/".join(names) or ROOT


def child(path: str, name: str) -> str:
    """Return the path of a name in a directory."""
    return name if path == ROOT else f"{path}/{name}"


def parent(path: str) -> str:
    """Return the path of the directory that holds a path; the root's is the root."""
    return path.rpartition("/")[0] or ROOT


def above(path: str) -> Iterator[str]:
    """Yield the directories above `path`, nearest first, without the root."""
    while (path := parent(path)) != ROOT:
        yield path


def names_directory(text: str) -> bool:
    """Whether a path argument can only mean a directory: it ends in a slash, or in a dot as a name."""
    return text.endswith(("/", "/.", "/.."))


def is_below(path: str, directory: str) -> bool:
    """Whether `path` is strictly below `directory`, name by name."""
    return path != directory and (directory == ROOT or path.startswith(directory + "/"))


def is_unicode(text: str) -> bool:
    """Whether a name from a disk is valid Unicode; invalid bytes appear as lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check(text: str, parameter: str = "path") -> None:
    r"""Refuse (`path_invalid`) text that can never be a workspace path on any file system.

    A backslash is valid only in `\xNN`, a byte of a name that is not UTF-8.
    """
    if not text:
        raise CallError("invalid_arguments", f"The {parameter} is empty", where=parameter)
    found = None if text.isprintable() and "\\" not in text else re.search(_BAD, text)
    if found and found[0] == "\\" and byte_names.is_written(text):
        found = re.search(_BAD, text.replace("\\", ""))
    if found:
        what = "a backslash" if found[0] == "\\" else f"the control character U+{ord(found[0]):04X}"
        raise CallError("path_invalid", f"The {parameter} contains {what}", where=parameter)
    _check_start(text, parameter)
    if len(text) > MAX_LENGTH:
        raise CallError(
            "path_invalid", f"The {parameter} is longer than {MAX_LENGTH} characters", where=parameter
        )


def _check_start(text: str, parameter: str) -> None:
    if ":" in text and re.match(_SCHEME, text):
        raise CallError("path_invalid", f"The {parameter} is a URL, not a path", where=parameter)
    if text[1:2] == ":" and text[2:3] in ("", "/") and text[0].isascii() and text[0].isalpha():
        raise CallError("path_invalid", f"The {parameter} begins with a drive letter", where=parameter)
    if text == "~" or text.startswith("~/"):
        raise CallError(
            "path_invalid", f"The {parameter} begins with '~', which is not expanded", where=parameter
        )


def split(text: str, root: str, parameter: str = "path") -> tuple[str, ...]:
    """Return the names of a path argument; each `..` stays in its place.

    `root` is the workspace's own absolute path (or ""): an absolute argument inside it becomes relative.
    Raises CallError `path_invalid`, `outside_root` or `invalid_arguments`.
    """
    if "\\" in text:
        text = _one_spelling(text, parameter)
    check(text, parameter)
    if text.startswith("/"):
        text = _relative(text, root, parameter)
    names = tuple([name for name in text.split("/") if name not in ("", ".")])
    if len(names) > MAX_DEPTH:
        raise too_deep(parameter)
    depth = 0
    for name in names:
        depth += -1 if name == ".." else 1
        if depth < 0:
            raise outside(parameter)
        if len(name) > MAX_NAME // 4 and _bytes(name) > MAX_NAME:
            raise CallError(
                "path_invalid", f"A name in the {parameter} is longer than {MAX_NAME} bytes", where=parameter
            )
    # `./~` or an absolute spelling must not reach a name that is refused by itself.
    _check_start(lexical(names), parameter)
    return names


def normalise(text: str, root: str = "", parameter: str = "path") -> str:
    """Return the canonical form of a path argument, with `..` resolved by text. Raises as `split` does."""
    return lexical(split(text, root, parameter))


def lexical(names: tuple[str, ...]) -> str:
    """Return the path of names with `..` resolved by text alone; it never goes above the root."""
    if ".." not in names:
        return join(names)
    kept: list[str] = []
    for name in names:
        if name == "..":
            kept.pop()
        else:
            kept.append(name)
    return join(kept)


def _one_spelling(text: str, parameter: str) -> str:
    """Return the text with each invalid byte written by itself, so that no name has two spellings."""
    try:
        return byte_names.canonical(text)
    except UnicodeEncodeError:
        raise CallError("path_invalid", f"The {parameter} is not valid Unicode", where=parameter) from None


def _bytes(name: str) -> int:
    return len(byte_names.to_disk(name).encode("utf-8", "surrogateescape"))


def too_deep(where: str | None = None) -> CallError:
    """Return the error `path_invalid` for a path with too many names."""
    return CallError("path_invalid", f"The path has more than {MAX_DEPTH} names", where=where)


def outside(parameter: str = "path") -> CallError:
    """Return the error `outside_root` for an argument."""
    return CallError("outside_root", "Path outside project root", where=parameter)


def _relative(text: str, root: str, parameter: str) -> str:
    base = [name for name in byte_names.from_disk(root).split("/") if name]
    given = [name for name in text.split("/") if name not in ("", ".")]
    if not base or given[: len(base)] != base:
        raise outside(parameter)
    return "/".join(given[len(base) :]) or ROOT

"""S3's replies about keys, as names, directories and errors.

Values and text only; sends no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Stat
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.fsspec_store.errors import errors as store_errors
from ringfence.toolkit.text import escape

_CONDITION_FAILED = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")

_NOT_IMPLEMENTED = 501

Rows = dict[str, Stat]  # keys below a directory, relative to it


def entries_of(rows: Rows) -> Iterable[tuple[str, Stat]]:
    """Yield keys and their directories, each once; keys with an empty name in them are left out."""
    found: Rows = {}
    for key, stat in rows.items():
        names = key.split("/")
        marker = names[-1] == ""
        if marker:
            names.pop()
        if any(name in ("", ".", "..") for name in names):
            continue
        for depth in range(1, len(names) + marker):
            found.setdefault("/".join(names[:depth]), Stat(DIRECTORY, 0))
        if not marker:
            found["/".join(names)] = stat
    return found.items()


def is_unaddressable(key: str) -> bool:
    """Whether no path names the key: it has an empty name, `.` or `..` in it."""
    names = key.split("/")
    return any(name in ("", ".", "..") for name in (names if names[-1] else names[:-1]))


def left_out_of(rows: Rows, *, below: bool = False) -> list[str]:
    """Return the keys that no path names, and markers with content.

    Only keys directly in the directory, or with `below` all keys.
    """
    return [
        key
        for key, stat in rows.items()
        if (below or not key.strip("/") or key.partition("/")[0] in ("", ".", ".."))
        and (is_unaddressable(key) or ((key.endswith("/") or not key) and stat.size))
    ]


def children_of(rows: Rows) -> list[tuple[str, Stat]]:
    """Return the first names of keys with their stats, by name.

    A file comes before a directory of its name.
    """
    found: Rows = {}
    for key, stat in rows.items():
        name, slash, _ = key.partition("/")
        if name in ("", ".", ".."):
            continue  # a marker of the directory itself, or a key that no path can name
        if not slash:
            found[name] = stat
        else:
            found.setdefault(name, Stat(DIRECTORY, 0))
    return sorted(found.items(), key=lambda row: row[0])


def stat_of(row: dict[str, Any]) -> Stat:
    """Return the stat in a row of a listing; size in bytes."""
    return Stat(FILE, row["Size"], row["LastModified"].timestamp(), identity=str(row["ETag"]))


def stat_in(reply: Any) -> Stat:
    """Return the stat in a reply to GET; size in bytes."""
    modified = reply["LastModified"].timestamp()
    return Stat(FILE, reply["ContentLength"], modified, identity=str(reply["ETag"]))


def is_same(judged: Stat, now: Stat) -> bool:
    """Whether the key is still the judged version."""
    # Some servers quote a tag in one reply and not in another.
    tags = judged.identity.strip('"'), now.identity.strip('"')
    return (judged.kind, judged.size, tags[0]) == (now.kind, now.size, tags[1])


def unaddressable(path: str, key: str) -> CallError:
    """Return the error for a directory with keys that no tool can read; it is not removed or moved."""
    message = f"'{escape(path)}' has content that no path can name: '{escape(path)}/{escape(key)}'"
    hint = "a person has to move or delete it with a client of the store"
    return CallError("directory_not_empty", message, where=path, hint=hint)


def name_conflict(path: str) -> CallError:
    """Return the error for a file and a directory of the same name."""
    message = f"'{path}' is a file and a directory at once in this store"
    hint = "act on the file, then on what is below, by their own paths"
    return CallError("not_a_directory", message, where=path, hint=hint)


def is_condition_failed(error: BaseException) -> bool:
    """Whether the error is a failed condition; servers, and s3fs, spell that error differently."""
    return isinstance(error, FileExistsError) or _code(error) in _CONDITION_FAILED


def is_race(error: BaseException) -> bool:
    """Whether the request met a concurrent one, so that its condition was not checked."""
    return _code(error) == "ConditionalRequestConflict"


def is_unknown_class(error: BaseException) -> bool:
    """Whether the server does not know the storage class."""
    return _code(error) == "InvalidStorageClass"


def _code(error: BaseException) -> str:
    reply = getattr(error.__cause__, "response", None) or {}
    return str(reply.get("Error", {}).get("Code"))


def is_final(error: BaseException) -> bool:
    """Whether the server refused for good; after an error of the server itself the outcome is unknown."""
    status = _status(error)
    return (400 <= status < 500 and status not in (408, 429)) or status == _NOT_IMPLEMENTED


def is_not_implemented(error: BaseException) -> bool:
    """Whether the server does not implement the request."""
    return _status(error) == _NOT_IMPLEMENTED


def _status(error: BaseException) -> int:
    reply = getattr(error.__cause__, "response", None) or {}
    return int(reply.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)


@contextmanager
def errors(path: str, *, taken: str = "already_exists") -> Iterator[None]:
    """Translate the store's errors into CallError; `taken` is the code for a failed condition."""
    with store_errors(path):
        try:
            yield
        except OSError as error:
            if not is_condition_failed(error):
                raise
            if taken != "already_exists":
                raise path_changed(path) from None
            raise FileExistsError from None

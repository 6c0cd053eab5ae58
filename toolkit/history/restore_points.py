"""Restore points: points in the history, and the changes made since. Only reads.

A point is `initial`, a call (the state right after it), a file's version (PATH:v2) or a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import ItemRow
from ringfence.toolkit.history.session_condition import of_session
from ringfence.toolkit.history.store import History
from ringfence.toolkit.history.versions import INITIAL, called, is_name, versions
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.text import when


def since(
    history: History, point: str | float, *, session: str | None = None, tree: str = paths.ROOT
) -> list[ItemRow]:
    """Return the changes of a session and its sub-sessions (None: of all) after a point, at and below `tree`.

    Raises CallError `not_found` or `invalid_arguments` for an invalid point, and `not_recoverable` if changes
    after it are pruned.
    """
    _check_known(history, point, session)
    if session is not None and session not in history.sessions() and not _has_subs(history, session):
        known = ", ".join(history.sessions()[-3:]) or "none"
        raise CallError(
            "not_found", f"Session '{session}' changed nothing", hint=f"the last that did: {known}"
        )
    within, values = of_session(session)
    column, least = _bound(history, point, session)
    found = history.items(f"{within} AND {column} > ?", (*values, least))
    return list(found) if tree == paths.ROOT else list(_within(found, tree))


def _check_known(history: History, point: str | float, session: str | None) -> None:
    """Refuse a point if some changes after it are no longer known."""
    old = history.forgotten(session) if point == INITIAL or not isinstance(point, str) else None
    if old is not None and (isinstance(point, str) or point < old.until):
        whose = "" if session is None else f" of session '{session}'"
        raise CallError(
            "not_recoverable",
            f"The changes{whose} up to {when(old.until)} are pruned, so not all can be taken back",
            hint="name a call or a later time to go back to; `ringfence log` lists the calls",
        )


def _has_subs(history: History, session: str) -> bool:
    return any(known.startswith(session + "/") for known in history.sessions())


def _bound(history: History, point: str | float, session: str | None) -> tuple[str, float]:
    if not isinstance(point, str):
        return "op.started", point
    if point == INITIAL:
        return "op.id", 0
    path, _, name = point.rpartition(":")
    if path and is_name(name):
        return "op.id", _of_version(history, path, name, session)
    return "op.id", history.operation(point, session)[1]


def _of_version(history: History, path: str, name: str, session: str | None) -> int:
    """Return the operation after which the file had this version; for `initial` the one before the first."""
    line = [one for one in versions(history, path) if session in (None, one.session)]
    version = called(line, name, history.forgotten())[-1]
    later = line[line.index(version) + 1 :]
    # A version that an operation found existed before that operation.
    return version.op - 1 if any(one.op == version.op for one in later) else version.op


def _within(items: Iterable[ItemRow], tree: str) -> Iterator[ItemRow]:
    """Return the changes at or below `tree`, and at the paths to which its entries were moved since."""
    places = {tree}

    def inside(path: str | None) -> bool:
        while path is not None and path != paths.ROOT:
            if path in places:
                return True
            path = paths.parent(path)
        return False

    for item in items:
        # A directory above that was deleted with the tree is restored with its mode.
        above = item.kind == "delete" and item.type == DIRECTORY and paths.is_below(tree, item.path)
        if inside(item.path) or inside(item.path2) or above:
            if item.path2 is not None and inside(item.path):
                places.add(item.path2)
            yield item

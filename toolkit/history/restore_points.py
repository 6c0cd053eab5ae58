"""Points in the history to go back to, and the changes made since: only reads.

A point is `initial`, a call (as it was right after it), a file's version (PATH:v2) or a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import ItemRow
from ringfence.toolkit.history.store import History, of_session
from ringfence.toolkit.history.versions import INITIAL, called, is_name, versions
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.text import when


def since(
    history: History, point: str | float, *, session: str | None = None, tree: str = paths.ROOT
) -> list[ItemRow]:
    """The changes of a session and its sub-sessions (None: of all) after a point, in and below `tree`.

    Raises CallError `not_found` or `invalid_arguments` for what is no point, `not_recoverable` for one of
    which the changes after it are pruned.
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
    """Refuse to go back to where only a part of the way is known."""
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
    """The operation after which the file was at this version; of `initial` the one before."""
    line = [one for one in versions(history, path) if session in (None, one.session)]
    version = called(line, name, history.forgotten())[-1]
    later = line[line.index(version) + 1 :]
    # What an operation found, and not what it left, was there before it.
    return version.op - 1 if any(one.op == version.op for one in later) else version.op


def _within(items: Iterable[ItemRow], tree: str) -> Iterator[ItemRow]:
    """The changes at or below `tree`, and wherever what was there has been moved to since."""
    places = {tree}

    def inside(path: str | None) -> bool:
        while path is not None and path != paths.ROOT:
            if path in places:
                return True
            path = paths.parent(path)
        return False

    for item in items:
        # A directory above that was deleted with the tree comes back with the mode it had.
        above = item.kind == "delete" and item.type == DIRECTORY and paths.is_below(tree, item.path)
        if inside(item.path) or inside(item.path2) or above:
            if item.path2 is not None and inside(item.path):
                places.add(item.path2)
            yield item

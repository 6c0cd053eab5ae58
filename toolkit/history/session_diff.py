"""Session diff: a session's changed files, each once, from its first to its last state.

Changes of sub-sessions and sub-agents count for their parents. Only reads the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import DONE, ItemRow
from ringfence.toolkit.history.session_condition import of_session
from ringfence.toolkit.history.store import History
from ringfence.toolkit.history.versions import NOTHING, VersionState, ends, replaced
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, octal
from ringfence.toolkit.plan.content import length, whole
from ringfence.toolkit.text import MAX_DIFF, count_changed, diff, escape


@dataclass(frozen=True, slots=True)
class Changed:
    """One changed file: `kind` is "created", "updated", "deleted" or "moved" (from `source`).

    Counts are lines, 0 for content that is not text or not stored. `type` is "file" or "link", `agents` are
    those that changed it.
    """

    path: str
    kind: str
    additions: int
    removals: int
    source: str | None
    type: str
    agents: tuple[str, ...]
    _ends: tuple[VersionState, VersionState] = field(repr=False)
    _content: Callable[[str], bytes | None] = field(repr=False, compare=False)

    @property
    def before(self) -> bytes | None:
        """The first content (of a link its target); None if there was none or it is not stored."""
        return _bytes(self._ends[0], self._content)

    @property
    def after(self) -> bytes | None:
        """The last content, in the same form."""
        return _bytes(self._ends[1], self._content)

    @property
    def diff(self) -> str:
        """Return a unified diff: for a deletion only removals, for a move with a line about it."""
        head = ""
        if self.source is not None:
            head = f"rename from {escape(self.source)}\nrename to {escape(self.path)}\n"
        head += _modes(self.path, *self._ends)
        if LINK not in (self._ends[0].kind, self._ends[1].kind):
            return head + diff(self.path, self.before, self.after)
        text = diff(self.path, *(_text(end, self._content) for end in self._ends))
        return head + _links(self.path, *self._ends) + text


def changed(
    history: History, session: str, agent: str | None = None, *, since: int = 0, call: str | None = None
) -> list[Changed]:
    """Return the files that differ between the session's beginning and its last change, by path.

    `agent` limits this to changes of that agent and its sub-agents, `since` to operations from that one on,
    `call` to those of one call.
    """
    within, values = of_session(session)
    if call is not None:
        within, values = f"{within} AND op.call = ?", (*values, call)
    where = f"{within} AND op.id >= ? AND item.state = ? AND item.type != ?"
    items = history.items(where, (*values, since, DONE, DIRECTORY))
    states = _PathStates(item for item in items if agent is None or f"{item.agent}/".startswith(f"{agent}/"))
    return sorted(states.changes(_readable(history)), key=lambda one: one.path)


class _PathStates:
    """The first and last state of each path, and where each file was moved."""

    def __init__(self, items: Iterable[ItemRow]) -> None:
        self._first: dict[str, VersionState] = {}
        self._last: dict[str, VersionState] = {}
        self._origin: dict[str, str] = {}
        self._agents: dict[str, dict[str, None]] = {}
        for item in items:
            self._add(item)

    def _add(self, item: ItemRow) -> None:
        before, after = ends(item, item.path)
        if item.kind == "mode":
            self._mode_set(item, before, after)
            return
        self._find(item.path, before)
        self._agents.setdefault(item.path, {})[item.agent] = None
        if item.kind == "move" and item.path2 is not None:
            self._move(item, item.path2, before)
        else:
            self._last[item.path] = self._in_mode(item.path, after)
        if after == NOTHING and item.kind != "move":
            self._origin.pop(item.path, None)

    def _find(self, path: str, found: VersionState) -> None:
        if path not in self._first:
            self._first[path] = found
        elif found.kept and not self._last[path].kept:
            # It was moved with its directory; the next item at this path has its content.
            origin = self._origin.get(path, path)
            if not self._first[origin].kept:
                self._first[origin] = replace(found, mode=self._first[origin].mode)
        if found != NOTHING:
            self._origin.setdefault(path, path)

    def _mode_set(self, item: ItemRow, before: VersionState, after: VersionState) -> None:
        """Note a change of the mode alone: the content stays as it is known, or unknown."""
        path = item.path
        if self._last.get(path, NOTHING) == NOTHING:  # also where it was made again by somebody else
            self._first.setdefault(path, before)
            self._last[path] = before
        origin = self._origin.setdefault(path, path)
        if self._first[origin].mode is None and self._first[origin] != NOTHING:
            self._first[origin] = replace(self._first[origin], mode=before.mode)
        self._last[path] = replace(self._last[path], mode=after.mode)
        self._agents.setdefault(path, {})[item.agent] = None

    def _in_mode(self, path: str, state: VersionState) -> VersionState:
        """Return the state with the mode that was set at the path, which new content keeps."""
        mode = self._last.get(path, NOTHING).mode
        return state if state == NOTHING or mode is None else replace(state, mode=mode)

    def _move(self, item: ItemRow, target: str, moved: VersionState) -> None:
        self._find(target, replaced(item))
        self._agents.setdefault(target, {}).update(self._agents[item.path])
        self._last[target] = (
            self._in_mode(item.path, moved) if moved.kept else self._last.get(item.path, moved)
        )
        self._last[item.path] = NOTHING
        self._origin[target] = self._origin.pop(item.path, item.path)

    def changes(self, content: Callable[[str], bytes | None]) -> Iterable[Changed]:
        moves = {path: origin for path, origin in self._origin.items() if self._is_move(origin, path)}
        left = set(moves.values())
        for path, last in self._last.items():
            source = moves.get(path)
            first = self._first[source or path]
            if path not in left and (source is not None or first != last):
                yield self._one(path, source, first, last, content)

    def _is_move(self, origin: str, path: str) -> bool:
        came = self._first[path] == NOTHING and self._last[path] != NOTHING
        return origin != path and came and self._first[origin] != NOTHING and self._last[origin] == NOTHING

    def _one(
        self, path: str, source: str | None, first: VersionState, last: VersionState, content: Any
    ) -> Changed:
        kind = "moved" if source else "created" if first == NOTHING else "updated"
        if last == NOTHING:
            kind = "deleted"
        same = first == last
        added, removed = (0, 0) if same else count_changed(_text(first, content), _text(last, content))
        type_ = (first if last == NOTHING else last).kind
        return Changed(
            path, kind, added, removed, source, type_, tuple(self._agents[path]), (first, last), content
        )


def _readable(history: History) -> Callable[[str], bytes | None]:
    """Return a function that reads contents for counts and diffs; None for too large or pruned content."""

    def content(digest: str) -> bytes | None:
        try:
            found = history.stored_content(digest)
        except CallError:
            return None
        return whole(found) if length(found) <= MAX_DIFF else None

    return content


def _modes(path: str, before: VersionState, after: VersionState) -> str:
    """Return a line about a mode that was set."""
    if None in (before.mode, after.mode) or before.mode == after.mode:
        return ""
    return f"Mode {escape(path)} {octal(before.mode or 0)} -> {octal(after.mode or 0)}\n"


def _text(state: VersionState, content: Callable[[str], bytes | None]) -> bytes | None:
    """Return content with lines; a link has none."""
    return None if state.kind == LINK else _bytes(state, content)


def _links(path: str, *ends: VersionState) -> str:
    """Return a line for each end that is a link."""
    return "".join(
        f"Link {escape(path)} -> {escape(state.target or '')}, {when}\n"
        for state, when in zip(ends, ("before", "after"), strict=True)
        if state.kind == LINK
    )


def _bytes(state: VersionState, content: Callable[[str], bytes | None]) -> bytes | None:
    if state.kind == LINK and state.target is not None:
        return state.target.encode("utf-8", "surrogateescape")
    return None if state.digest is None else content(state.digest)

"""Own files of a workspace: without the folder of Git and without what `.gitignore` excludes.

Reads names and ignore files only, the names nearest to the root first, up to a bound. Reads no file outside
the workspace, so a person's own ignore file does not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ringfence.policy.byte_names import as_matched
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.name_index import NameMatcher
from ringfence.policy.patterns.syntax import CROSS, Branch, Fold, PatternError, parse
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.formats import gitignore
from ringfence.toolkit.plan.changes import DIRECTORY, FILE
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.workspace.workspace import Workspace

GIT = ".git"
_IGNORE_FILE = ".gitignore"
_EXCLUDED = ".git/info/exclude"
_MOST_BYTES = 1 << 20  # of an ignore file
_MOST_LINES = 2_000


_Segment = NameMatcher | None  # None is `**`


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of an ignore file: the names that it fits, whether it opens, and whether only for folders."""

    opens: bool
    folder: bool
    branches: tuple[tuple[_Segment, ...], ...]

    def fits(self, parts: Sequence[str]) -> bool:
        """Whether the line names a path itself; a name below it does not fit."""
        return any(_fits(segments, parts) for segments in self.branches)


class _Ignores:
    """The lines of one ignore file; the last that fits decides."""

    def __init__(self, text: str, fold: Fold) -> None:
        self._lines: list[_Line] = []
        patterns: list[str] = []
        for number, body in enumerate(gitignore.lines(text)):
            if number >= _MOST_LINES:
                break
            try:
                line = gitignore.line(body[1])
                pattern = line.pattern.removesuffix("/**") if line.folder else line.pattern
                branches = tuple(_segments(branch) for branch in parse(pattern).branches)
            except (gitignore.LineError, PatternError):
                continue  # Git ignores such a line too, or it matches nothing
            if line.wider:
                continue  # rather a name too many than an own file too few
            patterns.append(pattern)
            self._lines.append(_Line(line.negated, line.folder, branches))
        # Says quickly that no line fits, which is so for most names.
        self._machine = Matcher(patterns, fold) if patterns else None

    def ignores(self, path: str, directory: bool) -> bool | None:
        """Whether a path from the file's folder is ignored; None if no line fits."""
        if self._machine is None or not self._machine.matches(path, directory=True):
            return None
        parts = path.split("/")
        for line in reversed(self._lines):
            if (directory or not line.folder) and line.fits(parts):
                return not line.opens
        return None


def _segments(branch: Branch) -> tuple[_Segment, ...]:
    return tuple(None if segment is CROSS else NameMatcher(segment) for segment in branch.segments)


def _fits(segments: Sequence[_Segment], parts: Sequence[str]) -> bool:
    """Whether the segments match all of these names; all possibilities are followed at once."""
    places = _opened(segments, {0})
    for part in parts:
        after: set[int] = set()
        for place in places - {len(segments)}:
            segment = segments[place]
            if segment is None:
                after.add(place)
            elif segment.fits(as_matched(part)):
                after.add(place + 1)
        places = _opened(segments, after)
    return len(segments) in places


def _opened(segments: Sequence[_Segment], places: set[int]) -> set[int]:
    # A `**` may match no name at all; two in a row do not occur.
    return places | {place + 1 for place in places if place < len(segments) and segments[place] is None}


@dataclass(slots=True)
class OwnFiles:
    """Names of a workspace as (path, is a directory), a folder before what is in it.

    `ignored` are the outermost paths that were left out, `.git` among them; `unread` the folders that could
    not be listed; `whole` is false if the bound was reached.
    """

    paths: list[tuple[str, bool]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    whole: bool = True

    @property
    def files(self) -> int:
        """How many are no directories."""
        return sum(not directory for _, directory in self.paths)


def own_files(workspace: Workspace, path: str, *, most: int | None = None, every: bool = False) -> OwnFiles:
    """Return the own files below a folder; with `every` all names. Raises CallError.

    At most `most` names are returned.
    """
    found = OwnFiles()
    ignores: dict[str, list[tuple[str, _Ignores]]] = {}
    waiting = deque([path])
    first = True
    while waiting and found.whole:
        folder = waiting.popleft()
        try:
            listed = _listed(workspace, folder)
        except CallError:
            if first:
                raise
            found.unread.append(folder)
            continue
        first = False
        rules = [] if every else _rules(workspace, folder, listed, ignores)
        for name, kind in listed:
            inner, directory = paths.child(folder, name), kind == DIRECTORY
            if not every and (name == GIT or _is_ignored(rules, inner, directory)):
                found.ignored.append(inner)
                continue
            if most is not None and len(found.paths) >= most:
                found.whole = False
                break
            found.paths.append((inner, directory))
            if directory:
                waiting.append(inner)
                ignores[inner] = rules
    return found


def _listed(workspace: Workspace, folder: str) -> list[tuple[str, str]]:
    """Return the names in a folder with their kinds. Raises CallError."""
    backend = workspace.backend
    with at(backend, folder) as spot, backend.folder(spot) as opened:
        return [(name, stat.kind) for name, stat in opened.scan() if not workspace.hides(folder, name)]


def _rules(
    workspace: Workspace,
    folder: str,
    listed: Sequence[tuple[str, str]],
    above: dict[str, list[tuple[str, _Ignores]]],
) -> list[tuple[str, _Ignores]]:
    """Return the ignore files that count in a folder, the one that counts most first."""
    known = above.pop(folder, None)
    if known is None:  # where the walk begins
        known = []
        for outer in (paths.ROOT, *reversed([one for one in paths.above(folder) if one != paths.ROOT])):
            if outer != folder:
                known = _read(workspace, outer, known, _IGNORE_FILE)
        excluded = _read(workspace, paths.ROOT, [], _EXCLUDED)
        known = [*known, *excluded]
    if any(name == _IGNORE_FILE and kind == FILE for name, kind in listed):
        known = _read(workspace, folder, known, _IGNORE_FILE)
    return known


def _read(
    workspace: Workspace, folder: str, above: list[tuple[str, _Ignores]], name: str
) -> list[tuple[str, _Ignores]]:
    backend = workspace.backend
    try:
        with at(backend, paths.child(folder, name)) as spot:
            text = backend.read(spot, _MOST_BYTES).decode("utf-8", "replace")
    except CallError:
        return above
    return [(folder, _Ignores(text, workspace.fold)), *above]


def _is_ignored(rules: Sequence[tuple[str, _Ignores]], path: str, directory: bool) -> bool:
    for folder, ignores in rules:
        inner = path if folder == paths.ROOT else path[len(folder) + 1 :]
        found = ignores.ignores(inner, directory)
        if found is not None:
            return found
    return False

"""Own files of a workspace: without the folder of Git and without what `.gitignore` excludes.

Reads names and ignore files only, the names nearest to the root first, up to a bound. Reads no file outside
the workspace, so a person's own ignore file does not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.gitignore_rules import GITIGNORE, Applied, GitignoreRules, is_ignored
from ringfence.toolkit.plan.changes import DIRECTORY, FILE
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.workspace.workspace import Workspace

_EXCLUDED = ".git/info/exclude"
_MOST_BYTES = 1 << 20  # of an ignore file


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
    ignores: dict[str, Applied] = {}
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
            if not every and is_ignored(rules, inner, directory):
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
    above: dict[str, Applied],
) -> Applied:
    """Return the ignore files that count in a folder, the one that counts most first."""
    known = above.pop(folder, None)
    if known is None:  # where the walk begins
        known = []
        for outer in (paths.ROOT, *reversed([one for one in paths.above(folder) if one != paths.ROOT])):
            if outer != folder:
                known = _read(workspace, outer, known, GITIGNORE)
        excluded = _read(workspace, paths.ROOT, [], _EXCLUDED)
        known = [*known, *excluded]
    if any(name == GITIGNORE and kind == FILE for name, kind in listed):
        known = _read(workspace, folder, known, GITIGNORE)
    return known


def _read(workspace: Workspace, folder: str, above: Applied, name: str) -> Applied:
    backend = workspace.backend
    try:
        with at(backend, paths.child(folder, name)) as spot:
            text = backend.read(spot, _MOST_BYTES).decode("utf-8", "replace")
    except CallError:
        return above
    return [(folder, GitignoreRules(text, workspace.fold)), *above]

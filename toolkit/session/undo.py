"""A session's way back: undo calls and restore versions, a person's acts, recorded like any other.

Knows of a session only what `TakesBack` names, and changes nothing itself. How is imported when asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ringfence.toolkit import paths
from ringfence.toolkit.call import Result
from ringfence.toolkit.history.store import History
from ringfence.toolkit.progress import Progress, Tell
from ringfence.toolkit.session.pipeline import Attempt
from ringfence.toolkit.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ringfence.toolkit.undo.planner import Way


class TakesBack:
    """The part of a session that takes back; `Session` is the only one there is."""

    session: str
    dry_run: bool
    history: History
    workspace: Workspace

    def _by_a_person(self, tool: str, act: Callable[[Attempt], Result], by: str | None) -> Result:
        """Do what no agent's rules judge, alone and on record."""
        raise NotImplementedError

    def undo(
        self,
        call: str,
        *,
        session: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        digest: str | None = None,
        by: str | None = None,
        progress: Progress | Tell | None = None,
    ) -> Result:
        """Take back what one call changed; conflicts are named and left alone unless `force`.

        `call` is a result's `call_id` (or the caller's id where only one call had it, in `session` if given).
        `data` has `changes`, `conflicts`, `call_id`, by which the undo itself can be undone, and in a dry run
        `preview`, a diff, and `digest`: given back, nothing is done if the plan is another one by now.
        `by` is the person whose act it is, for the record.
        """
        told = Progress.of(progress)

        def way() -> Way:
            from ringfence.toolkit.undo.planner import undo

            return undo(
                self.history.call(call, session),
                self.workspace,
                self.history,
                force=force,
                progress=Progress.of(progress),
            )

        return self._take_back("undo", call, way, dry_run, digest, by, told)

    def undo_to(
        self,
        point: str | float,
        *,
        session: str | None = None,
        tree: str = paths.ROOT,
        everyone: bool = False,
        force: bool = False,
        dry_run: bool = False,
        digest: str | None = None,
        by: str | None = None,
        progress: Progress | Tell | None = None,
    ) -> Result:
        """Take back what this (or another) session and its sub-sessions changed since a point.

        `point` is "initial", a call's id (the state right after it), a file's version ("PATH:v2"), or a time
        in POSIX seconds. `tree` takes only what is at or below a path; `everyone` the changes of all
        sessions. Answers as `undo` does.
        """
        chosen = None if everyone else session or self.session
        what = f"{'everyone' if chosen is None else chosen} to {point}" + (
            f" in {tree}" if tree != "." else ""
        )
        told = Progress.of(progress)

        def way() -> Way:
            from ringfence.toolkit.history.restore_points import since
            from ringfence.toolkit.undo.planner import undo

            below = paths.lexical(self.workspace.split(tree))
            found = since(self.history, point, session=chosen, tree=below)
            return undo(
                found,
                self.workspace,
                self.history,
                force=force,
                session=chosen,
                progress=Progress.of(progress),
            )

        return self._take_back("undo", what, way, dry_run, digest, by, told)

    def restore(
        self,
        path: str,
        version: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        digest: str | None = None,
        by: str | None = None,
        progress: Progress | Tell | None = None,
    ) -> Result:
        """Bring one file back to a version (`initial`, `v1`, or `SESSION:v1`). Answers as `undo` does."""
        told = Progress.of(progress)

        def way() -> Way:
            from ringfence.toolkit.history.versions import pick, versions
            from ringfence.toolkit.undo.planner import restore

            place = paths.lexical(self.workspace.split(path))
            wanted, last = pick(versions(self.history, place), version, self.history.forgotten())
            return restore(place, wanted, last, self.workspace, self.history, force=force)

        return self._take_back("restore", f"{path} {version}", way, dry_run, digest, by, told)

    def _take_back(
        self,
        tool: str,
        what: str,
        way: Callable[[], Way],
        dry_run: bool,
        digest: str | None,
        by: str | None,
        progress: Progress,
    ) -> Result:
        from ringfence.toolkit.session.undo_run import take_back

        dry_run = dry_run or self.dry_run
        return self._by_a_person(
            tool,
            lambda attempt: take_back(attempt, what, way, dry_run=dry_run, digest=digest, progress=progress),
            by,
        )

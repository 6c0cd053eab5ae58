"""Commands `undo` (a call, a session or a tree) and `restore` (a version of a file).

At a terminal they print the changes and ask; without one they run only what was named exactly, or with --yes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.cli.approval_prompt import confirm, whoami
from ringfence.toolkit.cli.commands.log import point
from ringfence.toolkit.cli.commands.run_call import show
from ringfence.toolkit.cli.context import open_session, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.path_arguments import path_argument
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError
from ringfence.toolkit.history.versions import is_name
from ringfence.toolkit.session.session import Session

Act = Callable[..., Result]


def undo(arguments: argparse.Namespace, screen: Screen) -> int:
    """Undo one call, or the changes of a session since a point, all of them or below a path."""
    if arguments.call is not None:
        if arguments.to is not None or arguments.tree is not None:
            raise UsageError("undo: --to and --tree cannot be combined with a call id")
        return _undo_or_restore(arguments, screen, _one_call(arguments), exact=True)
    if arguments.session is None and arguments.tree is None:
        raise UsageError("undo: give a call id, --session ID with --to POINT, or --tree PATH with --to POINT")
    if arguments.to is None and (arguments.tree is None or arguments.session is None):
        raise UsageError("undo: give the point with --to POINT (--to initial: everything)")
    return _undo_or_restore(arguments, screen, _since(arguments), exact=False)


def restore(arguments: argparse.Namespace, screen: Screen) -> int:
    """Restore one version of a file."""
    path = path_argument(arguments.path, root_of(arguments)[0])
    version = arguments.version
    if arguments.session is not None and ":" not in version:
        version = f"{arguments.session}:{version}"

    def act(session: Session, **more: Any) -> Result:
        return session.restore(path, version, force=arguments.force, **more)

    return _undo_or_restore(arguments, screen, act, exact=True)


def _one_call(arguments: argparse.Namespace) -> Act:
    def act(session: Session, **more: Any) -> Result:
        return session.undo(arguments.call, session=arguments.session, force=arguments.force, **more)

    return act


def _since(arguments: argparse.Namespace) -> Act:
    root, _ = root_of(arguments)
    to = "initial" if arguments.to is None else point(arguments.to)
    if isinstance(to, str):
        to = _point_here(to, root)
    tree = "." if arguments.tree is None else path_argument(arguments.tree, root)

    def act(session: Session, **more: Any) -> Result:
        return session.undo_to(
            to,
            session=arguments.session,
            tree=tree,
            everyone=arguments.session is None,
            force=arguments.force,
            **more,
        )

    return act


def _point_here(point: str, root: str) -> str:
    """A point whose path, if it is a file's version (PATH:v2), is from the workspace's root."""
    path, _, version = point.rpartition(":")
    return f"{path_argument(path, root)}:{version}" if path and is_name(version) else point


def _undo_or_restore(arguments: argparse.Namespace, screen: Screen, act: Act, *, exact: bool) -> int:
    """Print the changes, and apply them after confirmation if the plan is still the same."""
    asks = not arguments.yes and not screen.as_json and screen.is_terminal
    if not (exact or asks or arguments.yes or arguments.dry_run):
        raise UsageError("undo: no terminal for the confirmation: use --dry-run to preview, then --yes")
    with open_session(arguments, screen) as session:
        with screen.progress() as progress:
            seen = act(session, dry_run=True, progress=progress) if asks or arguments.dry_run else None
        if seen is not None and (arguments.dry_run or not seen.ok):
            _show_preview(seen, screen)
            show(seen, screen, changed=False)
            return DONE if seen.ok else FELL_SHORT
        if seen is not None:
            _show_preview(seen, screen)
            if not confirm(seen.content):
                screen.note("nothing was changed")
                return FELL_SHORT
        with screen.progress() as progress:
            digest = seen.data["digest"] if seen is not None else None
            result = act(session, dry_run=False, progress=progress, digest=digest, by=whoami())
    show(result, screen, changed=bool(result.data.get("changes")))
    return DONE if result.ok else FELL_SHORT


def _show_preview(result: Result, screen: Screen) -> None:
    preview = result.data.get("preview")
    if preview and not screen.as_json:
        screen.diff(preview)

"""`prune`: forget old contents, shown and confirmed first; a person's act, and recorded."""

from __future__ import annotations

import argparse

from ringfence.policy.loading.values import size_of
from ringfence.toolkit.call import Result
from ringfence.toolkit.cli.approval_prompt import confirm, whoami
from ringfence.toolkit.cli.commands.run_call import show_hint
from ringfence.toolkit.cli.context import open_to_look, open_under_policy
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError, older_than


def prune(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show what would be forgotten; forget it when that is wanted."""
    age = None if arguments.older_than is None else older_than(arguments.older_than)
    most = None if arguments.max_bytes is None else size_of(arguments.max_bytes)
    if arguments.max_bytes is not None and most is None:
        raise UsageError(f"--max-bytes {arguments.max_bytes}: not a size such as 500MiB or 2GiB")
    asks = not arguments.yes and not arguments.dry_run
    if asks and (screen.as_json or not screen.is_terminal):
        raise UsageError("no terminal for the confirmation: use --dry-run to preview, then --yes")
    by_options = (arguments.older_than, arguments.keep, arguments.max_bytes) != (None, None, None)
    with (open_to_look if by_options else open_under_policy)(arguments) as session:
        if asks or arguments.dry_run:
            seen = session.prune(age, arguments.keep, max_bytes=most, dry_run=True)
            if not seen.ok or arguments.dry_run:
                return _show(seen, screen)
            if not confirm(f"{seen.content}; this cannot be undone"):
                screen.note("nothing was removed")
                return FELL_SHORT
        result = session.prune(age, arguments.keep, max_bytes=most, by=whoami())
    return _show(result, screen)


def _show(result: Result, screen: Screen) -> int:
    if screen.as_json:
        screen.json(result.data if result.ok else {"error": result.error})
    else:
        screen.line(result.content, "" if result.ok else "red")
        show_hint(result, screen)
    return DONE if result.ok else FELL_SHORT

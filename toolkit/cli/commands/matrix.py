"""Command `matrix`: the verdict for each path, agent and action, as a table, as JSON or as a web page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import PurePath

from ringfence.policy.model import EFFECTS
from ringfence.toolkit.authoring.matrix import Matrix, actions_of, agents_of, matrix
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.commands.import_export import put
from ringfence.toolkit.cli.context import policy_of, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.path_arguments import path_argument
from ringfence.toolkit.cli.record_table import print_table
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.cli.time_option import time_of
from ringfence.toolkit.paths import ROOT
from ringfence.toolkit.text import escape
from ringfence.toolkit.workspace.workspace import Workspace

_ON_A_PAGE = 50_000  # paths of a web page, which a browser still opens quickly
_UNREAD = 5  # folders that a note names
_VERDICT = 8  # the least width of a column of verdicts


def show_matrix(arguments: argparse.Namespace, screen: Screen) -> int:
    """Judge every path of the tree."""
    if arguments.html and not arguments.out:
        raise UsageError("--html: give the file with --out FILE")
    root, _ = root_of(arguments)
    path = ROOT if arguments.path is None else path_argument(arguments.path, root)
    policy = policy_of(arguments, root).at(time_of(arguments))
    mention_unknown(policy, arguments.agents or (), screen)
    agents = arguments.agents or agents_of(policy)
    with closing(Workspace(root)) as workspace:
        found = matrix(
            workspace,
            policy,
            path,
            agents,
            arguments.actions or actions_of(policy),
            every=arguments.include_ignored,
            most=_ON_A_PAGE if arguments.html else None,
        )
    if arguments.effect:
        wanted = {at for at, cell in enumerate(found.cells) if cell.effect is EFFECTS[arguments.effect]}
        found.rows = [row for row in found.rows if wanted.intersection(row.cells)]
    _put(found, root, arguments, screen)
    _mention_left_out(found, screen)
    return DONE


def _mention_left_out(found: Matrix, screen: Screen) -> None:
    """Note what the matrix does not have, beside `.git/` and what is ignored."""
    if not found.own.whole:
        screen.note(f"only the {len(found.rows):,} paths nearest to the root: give a PATH for others")
    for folder in found.own.unread[:_UNREAD]:
        screen.note(f"not listed: {escape(folder)}/ cannot be opened")


def _put(found: Matrix, root: str, arguments: argparse.Namespace, screen: Screen) -> None:
    every = {"every": True} if arguments.include_ignored else {}
    data = {"root": PurePath(root).name or root, **every, **found.to_json()}
    if arguments.html:
        from ringfence.toolkit.cli.html_page import page

        put(arguments.out, page("matrix", f"Ringfence: {data['root']}", data), screen)
        if screen.as_json:
            screen.json({"written": arguments.out, "paths": len(found.rows)})
    elif screen.as_json:
        screen.json(data)
    elif arguments.out:
        raise UsageError("--out: only with --html")
    elif not found.rows:
        screen.note("no paths")
    else:
        rows = (
            (
                row.path + ("/" if row.directory else ""),
                *(str(found.cells[number].effect) for number in row.cells),
            )
            for row in found.rows
        )
        print_table(columns_of(found.columns), rows, arguments, screen)


def columns_of(verdicts: Sequence[tuple[str, str]]) -> list[Column]:
    """The path, and a column for each agent and action; where there is no room the last goes first."""
    return [
        Column("path", folds_to=14),
        *(
            Column(f"{agent}: {action}", folds_to=_VERDICT, leaves=number)
            for number, (agent, action) in enumerate(verdicts)
        ),
    ]

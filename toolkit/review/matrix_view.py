"""Data of the matrix page: the rows of an opened folder or of a search, and why a cell says what it says.

Reads names and judges; changes nothing. Everything shown is bounded, and what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from ringfence.policy import Effect, Policy
from ringfence.policy.model import ACTIONS
from ringfence.toolkit import paths
from ringfence.toolkit.authoring import matrix_tree
from ringfence.toolkit.authoring.matrix import Matrix, actions_of, agents_of, matrix
from ringfence.toolkit.authoring.matrix_tree import FILTERS, Node, Reason, Shown, Tree
from ringfence.toolkit.workspace.workspace import Workspace

LOOKED_AT = 20_000  # names that are judged for one page
INNER = 300  # names of one folder that are shown
FOUND = 200  # files of a search that are shown
AGENTS = 3  # agents beside each other
REASONS = 12  # rules of a folder that are named


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for: an opened folder, a filter, words to find, the first agent, and a cell."""

    at: str = paths.ROOT
    show: str = ""
    words: str = ""
    every: bool = False
    first: int = 0
    why: tuple[str, str, str] | None = None  # agent, action, path

    def query(self, **changed: str | int | None) -> str:
        """Return the query of an address with some of it changed; None and "" leave it out."""
        found: dict[str, str | int | None] = {
            "at": "" if self.at == paths.ROOT else self.at,
            "show": self.show,
            "q": self.words,
            "all": "1" if self.every else "",
            "agents": self.first or "",
            **changed,
        }
        return urlencode([(name, value) for name, value in found.items() if value])


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the page: a path with its cells; `opened`: what is in it follows.

    `more`: how many names of the folder are left out after this row.
    """

    node: Node
    depth: int
    opened: bool
    cells: list[Shown]
    label: str
    more: int = 0


@dataclass(frozen=True, slots=True)
class Why:
    """Why a cell says what it says: the rules that decide, with what comes after those that end."""

    agent: str
    action: str
    path: str
    directory: bool
    reasons: list[tuple[Reason, Effect | None]]
    more: int


@dataclass(frozen=True, slots=True)
class MatrixView:
    """The matrix as the page shows it: `agents` of all `kinds` of agents, from `Asked.first` on."""

    lines: list[Line]
    agents: list[str]
    kinds: list[str]
    files: int
    shown: int  # files that the filter or the words leave
    found_more: int  # of those of a search, how many are not shown
    ignored: int
    unread: int
    whole: bool
    why: Why | None
    actions: tuple[str, ...] = ACTIONS

    @property
    def of_everybody(self) -> bool:
        """Whether one column stands for every agent."""
        return len(self.kinds) == 1


def judge(workspace: Workspace, policy: Policy, *, every: bool) -> Matrix:
    """Return the verdicts on a workspace's own files, with `every` on all names, up to a bound.

    Named agents come first, then everybody else. Raises CallError for a workspace that cannot be read.
    """
    everybody, *named = agents_of(policy)
    agents = (*named, everybody)
    return matrix(workspace, policy, paths.ROOT, agents, actions_of(policy), every=every, most=LOOKED_AT)


def view(workspace: Workspace, policy: Policy, judged: Matrix, asked: Asked) -> MatrixView:
    """Return what an address asks for, of these verdicts."""
    kinds = list(dict.fromkeys(agent for agent, _ in judged.columns))
    agents = kinds[asked.first : asked.first + AGENTS] or kinds[:AGENTS]
    words = asked.words.lower().split()
    keeps = FILTERS[asked.show][1] if asked.show in FILTERS else None
    tree = matrix_tree.tree(judged, keeps)
    if words:
        found = [path for path in tree.nodes if path != paths.ROOT and matrix_tree.has_words(path, words)]
        lines = list(_found(tree, sorted(found, key=lambda one: one.split("/"))[:FOUND]))
    else:
        found = []
        lines = list(_opened(tree, asked.at, workspace.root_name))
    lines = [_of(line, tree, agents) for line in lines]
    return MatrixView(
        lines,
        agents,
        kinds,
        judged.own.files,
        tree.nodes[paths.ROOT].files,
        max(len(found) - FOUND, 0),
        len(judged.own.ignored),
        len(judged.own.unread),
        judged.own.whole,
        None if asked.why is None else _why(judged, policy, workspace, asked.why),
    )


def _of(line: Line, tree: Tree, agents: list[str]) -> Line:
    """Return a line with the cells of some agents alone."""
    width = len(tree.actions)
    cells = [
        cell
        for agent in agents
        for cell in line.cells[tree.agents.index(agent) * width : (tree.agents.index(agent) + 1) * width]
    ]
    return Line(line.node, line.depth, line.opened, cells, line.label, line.more)


def _found(tree: Tree, found: list[str]) -> Iterator[Line]:
    for path in found:
        yield Line(tree.nodes[path], 0, False, tree.cells(path), path)


def _opened(tree: Tree, at: str, root_name: str) -> Iterator[Line]:
    """Yield the root, and what is in it and in each folder down to the opened one."""
    opened = {paths.ROOT, at, *paths.above(at)} if at != paths.ROOT else {paths.ROOT}
    yield Line(tree.nodes[paths.ROOT], 0, True, tree.cells(paths.ROOT), root_name)
    yield from _inside(tree, paths.ROOT, opened, 1)


def _inside(tree: Tree, path: str, opened: set[str], depth: int) -> Iterator[Line]:
    inner = tree.nodes[path].inner
    shown = inner[:INNER]
    shown += [name for name in inner[INNER:] if name in opened]
    for at, name in enumerate(shown):
        node = tree.nodes[name]
        more = len(inner) - len(shown) if at == len(shown) - 1 else 0
        is_open = node.directory and name in opened
        yield Line(node, depth, is_open, tree.cells(name), node.name, 0 if is_open else more)
        if is_open:
            yield from _inside(tree, name, opened, depth + 1)


def _why(judged: Matrix, policy: Policy, workspace: Workspace, cell: tuple[str, str, str]) -> Why | None:
    agent, action, path = cell
    known = {row.path: row.directory for row in judged.rows} | {paths.ROOT: True}
    if action not in ACTIONS or path not in known or agent not in {one for one, _ in judged.columns}:
        return None
    found = matrix_tree.reasons(judged, path, agent, action)

    def after(reason: Reason) -> Effect | None:
        """The effect once the rule has ended."""
        if reason.cell.until is None:
            return None
        later = policy.at(float(reason.cell.until))
        return later.effect(
            agent, reason.action, reason.action, reason.example, known[reason.example], fold=workspace.fold
        )

    shown = [(reason, after(reason)) for reason in found[:REASONS]]
    return Why(agent, action, path, known[path], shown, len(found) - len(shown))

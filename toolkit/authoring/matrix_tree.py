"""Tree of a matrix: what agents may do on each folder, in short, and how that differs below it. Pure.

A cell stands for all kinds of writing at once and shows the strictest; a folder's cell shows what most files
in it get.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ringfence.policy.model import ACTIONS, Effect
from ringfence.toolkit import paths
from ringfence.toolkit.authoring.matrix import Cell, Matrix, Row

ROOT = paths.ROOT
# What a file gets for one action: the strictest effect, the kinds that are looser, and when its rule ends.
Verdict = tuple[Effect, tuple[tuple[str, Effect], ...], int | None]


@dataclass(frozen=True, slots=True)
class Note:
    """What differs: `count` files (None: all of them) get an effect, or get it for one kind of writing.

    `until`: all of it ends then, in POSIX seconds.
    """

    count: int | None
    effect: Effect | None
    kind: str = ""
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell of the tree: `same` if it is what the folder above has and nothing in it differs."""

    effect: Effect
    notes: tuple[Note, ...] = ()
    same: bool = False


@dataclass(slots=True)
class Node:
    """A path of the tree; `files` counts the files in it, and 1 for a file. Columns are as in the tree."""

    path: str
    directory: bool
    files: int = 0
    inner: list[str] = field(default_factory=list)
    counted: list[Counter[Verdict]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rpartition("/")[2]


@dataclass(slots=True)
class Tree:
    """The nodes by path, and the columns as pairs of an agent and an action, each agent's together."""

    agents: tuple[str, ...]
    actions: tuple[str, ...]
    nodes: dict[str, Node]

    def cells(self, path: str) -> list[Shown]:
        """Return the cells of a path, in the order of the columns."""
        node = self.nodes[path]
        shown = [_shown(counter, node.directory) for counter in node.counted]
        if path == ROOT:
            return shown
        above = self.nodes[paths.parent(path)].counted
        return [
            Shown(cell.effect, cell.notes, not cell.notes and cell.effect is _most(over))
            for cell, over in zip(shown, above, strict=True)
        ]


Keeps = Callable[[Row, Matrix], bool]


def tree(matrix: Matrix, keeps: Keeps | None = None) -> Tree:
    """Return the tree of a matrix; with `keeps` only the files that it keeps, and the folders with some."""
    agents = tuple(dict.fromkeys(agent for agent, _ in matrix.columns))
    named = [action for action in ACTIONS if any(_is_of(each, action) for _, each in matrix.columns)]
    columns = [
        [at for at, (each, kind) in enumerate(matrix.columns) if each == agent and _is_of(kind, action)]
        for agent in agents
        for action in named
    ]
    found = Tree(agents, tuple(named), {ROOT: Node(ROOT, True)})
    known: dict[tuple[int, ...], list[Verdict]] = {}  # most rows have the same few cells
    for row in matrix.rows:
        if keeps is None or (not row.directory and keeps(row, matrix)):
            verdicts = known.get(row.cells)
            if verdicts is None:
                verdicts = known[row.cells] = [_verdict(matrix, row, column) for column in columns]
            _add(found, row, verdicts)
    _sum_up(found, len(columns))
    return found


def _is_of(action: str, group: str) -> bool:
    return action.partition(".")[0] == group


def _add(found: Tree, row: Row, verdicts: list[Verdict]) -> None:
    node = found.nodes.get(row.path)
    if node is None:
        node = found.nodes[row.path] = Node(row.path, row.directory)
        inner = row.path
        while inner != ROOT:
            above = paths.parent(inner)
            is_new = above not in found.nodes
            found.nodes.setdefault(above, Node(above, True)).inner.append(inner)
            inner = above if is_new else ROOT
    node.counted = [Counter([verdict]) for verdict in verdicts]
    node.files = 0 if row.directory else 1


def _sum_up(found: Tree, width: int) -> None:
    """Count in each folder what the files below it get; an empty folder keeps what it gets itself."""
    for path in sorted(found.nodes, key=lambda one: -1 if one == ROOT else one.count("/"), reverse=True):
        node = found.nodes[path]
        inner = [found.nodes[name] for name in node.inner]
        files = [one for one in inner if one.files]
        if files:
            node.files = sum(one.files for one in files)
            node.counted = [Counter() for _ in range(width)]
            for one in files:
                for sums, counter in zip(node.counted, one.counted, strict=True):
                    sums.update(counter)
        elif not node.counted:
            node.counted = [Counter() for _ in range(width)]
        node.inner.sort(key=lambda name: (not found.nodes[name].directory, name))


def _verdict(matrix: Matrix, row: Row, columns: Sequence[int]) -> Verdict:
    cells = [(matrix.columns[at][1], matrix.cells[row.cells[at]]) for at in columns]
    effect = max(cell.effect for _, cell in cells)
    looser = tuple((kind.partition(".")[2], cell.effect) for kind, cell in cells if cell.effect < effect)
    ends = [cell.until for _, cell in cells if cell.until is not None]
    return effect, looser, min(ends, default=None)


def _most(counter: Counter[Verdict]) -> Effect | None:
    """Return the effect of most; of equally many the strictest."""
    effects: Counter[Effect] = Counter()
    for verdict, count in counter.items():
        effects[verdict[0]] += count
    return max(effects, key=lambda one: (effects[one], one), default=None)


def _shown(counter: Counter[Verdict], directory: bool) -> Shown:
    effect = _most(counter)
    if effect is None:
        return Shown(Effect.ASK)
    total = counter.total()
    notes = [*_kind_notes(counter, effect, total), *_other_effects(counter, effect)]
    ends = {until for (one, looser, until), _ in counter.items() if one is effect and not looser}
    if len(ends) == 1 and (end := ends.pop()) is not None:
        notes.append(Note(None, None, until=end))
    return Shown(effect, tuple(notes)) if directory or notes else Shown(effect)


def _kind_notes(counter: Counter[Verdict], effect: Effect, total: int) -> Iterable[Note]:
    kinds: dict[tuple[str, Effect], Counter[int | None]] = {}
    for (one, looser, until), count in counter.items():
        if one is effect:
            for each in looser:
                kinds.setdefault(each, Counter())[until] += count
    for (kind, said), ends in kinds.items():
        count = ends.total()
        until = next(iter(ends)) if len(ends) == 1 else None
        yield Note(None if count == total else count, said, kind, until)


def _other_effects(counter: Counter[Verdict], effect: Effect) -> Iterable[Note]:
    others: Counter[Effect] = Counter()
    for (one, _, _), count in counter.items():
        if one is not effect:
            others[one] += count
    return (Note(count, one) for one, count in sorted(others.items()))


# --------------------------------------------------------------------- filters


def differs(row: Row, matrix: Matrix) -> bool:
    """Whether some agent may do other things with a path than another one."""
    by_action: dict[str, set[Effect]] = {}
    for (_, action), number in zip(matrix.columns, row.cells, strict=True):
        by_action.setdefault(action, set()).add(matrix.cells[number].effect)
    return any(len(effects) > 1 for effects in by_action.values())


def may_delete(row: Row, matrix: Matrix) -> bool:
    """Whether some agent may delete a path without asking."""
    return _is_allowed(row, matrix, "delete")


def may_write(row: Row, matrix: Matrix) -> bool:
    """Whether some agent may write a path without asking, in at least one way."""
    return _is_allowed(row, matrix, "write")


def is_denied(row: Row, matrix: Matrix) -> bool:
    """Whether something is denied with a path."""
    return any(matrix.cells[number].effect is Effect.DENY for number in row.cells)


def _is_allowed(row: Row, matrix: Matrix, action: str) -> bool:
    return any(
        _is_of(each, action) and matrix.cells[number].effect is Effect.ALLOW
        for (_, each), number in zip(matrix.columns, row.cells, strict=True)
    )


FILTERS: dict[str, tuple[str, Keeps]] = {
    "differ": ("only where agents differ", differs),
    "delete": ("may delete", may_delete),
    "write": ("may write without asking", may_write),
    "denied": ("denied", is_denied),
}


def has_words(path: str, words: Iterable[str]) -> bool:
    """Whether a path has all of the words, in any order and any case."""
    low = path.lower()
    return all(word in low for word in words)


# --------------------------------------------------------------------- reasons


@dataclass(frozen=True, slots=True)
class Reason:
    """Why files get what they get for one action: the cell, how many files it is for, and one of them."""

    action: str
    cell: Cell
    files: int
    example: str


def reasons(matrix: Matrix, path: str, agent: str, action: str) -> list[Reason]:
    """Return the rules that decide on a path or, for a folder, on the files below it; the most files first.

    For a folder without files, those that decide on the folder itself.
    """
    below = "" if path == ROOT else f"{path}/"
    inside = [row for row in matrix.rows if not row.directory and row.path.startswith(below)]
    rows = inside or [row for row in matrix.rows if row.path == path]
    found: dict[tuple[str, int], list[str]] = {}
    for at, (each, kind) in enumerate(matrix.columns):
        if each == agent and _is_of(kind, action):
            for row in rows:
                found.setdefault((kind, row.cells[at]), []).append(row.path)
    order = {kind: at for at, (_, kind) in enumerate(matrix.columns)}
    return sorted(
        (Reason(kind, matrix.cells[cell], len(names), names[0]) for (kind, cell), names in found.items()),
        key=lambda one: (order[one.action], -one.files),
    )

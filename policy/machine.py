"""All patterns of a policy as one machine that reads a path name by name.

The patterns form a tree of names. A state is the nodes to go on from, and what has matched by then: of each
group only the last pattern, so few states are told apart however many patterns there are. States are
remembered, within a bound, and can be forgotten at any time: one that is held stays right. Never backtracks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from policy.glob import ANY_NAME, CROSS, Branch, Name, Segment, branches, folded
from policy.names import Names

ROOT: Final = "."
_MAX_BYTES: Final = 32 * 1024 * 1024  # of remembered states, about; then all are forgotten
_MAX_NAMES: Final = 65_536
_MAX_DIRECTORIES: Final = 8_192
_LONG_NAME: Final = 256  # what is longer is not remembered
_LONG_PATH: Final = 1_024
_NOT_NAMES: Final = frozenset({"", ".", ".."})
_START: Final = 0  # the node where a path begins
_NOTHING: Final[frozenset[int]] = frozenset()

Nodes = frozenset[int]
Leads = tuple[Mapping[int, int], ...]


class Found:
    """The patterns that match, the last of each group; `memo` is the caller's, for what it concluded."""

    __slots__ = ("last", "memo")

    def __init__(self, last: dict[int, int]) -> None:
        self.last = last  # from group to pattern
        self.memo: dict[int, object] = {}


class State:
    """What has matched a path, a directory there and all below one; `nodes` are the nodes to go on from."""

    __slots__ = ("below", "directory", "file", "next", "nodes")

    def __init__(self, nodes: Nodes, file: Found, directory: Found, below: Found) -> None:
        self.nodes = nodes
        self.file = file
        self.directory = directory
        self.below = below
        self.next: dict[Kind, State] = {}


class Ends(NamedTuple):
    """Patterns that match what they end at; that if it is a directory; and what is below it."""

    file: tuple[int, ...] = ()
    directory: tuple[int, ...] = ()
    below: tuple[int, ...] = ()


_NO_ENDS: Final = Ends()


class Kind:
    """All names that no pattern tells apart: where they lead to, and what they do wherever they stand."""

    __slots__ = ("ends", "leads", "nodes")

    def __init__(self, leads: Leads, nodes: Nodes, ends: Ends) -> None:
        self.leads = leads
        self.nodes = nodes
        self.ends = ends


class _Tree:
    """The patterns put together: beginnings they share are there once."""

    def __init__(self) -> None:
        self.size = 1
        self.names: dict[Name, dict[int, int]] = {}  # for each name, the nodes it leads from and to
        self.cross: dict[int, int] = {}
        self.ends: dict[int, Ends] = {}
        self.at_root: list[int] = []

    def add(self, number: int, branches: Iterable[Branch]) -> None:
        for branch in branches:
            segments, inside = branch.segments, False
            if segments[-1] == ANY_NAME and not branch.directory:
                # A match covers what is below it: a star, or two, at the end is all there is below.
                inside = True
                segments = segments[: -2 if segments[-2:-1] == (CROSS,) else -1]
            at = _START
            for segment in segments:
                at = self._under(at, segment)
            own, more = self.ends.get(at, _NO_ENDS), (number,)
            file = own.file if inside or branch.directory else own.file + more
            self.ends[at] = Ends(file, own.directory if inside else own.directory + more, own.below + more)
            if branch.root:
                self.at_root.append(number)

    def opened(self) -> dict[int, tuple[int, ...]]:
        """Return for each node where a path may go on once it is reached: there, and at a `**` after it."""
        goes_on = {node for leads in self.names.values() for node in leads}
        found: dict[int, tuple[int, ...]] = {node: (node,) for node in goes_on}
        for node, waiting in self.cross.items():
            found[node] = (node, waiting) if node in goes_on else (waiting,)
        return found

    def _under(self, at: int, segment: Segment) -> int:
        leads = self.cross if segment is CROSS else self.names.setdefault(segment, {})
        under = leads.get(at)
        if under is None:
            under = leads[at] = self.size
            self.size += 1
        return under


class Machine:
    """Reads paths against patterns, which are known by their numbers in the order given.

    Each is of a group, of which only the last one to match is told; without groups all are of one.
    """

    def __init__(self, patterns: Sequence[str], fold: bool = False, groups: Sequence[int] = ()) -> None:
        self.fold = fold
        self.steps = 0  # steps really worked out, for tests and benchmarks
        self._groups = groups or [0] * len(patterns)
        tree = _Tree()
        for number, text in enumerate(patterns):
            tree.add(number, branches(text, fold))
        self._ends = tree.ends
        self._opened = tree.opened()
        self._waits = frozenset(tree.cross.values())
        self._everywhere = tree.cross.get(_START, -1)  # the `**` at the start waits in every state
        self._any = tree.names.pop(ANY_NAME, {})
        self._names = Names(tree.names)
        self._leads = list(tree.names.values())
        self._at_root = tree.at_root
        self._forget()

    def at(self, path: str) -> State:
        """Return the state for a canonical path; ValueError for text that is none."""
        if path == ROOT:
            return self.top
        head, slash, name = path.rpartition("/")
        return self.step(self._directory(head) if slash else self.root, name)

    def step(self, state: State, name: str) -> State:
        """Return the state one name further down."""
        kind = self._kinds_of.get(name)
        if kind is None:
            kind = self._kind(name)
        after = state.next.get(kind)
        return after if after is not None else self._step(state, kind)

    def inside(self, path: str) -> State:
        """Return the state from which the names directly in a directory are reached by `step`."""
        return self.root if path == ROOT else self._directory(path)

    def matches(self, path: str, directory: bool) -> bool:
        """Whether any pattern matches a canonical path."""
        state = self.at(path)
        return bool((state.directory if directory else state.file).last)

    def note(self, found: Found, key: int, value: object) -> None:
        """Remember a conclusion from what was found."""
        found.memo[key] = value
        self._spent += 100

    def _directory(self, path: str) -> State:
        state = self._directories.get(path)
        if state is None:
            above, _, name = path.rpartition("/")
            parent = self._directories.get(above)
            state = self.root if parent is None else self.step(parent, name)
            if parent is None:
                for each in path.split("/"):
                    state = self.step(state, each)
            if len(self._directories) >= _MAX_DIRECTORIES:
                self._directories.clear()
            if len(path) < _LONG_PATH:
                self._directories[path] = state
        return state

    def _step(self, state: State, kind: Kind) -> State:
        self.steps += 1
        nodes, ends = kind.nodes, kind.ends
        if state.nodes:
            reached = _reached(kind.leads, state.nodes)
            if not self._waits.isdisjoint(state.nodes):
                nodes = nodes.union(state.nodes & self._waits)
            if reached:
                nodes = nodes.union(self._open(reached))
                ends = self._ended(reached, ends)
        file = self._latest(state.below, ends.file)
        directory = file if ends.directory == ends.file else self._latest(state.below, ends.directory)
        below = directory if ends.below == ends.directory else self._latest(state.below, ends.below)
        if self._spent > _MAX_BYTES:
            self._forget()
        after = self._state(nodes, file, directory, below)
        state.next[kind] = after
        self._spent += 100
        return after

    def _state(self, nodes: Nodes, file: Found, directory: Found, below: Found) -> State:
        key = nodes, file, directory, below
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = State(*key)
            self._spent += 500 + 60 * len(nodes)
        return state

    def _latest(self, above: Found, numbers: Iterable[int]) -> Found:
        """Return what is found once these numbers join what was found above."""
        last = above.last
        for number in numbers:
            group = self._groups[number]
            if number > last.get(group, -1):
                if last is above.last:
                    last = dict(last)
                last[group] = number
        if last is above.last:
            return above
        key = frozenset(last.values())
        found = self._founds.get(key)
        if found is None:
            found = self._founds[key] = Found(last)
            self._spent += 500 + 150 * len(last)
        return found

    def _ended(self, nodes: Iterable[int], others: Ends) -> Ends:
        """Return what ends at some nodes and elsewhere, the last of each group."""
        every = [own for node in nodes if (own := self._ends.get(node)) is not None]
        if others.below:
            every.append(others)
        if len(every) <= 1:
            return every[0] if every else others
        file, directory, below = ([n for own in each for n in own] for each in zip(*every, strict=True))
        return Ends(self._last(file), self._last(directory), self._last(below))

    def _last(self, numbers: list[int]) -> tuple[int, ...]:
        """Return the last number of each group."""
        numbers.sort()
        return tuple({self._groups[number]: number for number in numbers}.values())

    def _open(self, nodes: Iterable[int]) -> list[int]:
        return [each for node in nodes for each in self._opened.get(node, ())]

    def _kind(self, name: str) -> Kind:
        if name in _NOT_NAMES or "/" in name:
            raise ValueError(f"not a name in a canonical path: {name!r}")
        fits = self._names.find(folded(name) if self.fold else name)
        kind = self._kinds_fit.get(fits)
        if kind is None:
            kind = self._kinds_fit[fits] = self._new_kind(fits)
        if len(self._kinds_of) >= _MAX_NAMES:
            self._kinds_of.clear()
        if len(name) < _LONG_NAME:
            self._kinds_of[name] = kind
        return kind

    def _new_kind(self, fits: tuple[int, ...]) -> Kind:
        leads = [self._leads[index] for index in fits]
        if self._any:
            leads.append(self._any)
        anywhere = [each[self._everywhere] for each in leads if self._everywhere in each]
        others = tuple(each for each in leads if len(each) > 1 or self._everywhere not in each)
        kind = Kind(others, frozenset(self._open(anywhere)), self._ended(anywhere, _NO_ENDS))
        self._spent += 1_000 + 100 * (len(others) + len(kind.nodes)) + 30 * len(kind.ends.below)
        key = tuple(map(id, others)), kind.nodes, kind.ends
        return self._kinds.setdefault(key, kind)

    def _forget(self) -> None:
        self._spent = 0
        self._founds: dict[frozenset[int], Found] = {}
        self._states: dict[tuple[Nodes, Found, Found, Found], State] = {}
        self._kinds: dict[tuple[tuple[int, ...], Nodes, Ends], Kind] = {}
        self._kinds_fit: dict[tuple[int, ...], Kind] = {}  # by the names of patterns that fit
        self._kinds_of: dict[str, Kind] = {}
        self._directories: dict[str, State] = {}
        nothing = Found({})
        at_root = self._latest(nothing, self._at_root)
        self.top = State(_NOTHING, at_root, at_root, at_root)
        everything = self._latest(nothing, self._ends.get(_START, _NO_ENDS).below)
        opened = frozenset(self._open([_START])) - {self._everywhere}
        self.root = State(opened, nothing, nothing, everything)


def _reached(kind: Leads, nodes: Nodes) -> list[int]:
    """Return where names of a kind lead from `nodes`, each at the cost of the smaller of the two."""
    if len(nodes) == 1:
        (node,) = nodes
        return [leads[node] for leads in kind if node in leads]
    reached: list[int] = []
    for leads in kind:
        if len(nodes) <= len(leads):
            reached += [leads[node] for node in nodes if node in leads]
        else:
            reached += [under for node, under in leads.items() if node in nodes]
    return reached


def matches(pattern: str, path: str, directory: bool = False, *, fold: bool = False) -> bool:
    """Whether one pattern matches a path, or a directory above it. Text that is no path is not matched."""
    try:
        return Machine([pattern], fold).matches(path, directory or path == ROOT)
    except ValueError:
        return False

"""Matcher: all patterns of a policy as one lazy automaton that reads a path name by name.

The patterns form a trie of names. A state holds the trie nodes reached and the last match of each group, so
states are few. A bounded cache holds states; a state stays valid after the cache is cleared. Never
backtracks.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from ringfence.policy.byte_names import as_matched
from ringfence.policy.patterns.name_index import ANY, NameIndex
from ringfence.policy.patterns.syntax import Fold, by_letter, folded
from ringfence.policy.patterns.trie import NO_ENDS, START, Ends, PatternTrie

ROOT: Final = "."
_MAX_BYTES: Final = 32 * 1024 * 1024  # of remembered states, about; then all are forgotten
_MAX_NAMES: Final = 65_536
_MAX_DIRECTORIES: Final = 8_192
_LONG_NAME: Final = 256  # what is longer is not remembered
_LONG_PATH: Final = 1_024
_NOT_NAMES: Final = frozenset({"", ".", ".."})
_NONE: Final = -1
_MANY: Final = sys.maxsize
_NOT_YET: Final[tuple[int, object]] = (_NONE, None)
_NO_MEMO: Final[dict[int, object]] = {}  # shared, never written to
_NOTHING: Final[frozenset[int]] = frozenset()

Nodes = frozenset[int]
Leads = tuple[Mapping[int, int], ...]


class Matches:
    """The matching patterns, as the last match of each group; callers store their conclusions here."""

    __slots__ = ("first", "last", "memo")

    def __init__(self, last: dict[int, int]) -> None:
        self.last = last  # from group to pattern
        self.first: tuple[int, object] = _NOT_YET  # nearly always the only one, so it needs no dict
        self.memo: dict[int, object] = _NO_MEMO


class MatcherState:
    """Matches of a path, of a directory there and of all paths below; `nodes` are the nodes to go on from.

    Whatever the next name, a path also goes on from `stays`, and has also matched `ends`; `any_file` holds
    the matches of a file whose name no pattern mentions.
    """

    __slots__ = ("any_file", "below", "directory", "ends", "file", "files", "next", "nodes", "opens", "stays")

    def __init__(self, nodes: Nodes, file: Matches, directory: Matches, below: Matches) -> None:
        self.nodes = nodes
        self.stays = _NOTHING
        self.ends = NO_ENDS
        self.file = file
        self.directory = directory
        self.below = below
        self.any_file = below
        self.next: dict[NameClass, MatcherState] = {}
        self.files: dict[
            NameClass, Matches
        ] = {}  # what matches a file here: no state, as nothing is below it
        self.opens: dict[int, object] = _NO_MEMO  # what the caller concluded of all that is below


class NameClass:
    """All names that no pattern distinguishes: where they lead, and their matches in any directory.

    `alone` is the only pattern that matches a file by its name, whatever its directory, and `group` is that
    pattern's group. _NONE if there is none, _MANY if there are several.
    """

    __slots__ = ("alone", "ends", "group", "leads", "nodes")

    def __init__(self, leads: Leads, nodes: Nodes, ends: Ends, groups: Sequence[int]) -> None:
        self.leads = leads
        self.nodes = nodes
        self.ends = ends
        numbers = ends[0]
        self.alone = _MANY if len(numbers) > 1 else numbers[0] if numbers else _NONE
        self.group = groups[numbers[0]] if numbers else 0


class Matcher:
    """Matches paths against patterns, which are numbered in the order given.

    Each pattern belongs to a group, of which only the last match is reported; without groups all are one
    group.
    """

    def __init__(self, patterns: Sequence[str], fold: Fold = False, groups: Sequence[int] = ()) -> None:
        self.fold = fold
        self.steps = 0  # steps really worked out, for tests and benchmarks
        self._groups = groups or [0] * len(patterns)
        tree = PatternTrie(patterns, fold)
        self._ends = tree.ends
        self._inner = tree.inner
        self._cross = tree.cross
        self._waits = frozenset(tree.cross.values())
        self._everywhere = tree.cross.get(START, -1)  # the `**` at the start waits in every state
        self._any = tree.names.pop(ANY, {})
        self._any_anywhere = self._any.pop(self._everywhere, None)
        self._names = NameIndex(tree.names)
        self._leads = list(tree.names.values())
        self._at_root = tree.at_root
        self._under: dict[int, list[int]] | None = None
        self._ends_anywhere: frozenset[int] | None = None
        self._forget()

    def at(self, path: str) -> MatcherState:
        """Return the state for a canonical path; ValueError for any other text."""
        if path == ROOT:
            return self.top
        head, slash, name = path.rpartition("/")
        return self.step(self._directory(head) if slash else self.root, name)

    def step(self, state: MatcherState, name: str) -> MatcherState:
        """Return the state one name further down."""
        kind = self._kinds_of.get(name)
        if kind is None:
            kind = self._kind(name)
        after = state.next.get(kind)
        return after if after is not None else self._step(state, kind)

    def file(self, path: str) -> Matches:
        """Return the matches of a canonical path as a file: as by `at`, at lower cost."""
        head, slash, name = path.rpartition("/")
        return self.leaf(self._directory(head) if slash else self.root, name)

    def leaf(self, state: MatcherState, name: str) -> Matches:
        """Return the matches of a file, given its name and the state of its directory."""
        kind = self._kinds_of.get(name)
        if kind is None:
            kind = self._kind(name)
        number, other = kind.alone, state.any_file
        if (number < 0 or number <= other.last.get(kind.group, _NONE)) and not (kind.leads and state.nodes):
            return other
        found = state.files.get(kind)
        return found if found is not None else self._leaf(state, kind)

    def leaves(self, state: MatcherState, names: Collection[str]) -> set[Matches]:
        """Return the different matches of files with these names in the directory of a state.

        Names that no pattern distinguishes are compared once.
        """
        kinds = set(map(self._kinds_of.get, names))
        if None in kinds:
            return {self.leaf(state, name) for name in names}
        known = state.files.get
        return {known(kind) or self._leaf(state, kind) for kind in kinds}  # type: ignore[arg-type]

    def inside(self, path: str) -> MatcherState:
        """Return the state from which `step` leads to the names directly in a directory."""
        return self.root if path == ROOT else self._directory(path)

    def ahead(self, state: MatcherState) -> frozenset[int]:
        """Return the patterns that may match something below a directory, given its state.

        Each of them matches some path below; a pattern that already matches is not included for that alone.
        """
        if self._ends_anywhere is None:
            self._ends_anywhere = self._ends_under([self._everywhere])
        return self._ends_anywhere | self._ends_under(state.nodes)

    def note_below(self, state: MatcherState, key: int, value: object) -> None:
        """Store a conclusion about all paths below a directory."""
        if state.opens is _NO_MEMO:
            state.opens = {}
            self._spent += 200
        state.opens[key] = value
        self._spent += 100

    def matches(self, path: str, directory: bool) -> bool:
        """Whether any pattern matches a canonical path."""
        state = self.at(path)
        return bool((state.directory if directory else state.file).last)

    def note(self, found: Matches, key: int, value: object) -> None:
        """Store a conclusion about these matches."""
        if self._spent > _MAX_BYTES:
            self._forget()
        if found.first is _NOT_YET:
            found.first = key, value  # in one assignment, because other threads may read it
            return
        if found.memo is _NO_MEMO:
            found.memo = {}
            self._spent += 200
        found.memo[key] = value
        self._spent += 100

    def _ends_under(self, nodes: Iterable[int]) -> frozenset[int]:
        """Return the patterns that end at a node reachable from `nodes` by names."""
        under = self._under if self._under is not None else self._turned()
        todo = [after for node in nodes for after in under.get(node, ())]
        seen = set(todo)
        found: set[int] = set()
        while todo:
            node = todo.pop()
            for numbers in self._ends.get(node, NO_ENDS):
                found.update(numbers)
            new = [after for after in under.get(node, ()) if after not in seen]
            seen.update(new)
            todo += new
        return frozenset(found)

    def _turned(self) -> dict[int, list[int]]:
        """Return the successors of each node; computed on first use."""
        under: dict[int, list[int]] = {}
        for leads in (*self._leads, self._any, self._cross):
            for node, after in leads.items():
                under.setdefault(node, []).append(after)
        if self._any_anywhere is not None:
            under.setdefault(self._everywhere, []).append(self._any_anywhere)
        self._under = under
        return under

    def _directory(self, path: str) -> MatcherState:
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

    def _leaf(self, state: MatcherState, kind: NameClass) -> Matches:
        self.steps += 1
        numbers = kind.ends[0]
        if kind.leads and state.nodes:
            reached = _reached(kind.leads, state.nodes)
            if reached:
                numbers = self._ended(reached, kind.ends)[0]
        found = self._latest(state.any_file, numbers) if numbers else state.any_file
        if self._spent > _MAX_BYTES:
            self._forget()
        state.files[kind] = found
        self._spent += 100
        return found

    def _step(self, state: MatcherState, kind: NameClass) -> MatcherState:
        self.steps += 1
        nodes, ends = kind.nodes, kind.ends
        if state.stays:
            nodes = nodes | state.stays if nodes else state.stays
        reached = _reached(kind.leads, state.nodes) if kind.leads and state.nodes else None
        if reached:
            nodes = nodes.union(self._open(reached))
            ends = self._ended(reached, ends)
        if state.ends is not NO_ENDS:
            ends = self._joined([ends, state.ends])
        file_ends, directory_ends, below_ends = ends
        file = self._latest(state.below, file_ends)
        directory = file if directory_ends == file_ends else self._latest(state.below, directory_ends)
        below = directory if below_ends == directory_ends else self._latest(state.below, below_ends)
        if self._spent > _MAX_BYTES:
            self._forget()
        after = self._state(nodes, file, directory, below)
        state.next[kind] = after
        self._spent += 100
        return after

    def _state(self, nodes: Nodes, file: Matches, directory: Matches, below: Matches) -> MatcherState:
        key = nodes, file, directory, below
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = self._new_state(nodes, file, directory, below)
        return state

    def _new_state(self, nodes: Nodes, file: Matches, directory: Matches, below: Matches) -> MatcherState:
        state = MatcherState(nodes, file, directory, below)
        state.any_file = self._latest(below, self._plain.ends[0])
        if nodes:
            state.stays = nodes & self._waits
            reached = _reached((self._any,), nodes) if self._any else None
            if reached:
                state.stays = state.stays.union(self._open(reached))
                state.ends = self._ended(reached, NO_ENDS)
                state.any_file = self._latest(state.any_file, state.ends[0])
        self._spent += 500 + 60 * (len(nodes) + len(state.stays))
        return state

    def _latest(self, above: Matches, numbers: tuple[int, ...]) -> Matches:
        """Return the matches after these numbers are added to the matches above."""
        last = above.last
        for number in numbers:
            group = self._groups[number]
            if number > last.get(group, -1):
                if last is above.last:
                    last = last.copy()
                last[group] = number
        if last is above.last:
            return above
        key = frozenset(last.values())
        found = self._founds.get(key)
        if found is None:
            found = self._founds[key] = Matches(last)
            self._spent += 500 + 150 * len(last)
        return found

    def _ended(self, nodes: Iterable[int], others: Ends) -> Ends:
        """Return the matches that end at some nodes and elsewhere, the last of each group."""
        every = [own for node in nodes if (own := self._ends.get(node)) is not None]
        if others is not NO_ENDS:
            every.append(others)
        if len(every) <= 1:
            return every[0] if every else others
        return self._joined(every)

    def _joined(self, every: list[Ends]) -> Ends:
        file, directory, below = ([n for own in each for n in own] for each in zip(*every, strict=True))
        return self._last(file), self._last(directory), self._last(below)

    def _last(self, numbers: list[int]) -> tuple[int, ...]:
        """Return the last number of each group."""
        numbers.sort()
        return tuple({self._groups[number]: number for number in numbers}.values())

    def _open(self, nodes: Iterable[int]) -> list[int]:
        """Return the nodes where a path may continue from some nodes: themselves, and nodes behind a `**`."""
        inner, cross = self._inner, self._cross
        found: list[int] = []
        for node in nodes:
            if node in inner:
                found.append(node)
            if node in cross:
                found.append(cross[node])
        return found

    def _kind(self, name: str) -> NameClass:
        if name in _NOT_NAMES or "/" in name:
            raise ValueError(f"not a name in a canonical path: {name!r}")
        plain = as_matched(name)
        fits = self._fits(plain) if self.fold else self._names.find(plain)
        if not fits:
            kind = self._plain
        elif len(fits) == 1:
            kind = self._kinds_one[fits[0]] or self._new_kind(fits)
        else:
            kind = self._kinds_fit.get(fits) or self._new_kind(fits)
        if len(self._kinds_of) >= _MAX_NAMES:
            self._kinds_of.clear()
        if len(name) < _LONG_NAME:
            self._kinds_of[name] = kind
        return kind

    def _fits(self, name: str) -> tuple[int, ...]:
        """Return the name patterns that match, with the file system's differences between names ignored.

        A letter that folds to several letters is also compared as written: `?` and a class match one letter.
        """
        text = folded(name, self.fold)
        letters = text if name.isascii() else by_letter(name, self.fold)
        fits = self._names.find(text)
        return fits if letters == text else tuple(sorted({*fits, *self._names.find(letters)}))

    def _new_kind(self, fits: tuple[int, ...]) -> NameClass:
        leads = [self._leads[index] for index in fits]
        anywhere = [self._any_anywhere] if self._any_anywhere is not None else []
        others: list[Mapping[int, int]] = []
        for each in leads:
            node = each.get(self._everywhere)
            if node is not None:
                anywhere.append(node)
            if node is None or len(each) > 1:
                others.append(each)
        nodes = frozenset(self._open(anywhere)) if anywhere else _NOTHING
        ends = self._ended(anywhere, NO_ENDS) if anywhere else NO_ENDS
        if self._spent > _MAX_BYTES:
            self._forget()
        self._spent += 1_000 + 100 * (len(others) + len(nodes)) + 30 * len(ends[2]) + 8 * len(fits)
        key = tuple(map(id, others)), nodes, ends
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = NameClass(tuple(others), nodes, ends, self._groups)
        if len(fits) == 1:
            self._kinds_one[fits[0]] = kind
        else:
            self._kinds_fit[fits] = kind
        return kind

    def _forget(self) -> None:
        self._spent = 0
        self._founds: dict[frozenset[int], Matches] = {}
        self._states: dict[tuple[Nodes, Matches, Matches, Matches], MatcherState] = {}
        self._kinds: dict[tuple[tuple[int, ...], Nodes, Ends], NameClass] = {}
        self._kinds_fit: dict[tuple[int, ...], NameClass] = {}  # by the names of patterns that fit
        self._kinds_one: list[NameClass | None] = [None] * len(self._leads)
        self._kinds_of: dict[str, NameClass] = {}
        self._directories: dict[str, MatcherState] = {}
        nothing = Matches({})
        at_root = self._latest(nothing, tuple(self._at_root))
        self.top = MatcherState(_NOTHING, at_root, at_root, at_root)
        everything = self._latest(nothing, self._ends.get(START, NO_ENDS)[2])
        opened = frozenset(self._open([START])) - {self._everywhere}
        self._plain = self._new_kind(())
        self.root = self._new_state(opened, nothing, nothing, everything)


def _reached(kind: Leads, nodes: Nodes) -> list[int]:
    """Return where names of one class lead from `nodes`, at the cost of the smaller of the two sets."""
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


def matches(pattern: str, path: str, directory: bool = False, *, fold: Fold = False) -> bool:
    """Whether one pattern matches a path, or a directory above it. Text that is not a path does not match."""
    try:
        return Matcher([pattern], fold).matches(path, directory or path == ROOT)
    except ValueError:
        return False

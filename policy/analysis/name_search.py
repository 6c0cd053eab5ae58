"""Search name by name: whether a path with some matches exists, and the shortest such paths.

A few representative texts stand for each name with wildcards. A question that they cannot settle is reported
as open, never guessed; `shortest_witness` then searches character by character.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Final

from ringfence.policy.analysis.common_names import NameTexts, Texts
from ringfence.policy.analysis.name_nfa import NameNfa
from ringfence.policy.analysis.shortest_witness import Budget, Witness
from ringfence.policy.patterns.syntax import CROSS, Branch
from ringfence.policy.value_classes import dataclass

_STEP: Final = 12  # what a step costs however few patterns there are
_WORDS: Final = 256  # bits that cost as much as one unit more
_MOST_NODES: Final = 2_000  # of one question
_MOST_WAYS: Final = 200  # to the shortest paths
_MOST_SHORTEST: Final = 8
_MOST_KNOWN: Final = 50_000  # remembered

Positions = tuple[int, ...]  # for each of some alternatives how many of its segments are done


@dataclass(frozen=True, slots=True)
class Answer:
    """A path, or none; `sure`: without a path, that none exists."""

    witness: Witness | None
    sure: bool


@dataclass(frozen=True, slots=True)
class _Move:
    """One name read: its texts, the positions after it, whether the path ends, and only as a directory."""

    texts: Texts
    after: Positions
    done: bool
    directory: bool
    free: bool  # any name will do, and nothing comes nearer to its end


@dataclass(frozen=True, slots=True)
class _Node:
    positions: Positions
    surely: int  # places of what must not match, by what is sure
    maybe: int  # and with what is in doubt
    doubtful: bool  # whether something that is in doubt has matched above
    path: str


class NameSearch:
    """Questions about alternatives of patterns, which are given by number."""

    def __init__(self, rows: NameNfa, texts: NameTexts, branches: Sequence[Branch], budget: Budget) -> None:
        self._rows = rows
        self._texts = texts
        # The names of each alternative by their numbers, and None for a `**`.
        self._segments = [
            tuple(None if segment is CROSS else rows.numbers[segment] for segment in branch.segments)
            for branch in branches
        ]
        self._directory = [branch.directory for branch in branches]
        self._budget = budget
        self._moves: dict[tuple[tuple[int, ...], Positions], tuple[_Move, ...]] = {}
        self._shortest: dict[tuple[int, ...], tuple[Witness, ...] | None] = {}

    def some(self, wanted: tuple[int, ...], none: int) -> Answer:
        """Return a path that all of these alternatives match and none of those patterns matches."""
        rows = self._rows
        start = rows.starts(none)
        cost = _STEP + start.bit_length() // _WORDS
        waiting = [_Node((0,) * len(wanted), start, start, False, "")]
        kept: dict[Positions, list[_Node]] = {}
        open_ = False
        made = 0
        while waiting:
            node = waiting.pop()
            for move in self._from(wanted, node.positions):
                open_ = open_ or not move.texts.all
                for typical in move.texts.typical:
                    self._budget.spend(cost)
                    surely = maybe = rows.step(node.surely, typical.surely)
                    if node.surely != node.maybe or typical.surely != typical.reads:
                        maybe = rows.step(node.maybe, typical.reads)
                    path = node.path + typical.text
                    if move.done:
                        if not node.doubtful and not rows.ended(maybe, move.directory):
                            return Answer(Witness(path, move.directory), True)
                        open_ = open_ or not rows.ended(surely, move.directory)
                    elif not surely & rows.every:  # else all that is below is matched
                        doubtful = node.doubtful or bool(maybe & rows.every)
                        after = _Node(move.after, surely, maybe, doubtful, path + "/")
                        if _keep(kept.setdefault(move.after, []), after):
                            waiting.append(after)
                            made += 1
            if made > _MOST_NODES:
                return Answer(None, False)
        return Answer(None, not open_)

    def shortest(self, wanted: tuple[int, ...]) -> tuple[Witness, ...] | None:
        """Return the shortest paths that all of these match; None where they are not known.

        Of paths that differ only in characters that may be any, one is returned.
        """
        if wanted not in self._shortest:
            if len(self._shortest) > _MOST_KNOWN:
                self._shortest.clear()
            self._shortest[wanted] = self._find_shortest(wanted)
        return self._shortest[wanted]

    def _find_shortest(self, wanted: tuple[int, ...]) -> tuple[Witness, ...] | None:
        heap: list[tuple[int, str, bool, Positions | None]] = [(0, "", False, (0,) * len(wanted))]
        least: dict[Positions, int] = {}
        found: dict[Witness, None] = {}
        for _ in range(_MOST_WAYS):
            if not heap or (found and heap[0][0] > len(next(iter(found)).path)):
                return tuple(found)
            length, path, directory, positions = heapq.heappop(heap)
            if positions is None:
                found[Witness(path, directory)] = None
                continue
            if least.setdefault(positions, length) < length:
                continue
            moves = [move for move in self._from(wanted, positions) if not move.free]
            if any(move.texts.shortest is None and _is_open(move.texts) for move in moves):
                return None
            for move in moves:
                if move.texts.shortest is None:
                    continue
                longer = path + move.texts.shortest
                if move.done:
                    heapq.heappush(heap, (len(longer), longer, move.directory, None))
                else:
                    heapq.heappush(heap, (len(longer) + 1, longer + "/", False, move.after))
            if len(found) > _MOST_SHORTEST:
                return None
        return None

    def _from(self, wanted: tuple[int, ...], positions: Positions) -> tuple[_Move, ...]:
        key = wanted, positions
        moves = self._moves.get(key)
        if moves is None:
            if len(self._moves) > _MOST_KNOWN:
                self._moves.clear()
            moves = self._moves[key] = tuple(self._next(wanted, positions))
        return moves

    def _next(self, wanted: tuple[int, ...], positions: Positions) -> list[_Move]:
        """Return every way to read one name: a `**` may end before the name, or take it."""
        rows = [self._segments[number] for number in wanted]
        options = [
            (at, at + 1) if at < len(row) and row[at] is None else (at,)
            for row, at in zip(rows, positions, strict=True)
        ]
        ends = tuple([len(row) for row in rows])
        moves = []
        for chosen in itertools.product(*options):
            here = [row[at] if at < len(row) else None for row, at in zip(rows, chosen, strict=True)]
            names = frozenset(name for name in here if name is not None)
            if not names and chosen == ends:
                continue
            texts = self._texts.of(names)
            after = tuple([at if name is None else at + 1 for at, name in zip(chosen, here, strict=True)])
            done = after == ends
            directory = done and any(
                name is not None and self._directory[n] for n, name in zip(wanted, here, strict=True)
            )
            moves.append(_Move(texts, after, done, directory, not names))
        return moves


def _is_open(texts: Texts) -> bool:
    """Whether some text may match although no shortest one is known."""
    return bool(texts.typical) or not texts.all


def _keep(kept: list[_Node], node: _Node) -> bool:
    """Keep a node, unless another node with fewer forbidden matches makes it redundant."""
    for other in kept:
        if (
            not other.surely & ~node.surely
            and not other.maybe & ~node.maybe
            and (not other.doubtful or node.doubtful)
        ):
            return False
    kept.append(node)
    return True

"""Rules under one key, stored as columns: a `Rule` object is made when it is first requested.

A call looks at a few of a thousand rules. A list equals the tuple of its rules and is as immutable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from ringfence.policy.errors import Where
from ringfence.policy.model import Effect, Rule, Tier

# Of each rule the pattern, the effect, the reason, and the file, line and column it is written at.
Said = tuple[list[str], list[Effect], list[str | None], list[str], list[int], list[int]]


class RuleList(Sequence[Rule]):
    """Rules of one tier, agent and key, in their order."""

    __slots__ = ("_made", "agent", "key", "said", "tier")

    def __init__(self, tier: Tier, agent: str | None, key: str, said: Said) -> None:
        if len({len(column) for column in said}) > 1:
            raise ValueError("columns of different lengths")
        self.tier = tier
        self.agent = agent
        self.key = key
        self.said = said
        self._made: dict[int, Rule] = {}

    @property
    def patterns(self) -> list[str]:
        """The patterns of all rules, in order, without a `Rule` object for each. Not a copy."""
        return self.said[0]

    def after(self, base: RuleList) -> RuleList:
        """Return the rules of `base` followed by these."""
        patterns, effects, reasons, files, lines, columns = base.said
        more = self.said
        both = (
            patterns + more[0], effects + more[1], reasons + more[2],
            files + more[3], lines + more[4], columns + more[5],
        )  # fmt: skip
        return RuleList(self.tier, self.agent, self.key, both)

    def __len__(self) -> int:
        return len(self.said[0])

    @overload
    def __getitem__(self, at: int) -> Rule: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Rule, ...]: ...
    def __getitem__(self, at: int | slice) -> Rule | tuple[Rule, ...]:
        if isinstance(at, slice):
            return tuple(self[each] for each in range(*at.indices(len(self))))
        made = self._made.get(at)
        if made is None:
            at = range(len(self))[at]
            patterns, effects, reasons, files, lines, columns = self.said
            where = Where(files[at], lines[at], columns[at])
            made = Rule(self.tier, self.agent, self.key, patterns[at], effects[at], reasons[at], where)
            made = self._made.setdefault(at, made)  # the same one for every thread
        return made

    def __iter__(self) -> Iterator[Rule]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

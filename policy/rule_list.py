"""Rules under one key, stored as columns: a `Rule` object is made when it is first requested.

A call looks at a few of a thousand rules. A list equals the tuple of its rules and is as immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, overload

from ringfence.policy.errors import Where
from ringfence.policy.model import Effect, Rule, Tier

# Of each rule the pattern, the effect, the reason, and the file, line and column it is written at.
Columns = tuple[list[str], list[Effect], list[str | None], list[str], list[int], list[int]]
More = Mapping[
    int, Mapping[str, Any]
]  # by a rule's index: further fields of the `Rule`, of the few that have any
_NOTHING: More = MappingProxyType({})


class RuleList(Sequence[Rule]):
    """Rules of one tier, agent and key, in their order."""

    __slots__ = ("_hash", "_made", "agent", "columns", "key", "more", "tier")

    def __init__(
        self, tier: Tier, agent: str | None, key: str, columns: Columns, more: More = _NOTHING
    ) -> None:
        if len({len(column) for column in columns}) > 1:
            raise ValueError("columns of different lengths")
        self.tier = tier
        self.agent = agent
        self.key = key
        self.columns = columns
        self.more = more
        self._made: dict[int, Rule] = {}
        self._hash: int | None = None

    @property
    def patterns(self) -> list[str]:
        """The patterns of all rules, in order, without a `Rule` object for each. Not a copy."""
        return self.columns[0]

    def after(self, base: RuleList) -> RuleList:
        """Return the rules of `base` followed by these."""
        patterns, effects, reasons, files, lines, columns = base.columns
        more = self.columns
        both = (
            patterns + more[0], effects + more[1], reasons + more[2],
            files + more[3], lines + more[4], columns + more[5],
        )  # fmt: skip
        first = len(base)
        extra = {**base.more, **{first + at: fields for at, fields in self.more.items()}}
        return RuleList(self.tier, self.agent, self.key, both, extra or _NOTHING)

    def projected(self, keep: Callable[[Rule], bool], real: Mapping[str, Any]) -> RuleList:
        """Return the rules that count, with these fields set on those that have more than the columns."""
        if not self.more:
            return self
        left = [at for at in range(len(self)) if at not in self.more or keep(self[at])]
        patterns, effects, reasons, files, lines, columns = self.columns
        counting = (
            [patterns[at] for at in left], [effects[at] for at in left], [reasons[at] for at in left],
            [files[at] for at in left], [lines[at] for at in left], [columns[at] for at in left],
        )  # fmt: skip
        more = {n: {**self.more[at], **real} for n, at in enumerate(left) if at in self.more}
        return RuleList(self.tier, self.agent, self.key, counting, more)

    def __len__(self) -> int:
        return len(self.columns[0])

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
            patterns, effects, reasons, files, lines, columns = self.columns
            where = Where(files[at], lines[at], columns[at])
            more = self.more.get(at, {})
            made = Rule(
                self.tier, self.agent, self.key, patterns[at], effects[at], reasons[at], where, **more
            )
            made = self._made.setdefault(at, made)  # the same one for every thread
        return made

    def __iter__(self) -> Iterator[Rule]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Sequence) and tuple(self) == tuple(other))

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self))
        return self._hash

    def __repr__(self) -> str:
        return repr(tuple(self))

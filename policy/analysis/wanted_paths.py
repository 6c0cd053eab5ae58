"""Wanted paths: which patterns must match a path and which must not, as one value that can be combined."""

from __future__ import annotations

from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """Paths with one match in each group of `every`, and no match in `none`. Patterns are given by number.

    For each item of `unless`, a path matches nothing of the first part unless it matches something of the
    second. `none` is given as bits. `directory`: only directories.
    """

    every: tuple[tuple[int, ...], ...] = ()
    none: int = 0
    unless: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    directory: bool = False

    def __and__(self, other: Wanted) -> Wanted:
        if not other.every or self.every == other.every:
            every = self.every
        elif not self.every:
            every = other.every
        else:
            every = tuple(dict.fromkeys((*self.every, *other.every)))
        unless = (*self.unless, *other.unless)
        return Wanted(every, self.none | other.none, unless, self.directory or other.directory)

    def settled(self) -> Wanted:
        """Return the same paths, without `unless` items that have no effect."""
        if not self.unless:
            return self
        none, unless = self.none, []
        for item, excepts in self.unless:
            if mask(excepts) & ~none:
                unless.append((item, excepts))
            else:  # nothing may match that would make it an exception
                none |= mask(item)
        kept = tuple(both for both in unless if mask(both[0]) & ~none)
        return Wanted(self.every, none, kept, self.directory)

    def impossible(self) -> bool:
        """Whether the same pattern must match and must not match."""
        none = self.none
        for group in self.every:
            for number in group:
                if not none >> number & 1:
                    break
            else:
                return True
        return False

    def fits(self, matched: int) -> bool:
        """Whether a path belongs to these paths, given its exact matches as bits."""
        if self.none & matched:
            return False
        for group in self.every:
            for number in group:
                if matched >> number & 1:
                    break
            else:
                return False
        return all(not matched & mask(item) or bool(matched & mask(excepts)) for item, excepts in self.unless)

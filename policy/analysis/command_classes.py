"""Classes of commands: every way in which some patterns of words can match a command, each with the shortest.

Position by position: the words that matter there are those that some pattern names, and one that none names.
Reads no files. Beyond its bound the search raises `Undecided`; it never guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ringfence.policy.analysis.bit_sets import numbers
from ringfence.policy.analysis.shortest_witness import Budget, Undecided
from ringfence.policy.commands.patterns import WordPattern, parse
from ringfence.policy.commands.words import Words, written
from ringfence.policy.value_classes import dataclass

MAX_CLASSES: Final = 100_000  # of the commands that begin alike, and of whole commands
NOT_WHOLE: Final = "X=1"  # the shortest line that no pattern of words matches but the one for every line
_TOO_MANY: Final = "too complex: the patterns of commands match in too many ways"
_STEP: Final = 40  # what one word costs
_BITS: Final = 64  # patterns that cost as much as one unit more


@dataclass(frozen=True, slots=True)
class CommandClass:
    """The commands that the same patterns match: the shortest of them, and the patterns' numbers as bits.

    `words` is None for the lines that are not whole, which only the pattern for everything matches.
    """

    words: Words | None
    matched: int

    @property
    def line(self) -> str:
        """The shortest command of the class, as a line."""
        return NOT_WHOLE if self.words is None else written(self.words)


def classes(patterns: Sequence[str], budget: Budget) -> list[CommandClass]:
    """Return every class of commands, the shortest first; lines that are not whole are last."""
    parsed = [parse(text) for text in patterns]
    fresh = _unnamed(parsed)
    longest = max((len(each.words) for each in parsed), default=0)
    found: dict[int, Words] = {}
    begun: dict[int, Words] = {
        (1 << len(parsed)) - 1: ()
    }  # by the patterns that still can match: the shortest
    for at in range(longest + 1):
        begun = _longer(parsed, begun, at, fresh, budget)
        for alive, words in begun.items():
            matched = _ending(parsed, alive, at + 1)
            if matched not in found:
                found[matched] = words
        if len(found) > MAX_CLASSES:
            raise Undecided(_TOO_MANY)
    everything = sum(1 << n for n, each in enumerate(parsed) if each.everything)
    whole = [CommandClass(words, matched) for matched, words in found.items()]
    whole.sort(key=lambda each: (len(each.words or ()), len(each.line), each.line))
    return [*whole, CommandClass(None, everything)]


def _longer(
    parsed: Sequence[WordPattern], begun: dict[int, Words], at: int, fresh: str, budget: Budget
) -> dict[int, Words]:
    """Return the beginnings that have one word more, by the patterns that still can match."""
    out: dict[int, Words] = {}
    for alive, words in begun.items():
        any_word = 0
        literals: dict[str, int] = {}
        budget.spend(_STEP + len(parsed) // _BITS)
        for n in numbers(alive):
            pattern = parsed[n]
            if at >= len(pattern.words):
                any_word |= 1 << n if pattern.rest else 0
                continue
            word = pattern.words[at]
            if word is None:
                any_word |= 1 << n
            else:
                literals[word] = literals.get(word, 0) | 1 << n
        for word, named in [(fresh, 0), *literals.items()]:
            budget.spend(_STEP + len(parsed) // _BITS)
            longer = (*words, word)
            known = out.get(any_word | named)
            if known is None or _order(longer) < _order(known):
                out[any_word | named] = longer
        if len(out) > MAX_CLASSES:
            raise Undecided(_TOO_MANY)
    return out


def _ending(parsed: Sequence[WordPattern], alive: int, length: int) -> int:
    """Return those of the patterns that match a command of this many words."""
    return sum(1 << n for n in numbers(alive) if len(parsed[n].words) <= length)


def _order(words: Words) -> tuple[int, str]:
    text = written(words)
    return len(text), text


def _unnamed(parsed: Sequence[WordPattern]) -> str:
    """Return a short word that no pattern names."""
    named = {word for each in parsed for word in each.words}
    short = (f"{letter}{number or ''}" for number in range(len(named) + 1) for letter in "xyz")
    return next(word for word in short if word not in named)

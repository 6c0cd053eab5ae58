"""Rules that match whole paths, as rules of a policy, whose match covers what is below it.

Nothing below a match is opened: where an earlier rule is stricter, it is repeated for what is below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ringfence.policy.model import Effect
from ringfence.toolkit.formats import wildcard
from ringfence.toolkit.formats.model import Entry, FormatError, Judged, Left
from ringfence.toolkit.formats.regular_language import Either, Language, covering
from ringfence.toolkit.formats.wildcard import Star, Tokens
from ringfence.toolkit.formats.yaml_writer import entries

EVERYTHING: Tokens = (Star(),)
_COVERS_BELOW: Tokens = ("/", Star())


@dataclass(frozen=True, slots=True)
class _Rule:
    variants: list[Tokens]
    effect: Effect
    where: str
    what: str

    @property
    def entry(self) -> Entry:
        return Entry("", self.effect, f"{self.where} {self.what}")

    @property
    def opened(self) -> list[Tokens]:
        """The wildcards that match nothing below their match."""
        return [each for each in self.variants if each[-1:] != EVERYTHING]

    @property
    def covering(self) -> list[Tokens]:
        return [each for each in self.variants if each[-1:] == EVERYTHING]


class Writing:
    """One list of rules being written, the deciding one last. Adds to `left`."""

    def __init__(self, default: Effect, left: list[Left], *listed: Entry) -> None:
        self.judged: list[Judged] = []
        self.entries = list(listed)
        self._left = left
        self._strictest = default  # of the rules that may decide where the next one does not
        self._alike: list[_Rule] = []  # the last rules, all with one effect: their order does not matter

    def add(self, variants: Sequence[Tokens], effect: Effect, where: str, what: str) -> None:
        """Add a rule for the paths that any of these wildcards matches."""
        sayable, inexact = _sayable(variants, effect)
        if inexact:
            self._left.append(Left(where, what, inexact))
        if self._alike and self._alike[0].effect is not effect:
            self.finish()
        self._alike.append(_Rule(sayable, effect, where, what))
        self.judged.append(Judged(effect, _language(variants), patterns=tuple(_patterns(sayable))))

    def finish(self) -> None:
        """Write the last rules."""
        if not self._alike:
            return
        effect = self._alike[0].effect
        every = {each for rule in self._alike for each in rule.variants}
        below = [
            under
            for rule in self._alike
            for each in rule.opened
            if (under := (*each, *_COVERS_BELOW)) not in every
        ]
        if self._strictest <= effect or not below or EVERYTHING in every:
            for rule in self._alike:
                self._write(rule.variants, rule.entry, rule)
        else:
            self._write_closed(below)
        self._strictest = effect if EVERYTHING in every else max(self._strictest, effect)
        self._alike = []

    def _write_closed(self, below: list[Tokens]) -> None:
        """Write rules that open names, and repeat earlier rules for what is below these names."""
        for rule in self._alike:
            self._write(rule.opened, rule.entry, rule)
        again = Entry("", self._strictest, "nothing below a name is opened")
        self._write(below, again, self._alike[0])
        for rule in self._alike:
            self._write(rule.covering, rule.entry, rule)
        effect = self._alike[0].effect
        covering = [each for rule in self._alike for each in rule.covering]
        number = len(self._alike)
        mine = [replace(rule, patterns=(), after=()) for rule in self.judged[-number:]]
        after = Judged(self._strictest, _language(below)), Judged(effect, _language(covering))
        self.judged[-number:] = [*mine[:-1], replace(mine[-1], after=after)]

    def _write(self, variants: Sequence[Tokens], entry: Entry, rule: _Rule) -> None:
        self.entries += entries(_patterns(variants), entry, self._left, rule.where, rule.what)


def _language(variants: Sequence[Tokens]) -> Language:
    return Either(tuple(map(wildcard.language, variants)))


def _patterns(variants: Sequence[Tokens]) -> list[str]:
    return list(dict.fromkeys(pattern for each in variants for pattern in wildcard.patterns(each)))


def _sayable(variants: Sequence[Tokens], effect: Effect) -> tuple[list[Tokens], str]:
    """Return the wildcards that patterns can express. A deny or ask without any covers more paths."""
    found: list[Tokens] = []
    why = ""
    for each in variants:
        try:
            wildcard.patterns(each)
            found.append(each)
        except FormatError as error:
            why = f"{error.message}; left out"
            if effect is not Effect.ALLOW:
                why = f"{error.message}; applied to every path that begins so, which is stricter"
                found.append(_beginning(each))
    return found, why


def _beginning(pattern: Tokens) -> Tokens:
    plain = next((at for at, token in enumerate(pattern) if not isinstance(token, str)), len(pattern))
    return (*pattern[:plain], Star())


def covered(rules: Sequence[Judged]) -> tuple[Judged, ...]:
    """Return the rules as a policy has them below a match: covering it, or with a rule for what is below."""
    out: list[Judged] = []
    for rule in rules:
        if rule.after is None:
            out.append(replace(rule, language=covering(rule.language)))
        else:
            out += [rule, *rule.after]
    return tuple(out)

"""Negations of an ignore file in the order of a policy, which is never looser than the file.

Below an ignored directory `!` opens nothing, and it opens nothing below its match; a policy's later rule does
both. So a negation comes before every rule that it does not depend on, and its surplus is denied again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.policy.model import Effect
from ringfence.toolkit.formats.model import Judged
from ringfence.toolkit.formats.regular_language import BELOW, Language, Machine, Row, alphabet


def ordered(rules: Sequence[Judged]) -> list[Judged]:
    """Return the rules so that order matters only for rules with a common path, and denials to repeat."""
    placed: list[int] = []
    for at, rule in enumerate(rules):
        if rule.effect is not Effect.DENY:
            _place(at, rules, placed)
    out: list[Judged] = []
    for number, at in enumerate(placed):
        out.append(rules[at])
        if rules[at].effect is not Effect.DENY:
            denies = [rules[one] for one in placed[:number] if rules[one].effect is Effect.DENY]
            out += [again for deny in denies for again in _again(deny, rules[at])]
    return out + [rule for at, rule in enumerate(rules) if at not in placed]


def _place(at: int, rules: Sequence[Judged], placed: list[int]) -> None:
    """Insert a rule after the earlier rules with another effect and a common path."""
    if at in placed:
        return
    for earlier in range(at):
        other = rules[earlier]
        if other.effect is not rules[at].effect and meet(other.language, rules[at].language):
            _place(earlier, rules, placed)
    placed.append(at)


def _again(deny: Judged, opened: Judged) -> Iterator[Judged]:
    """Return the denials to repeat after a rule that opens something."""
    (pattern,), (other,) = deny.patterns, opened.patterns
    if meet(opened.language, Row((deny.language, BELOW))):
        yield _deny(deny, _below(pattern))
    if not meet(Row((opened.language, BELOW)), deny.language):
        return
    name = pattern.removeprefix("**/")
    anywhere = pattern.startswith("**/") or "/" not in pattern
    if anywhere and "/" not in name.removesuffix("/**"):  # the first of several names may be an opened one
        yield _deny(deny, f"{_below(other)}/{name}")
    elif meet(opened.language, deny.language):
        yield _deny(deny, _below(other))
    else:
        yield _deny(deny, pattern)


def _below(pattern: str) -> str:
    """Return what is below the matches of a pattern."""
    if pattern.endswith("/**"):
        return pattern
    body = pattern.rstrip("/")
    return f"{body}/**" if "/" in body else f"**/{body}/**"


def _deny(deny: Judged, pattern: str) -> Judged:
    return Judged(Effect.DENY, deny.language, deny.folder, (pattern,))


def meet(one: Language, other: Language) -> bool:
    """Whether two languages have a common text."""
    machine = Machine([one, other])
    machine.read(alphabet(machine.kinds))
    own, others = machine.own
    begins = machine.begin
    met = {begins}
    waiting = [begins]
    while waiting:
        bits = waiting.pop()
        if bits & machine.whole[0] and bits & machine.whole[1]:
            return True
        for after in machine.steps(bits):
            if after & own and after & others and after not in met:
                met.add(after)
                waiting.append(after)
    return False

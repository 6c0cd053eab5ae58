"""Rules about commands in other programs' settings: as patterns of words, and the other way round.

Their star stands for any text, also within a word and over several; a policy's stands for a word. What cannot
be expressed exactly is made stricter, or, if it allows, narrower or left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ringfence.policy.commands.patterns import WordPattern, parse, text_of
from ringfence.policy.commands.words import UnknownWord, scan, written
from ringfence.policy.model import Effect
from ringfence.policy.patterns.syntax import PatternError
from ringfence.toolkit.formats.model import Entry, Left, tightened

RUN_NOTE = "commands are compared word by word, and each command of a line by itself"
EVERYTHING = "*"
_WILD = frozenset("*?[")
# Programs that run the words after them; Claude Code compares a rule with those words.
WRAPPERS = ("timeout", "nice", "nohup", "stdbuf", "xargs")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A pattern of words for a text with stars; None if it is left out. `why`: in what the two differ."""

    pattern: str | None
    why: str = ""


def spoken(body: str, effect: Effect) -> Spoken:
    """Return the pattern for a text in which a star is any text, and ` *` at the end also none.

    The pattern of a rule that allows matches no more than the text does, any other no less.
    """
    if body.strip() in ("", EVERYTHING):
        return Spoken(EVERYTHING)
    found = scan(body)
    if not found.whole or not found.commands:
        return _beyond((), effect, "it is more than the words of a command")
    words = found.commands[0]
    if found.extra or len(found.commands) > 1:
        plain = [word for word in words if not isinstance(word, UnknownWord)]
        return _beyond(tuple(plain[: _known(words)]), effect, "it is more than the words of one command")
    return _of_words(words, effect)


def prefix(words: Sequence[str], effect: Effect) -> Spoken:
    """Return the pattern for the commands that begin with these words."""
    return _valid(words, True, effect, "")


def _known(words: Sequence[str]) -> int:
    """Return how many words at the start are known."""
    return next((at for at, word in enumerate(words) if isinstance(word, UnknownWord)), len(words))


def _of_words(words: Sequence[str], effect: Effect) -> Spoken:
    allows = effect is Effect.ALLOW
    out: list[str | None] = []
    why = ""
    for at, word in enumerate(words):
        last = at == len(words) - 1
        if not isinstance(word, UnknownWord):
            out.append(word)
        elif word == UnknownWord("*") and last:
            return _valid(out, True, effect, why)
        elif word == UnknownWord("*") and allows:
            out.append(None)
            why = "its star is any text, and here one word"
        elif allows and last and word.endswith("*") and not _WILD & set(word[:-1]) and _is_plain(word[:-1]):
            out.append(word[:-1])
            return _valid(out, True, effect, "its star goes on within a word, and here only after it")
        else:
            return _beyond(tuple(out), effect, "it has a wildcard within its words")
    return _valid(out, False, effect, why)


def _is_plain(word: str) -> bool:
    """Whether a shell takes a word as it stands."""
    found = scan(word)
    return found.whole and found.commands == [(word,)] and not isinstance(found.commands[0][0], UnknownWord)


def _beyond(words: Sequence[str | None], effect: Effect, why: str) -> Spoken:
    """Return the pattern in place of a text that has none: fewer words, and anything after them."""
    if effect is Effect.ALLOW:
        return Spoken(None, f"{why}; the allow is left out")
    wider = _valid(words, True, effect, "")
    return Spoken(wider.pattern, f'{why}; written as "{wider.pattern}", which is stricter')


def _valid(words: Sequence[str | None], rest: bool, effect: Effect, why: str) -> Spoken:
    for end in range(len(words), -1, -1):
        text = text_of(WordPattern(tuple(words[:end]), rest or end < len(words)))
        try:
            parse(text)
        except PatternError as error:
            if effect is Effect.ALLOW:
                return Spoken(None, f"{error.message}; the allow is left out")
            why = f"{error.message}; written with fewer words, which is stricter"
            continue
        return Spoken(text, why)
    return Spoken(EVERYTHING, why)


def add(  # noqa: PLR0913  one rule and its place in the settings
    rules: list[Entry], body: str, effect: Effect, where: str, what: str, left: list[Left]
) -> None:
    """Add a rule for the commands of a text to a list in which the last match decides."""
    rule = spoken(body, effect)
    if rule.why:
        left.append(Left(where, what, rule.why))
    if rule.pattern is None:
        return
    entry = Entry(rule.pattern, effect, f"{where} {what}")
    # An ask for more commands than the text names must not open what an earlier rule denies.
    wider = rule.why and effect is Effect.ASK
    rules[:] = tightened(rules, [entry], lambda each: each.effect) if wider else [*rules, entry]


def unwrapped(rules: Sequence[Entry], left: list[Left]) -> list[Entry]:
    """Return the rules with the strictest effect for wrappers, where an allow would let them through.

    A wrapper's own words are not compared by the other program; here they are.
    """
    strict = [each for each in rules if each.effect is not Effect.ALLOW]
    allows = [each for each in rules if each.effect is Effect.ALLOW]
    more: list[Entry] = []
    for name in WRAPPERS:
        covered = any(_may_begin(each.pattern, name) for each in allows)
        # Rules for the wrapper itself count there as well, and are in the list already.
        others = [each for each in strict if not _may_begin(each.pattern, name)]
        if covered and others:
            worst = max(others, key=lambda each: each.effect)
            more.append(Entry(f"{name} *", worst.effect, f"runs what {worst.pattern} is about"))
    if more:
        why = "what it runs is compared with the rules there, and here its own words: the strictest effect"
        left.append(Left("", ", ".join(each.pattern for each in more), why))
    return tightened(rules, more, lambda each: each.effect)


def _may_begin(pattern: str, name: str) -> bool:
    words = parse(pattern).words
    return not words or words[0] in (None, name)


def from_the_last_star(rules: Iterable[tuple[str, Effect]]) -> list[tuple[str, Effect]]:
    """Return the rules from the last one for everything on: none before it decides."""
    listed = list(rules)
    start = max((at for at, (pattern, _) in enumerate(listed) if parse(pattern).everything), default=0)
    return listed[start:]


def as_text(pattern: str, effect: Effect) -> Spoken:
    """Return a pattern of words as a text in which a star is any text; the other way round of `spoken`."""
    parsed = parse(pattern)
    if parsed.everything:
        return Spoken(EVERYTHING)
    words: list[str] = []
    why = ""
    rest = parsed.rest
    for word in parsed.words:
        if word is None:
            why = "its star is one word here and any text there"
            words.append("*")
        elif written((word,)) != word or _WILD & set(word):
            # There the text is compared, and a word can be quoted in several ways.
            why, rest = "it has a word in quotes", True
            break
        else:
            words.append(word)
    if why and effect is Effect.ALLOW:
        return Spoken(None, f"{why}; the allow is left out")
    if why:
        why += "; applied to more commands, which is stricter"
    text = " ".join([*words, "*"] if rest else words)
    return Spoken(text or EVERYTHING, why)

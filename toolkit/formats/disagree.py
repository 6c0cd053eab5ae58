"""Where settings and a policy disagree: every path at once, the shortest of each kind, or none: a proof.

Goes through all pairs of states of the two, breadth first, by machines of its own; the engine then confirms
each path. Past its bound there is no answer, and it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from policy.automaton import Undecided, Witness
from policy.engine import Policy
from policy.glob import parse
from policy.model import Effect, Rule
from policy.questions import Context, confirm, context
from toolkit.formats.language import BELOW, Language, Machine, Row, alphabet, covering, of_branch
from toolkit.formats.source import Judged, Subject

MAX_PAIRS = 150_000
_CLOSED = -1  # the state below a folder that is denied for good; no places are these bits
_DENY_OR_NOT = {Effect.ALLOW: Effect.ASK, Effect.ASK: Effect.ASK, Effect.DENY: Effect.DENY}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The shortest path on which the settings say one thing and the policy another."""

    subject: Subject
    source: Effect
    result: Effect
    example: Witness
    rule: Rule | None

    @property
    def looser(self) -> bool:
        """Whether the policy lets through what the settings do not."""
        return self.result < self.source

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.subject.agent,
            "tool": self.subject.tool,
            "action": self.subject.action,
            "source": str(self.source),
            "result": str(self.result),
            "looser": self.looser,
            "path": self.example.path,
            "directory": self.example.directory,
            "rule": self.rule.to_json() if self.rule else None,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All disagreements; `elsewhere`: those left when a match of the settings covers what is below it."""

    found: tuple[Disagreement, ...]
    elsewhere: tuple[Disagreement, ...]
    undecided: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        return not self.found and not self.undecided


def compare(subjects: Sequence[Subject], policy: Policy, *, quick: bool = True) -> Comparison:
    """Compare each subject of the settings with the policy; `quick` looks for the short proof first."""
    found: list[Disagreement] = []
    elsewhere: list[Disagreement] = []
    undecided: list[str] = []
    for subject in subjects:
        where = context(policy, subject.agent, subject.tool, subject.action)
        try:
            here = list(_disagreements(subject, where, quick=quick))
            found += here
            if here and not subject.above:
                rules = tuple(replace(rule, language=covering(rule.language)) for rule in subject.rules)
                elsewhere += _disagreements(replace(subject, rules=rules), where, quick=quick)
            else:
                elsewhere += here
        except Undecided as error:
            undecided.append(f"{subject.agent}, {subject.tool} {subject.action}: {error}")
    return Comparison(tuple(found), tuple(elsewhere), tuple(undecided))


def _disagreements(subject: Subject, where: Context, *, quick: bool = True) -> Iterator[Disagreement]:
    if quick and _alike(subject, where):
        return
    for source, result, witness in _Pairs(_Settings(subject), _Target(where), subject.denies_only).run():
        if subject.denies_only:
            said, rule = where.policy.verdict(
                where.agent, where.tool, where.action, witness.path, witness.directory
            )
            if _DENY_OR_NOT[said] is not result:
                raise AssertionError(f"the engine says {said} where the comparison says {result}: {witness}")
        else:
            rule = confirm(where, witness, result)
        yield Disagreement(subject, source, result, witness, rule)


def _alike(subject: Subject, where: Context) -> bool:
    """Whether the policy is the settings rule by rule: one list, each rule with the same paths.

    A proof that costs little however many rules there are; without it every pair of states is looked at.
    """
    lists = [(at, rules) for at, rules in enumerate(where.ladders[0][0]) if rules]
    if len(where.ladders) != 1 or any(any(tier) for tier in where.ladders[0][1:]) or where.floor:
        return False
    if len(lists) > 1 or (subject.above and any(rule.effect is not Effect.DENY for rule in subject.rules)):
        return False
    rules = lists[0][1] if lists else ()
    said = [(pattern, rule.effect) for rule in subject.rules for pattern in rule.patterns]
    base = [("*", subject.default)]
    told = [(rule.pattern, rule.effect) for rule in rules]
    if told != _last_of_each(base + said) and not (
        subject.default is Effect.ASK and told == _last_of_each(said)
    ):
        return False
    return all(_same(subject, rule, where) for rule in dict.fromkeys(subject.rules))


def _last_of_each(said: list[tuple[str, Effect]]) -> list[tuple[str, Effect]]:
    last = {pattern: at for at, (pattern, _) in enumerate(said)}
    return [pair for at, pair in enumerate(said) if last[pair[0]] == at]


def _same(subject: Subject, rule: Judged, where: Context) -> bool:
    """Whether a rule of the settings and the patterns written for it match the same paths."""
    alone = replace(subject, rules=(replace(rule, effect=Effect.DENY),), default=Effect.ASK)
    said = tuple(Rule("global", None, where.action, text, Effect.DENY) for text in rule.patterns)
    target = _Target(replace(where, ladders=((((), said, ()),),), floor=()))
    return next(_Pairs(_Settings(alone), target, denies_only=False).run(), None) is None


class _Forgetful:
    """Lists in which the last match decides: forgets what cannot decide any more, whatever comes.

    Below a folder that a rule covers, the rules before it are out, and so are those right after it that say
    the same: they all become the last of them. `closing` lists end all, once their last word is a deny.
    """

    def __init__(
        self,
        machine: Machine,
        lists: Sequence[Sequence[tuple[Effect, Sequence[int]]]],
        closing: Collection[int],
    ) -> None:
        self._rules: list[list[tuple[int, int, int, bool]]] = []
        for number, rules in enumerate(lists):
            own = [reduce(int.__or__, (machine.own[at] for at in each), 0) for _, each in rules]
            forever = [reduce(int.__or__, (machine.forever[at] for at in each), 0) for _, each in rules]
            found = []
            for at, (effect, _) in enumerate(rules):
                end = at
                while end + 1 < len(rules) and rules[end + 1][0] is effect:
                    end += 1
                last = next((forever[n] for n in range(end, at - 1, -1) if forever[n]), 0)
                closed = number in closing and end == len(rules) - 1 and effect is Effect.DENY
                found.append((forever[at], reduce(int.__or__, own[: end + 1], 0), last & -last, closed))
            self._rules.append([each for each in reversed(found) if each[0]])
        self._any = reduce(int.__or__, (each[0] for rules in self._rules for each in rules), 0)

    def __call__(self, bits: int) -> int:
        if not bits & self._any:
            return bits
        for rules in self._rules:
            for forever, all_before, last, closed in rules:
                if bits & forever:
                    if closed:
                        return last
                    bits = bits & ~all_before | last
                    break
        return bits


class _Settings:
    """The settings' own judge."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.machine = Machine([rule.language for rule in subject.rules])
        self.begin = self.machine.begin
        self._forget = _Forgetful(
            self.machine, [[(rule.effect, (at,)) for at, rule in enumerate(subject.rules)]], (0,)
        )
        self._verdicts: dict[tuple[int, bool], Effect] = {}

    def last(self, bits: int, folder: bool) -> Effect:
        key = (bits, folder)
        if key not in self._verdicts:
            rules, matched = self.subject.rules, self.machine.matched(bits)
            hits = [at for at in matched if folder or not rules[at].folder]
            self._verdicts[key] = rules[max(hits)].effect if hits else self.subject.default
        return self._verdicts[key]

    def verdict(self, bits: int) -> Effect:
        if bits == _CLOSED:
            return Effect.DENY
        return self.last(bits, False)  # these tools ask about a name, and do not say what it is

    def step(self, bits: int, number: int, slash: bool) -> int:
        if bits == _CLOSED:
            return bits
        if slash and self.subject.above and self.last(bits, True) is Effect.DENY:
            return _CLOSED
        bits = self.machine.step(bits, number)
        return bits if self.subject.above else self._forget(bits)


@dataclass(slots=True)
class _Matches:
    """The languages by which one pattern matches a name that is no folder, and one that is."""

    leaf: list[int]
    folder: list[int]


class _Target:
    """A policy's judge for one agent, tool and action, by the rules alone and without the engine."""

    def __init__(self, where: Context) -> None:
        self._languages: list[Language] = []
        self.ladders = [
            [[self._list(rules) for rules in tier] for tier in ladder] for ladder in where.ladders
        ]
        self.floor = [
            (item.effect, self._list(item.rules), [self._pattern(text) for text in item.excepts])
            for item in where.floor
        ]
        self.machine = Machine(self._languages)
        self.begin = self.machine.begin
        lists = [rules for ladder in self.ladders for tier in ladder for rules in tier if rules]
        closing = [0] if len(lists) == 1 else []
        for effect in (Effect.DENY, Effect.ASK):
            plain = [
                each
                for said, rules, excepts in self.floor
                if said is effect and not excepts
                for each in rules
            ]
            if plain:
                closing += [len(lists)]
                lists.append(plain)
        for said, rules, excepts in self.floor:
            if excepts:
                lists += [rules, [(said, each) for each in excepts]]
        self._forget = _Forgetful(
            self.machine, [[(effect, each.folder) for effect, each in rules] for rules in lists], closing
        )
        self._verdicts: dict[tuple[int, bool], Effect] = {}

    def _list(self, rules: Iterable[Rule]) -> list[tuple[Effect, _Matches]]:
        return [(rule.effect, self._pattern(rule.pattern)) for rule in rules]

    def _pattern(self, text: str) -> _Matches:
        found = _Matches([], [])
        for branch in parse(text).branches:
            one = of_branch(branch)
            if branch.directory:
                found.folder.append(self._add(one))
            covered = Row((one, BELOW)) if branch.directory else covering(one)
            number = self._add(covered)
            found.leaf.append(number)
            found.folder.append(number)
        return found

    def _add(self, language: Language) -> int:
        self._languages.append(language)
        return len(self._languages) - 1

    def step(self, bits: int, number: int) -> int:
        return self._forget(self.machine.step(bits, number))

    def verdict(self, bits: int, directory: bool) -> Effect:
        key = (bits, directory)
        if key not in self._verdicts:
            found = self.machine.matched(bits)

            def hit(pattern: _Matches) -> bool:
                return not found.isdisjoint(pattern.folder if directory else pattern.leaf)

            said = [_ladder(ladder, hit) for ladder in self.ladders]
            for effect, rules, excepts in self.floor:
                if any(hit(each) for _, each in rules) and not any(map(hit, excepts)):
                    said.append(effect)
            self._verdicts[key] = max(said)
        return self._verdicts[key]


Listed = list[tuple[Effect, _Matches]]


def _ladder(ladder: list[list[Listed]], hit: Callable[[_Matches], bool]) -> Effect:
    """What the first tier that decides says: the tool's list, the action's, else that of `*`."""
    for tier in ladder:
        tool, action, anything = (
            next((effect for effect, each in reversed(rules) if hit(each)), None) for rules in tier
        )
        if tool is not None:
            return Effect.DENY if action is Effect.DENY else tool
        chosen = anything if action is None else action
        if chosen is not None:
            return chosen
    return Effect.ASK


@dataclass(frozen=True, slots=True)
class _Node:
    source: int
    target: int
    valid: int  # 0 at a name's start, 1 after ".", 2 after "..", 3 within a name
    before: int
    character: str


class _Pairs:
    """One walk through the pairs of states."""

    def __init__(self, source: _Settings, target: _Target, denies_only: bool) -> None:
        self.source, self.target = source, target
        self.denies_only = denies_only
        self.alphabet = alphabet([*source.machine.kinds, *target.machine.kinds])
        source.machine.read(self.alphabet)
        target.machine.read(self.alphabet)

    def run(self) -> Iterator[tuple[Effect, Effect, Witness]]:
        nodes = [_Node(self.source.begin, self.target.begin, 0, -1, "")]
        seen = {(nodes[0].source, nodes[0].target, 0)}
        told: set[tuple[Effect, Effect]] = set()
        at = 0
        while at < len(nodes):
            node = nodes[at]
            for one, other, directory in self._differ(node):
                if (one, other) not in told:
                    told.add((one, other))
                    yield one, other, Witness(_path(nodes, node), directory)
            for number, character in enumerate(self.alphabet):
                slash = character == "/"
                if slash and node.valid != 3:
                    continue
                valid = 0 if slash else node.valid + 1 if character == "." and node.valid < 2 else 3
                source = self.source.step(node.source, number, slash)
                target = self.target.step(node.target, number)
                if (source, target, valid) not in seen:
                    seen.add((source, target, valid))
                    nodes.append(_Node(source, target, valid, at, character))
            if len(nodes) > MAX_PAIRS:
                raise Undecided("too complex: the bound on the pairs of states was reached")
            at += 1

    def _differ(self, node: _Node) -> Iterator[tuple[Effect, Effect, bool]]:
        if node.valid != 3:
            return
        for directory in (False, True):
            one = self.source.verdict(node.source)
            other = self.target.verdict(node.target, directory)
            if self.denies_only:
                one, other = _DENY_OR_NOT[one], _DENY_OR_NOT[other]
            if one is not other:
                yield one, other, directory


def _path(nodes: list[_Node], node: _Node) -> str:
    letters = []
    while node.before >= 0:
        letters.append(node.character)
        node = nodes[node.before]
    return "".join(reversed(letters))


def judge(subject: Subject, path: str) -> Effect:
    """What the settings say of one path."""
    settings = _Settings(subject)
    characters = sorted(set(path))
    settings.machine.read(characters)
    bits = settings.begin
    for character in path:
        bits = settings.step(bits, characters.index(character), character == "/")
    return settings.verdict(bits)

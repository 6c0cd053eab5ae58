"""Offers: rules that would have answered a request, with what each opens, its proof and its diff.

Pure over a policy, a request's needs and the workspace's listing: `reload` gives the policy with another text
of its file. A rule that is not proved to answer questions and nothing else is not offered, and the reason is
kept.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ringfence.policy import Effect, Need, Policy
from ringfence.policy.analysis.command_classes import classes
from ringfence.policy.analysis.pattern_queries import Budget, PatternQueries, Undecided
from ringfence.policy.errors import PolicyError
from ringfence.policy.formatting import rule_lines
from ringfence.policy.formatting.formatter import LayoutError
from ringfence.policy.model import RUN, Rule, asked_actions, names_action, path_needs
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.rule_offers.candidates import WIDTHS, Candidate, candidates
from ringfence.toolkit.rule_offers.changed_rules import only_adds
from ringfence.toolkit.rule_offers.marks import reason, rule_id
from ringfence.toolkit.rule_offers.opened import Name, Opened, opened
from ringfence.toolkit.rule_offers.proof import Proof, only_answers
from ringfence.toolkit.text import diff, escape, rfc3339, when

PROVED = "proved for every possible path: no deny, no mandatory rule and no limit is loosened"
_ROUNDS = 4  # of finding denies that a rule would loosen
_MOST_KEPT = 12  # denies that one rule repeats


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The file that a rule would be written to: its name for people, and its bytes as they were read."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Names:
    """The workspace's paths, each with whether it is a directory; `whole`: none was left out."""

    paths: tuple[Name, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Offer:
    """A rule that answers a request: `owners` are keys under `agents`, `until` is in POSIX seconds.

    `keeps` are patterns of denies that are repeated, as the rule would loosen them. `after` is the policy
    with the rule, `data` the file's new bytes, `agents` one name for each kind of agent that gains something.
    """

    id: str
    width: str
    words: str
    owners: tuple[str, ...]
    key: str
    patterns: tuple[str, ...]
    keeps: tuple[str, ...]
    until: int | None
    opens: Opened
    agents: tuple[str, ...]
    diff: str
    data: bytes
    after: Policy

    def rule_in_words(self) -> str:
        """Return the rule as one line: `edit_file "/docs/*": allow for agent coder, without an end`."""
        patterns = ", ".join(f'"{pattern}"' for pattern in self.patterns)
        ends = f", until {when(self.until)}" if self.until is not None else ", without an end"
        return escape(f"{self.key} {patterns}: allow for agent {' and '.join(self.owners)}{ends}")

    def to_json(self) -> dict[str, Any]:
        """Return the offer as JSON values."""
        return {
            "id": self.id,
            "width": self.width,
            "words": self.words,
            "tier": "agent",
            "agents": list(self.owners),
            "key": self.key,
            "patterns": list(self.patterns),
            "effect": "allow",
            "keeps_denied": list(self.keeps),
            "until": rfc3339(self.until) if self.until is not None else None,
            "opens": self.opens.to_json(),
            "gains": list(self.agents),
            "proof": PROVED,
            "diff": self.diff,
        }


@dataclass(frozen=True, slots=True)
class Offers:
    """What can be offered, narrow first, and for each width that cannot: its words and the reason."""

    offers: tuple[Offer, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    def of_width(self, width: str) -> Offer | None:
        """Return the offer of a width, or None."""
        return next((each for each in self.offers if each.width == width), None)


def needs_of(request: Request) -> tuple[Need, ...]:
    """Return the needs that a request stores."""
    return tuple(
        Need(n["action"], n["path"], n["directory"], n["on_the_way"], n.get("kind", ""))
        for n in request.needs
    )


def answers(policy: Policy, request: Request, fold: Fold = Folding.NONE) -> bool:
    """Whether a policy allows all that a request needs, so that nobody would be asked."""
    if not request.rules or not request.needs:
        return False  # a limit or a loss asks, which no rule answers
    decision = policy.decide(request.agent, request.tool, needs_of(request), fold=fold)
    return decision.effect is Effect.ALLOW


def asking(policy: Policy, request: Request, fold: Fold = Folding.NONE) -> tuple[Need, ...]:
    """Return the needs of a request that a policy asks about; none if it denies one."""
    found = []
    for need in needs_of(request):
        action = need.name if policy.has_kinds else need.action
        effect = policy.effect(request.agent, request.tool, action, need.path, need.directory, fold=fold)
        if effect is Effect.DENY:
            return ()
        if effect is Effect.ASK and not need.incidental:
            found.append(need)
    return tuple(found)


def offers(  # noqa: PLR0913  a request, a policy with its text, what is there, and times
    request: Request,
    policy: Policy,
    text: PolicyText,
    reload: Callable[[bytes], Policy],
    names: Names,
    *,
    now: float,
    until: int | None,
    fold: Fold = Folding.NONE,
    widths: Collection[str] = WIDTHS,
) -> Offers:
    """Return the rules that can be offered. `now` and `until`: POSIX seconds; no `until`: no end."""
    if not request.rules:
        return Offers((), (("", "a limit or a loss is answered once, and never by a rule"),))
    at = policy.at(now)
    asks = asking(at, request, fold)
    if not asks:
        return Offers((), (("", "the policy in force asks about nothing here"),))
    found: list[Offer] = []
    left: list[tuple[str, str]] = []
    patterns = [rule["pattern"] if rule else None for rule in request.asks]
    for candidate in candidates(request.tool, asks, patterns):
        if candidate.width not in widths:
            continue
        made = _Maker(request, policy, text, reload, names, now, until, fold).offer(candidate, asks)
        if isinstance(made, Offer):
            found.append(made)
        else:
            left.append((candidate.words, made))
    if not found and not left:
        left.append(
            ("", "no rule is offered for the deletion of a tree, for tasks, or for what no pattern names")
        )
    return Offers(tuple(found), tuple(left))


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule to try; `keeps`: denies that it would loosen, to be repeated behind it, with their reasons."""

    candidate: Candidate
    key: str
    owners: tuple[str, ...]
    patterns: tuple[str, ...]
    keeps: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Written:
    data: bytes
    patterns: tuple[str, ...]
    after: Policy


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes an offer of a candidate, or says why there is none."""

    request: Request
    policy: Policy
    text: PolicyText
    reload: Callable[[bytes], Policy]
    names: Names
    now: float
    until: int | None
    fold: Fold

    def offer(self, candidate: Candidate, asks: Sequence[Need]) -> Offer | str:
        """Return the offer of a candidate, with the first key and agents that answer the request safely."""
        why = "no rule for this agent answers it: a mandatory rule or an agent above it asks"
        for key in candidate.keys:
            for owners in _owners(self.policy.at(self.now), self.request.agent):
                for rule in self._beginnings(_Rule(candidate, key, owners, candidate.patterns)):
                    made = self._proved(rule, asks)
                    if isinstance(made, Offer):
                        return made
                    why = made or why
        return why

    def _beginnings(self, rule: _Rule) -> Iterator[_Rule]:
        """Yield a rule with the denies that it would hide, which is proved most often, and without."""
        keeps = tuple(_repeated(rule, self._hidden(rule)))
        # A deny of one action that is repeated below a tool's key would deny the tool's other actions.
        several = len(set(self._actions(rule.key))) > 1 and rule.key != rule.candidate.keys[-1]
        if keeps and not several:
            yield replace(rule, keeps=keeps)
        yield rule

    def _actions(self, key: str) -> list[str]:
        """Return the actions that a key is about."""
        tools = self.policy.tools
        return [action for action, _ in path_needs(key, tools)] if key in tools else [key.partition(".")[0]]

    def _names(self, key: str) -> set[str]:
        """Return the actions that a key is about, each kind of writing by its name."""
        tool = "" if names_action(key) else key
        actions = [key] if names_action(key) else self._actions(key)
        return {name for action in actions for name in asked_actions(tool, action, kinds=True)}

    def _hidden(self, rule: _Rule) -> list[Rule]:
        """Return denies that would no longer count where the rule matches, as far as they are known."""
        content, names = self.policy.at(self.now).content, self._names(rule.key)
        found: dict[str, Rule] = {}
        for owner in (None, *rule.owners):
            agent = content.agents.get(owner or "")
            source = content if owner is None else agent
            if source is None:
                continue
            if rule.key == RUN:
                lists = [source.run]
            else:
                lists = [
                    rules
                    for key, rules in source.rules.items()
                    if key in ("*", rule.key) or (owner is None and names & self._names(key))
                ]
            found |= {each.pattern: each for rules in lists for each in rules if each.effect is Effect.DENY}
        if len(found) > _MOST_KEPT:
            return []
        meet = _commands_meet if rule.key == RUN else _meet
        return [each for each in found.values() if meet(each.pattern, rule.patterns)]

    def _proved(self, rule: _Rule, asks: Sequence[Need]) -> Offer | str:
        """Return the offer of a rule; where it would loosen denies, together with these denies once more."""
        why = ""
        for _ in range(_ROUNDS):
            made = self._with(rule)
            if isinstance(made, str):
                return made
            if not answers(made.after.at(self.now), self.request, self.fold):
                return why
            proof = only_answers(self.policy, made.after, self.now, fold=self.fold)
            if proof.holds:
                return self._made(rule, made, proof, asks)
            why = proof.why_not
            more = [each for each in _repeated(rule, proof.denies) if each not in rule.keeps]
            if not more or len(rule.keeps) + len(more) > _MOST_KEPT:
                return why
            rule = replace(rule, keeps=(*rule.keeps, *more))
        return why

    def _made(self, rule: _Rule, made: _Written, proof: Proof, asks: Sequence[Need]) -> Offer:
        opens = opened(
            self.policy.at(self.now),
            made.after.at(self.now),
            self.request.agent,
            proof.changes,
            [need.path for need in asks],
            self.names.paths,
            whole=self.names.whole,
            fold=self.fold,
        )
        return Offer(
            id=rule_id(self.request.id),
            width=rule.candidate.width,
            words=rule.candidate.words,
            owners=rule.owners,
            key=rule.key,
            patterns=made.patterns,
            keeps=tuple(pattern for pattern, _ in rule.keeps),
            until=self.until,
            opens=opens,
            agents=proof.agents,
            diff=diff(self.text.name, self.text.data, made.data),
            data=made.data,
            after=made.after,
        )

    def _with(self, rule: _Rule) -> _Written | str:
        """Return the text with the rule; or why there is none."""
        name, why = rule_id(self.request.id), ""
        for spelt in _spellings(rule.patterns, rule.key):
            entries = [(pattern, rule_value(name, self.until)) for pattern in spelt]
            entries += [(pattern, rule_value(name, self.until, said)) for pattern, said in rule.keeps]
            try:
                data = self.text.data
                for owner in rule.owners:
                    data = rule_lines.add(data, ("agents", owner, "rules", rule.key), entries)
                after = self.reload(data)
            except PolicyError as error:
                why = f"the policy would not load: {error.problems[0].message}"
                continue
            except LayoutError as error:
                return f"it cannot be written into this file: {error}"
            if not only_adds(self.policy.whole, after.whole, name, len(rule.owners) * len(entries)):
                return "it cannot be written into this file without changing another rule"
            return _Written(data, spelt, after)
        return why


def _meet(pattern: str, others: tuple[str, ...]) -> bool:
    try:
        queries = PatternQueries([pattern, *others])
        return any(queries.meet(0, number + 1) for number in range(len(others)))
    except Undecided:
        return True


def _commands_meet(pattern: str, others: tuple[str, ...]) -> bool:
    try:
        return any(each.matched & 1 and each.matched > 1 for each in classes([pattern, *others], Budget()))
    except Undecided:
        return True


def _repeated(rule: _Rule, denies: Sequence[Rule]) -> Iterator[tuple[str, str]]:
    """Yield denies as entries behind the rule, with reasons; if possible only where the rule matches."""
    base = "" if rule.key == RUN else rule.patterns[0].partition("*")[0].rstrip("/")
    if len(rule.patterns) > 1 or not base.startswith("/") or set(base) & set("[]"):
        base = ""
    for each in denies:
        pattern = each.pattern
        if base and "/" not in pattern.removesuffix("/"):
            pattern = f"{base}/**/{pattern}"
        yield pattern, each.reason or ""


def rule_value(rule: str, until: int | None, denied: str | None = None) -> str:
    """Return the text of an entry's value with its end and the mark of its rule.

    It is an allow, or with `denied`, the reason of a deny, that deny once more.
    """
    ends = f"until: {_time(until)}, " if until is not None else ""
    effect = Effect.ALLOW if denied is None else Effect.DENY
    return f"{{effect: {effect}, {ends}reason: {json.dumps(reason(rule, denied), ensure_ascii=False)}}}"


def _time(seconds: int) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _spellings(patterns: tuple[str, ...], key: str) -> Iterator[tuple[str, ...]]:
    """Yield spellings of the same patterns, for a mapping that has one of them already."""
    yield patterns
    if key != RUN:
        for before in ("", "./"):
            yield tuple(
                before + pattern[1:] if pattern[0] == "/" and (before or "/" in pattern[1:]) else pattern
                for pattern in patterns
            )


def _owners(policy: Policy, agent: str) -> Iterator[tuple[str, ...]]:
    """Yield the keys under `agents` that a rule for an agent can stand below, fewest first.

    An agent is judged by its own entry and by those of all agents above it. Where the first of them have
    none, an entry is made for the topmost: one for the agent alone would leave the others asking.
    """
    chain = policy.chain(agent)
    keys = list(dict.fromkeys(entry.name if entry else chain[-1][0] for _, entry in reversed(chain)))
    known = policy.content.agents
    if any(set(key) & set("*?[]{}!\\") and key not in known for key in keys):
        return
    for size in range(1, len(keys) + 1):
        yield from itertools.combinations(keys, size)

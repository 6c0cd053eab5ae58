"""Explanation of a verdict: every rule that was compared, and why it decided or did not.

Follows the engine's order, compares each pattern by itself, and takes the verdict from the engine.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from ringfence.policy.evaluation.decisions import decision
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import (
    GRAVITY,
    Agent,
    Effect,
    Explanation,
    Rule,
    Step,
    names_action,
    path_needs,
)
from ringfence.policy.patterns.matcher import Matcher, matches
from ringfence.policy.patterns.spelled_classes import spelled_out
from ringfence.policy.patterns.syntax import Fold


def explain(  # noqa: PLR0913  the parameters of Engine.verdict
    policy: Engine, agent: str, tool: str, path: str, directory: bool, *, fold: Fold = False
) -> Explanation:
    """Judge one path for all actions of a tool, or for one action, and list every rule compared.

    Where the policy tells the kinds of writing apart, each kind that the tool's calls can be is judged.
    """
    actions = tuple(_actions(policy, tool))
    if not actions:
        raise ValueError(f"neither a tool nor an action: {tool!r}")
    verdicts = [(policy.verdict(agent, tool, a, path, directory, fold=fold), a) for a in actions]
    (effect, rule), action = max(verdicts, key=lambda found: (found[0][0], GRAVITY[found[1]]))
    steps: list[Step] = []
    for (_, winner), each in verdicts:
        explanation = _Explanation(policy, agent, tool, each, path, directory, fold, winner)
        steps += explanation.floor()
        seen: set[str | None] = set()
        for name, entry in policy.chain(agent):
            owner = entry.name if entry else None
            if owner not in seen:
                seen.add(owner)
                steps += explanation.ladder(name, entry)
    return Explanation(decision(effect, rule, agent, tool, action, path), tuple(steps))


def _actions(policy: Engine, tool: str) -> Iterator[str]:
    """Yield each action that a tool (or an action) needs on paths, with its kind where that matters."""
    if names_action(tool):
        needed = [tool]
    else:
        needs = path_needs(tool, policy.tools) if tool in policy.tools else ()
        needed = list(dict.fromkeys(action for action, _ in needs))
    for action in needed:
        yield from policy.names(tool, action)


class _Explanation:
    """One question: agent, tool, action and path, with the rule that the engine chose."""

    def __init__(  # noqa: PLR0913  the parameters of Engine.verdict and its rule
        self,
        policy: Engine,
        agent: str,
        tool: str,
        action: str,
        path: str,
        directory: bool,
        fold: Fold,
        winner: Rule | None,
    ) -> None:
        self.policy = policy
        self.agent = agent
        self.tool = tool
        self.keys = tuple(key for key in policy.keys(tool, action)[0] if key)
        self.action = action
        self.stands = tuple(key for key in self.keys[:-1] if names_action(key))
        self.winner = winner
        patterns = dict.fromkeys(self._patterns(policy.chain(agent)))
        self._known = dict(zip(patterns, _tried(list(patterns), path, directory, fold), strict=True))

    def floor(self) -> Iterator[Step]:
        """Yield a step for each mandatory rule on this tool or action."""
        for item in self.policy.floor(self.agent, self.tool, self.action):
            for rule in item.rules:
                matched, why = self._fits(rule.pattern)
                left_out = next((other for other in item.excepts if self._fits(other)[0]), None)
                if matched and left_out is not None:
                    yield self._step(rule, self.agent, False, f'left out by except "{left_out}"')
                elif matched and rule is not self.winner:
                    yield self._step(
                        rule, self.agent, True, "matches, but another rule is as strict or stricter"
                    )
                else:
                    yield self._step(rule, self.agent, matched, why)

    def ladder(self, name: str, entry: Agent | None) -> Iterator[Step]:
        """Yield a step for each rule of one agent's tier and of everybody's, in the order of comparison."""
        decided: str | None = None
        tiers = [("agent's rules", entry.rules)] if entry else []
        for title, rules in [*tiers, ("global rules", self.policy.content.rules)]:
            maps = [(key, rules[key]) for key in self.keys if rules.get(key)]
            choice = self._choice(maps)
            for _, listed in maps:
                yield from self._map(name, listed, choice, decided)
            if choice is not None and decided is None:
                decided = f"the {title} decided already"

    def _choice(self, maps: list[tuple[str, Sequence[Rule]]]) -> Rule | None:
        last = {key: self._last(listed) for key, listed in maps}
        hits = [last[key] for key in self.keys if last.get(key) is not None]
        if hits and hits[0] is not None and hits[0].effect is Effect.DENY:
            return hits[0]
        for key in self.stands:
            stands = last.get(key)
            if stands is not None and stands.effect is Effect.DENY:
                return stands
        return hits[0] if hits else None

    def _last(self, listed: Iterable[Rule]) -> Rule | None:
        return next((rule for rule in reversed(list(listed)) if self._fits(rule.pattern)[0]), None)

    def _map(
        self, name: str, listed: Sequence[Rule], choice: Rule | None, decided: str | None
    ) -> Iterator[Step]:
        last = self._last(listed)
        for rule in reversed(listed):
            matched, why = self._fits(rule.pattern)
            if not matched or rule is self.winner:
                yield self._step(rule, name, matched, why)
            elif decided:
                yield self._step(rule, name, True, f"matches, but {decided}")
            elif rule is not last:
                line = f" (line {last.where.line})" if last and last.where else ""
                yield self._step(
                    rule, name, True, f'matches, but "{last.pattern if last else ""}" comes later{line}'
                )
            elif rule is choice:
                yield self._step(rule, name, True, "matches, but a stricter verdict holds")
            else:
                preferred = choice.key if choice else self.action
                earlier = self.keys.index(rule.key) < self.keys.index(preferred)
                other = f"the deny under {preferred} stands" if earlier else f"{preferred} takes precedence"
                yield self._step(rule, name, True, f"matches, but {other}")

    def _fits(self, pattern: str) -> tuple[bool, str]:
        return self._known[pattern]

    def _patterns(self, chain: tuple[tuple[str, Agent | None], ...]) -> Iterator[str]:
        for item in self.policy.floor(self.agent, self.tool, self.action):
            yield from (rule.pattern for rule in item.rules)
            yield from item.excepts
        for rules in [entry.rules for _, entry in chain if entry] + [self.policy.content.rules]:
            for key in self.keys:
                yield from (rule.pattern for rule in rules.get(key, ()))

    def _step(self, rule: Rule, name: str, matched: bool, why: str) -> Step:
        return Step(self.action, name, rule, matched, matched and rule is self.winner, why)


def _tried(patterns: list[str], path: str, directory: bool, fold: Fold) -> list[tuple[bool, str]]:
    """Return whether each pattern matches, and why it does not."""
    as_file, as_directory = _matching(patterns, path, fold)
    hit = as_directory if directory else as_file
    tied = {
        number: "**/" + pattern.removeprefix("./").lstrip("/")
        for number, pattern in enumerate(patterns)
        if number not in as_directory and "/" in pattern.rstrip("/") and not pattern.startswith("**/")
    }
    matching = _matching(list(tied.values()), path, fold)[directory]
    freed = {number for at, number in enumerate(tied) if at in matching}
    spelled = _spelled(patterns, hit, path, directory, fold)

    def why(number: int) -> str:
        if number in hit:
            return "decides"
        if number in as_directory:
            return "matches directories only"
        if number in spelled:
            return f'does not match: a class is one character; for the name itself write "{spelled[number]}"'
        return "does not match: a slash ties the pattern to the root" if number in freed else "does not match"

    return [(number in hit, why(number)) for number in range(len(patterns))]


def _spelled(
    patterns: list[str], hit: Container[int], path: str, directory: bool, fold: Fold
) -> dict[int, str]:
    """Return the patterns that would match if their character classes were names, written that way."""
    if "[" not in path:
        return {}
    spelled = {number: spelled_out(each) for number, each in enumerate(patterns) if "[" in each}
    return {
        number: text
        for number, text in spelled.items()
        if text is not None and number not in hit and matches(text, path, directory, fold=fold)
    }


def _matching(patterns: list[str], path: str, fold: Fold) -> tuple[Container[int], Container[int]]:
    """Return the numbers of the matching patterns, each compared by itself: as a file, as a directory."""
    try:
        state = Matcher(patterns, fold, range(len(patterns))).at(path)
    except ValueError:  # a pattern that is too long after expansion matches nothing
        as_file, as_directory = (
            {number for number, each in enumerate(patterns) if matches(each, path, directory, fold=fold)}
            for directory in (False, True)
        )
        return as_file, as_directory
    return state.file.last, state.directory.last

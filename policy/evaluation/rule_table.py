"""Rule table: all patterns of a policy in one sequence, and the verdict for those that matched.

Rules of which only the last match counts form a group. The table does not match patterns: it receives the
last match of each group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.model import Content, Effect, Mandatory, Rule
from ringfence.policy.rule_list import RuleList

_NO_GROUP = -1
Verdict = tuple[Effect, "Rule | None"]
Keys = tuple[str, str, str, str]  # a tool, a kind of writing, an action, and `*`; "" is none
Ladder = tuple[int, int, int, int]  # the groups of a tier's rules by each of the keys
# By the group of an item's rules: the item, and the group of its exceptions.
Floor = Mapping[int, tuple[Mandatory, int]]


class Query:
    """Lists for one agent, tool and action: mandatory rules, and a tier chain per agent and parent."""

    __slots__ = ("floor", "ladders", "number")

    def __init__(self, number: int, floor: Floor, ladders: tuple[tuple[Ladder, ...], ...]) -> None:
        self.number = number
        self.floor = floor
        self.ladders = ladders


class RuleTable:
    """All patterns of a policy in one sequence, each with its group, for a matcher."""

    def __init__(self, content: Content) -> None:
        self.patterns: list[str] = []
        self.groups: list[int] = []
        self._floor: dict[int, tuple[Mandatory, int]] = {}
        self._rules: list[tuple[int, Sequence[Rule]]] = [(0, ())]  # by group: its first number, its rules
        self._maps: dict[tuple[str | None, str], int] = {}
        self._loosest: dict[int, int] = {}
        for owner, rules in (
            (None, content.rules),
            *((each.name, each.rules) for each in content.agents.values()),
        ):
            for key, listed in rules.items():
                self._maps[owner, key] = self._group(_patterns(listed), listed)
        for item in content.mandatory:
            # Reversed, so that the last match is the rule written first.
            backwards = item.rules[::-1]
            self._floor[self._group(_patterns(backwards), backwards)] = item, self._group(item.excepts)

    def query(
        self, number: int, agent: str, entries: tuple[str | None, ...], keys: tuple[Keys, ...]
    ) -> Query:
        """Return the lists that apply to an agent and its parents, given their entries under `agents`.

        Of several keys (kinds of writing), the strictest verdict counts.
        """
        ladders: dict[tuple[Ladder, ...], None] = {}
        for each in keys:
            everybody = self._ladder(None, each)
            for name in entries:
                ladders[(everybody,) if name is None else (self._ladder(name, each), everybody)] = None
        named = {key for each in keys for key in each if key}
        floor = {
            group: each
            for group, each in self._floor.items()
            if not named.isdisjoint(each[0].keys)
            and keys[0][0] not in each[0].except_tools
            and applies(each[0], agent)
        }
        return Query(number, floor, tuple(ladders))

    def judge(self, last: Mapping[int, int], query: Query) -> Verdict:
        """Return the verdict for the matching rules, given as the last match of each group."""
        effect, rule = self._judge_floor(last, query.floor)
        best: Verdict | None = None
        for ladder in query.ladders:
            decides = (self._decides(last, tier) for tier in ladder)
            chosen = next((each for each in decides if each is not None), None)
            verdict: Verdict = (Effect.ASK, None) if chosen is None else (chosen.effect, chosen)
            if best is None or verdict[0] > best[0]:
                best = verdict
        assert best is not None
        return (effect, rule) if rule is not None and effect >= best[0] else best

    def may_open(self, last: Mapping[int, int], query: Query, ahead: Callable[[], Collection[int]]) -> bool:
        """Whether a path below may have another verdict than deny.

        The patterns in `last` match in any case; of those in `ahead` some may match. Each pattern is
        considered by itself: true is not certain, false is.
        """
        for group, (item, excepts) in query.floor.items():
            if item.effect is not Effect.DENY or group not in last or excepts in last:
                continue
            if not item.excepts or not any(self.groups[number] == excepts for number in ahead()):
                return False
        return all(self._may_open(last, ladder, ahead) for ladder in query.ladders)

    def _may_open(
        self, last: Mapping[int, int], ladder: tuple[Ladder, ...], ahead: Callable[[], Collection[int]]
    ) -> bool:
        for tier in ladder:
            loose = [self._may_be_loose(last, group, ahead) for group in tier]
            none = [group not in last for group in tier]
            # Of the tool, the kind and the action the first decides, if none of the others denies.
            stands = True
            for at in (2, 1, 0):
                if loose[at] and stands and all(none[:at]):
                    return True
                stands = stands and (loose[at] or none[at])
            if loose[3] and all(none[:3]):
                return True
            if not all(none):
                return False
        return True

    def _may_be_loose(
        self, last: Mapping[int, int], group: int, ahead: Callable[[], Collection[int]]
    ) -> bool:
        """Whether the last match of a group may be a rule other than deny."""
        if group == _NO_GROUP:
            return False
        known = last.get(group, -1)
        if known >= 0 and self._rule(group, known).effect is not Effect.DENY:
            return True
        if self._last_loose(group) <= known:
            return False  # the usual case, decided without the patterns below
        return any(
            number > known and self.groups[number] == group
            and self._rule(group, number).effect is not Effect.DENY
            for number in ahead()
        )  # fmt: skip

    def _last_loose(self, group: int) -> int:
        """Return the number of a group's last rule that is not deny; -1 if all deny."""
        found = self._loosest.get(group)
        if found is None:
            first, rules = self._rules[group]
            at = (n for n in range(len(rules) - 1, -1, -1) if rules[n].effect is not Effect.DENY)
            found = self._loosest[group] = next((first + n for n in at), -1)
        return found

    def _judge_floor(self, last: Mapping[int, int], floor: Floor) -> Verdict:
        """Return the strictest mandatory rule that matched; of equals the one written first."""
        effect, rule = Effect.ALLOW, None
        for group in sorted(floor.keys() & last.keys()):
            item, excepts = floor[group]
            if item.effect > effect and excepts not in last:
                effect, rule = item.effect, self._rule(group, last[group])
        return effect, rule

    def _decides(self, last: Mapping[int, int], tier: Ladder) -> Rule | None:
        """Return the deciding rule of a tier: by the tool, else the kind, else the action, else `*`."""
        by_tool, by_kind, by_action, by_any = (
            self._rule(group, last[group]) if group in last else None for group in tier
        )
        first = by_tool or by_kind or by_action
        if first is None:
            return by_any
        if first.effect is Effect.DENY:
            return first
        # What comes first can loosen an ask; a deny of the kind or of the action stands.
        for stands in (by_kind, by_action):
            if stands is not None and stands.effect is Effect.DENY:
                return stands
        return first

    def _ladder(self, owner: str | None, keys: Keys) -> Ladder:
        """Return the groups that apply to an agent (None: to everybody) under these keys."""
        by_tool, by_kind, by_action, by_any = (self._maps.get((owner, key), _NO_GROUP) for key in keys)
        return by_tool, by_kind, by_action, by_any

    def _rule(self, group: int, number: int) -> Rule:
        """Return a rule by its group and its pattern's number."""
        first, rules = self._rules[group]
        return rules[number - first]

    def _group(self, patterns: Sequence[str], rules: Sequence[Rule] = ()) -> int:
        group = len(self._rules)
        self._rules.append((len(self.patterns), rules))
        self.patterns += patterns
        self.groups += [group] * len(patterns)
        return group


def _patterns(rules: Sequence[Rule]) -> list[str]:
    return rules.patterns if isinstance(rules, RuleList) else [rule.pattern for rule in rules]

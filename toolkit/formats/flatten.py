"""Flattening: a policy for one agent as plain last-match lists, and its patterns in other syntaxes.

What cannot be expressed is left out only if that is stricter, and always listed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from ringfence.policy import Policy
from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.model import ACTIONS, KINDS, WRITE_KINDS, Agent, Effect, Rule, RuleMap, asked_actions
from ringfence.policy.patterns.syntax import ANY_NAME, CROSS, Branch, CharClass, Name, parse
from ringfence.toolkit.formats.command_rules import from_the_last_star
from ringfence.toolkit.formats.model import Flat, FormatError, Left, Writes, tightened
from ringfence.toolkit.formats.narrowed_entries import for_content, left_out, place

Listed = list[tuple[str, Effect]]


def flat(policy: Policy, agent: str, root: str = "/workspace") -> Flat:
    """Flatten a policy for one agent; `root` is the workspace, for formats with absolute paths."""
    left: list[Left] = []
    chain = policy.chain(agent)
    if len(chain) > 1:
        raise FormatError(f"{agent} is a sub-agent: its parents' rules count too", "", "export the parents")
    entry = chain[0][1]
    tiers = [policy.content.rules, *([entry.rules] if entry else [])]
    for tier in tiers:
        for tool in tier:
            if tool in policy.tools and not changes(policy, tool):
                why = "for a tool that no other program has"
                left.append(Left(place(tier[tool][0]) if tier[tool] else "", tool, why, harmless=True))
    for limits in (policy.content.limits, entry.limits if entry else {}):
        left += [Left(f"limits.{key}", key, "limits cannot be expressed") for key in limits]
    flattening = _Flattening(policy, agent, tiers)
    actions = {action: tuple(flattening.action(action)) for action in ACTIONS}
    run = _commands(policy, agent, entry, left)
    left += [*flattening.left, *left_out(policy, agent)]
    every = tuple(dict.fromkeys([*left, *flattening.by_kind]))
    return Flat(agent, actions, every, root, run, _writes(policy, agent, tiers, left))


def _writes(policy: Policy, agent: str, tiers: list[RuleMap], left: list[Left]) -> Writes | None:
    """Return the rules of writing whole files and of editing; None if the policy does not tell them apart."""
    named = itertools.chain(*tiers, *(item.keys for item in policy.whole.mandatory))
    if not set(WRITE_KINDS) & set(named):
        return None
    kinds = {kind: _Flattening(policy, agent, tiers, kind) for kind in KINDS}
    lists = {kind: each.action("write") for kind, each in kinds.items()}
    puts = lists["create"]
    left = [*left, *(one for each in kinds.values() for one in (*each.left, *each.by_kind))]
    if puts != lists["replace"]:
        puts = strictest(puts, lists["replace"])
        why = "creating and replacing are one tool there: the stricter of both"
        left.append(Left("write", "rules for creating and for replacing", why))
    return Writes(tuple(puts), tuple(lists["edit"]), tuple(dict.fromkeys(left)))


def _commands(
    policy: Policy, agent: str, entry: Agent | None, left: list[Left]
) -> tuple[tuple[str, Effect], ...]:
    """Return the rules on commands as one list; what a section on commands says is left out."""
    content = policy.content
    out = [
        (rule.pattern, rule.effect) for rules in (content.run, entry.run if entry else ()) for rule in rules
    ]
    more: Listed = []
    for item in (each for each in content.run_floor if applies(each, agent)):
        more += [(rule.pattern, item.effect) for rule in item.rules]
        if item.excepts:
            why = "written without its exceptions"
            left.append(Left(place(item.rules[0]), f"except {', '.join(item.excepts)}", why))
    if content.commands is not None:
        why = "how commands run cannot be expressed"
        left.append(Left("commands", "commands", why, harmless=True))
    return tuple(from_the_last_star(stricter(out, more)))


class _Flattening:
    """The rules of one agent as lists in which the last match decides; with `kind`, of one kind of writing.

    `by_kind` collects what is lacking because all kinds of writing are one list.
    """

    def __init__(self, policy: Policy, agent: str, tiers: list[RuleMap], kind: str = "") -> None:
        self._policy = policy
        self._agent = agent
        self._tiers = tiers
        self._kind = kind
        self.left: list[Left] = []
        self.by_kind: list[Left] = []

    def action(self, action: str) -> Listed:
        """Return the rules of an action; the first is for everything, and no other is."""
        tools = [tool for tool in self._policy.tools if action in changes(self._policy, tool)]
        kinds = [key for key in WRITE_KINDS if action == "write"]
        if self._kind:
            kinds = [f"write.{self._kind}"]
            tools = [tool for tool in tools if kinds[0] in asked_actions(tool, "write", kinds=True)]
        out: Listed = []
        more: Listed = []
        for tier in self._tiers:
            for key in ("*", action):
                out += [(rule.pattern, rule.effect) for rule in tier.get(key, ())]
            for key in kinds:
                self._of_kind(tier, key, out, more)
        for tier in self._tiers:
            for tool in tools:
                # A tool may have the name of an action: `delete` is listed already.
                for rule in tier.get(tool, ()) if tool != action else ():
                    more.append((rule.pattern, rule.effect))
                    self.left.append(_one(rule, tool, "tool", action))
        more += self._floor(action, kinds, tools)
        more += for_content(self._policy, self._agent, [action, "*", *kinds, *tools])
        named = _with_names(action, _from_the_last_star(stricter(out, more)), self.left)
        # Once more: a rule for all directories has become one for everything.
        return _from_the_last_star(list(named))

    def _of_kind(self, tier: RuleMap, key: str, out: Listed, more: Listed) -> None:
        """Add a tier's rules for a kind of writing: they come before the action's, but its denials stand."""
        stands = any(rule.effect is Effect.DENY for rule in tier.get("write", ()))
        for rule in tier.get(key, ()):
            if self._kind and not stands:
                out.append((rule.pattern, rule.effect))
            else:
                more.append((rule.pattern, rule.effect))
                self.by_kind.append(_one(rule, key, "kind", "write"))

    def _floor(self, action: str, kinds: list[str], tools: list[str]) -> Listed:
        more: Listed = []
        for item in self._policy.content.mandatory:
            if not {action, "*", *kinds, *tools} & set(item.keys) or not applies(item, self._agent):
                continue
            more += [(rule.pattern, item.effect) for rule in item.rules]
            where, what = place(item.rules[0]), f"mandatory for {', '.join(item.keys)}"
            if set(kinds) & set(item.keys) and not {action, "*"} & set(item.keys):
                if not self._kind:
                    self.by_kind.append(Left(where, what, "for some kinds; applied to all that writes"))
            elif not {action, "*"} & set(item.keys):
                self.left.append(Left(where, what, f"for some tools; applied to all that {action}s"))
            if item.excepts:
                why = "written without its exceptions"
                self.left.append(Left(where, f"except {', '.join(item.excepts)}", why))
        return more


def _one(rule: Rule, key: str, what: str, action: str) -> Left:
    """Return the report on a rule for one tool or one kind of writing, where one list serves them all."""
    why = "left out" if rule.effect is Effect.ALLOW else f"applied to all that {action}s"
    return Left(place(rule), f"{key}: {rule.pattern}: {rule.effect}", f"for one {what}; {why}")


def _with_names(action: str, rules: Listed, left: list[Left]) -> Iterator[tuple[str, Effect]]:
    """Return the rules, where a rule for directories also applies to a name of unknown kind."""
    strictest = Effect.ASK  # of the rules that may decide where the next one does not
    for pattern, effect in rules:
        strictest = effect if pattern == "*" else max(strictest, effect)
        every = list(alternatives(pattern))
        names = [each.rstrip("/") for each in every if each.endswith("/")]
        if not names or effect is Effect.ALLOW:
            yield pattern, effect
            continue
        why = "for directories only; applied to any name, which is stricter"
        left.append(Left(action, f"{pattern}: {effect}", why))
        # A rule that asks must not open a denied name.
        yield from ((name, max(effect, strictest)) for name in names)
        if strictest > effect or len(names) < len(every):
            yield pattern, effect


def stricter(rules: Listed, more: Listed) -> Listed:
    """Return the rules with additional rules that make them stricter, and never looser."""
    if ("*", Effect.DENY) in rules:
        # An ask followed by a repeated denial of everything would leave nothing allowed.
        more = [(pattern, Effect.DENY if effect is Effect.ASK else effect) for pattern, effect in more]
    return tightened(rules, more, lambda pair: pair[1])


def strictest(one: Listed, other: Listed) -> Listed:
    """Return rules that are never looser than two lists, and exact where these differ only in denials."""
    one, other = _from_the_last_star(one), _from_the_last_star(other)
    for rules, plain in ((one, other), (other, one)):
        if len(plain) == 1:
            return [(pattern, max(effect, plain[0][1])) for pattern, effect in rules]
    (first, left), (second, right) = _parted(one), _parted(other)
    if first != second:
        return _from_the_last_star(stricter(one, other))
    out = [*left[0], *right[0]]
    for rule, denies, more in zip(first, left[1:], right[1:], strict=True):
        out += [rule, *denies, *more]
    return out


def _parted(rules: Listed) -> tuple[Listed, list[Listed]]:
    """Return the rules that do not deny, and the denials before, between and after them."""
    kept: Listed = []
    denies: list[Listed] = [[]]
    for rule in rules:
        if rule[1] is Effect.DENY:
            denies[-1].append(rule)
        else:
            kept.append(rule)
            denies.append([])
    return kept, denies


def _from_the_last_star(rules: Listed) -> Listed:
    """Return the rules from the last rule for everything on; begins with an ask where there is none."""
    start = max((at for at, (pattern, _) in enumerate(rules) if pattern == "*"), default=None)
    return [("*", Effect.ASK), *rules] if start is None else rules[start:]


def changes(policy: Policy, tool: str) -> set[str]:
    """Return the actions of a tool's rules: its changes, else its reads.

    None for a tool without a path (the task tools): no rule of another tool corresponds to it.
    """
    actions = {action for action, parameter in policy.tools[tool] if parameter not in ("", "task_ids")}
    return actions - {"read"} or actions


def alternatives(pattern: str) -> Iterator[str]:
    """Return the pattern's brace alternatives."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None or "[{]" in pattern or "[}]" in pattern:
        yield pattern
        return
    for each in match[1].split(","):
        yield from alternatives(pattern[: match.start()] + each + pattern[match.end() :])


def crossing(pattern: str, effect: Effect) -> list[str] | None:
    """Return the pattern for a syntax in which a star crosses slashes; None if it would allow more."""
    out: dict[str, None] = {}
    if pattern == "*":
        return ["*"]
    for branch in parse(pattern).branches:
        if effect is Effect.ALLOW and widens(branch):
            return None
        for text in _crossing(branch):
            if not branch.directory:
                out.setdefault(text)
            if not text.endswith("*") or branch.directory:
                out.setdefault(f"{text}/*")
    return list(out)


def widens(branch: Branch) -> bool:
    """Whether a star, or `?`, within a name would match more where it crosses slashes."""
    for at, segment in enumerate(branch.segments):
        if segment is CROSS:
            continue
        last = at == len(branch.segments) - 1
        after_cross = at > 0 and branch.segments[at - 1] is CROSS
        pieces = segment.pieces
        for star in range(1, len(pieces)):
            starts = star == 1 and not pieces[0] and after_cross
            ends = star == len(pieces) - 1 and not pieces[-1] and last
            if not (starts or ends):
                return True
        if any(isinstance(atom, CharClass) for piece in pieces for atom in piece):
            return True
    return False


def _crossing(branch: Branch) -> Iterator[str]:
    parts: list[tuple[str, ...]] = []
    skip = False
    for at, segment in enumerate(branch.segments):
        slash = "/" if at else ""
        if segment is CROSS:
            after = branch.segments[at + 1]
            assert after is not None
            name = _name(after)
            options = [f"{slash}{name}"] if name.startswith("*") else [f"{slash}{name}", f"{slash}*/{name}"]
            if name.startswith("*") and after is ANY_NAME and at:
                options = [f"{slash}*"]
            parts.append(tuple(options))
            skip = True
        elif skip:
            skip = False
        else:
            parts.append((f"{slash}{_name(segment)}",))
    for picked in itertools.product(*parts):
        yield "".join(picked)


def _name(name: Name) -> str:
    literals = "".join(atom for piece in name.pieces for atom in piece if isinstance(atom, str))
    for mark, word in (("*", "star"), ("?", "question mark")):
        if mark in literals:
            raise FormatError(f"a {word} in a name cannot be expressed there")
    return "*".join(
        "".join(atom if isinstance(atom, str) else "?" for atom in piece) for piece in name.pieces
    )

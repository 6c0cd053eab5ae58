"""What can never be used: exceptions, limits and agents' entries that nothing reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policy.automaton import Automaton, Wanted
from policy.findings import Finding
from policy.limits import keys_of
from policy.lints.look import Look
from policy.model import ACTIONS, Agent, Effect, Limit, Mandatory
from policy.questions import Questions, context

# Tools of which one call changes one file at most.
_SINGLE = frozenset({"copy_file", "create_file", "delete_file", "edit_file", "insert_at_line"})


def excepts(look: Look) -> Iterator[Finding]:
    ask = look.questions
    for item in look.policy.content.mandatory:
        if not item.excepts or not look.own(item.rules[0]):
            continue
        numbers = [ask.number[text] for text in item.excepts]
        for rule in item.rules:
            if ask.automaton.holds(ask.number[rule.pattern], numbers):
                message = f'the exceptions leave nothing of "{rule.pattern}"'
                yield Finding("except-covers-all", message, rule.where)
        yield from _unused_excepts(ask, item)


def _unused_excepts(ask: Questions, item: Mandatory) -> Iterator[Finding]:
    for text in item.excepts:
        if ask.find([ask.inside(text) & ask.inside(*(rule.pattern for rule in item.rules))]) is None:
            yield Finding(
                "except-unused", f'the exception "{text}" meets none of the paths', item.rules[0].where
            )


def limits(look: Look) -> Iterator[Finding]:
    """Limits that no call can meet: what they count is as strict anyway, or one file is all there is."""
    content = look.policy.content
    owners = [(None, content.limits), *((agent.name, agent.limits) for agent in content.agents.values())]
    for owner, limits in owners:
        for key, listed in limits.items():
            for limit in listed:
                if look.own(limit) and (why := _unreachable(look, owner, key, limit)):
                    yield Finding(
                        "limit-unreachable", f"the limit on {key} can never stop a call: {why}", limit.where
                    )


def _unreachable(look: Look, owner: str | None, key: str, limit: Limit) -> str:
    if key in _SINGLE and limit.per == "call" and limit.max_files and limit.max_bytes is None:
        return f"one call of {key} changes one file"
    looser = [effect for effect in Effect if effect < limit.over]
    for name in look.names:
        entries = {entry.name if entry else None for _, entry in look.policy.chain(name)}
        if owner is not None and owner not in entries:
            continue
        for tool in (*ACTIONS, *look.policy.tools):
            if key not in keys_of(tool, look.policy.tools):
                continue
            actions = [tool] if tool in ACTIONS else dict.fromkeys(a for a, _ in look.policy.tools[tool])
            wheres = [context(look.policy, name, tool, action) for action in actions]
            if all(any(look.questions.ever(w, effect) for effect in looser) for w in wheres):
                return ""
    return f"what it counts is {'denied' if limit.over is Effect.DENY else 'asked about or denied'} anyway"


def unused_agents(look: Look) -> Iterator[Finding]:
    content: Mapping[str, Agent] = look.policy.content.agents
    keys = list(content)
    automaton = Automaton([f"/{key}" for key in keys], covers=False)
    for at, key in enumerate(keys):
        if not set(key) & set("*?["):
            continue
        where = next((rule.where for rules in content[key].rules.values() for rule in rules), None)
        if where is None or (look.files is not None and where.file not in look.files):
            continue
        later = frozenset(n for n, other in enumerate(keys) if n > at or not set(other) & set("*?["))
        if automaton.find([Wanted(((at,),), later)]) is None:
            yield Finding(
                "agent-unused",
                f'the entry "{key}" speaks for no agent: later or exact ones take all its names',
                where,
            )

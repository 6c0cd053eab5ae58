"""Kinds of agents: one name for each way in which entries and exceptions for agents can apply.

Entries under `agents` and `except_agents` of mandatory items are patterns of names; an agent's parents count.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ringfence.policy.analysis.bit_nfa import NICE
from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.analysis.pattern_queries import Budget, PatternQueries, Undecided, Wanted
from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import Mandatory
from ringfence.policy.patterns.matcher import matches

_MAX_CLASSES = 2_000


def agents(policies: Sequence[Engine], selector: str = "**", budget: Budget | None = None) -> list[str]:
    """Return one name for every kind of agent that some policy distinguishes, plain names first.

    The selector is a pattern of names as in `agents:`; `*` and `**` match every agent.
    """
    keys = list(dict.fromkeys(key for policy in policies for key in policy.content.agents))
    depth = max((key.count("/") + 1 for key in keys), default=1)
    floors = list(dict.fromkeys(item.except_agents for each in policies for item in excepting(each)))
    excepted = dict.fromkeys(text for texts in floors for text in texts)
    if excepted:  # of what is deeper than all exceptions, nothing is excepted
        depth = max(depth, *(text.count("/") + 2 for text in excepted))
        keys = list(dict.fromkeys((*keys, *excepted)))
    chosen = "**" if selector == "*" else selector
    longest = max(depth, chosen.count("/") + 1 if chosen != "**" else 1)
    texts = [f"/{key}" for key in keys]
    levels = ["/" + "/".join(["*"] * n) for n in range(1, longest + 2)]
    number = {text: at for at, text in enumerate(dict.fromkeys([*texts, *levels, "/" + chosen]))}
    automaton = PatternQueries(list(number), budget=budget)
    found: dict[tuple[object, ...], str] = {}
    for length in range(1, longest + 1):
        exact = Wanted(((number[levels[length - 1]],), (number["/" + chosen],)), 1 << number[levels[length]])
        combinations = itertools.product(_entries(policies, length), _exceptions(floors, length))
        for count, (chosen_keys, chosen_excepts) in enumerate(combinations):
            if count > _MAX_CLASSES:
                raise Undecided("too complex: too many kinds of agents")
            wanted = exact
            for every, none in (*chosen_keys, *chosen_excepts):
                wanted &= Wanted(
                    tuple((number[f"/{key}"],) for key in every), mask(number[f"/{key}"] for key in none)
                )
            witness = automaton.find([wanted])
            if witness is not None:
                name = witness.path
                nicer = _as_a_name(name, keys)
                if meaning(policies, nicer) == meaning(policies, name) and matches("/" + chosen, nicer):
                    name = nicer
                found.setdefault(meaning(policies, name), name)
    return list(found.values())


def meaning(policies: Sequence[Engine], name: str) -> tuple[object, ...]:
    """Return the entries and the mandatory items with exceptions that apply to an agent, in each policy."""
    return tuple(
        (
            *dict.fromkeys(entry.name if entry else None for _, entry in policy.chain(name)),
            *(applies(item, name) for item in excepting(policy)),
        )
        for policy in policies
    )


def excepting(policy: Engine) -> list[Mandatory]:
    """Return the mandatory items, on paths and on commands, that do not apply to every agent."""
    content = policy.content
    return [item for item in (*content.mandatory, *content.run_floor) if item.except_agents]


def _as_a_name(name: str, keys: Iterable[str]) -> str:
    """Return the shortest name of a kind of agents, made readable where no entry fixes its letters."""
    written = {part for key in keys for part in key.split("/")}
    parts = name.split("/")
    for at, part in enumerate(parts):
        if part == NICE[0] and part not in written:
            parts[at] = "helper" if at else "another-agent"
        elif part[-1] in "-_." and part not in written:
            parts[at] = f"{part}1"
    return "/".join(parts)


Entry = tuple[tuple[str, ...], tuple[str, ...]]  # keys that fit, and keys that do not


def _entries(policies: Sequence[Engine], length: int) -> Iterator[tuple[Entry, ...]]:
    """Yield every combination of keys that can apply to a name and its parents, level by level."""
    levels = []
    for policy in policies:
        for level in range(1, length + 1):
            keys = [key for key in policy.content.agents if key.count("/") + 1 == level]
            plain = [key for key in keys if not set(key) & set("*?[")]
            wild = [key for key in keys if key not in plain]
            options: list[Entry] = [((), tuple(keys))]
            options += [((key,), ()) for key in plain]
            options += [((key,), (*plain, *wild[at + 1 :])) for at, key in enumerate(wild)]
            levels.append(options)
    return itertools.product(*levels)


def _exceptions(floors: Sequence[tuple[str, ...]], length: int) -> Iterator[tuple[Entry, ...]]:
    """Yield every combination of exceptions for a name of this length: each holds, or fails at some level."""
    options: list[list[tuple[Entry, ...]]] = []
    for texts in floors:
        levels = [tuple(text for text in texts if text.count("/") == level) for level in range(length)]
        holds = itertools.product(*([((text,), ()) for text in level] for level in levels))
        fails: list[tuple[Entry, ...]] = [(((), level),) for level in levels]
        options.append([*holds, *fails])
    return (tuple(itertools.chain(*each)) for each in itertools.product(*options))

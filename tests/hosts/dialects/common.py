"""What all dialects share: a tool call, a dialect's functions, and server-sent events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class Call(NamedTuple):
    """A tool call of the model: arguments, or the one text that a tool of Codex takes; `server` for Codex."""

    name: str
    arguments: Mapping[str, Any] | str
    server: str | None = None


class Dialect(NamedTuple):
    """Functions of a model API.

    `tools` returns the definitions in a request, `results` what the tools answered so far, `answer` the
    body of a reply (a call, or the end of the work when it is None), and `aside` the reply to a request
    that is not a turn of the conversation, by its path; None if it is one.
    """

    tools: Callable[[Json], list[Json]]
    results: Callable[[Json], list[Any]]
    answer: Callable[[int, Call | None, bool], str]
    aside: Callable[[str], Json | None]


def events(*each: Json) -> str:
    """Return a body of server-sent events with their types as names."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in each)


def text_of(value: object) -> str:
    """Return every text in a tool's result, as the model reads it, a line each."""
    return "\n".join(_texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, of in value.items():
            if key not in ("type", "cache_control"):
                yield from _texts(of)
    elif isinstance(value, list):
        for of in value:
            yield from _texts(of)

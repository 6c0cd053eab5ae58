"""Messages of the approvals channel: a request and its end as lines of JSON, and a line as an answer.

Pure. Text that a person reads is escaped; the arguments and paths are exactly what the call has.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.approvals.requests import ONCE, PATTERN, SESSION, WAIT, Answer, Request
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN
from ringfence.toolkit.call import read_json
from ringfence.toolkit.durations import ahead
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.command_requests import notice
from ringfence.toolkit.granting.needs import shown_needs
from ringfence.toolkit.granting.scopes import Scope
from ringfence.toolkit.paths import is_unicode
from ringfence.toolkit.text import because, escape, rfc3339

if TYPE_CHECKING:
    from ringfence.toolkit.granting.reach import Reach

MAX_ANSWER = 64 << 10  # bytes of a line that comes in
SHOWN_PREVIEW = 1 << 20  # characters of a preview that go out
BY = "the approvals channel"

_TEXT = {"type": "string"}
_ID = {"type": "string", "maxLength": 64}
_TIME = {"type": "string", "format": "date-time"}
_SCOPES = [ONCE, PATTERN, SESSION]
_STATES = ["pending", "granted", "refused", "used", "stale", "expired", "revoked", "settled"]
_LAST = 253402300799  # the last second of the year 9999


def _object(properties: dict[str, Any], *optional: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        **more,
    }


_REACH = {
    "anyOf": [
        _object(
            {
                "paths": {"type": "integer", "minimum": 0, "description": "How many paths it opens now."},
                "first": {"type": ["string", "null"], "description": "The first of them not in `paths`."},
                "whole": {"type": "boolean", "description": "False: there may be more."},
                "judged": {"type": "boolean", "description": "False: there may be fewer."},
            }
        ),
        {"type": "null"},
    ]
}
_NEED = _object(
    {
        "action": {
            **_TEXT,
            "description": "read, write, delete or run; the path of run is the text of a command.",
        },
        "path": _TEXT,
        "directory": {"type": "boolean"},
        "on_the_way": {"type": "boolean", "description": "Whether it is a directory that is made for it."},
        "asks": {"type": "boolean", "description": "Whether a person is asked because of it."},
        "loses": {"enum": ["deleted", "replaced"], "description": "How content is lost there, if it is."},
    },
    "loses",
)
_SCOPE = _object(
    {
        "scope": {"enum": _SCOPES},
        "words": {**_TEXT, "description": "What a grant of this scope is for, to be shown as it is."},
        "pattern": {"type": ["string", "null"], "description": "The pattern to send with it."},
        "until": {"type": ["string", "null"], "description": "An end to send with it, unless another."},
        "confirm": {"type": "boolean", "description": "Whether it needs `confirmed`."},
        "reach": _REACH,
    }
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A line of the approvals channel",
    "description": "`asked` and `closed` come from ringfence, `answer` goes to it.",
    "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("asked", "closed", "answer")],
    "$defs": {
        "asked": _object(
            {
                "event": {"const": "asked"},
                "id": _ID,
                "call": {"type": ["string", "integer", "null"], "description": "The id of the call's line."},
                "agent": _TEXT,
                "session": _TEXT,
                "tool": _TEXT,
                "title": {**_TEXT, "description": "What the call would do, in one line."},
                "of_command": {
                    "enum": ["", TO_RUN, CHANGES],
                    "description": "run: whether a command may run, which it has not yet; changes: whether"
                    " the changes of a command that ran are applied; empty for any other call.",
                },
                "notice": {**_TEXT, "description": "The same in words, to be shown as it is."},
                "description": {**_TEXT, "description": "Why, in the agent's own words."},
                "because": {**_TEXT, "description": "Why a person is asked."},
                "paths": {"type": "array", "items": _TEXT},
                "needs": {"type": "array", "items": _NEED},
                "arguments": {"type": "object"},
                "preview": {**_TEXT, "description": "A unified diff, or a directory's files."},
                "preview_left_out": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "How many characters of the preview were left out at its end.",
                },
                "decision": {"type": "object"},
                "scopes": {"type": "array", "items": _SCOPE},
                "asked": _TIME,
                "expires": _TIME,
            }
        ),
        "closed": _object(
            {
                "event": {"const": "closed"},
                "id": _ID,
                "state": {"enum": _STATES},
                "reason": {**_TEXT, "description": "Why it is over; empty where the answer was taken."},
            }
        ),
        "answer": _object(
            {
                "id": _ID,
                "grant": {"type": "boolean"},
                "scope": {"enum": _SCOPES, "default": ONCE},
                "pattern": {"type": "string", "minLength": 1, "maxLength": 4096},
                "until": {
                    "type": ["string", "number"],
                    "minimum": 0,
                    "maximum": _LAST,
                    "description": "A span such as 2h, an RFC 3339 time, or POSIX seconds.",
                },
                "reason": {"type": "string", "maxLength": 4096},
                "by": {"type": "string", "minLength": 1, "maxLength": 256},
                "confirmed": {
                    "type": "boolean",
                    "description": "That the person was asked a second time, where the scope needs it.",
                },
            },
            *("scope", "pattern", "until", "reason", "by", "confirmed"),
            additionalProperties=False,
            dependentSchemas={
                "pattern": {"required": ["scope", "until"], "properties": {"scope": {"const": PATTERN}}},
                "until": {"required": ["scope"], "properties": {"scope": {"enum": [SESSION, PATTERN]}}},
            },
            **{
                "if": {"required": ["scope"], "properties": {"scope": {"const": PATTERN}}},
                "then": {"required": ["pattern"]},
            },
        ),
    },
}


def asked(
    request: Request, call: str | int | None, opens: Iterable[tuple[Scope, Reach | None]]
) -> dict[str, Any]:
    """All that a person needs: `call` is the id that the agent gave the call, `opens` what can be granted."""
    preview = request.preview
    if len(preview) > SHOWN_PREVIEW:
        # At the end of a line, so that no line of the diff reads as another one.
        preview = preview[: preview.rfind("\n", 0, SHOWN_PREVIEW) + 1 or SHOWN_PREVIEW]
    return {
        "event": "asked",
        "id": request.id,
        "call": call,
        "agent": request.agent,
        "session": request.session,
        "tool": request.tool,
        "title": escape(request.title),
        "of_command": request.of_command,
        "notice": notice(request),
        "description": escape(request.description, newlines=True),
        "because": escape(because(request.decision)),
        "paths": list(request.paths),
        "needs": list(shown_needs(request)),
        "arguments": request.arguments,
        "preview": escape(preview, newlines=True),
        "preview_left_out": len(request.preview) - len(preview),
        "decision": request.decision,
        "scopes": [_scope(scope, reach) for scope, reach in opens],
        "asked": rfc3339(request.asked),
        "expires": rfc3339(request.asked + WAIT),
    }


def _scope(scope: Scope, reach: Reach | None) -> dict[str, Any]:
    return {
        "scope": scope.name,
        "words": scope.words,
        "pattern": scope.pattern,
        "until": None if scope.lasts is None else f"{scope.lasts:.0f}s",
        "confirm": scope.broad,
        "reach": None if reach is None else reach.to_json(),
    }


def closed(request: Request, reason: str) -> dict[str, Any]:
    """That a request is no longer asked here, and how it stands."""
    return {"event": "closed", "id": request.id, "state": request.state, "reason": reason}


def line(message: dict[str, Any]) -> bytes:
    """One line of ASCII, so that nothing in it can begin another one."""
    return json.dumps(message).encode("ascii") + b"\n"


def read_answer(data: bytes, now: float) -> tuple[str, Answer]:
    """The request's id and the answer; `now` is in POSIX seconds. Raises CallError for anything else."""
    if len(data) > MAX_ANSWER:
        raise _unfit(f"is longer than {MAX_ANSWER} bytes")
    try:
        value = read_json(data)
    except CallError as error:
        raise _unfit("is not JSON") from error
    wrong = next(iter(_answers().iter_errors(value)), None)
    if wrong is not None:
        where = ".".join(str(step) for step in wrong.path)
        raise _unfit(f"does not fit its schema ({wrong.validator}{f' of {where}' if where else ''})")
    if not all(is_unicode(text) for text in value.values() if isinstance(text, str)):
        raise _unfit("has text that is not Unicode")
    until = _until(value.get("until"), now)
    by = value.get("by", BY)
    if by != escape(by):
        raise _unfit("has a name in `by` with invisible characters")
    if not value["grant"]:
        return value["id"], Answer(False, reason=value.get("reason", ""), by=by)
    scope = value.get("scope", ONCE)
    confirmed = value.get("confirmed", False)
    return value["id"], Answer(
        True, scope, value.get("reason", ""), by, value.get("pattern"), until, confirmed
    )


def _until(given: str | float | None, now: float) -> float | None:
    if given is None:
        return None
    found = ahead(given, now) if isinstance(given, str) else float(given)
    if found is None:
        raise _unfit("has an `until` that is neither a span nor a time")
    return found


def _unfit(why: str) -> CallError:
    return CallError("invalid_arguments", f"The answer {why}")


@functools.cache
def _answers() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(SCHEMA["$defs"]["answer"])

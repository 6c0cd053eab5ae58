"""Calls and results: JSON text to values and back.

Pure. Refuses JSON that two readers could understand differently: repeated names, NaN, lone surrogates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.paths import is_unicode

if TYPE_CHECKING:
    from ringfence.toolkit.media import Media

MAX_BYTES = 16 << 20
MAX_DEPTH = 64
MAX_ID = 256
_FIELDS = {"id", "tool", "name", "arguments", "message"}
_FLAT = frozenset({bool, int, float, type(None)})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: `id` is the caller's own (text or whole number, or None), echoed in the result.

    `message` is the channel's id of the message with the call, for the record only.
    """

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str | int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one call.

    `content` is text for the model, `data` the same as fields (with `call_id`, which `ringfence undo` takes),
    `decision` the policy's decision, `error` the error's fields. `media` are images and audio that were read:
    content of MCP, and not part of the JSON form.
    """

    id: str | int | None
    status: str
    content: str
    data: dict[str, Any] = field(default_factory=dict)
    decision: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    media: tuple[Media, ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether the call was carried out."""
        return self.status == "ok"

    def to_json(self, *, media: bool = False) -> dict[str, Any]:
        """Return the object to send: `{"id", "status", "content", "data", "decision", "error"}`.

        With `media`, it has the images and audio, too: `{"path", "mime_type", "data"}`, the data in base64.
        """
        found = {
            "id": self.id,
            "status": self.status,
            "content": self.content,
            "data": self.data,
            "decision": self.decision,
            "error": self.error,
        }
        return {**found, "media": [each.to_json() for each in self.media]} if media else found

    def to_line(self) -> str:
        """Return the object as one line of ASCII JSON, so that no name in it can forge another line."""
        return json.dumps(self.to_json(), ensure_ascii=True)


def failed(call_id: str | int | None, error: CallError, decision: dict[str, Any] | None = None) -> Result:
    """Return the result of a call that ended with `error`."""
    return Result(
        id=call_id,
        status=error.status,
        content=f"Error: {error.message}",
        data=error.data,
        decision=decision,
        error=error.to_json(),
    )


def parse_call(data: bytes | str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> ToolCall:
    """Read one call from JSON text.

    Raises CallError `invalid_json` for text that is not one unambiguous JSON object, and
    `invalid_arguments` for an object that is not a call.
    """
    if len(data) > max_bytes:
        raise CallError(
            "invalid_json", f"The call is larger than {max_bytes} bytes", hint="send less content at once"
        )
    value = read_json(data, max_depth)
    if not isinstance(value, dict):
        raise CallError("invalid_json", "The call is not a JSON object")
    return as_call(value)


def as_call(value: dict[str, Any], *, max_depth: int = MAX_DEPTH) -> ToolCall:
    """Read one call from a parsed object: `{"tool": ..., "arguments": {...}, "id": ...}` (or `name`)."""
    _check_depth_and_text(value, max_depth)
    if not value.keys() <= _FIELDS:
        unknown = min(value.keys() - _FIELDS)
        raise CallError("invalid_arguments", f"Unknown field '{unknown}' in the call", where=unknown)
    if "tool" in value and "name" in value:
        raise CallError("invalid_arguments", "A call has 'tool' or 'name', not both", where="name")
    tool = value.get("tool", value.get("name"))
    given = value.get("arguments")
    call = ToolCall(tool, {} if given is None else given, value.get("id"), value.get("message"))  # type: ignore[arg-type]
    return _checked(call)


def again(call: ToolCall, *, max_depth: int = MAX_DEPTH) -> ToolCall:
    """Check a call that a program made, as `as_call` checks a parsed one, and return it. Raises as `as_call`
    does.
    """
    rest = {"tool": call.tool, "id": call.id, "message": call.message}
    if not (_is_plain(call.arguments) and _is_plain(rest)):
        _check_depth_and_text({**rest, "arguments": call.arguments}, max_depth)
    return _checked(call)


def _checked(call: ToolCall) -> ToolCall:
    if not isinstance(call.tool, str):
        raise CallError("invalid_arguments", "The call names no tool", where="tool")
    if not isinstance(call.arguments, dict):
        raise CallError("invalid_arguments", "The arguments are not a JSON object", where="arguments")
    call_id = call.id
    if call_id is not None and (isinstance(call_id, bool) or not isinstance(call_id, str | int)):
        raise CallError("invalid_arguments", "The id is neither text nor a whole number", where="id")
    if isinstance(call_id, str) and len(call_id) > MAX_ID:
        raise CallError("invalid_arguments", f"The id is longer than {MAX_ID} characters", where="id")
    if call.message is not None and (not isinstance(call.message, str) or len(call.message) > MAX_ID):
        message = f"The message is not text of up to {MAX_ID} characters"
        raise CallError("invalid_arguments", message, where="message")
    return call


def call_id_of(data: bytes | str) -> str | int | None:
    """Return the id of an invalid call if it can be found; None otherwise."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    return found if isinstance(found, int) or (len(found) <= MAX_ID and is_unicode(found)) else None


def read_json(data: bytes | str, max_depth: int = MAX_DEPTH) -> Any:
    """Read any JSON value strictly. Raises CallError `invalid_json` for ambiguous text."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise CallError("invalid_json", f"The call is not UTF-8 at byte {error.start}") from None
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise CallError(
            "invalid_json", f"The call is not JSON: {error.msg} at {where}", where=where
        ) from None
    except RecursionError:
        raise CallError("invalid_json", f"The call is nested deeper than {max_depth} levels") from None
    except ValueError:
        raise CallError("invalid_json", "The call holds a number with too many digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        shown = name.encode("ascii", "backslashreplace").decode()
        raise CallError("invalid_json", f"The name '{shown}' occurs twice in one object", where=shown)
    return result


def _constant(text: str) -> Any:
    raise CallError("invalid_json", f"{text} is not JSON")


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise CallError("invalid_json", f"The number {text[:40]} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)


def _is_plain(value: object) -> bool:
    """Whether the value is a flat object of ASCII text only, as most are: it needs no further checks."""
    if type(value) is not dict:
        return False
    for name, item in value.items():
        kind = type(item)
        if type(name) is not str or not name.isascii():
            return False
        if kind not in _FLAT and not (kind is str and item.isascii()):
            return False
    return True


def _check_depth_and_text(value: dict[str, Any], max_depth: int) -> None:
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        if depth > max_depth:
            raise CallError("invalid_json", f"The call is nested deeper than {max_depth} levels")
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                for key in item:
                    _check_text(key)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str):
                _check_text(item)
        level = below


def _check_text(text: str) -> None:
    if not isinstance(text, str) or not is_unicode(text):
        shown = str(text)[:40].encode("ascii", "backslashreplace").decode()
        raise CallError("invalid_arguments", f"The text '{shown}' is not valid Unicode (a lone surrogate)")

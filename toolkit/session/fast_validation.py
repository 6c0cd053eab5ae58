"""Fast check for arguments that obviously fit a tool's schema, so that most calls need no validator.

Only a positive answer counts: the validator decides about every other value and every keyword that is unknown
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Fits = Callable[[Any], bool]

_SAID = {"type", "description", "default", "title"}
_OBJECT = _SAID | {"properties", "required", "additionalProperties"}


def fits(schema: Mapping[str, Any]) -> Fits:
    """Return a function that is True only for values that are valid under `schema`; False is undecided."""
    kind = schema.get("type")
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    return _never if make is None else make(schema)


def _string(schema: Mapping[str, Any]) -> Fits:
    if not _SAID | {"minLength", "maxLength", "enum"} >= schema.keys():
        return _never
    low, high, enum = schema.get("minLength", 0), schema.get("maxLength", 1 << 62), schema.get("enum")
    return lambda value: type(value) is str and low <= len(value) <= high and (enum is None or value in enum)


def _integer(schema: Mapping[str, Any]) -> Fits:
    if not _SAID | {"minimum", "maximum"} >= schema.keys():
        return _never
    low, high = schema.get("minimum", -(1 << 62)), schema.get("maximum", 1 << 62)
    return lambda value: type(value) is int and low <= value <= high


def _boolean(schema: Mapping[str, Any]) -> Fits:
    return (lambda value: type(value) is bool) if schema.keys() <= _SAID else _never


def _array(schema: Mapping[str, Any]) -> Fits:
    if not _SAID | {"items", "minItems", "maxItems"} >= schema.keys() or "items" not in schema:
        return _never
    item, least, most = fits(schema["items"]), schema.get("minItems", 0), schema.get("maxItems", 1 << 62)
    return lambda value: type(value) is list and least <= len(value) <= most and all(map(item, value))


def _object(schema: Mapping[str, Any]) -> Fits:
    if not schema.keys() <= _OBJECT or schema.get("additionalProperties") is not False:
        return _never
    parts = {name: fits(part) for name, part in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))

    def whole(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        # A plain loop: this runs at every call, and `all` with a generator takes twice as long.
        for name, each in value.items():  # noqa: SIM110
            if name not in parts or not parts[name](each):
                return False
        return True

    return whole


def _never(_: Any) -> bool:
    return False


_MAKERS: dict[str, Callable[[Mapping[str, Any]], Fits]] = {
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
}

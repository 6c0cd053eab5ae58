"""Validation of a tool's arguments against its closed JSON Schema, with one clear sentence for the error.

Never fetches a reference: a schema that points elsewhere does not load.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session import fast_validation
from ringfence.toolkit.text import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN = 80


def arguments(tool: str, schema: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the schema's defaults filled in; null counts as left out.

    Raises CallError `invalid_arguments`.
    """
    known = schema["properties"]
    if None in given.values():
        given = {name: value for name, value in given.items() if value is not None or name not in known}
    fits, defaults = _quick(tool)
    if not fits(given):
        _check_lengths(known, given)
        errors = sorted(_validator(tool).iter_errors(given), key=_rank)
        if errors:
            raise _explained(tool, schema, errors[0])
    return {**defaults, **given}


def _check_lengths(known: Mapping[str, Any], given: dict[str, Any]) -> None:
    """Refuse lists that are too long before the validator checks each item."""
    for name, value in given.items():
        most = known.get(name, {}).get("maxItems")
        if most is not None and isinstance(value, list) and len(value) > most:
            message = f"The {name} has {len(value):,} items; at most {most:,} are taken"
            raise CallError("invalid_arguments", message, where=name, hint="send several calls")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse (`schema_invalid`) an invalid schema, or one that refers to anything outside itself."""
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise CallError("schema_invalid", f"The schema is not valid: {error.message[:_SHOWN]}") from None
    level: list[Any] = [schema]
    while level:
        part = level.pop()
        if isinstance(part, dict):
            for name in ("$ref", "$dynamicRef"):
                if isinstance(part.get(name), str) and not part[name].startswith("#/$defs/"):
                    raise CallError(
                        "schema_invalid", f"The schema refers to '{part[name][:_SHOWN]}'", where=name
                    )
            level.extend(part.values())
        elif isinstance(part, list):
            level.extend(part)


@functools.cache
def _quick(tool: str) -> tuple[fast_validation.Fits, dict[str, Any]]:
    """Return the fast check of a tool's arguments, and their defaults."""
    from ringfence.toolkit.tools import TOOLS

    schema = TOOLS[tool].parameters
    parts = schema["properties"].items()
    return fast_validation.fits(schema), {name: part["default"] for name, part in parts if "default" in part}


@functools.cache
def _validator(tool: str) -> Any:
    import jsonschema
    import referencing

    from ringfence.toolkit.tools import TOOLS

    schema = TOOLS[tool].parameters
    check_schema(schema)
    # An empty registry retrieves no reference.
    return jsonschema.Draft202012Validator(schema, registry=referencing.Registry())


def _rank(error: Any) -> tuple[int, str, bool]:
    """Return the order of errors: outermost first, and an unknown name before a missing one."""
    return len(error.path), str(error.path), error.validator != "additionalProperties"


def _explained(tool: str, schema: Mapping[str, Any], error: Any) -> CallError:
    import difflib

    where = ".".join(str(step) for step in error.path)
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        message, hint = f"{tool} needs the argument '{missing}'", f"add {missing}; null counts as left out"
        return CallError("invalid_arguments", message, where=missing, hint=hint)
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        extra = next(name for name in error.instance if name not in known)
        near = difflib.get_close_matches(extra, known, 1)
        hint = (
            f"did you mean '{near[0]}'?"
            if near
            else f"it takes {', '.join(known)}"
            if known
            else "it takes none"
        )
        shown = escape(extra[:_SHOWN])
        return CallError("invalid_arguments", f"{tool} has no argument '{shown}'", where=shown, hint=hint)
    if error.validator == "minLength":
        return CallError("invalid_arguments", f"The {where} is empty", where=where)
    if error.validator == "type":
        return CallError(
            "invalid_arguments", f"The {where} is not of type {error.validator_value}", where=where
        )
    detail = f"{error.validator} {str(error.validator_value)[:_SHOWN]}"
    return CallError("invalid_arguments", f"The {where} does not fit the schema ({detail})", where=where)

"""Lean answers: the fields of a result that its text shows, for clients that give their model the fields.

Pure. An answer of fields that repeats digests, defaults and the deciding rule costs a model several times the
tokens of its text. `Tool.brief` names the fields of a tool and their form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.file_text import UTF_8
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.text import short_diff
from ringfence.toolkit.tools import TOOLS, Tool
from ringfence.toolkit.tools.matched_lines import by_file

Fields = dict[str, Any]
_OF_PART = ("path", "content", "binary", "encoding", "next")
_NOT_SHOWN = frozenset({"call_id", "digest"})


def lean_fields(tool: str, result: Result) -> Fields:
    """Return a result as `{"status", "data", "decision", "error"}` without what its text does not show.

    What is null, false or empty is left out, and so is the decision of a plain allow.
    """
    found: Fields = {"status": result.status}
    data = _data(TOOLS[tool], result.data) if result.ok and tool in TOOLS else _shown(result.data)
    if data:
        found["data"] = data
    decision = result.decision
    if decision is not None and decision["effect"] != "allow":
        # The error has the hint.
        found["decision"] = {
            name: decision[name] for name in ("effect", "path", "reason") if decision.get(name)
        }
    if result.error is not None:
        found["error"] = _shown(result.error)
    return found


def lean_schema(tool: Tool) -> Fields:
    """Return the JSON Schema of what `lean_fields` returns for a tool."""
    whole = tool.output.get("properties", {})
    data = {name: FORMS[form].schema(whole[name]) for name, form in _brief(tool).items()}
    return {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["ok", "denied", "approval_required", "error"]},
            "data": {
                "type": "object",
                "description": "The answer as fields; what is false or empty is left out.",
                "properties": data,
            },
            "decision": {"type": "object", "description": "How the policy judged it, unless it allowed all."},
            "error": {
                "type": "object",
                "description": "What went wrong: a stable code, a message, where, and a hint.",
                "properties": {name: {"type": "string"} for name in ("code", "message", "where", "hint")},
                "required": ["code", "message"],
            },
        },
        "required": ["status"],
    }


def _data(tool: Tool, data: Mapping[str, Any]) -> Fields:
    return {
        name: made
        for name, form in _brief(tool).items()
        if name in data and not _is_empty(made := FORMS[form].make(data[name]))
    }


def _brief(tool: Tool) -> dict[str, str]:
    return tool.brief or dict.fromkeys(tool.output.get("properties", {}), "as it is")


def _shown(fields: Mapping[str, Any]) -> Fields:
    return {name: it for name, it in fields.items() if name not in _NOT_SHOWN and not _is_empty(it)}


def _is_empty(value: Any) -> bool:
    """Whether a field says nothing; 0 does: it is an exit status, or a size."""
    return value is None or value is False or (not value and isinstance(value, str | list | dict))


class Form:
    """How a field is written: its value, and the schema of that."""

    def __init__(self, make: Callable[[Any], Any], schema: Callable[[Fields], Fields]) -> None:
        self.make = make
        self.schema = schema


def _paths(entries: list[Fields]) -> list[str]:
    return [_name(entry) for entry in entries]


def _sizes(entries: list[Fields]) -> Fields:
    return {_name(entry): None if entry["type"] == DIRECTORY else entry["size"] for entry in entries}


def _name(entry: Fields) -> str:
    name: str = entry["path"] if "path" in entry else entry["name"]
    return f"{name}/" if entry["type"] == DIRECTORY else name


def _lines(matches: list[Fields]) -> Fields:
    return {
        path: {f"{at}{'' if matches else '-'}": text for at, (text, matches) in lines.items()}
        for path, lines in by_file(matches).items()
    }


def _counts(entries: list[Fields]) -> Fields:
    return {entry["path"]: entry["count"] for entry in entries}


def _reasons(entries: list[Fields]) -> Fields:
    return {entry["path"]: entry["why"] for entry in entries}


def _parts(files: list[Fields]) -> list[Fields]:
    found = []
    for file in files:
        part = {name: file[name] for name in _OF_PART if not _is_empty(file.get(name))}
        if part.get("encoding") == UTF_8:
            del part["encoding"]
        error = file.get("error")
        found.append(part if error is None else {**part, "error": error["message"]})
    return found


def _plain(schema: Fields) -> Fields:
    """Return a schema without null: what is null is left out."""
    kind = schema.get("type")
    if not isinstance(kind, list):
        return schema
    return {**schema, "type": next(each for each in kind if each != "null")}


def _listed(_: Fields) -> Fields:
    return {"type": "array", "items": {"type": "string"}, "description": "Paths; a directory's ends in `/`."}


def _sized(_: Fields) -> Fields:
    return {
        "type": "object",
        "description": "Each name with its size in bytes; that of a directory ends in `/` and has null.",
    }


def _numbered(_: Fields) -> Fields:
    return {
        "type": "object",
        "description": "Each path with the lines found there, by their numbers; `7-` is a line near.",
    }


def _counted(_: Fields) -> Fields:
    return {"type": "object", "description": "Each path with how much is in it."}


def _explained(_: Fields) -> Fields:
    return {"type": "object", "description": "Each path with the reason."}


def _in_parts(schema: Fields) -> Fields:
    text, flag, place = {"type": "string"}, {"type": "boolean"}, {"type": "object"}
    properties = {
        "path": text,
        "content": text,
        "error": text,
        "binary": flag,
        "mime_type": text,
        "encoding": text,
        "next": place,
    }
    return {**schema, "items": {"type": "object", "properties": properties, "required": ["path"]}}


# The forms that `Tool.brief` can name.
FORMS: Mapping[str, Form] = {
    "as it is": Form(lambda value: value, _plain),
    "unless UTF-8": Form(lambda value: None if value == UTF_8 else value, _plain),
    "above zero": Form(lambda value: value or None, _plain),
    "paths": Form(_paths, _listed),
    "sizes": Form(_sizes, _sized),
    "lines": Form(_lines, _numbered),
    "beginning": Form(short_diff, _plain),
    "parts": Form(_parts, _in_parts),
    "counts": Form(_counts, _counted),
    "reasons": Form(_reasons, _explained),
}

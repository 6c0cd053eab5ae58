"""Messages of the Agent Client Protocol: lines read strictly, the names of methods, and answers. Pure.

A line from the agent is passed on byte for byte only if every reader takes it for the same one message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from ringfence.toolkit.call import Result, read_json
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.mcp.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, Message, RpcError

MAX_LINE: Final = 64 << 20
INITIALIZE, CANCEL, UPDATE = "initialize", "session/cancel", "session/update"
PERMISSION = "session/request_permission"
CANCEL_REQUEST = "$/cancel_request"
# Requests of the editor that begin or end a session.
NEW: Final = ("session/new",)
NEW_OF_OLD: Final = ("session/fork",)  # the answer has the id of a new session, as for session/new
KNOWN: Final = ("session/load", "session/resume")
ENDED: Final = ("session/close", "session/delete")
READ_FILE, WRITE_FILE = "fs/read_text_file", "fs/write_text_file"
JUDGED: Final = ("fs/", "terminal/")  # what begins so is never passed on to the editor as it is
# Error codes of the protocol, and one of ours among those left to applications.
NOT_FOUND, CANCELLED, REFUSED = -32002, -32800, -32040

_SPLITS: Final = (b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")  # where some readers end a line
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def parsed(line: bytes) -> Message:
    """Return the message of a line. Raises CallError `invalid_json`, or RpcError for what is no message."""
    if len(line) > MAX_LINE:
        raise CallError("invalid_json", f"The message is longer than {MAX_LINE >> 20} MiB")
    value = read_json(line)
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "A message is one JSON object")
    method = value.get("method")
    if method is not None and not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "The method is not text")
    if method is None and ("id" not in value or not ("result" in value or "error" in value)):
        raise RpcError(INVALID_REQUEST, "Neither a request, a notification nor a response")
    given = value.get("id")
    if isinstance(given, bool) or not isinstance(given, str | int | None):
        raise RpcError(INVALID_REQUEST, "The id is neither text nor a whole number")
    return value


def encoded(message: Message) -> bytes:
    """Return a message as one line of ASCII."""
    return _encode(message).encode() + b"\n"


def as_sent(line: bytes, message: Message) -> bytes:
    """Return the line of a message unchanged; written anew if another reader could split it in two."""
    return encoded(message) if any(split in line for split in _SPLITS) else line + b"\n"


def params_of(message: Message) -> Message:
    """Return the params of a message; an empty object where there are none."""
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def text_of(params: Message, name: str) -> str:
    """Return a parameter that has to be text. Raises RpcError."""
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{name} is not text")
    return value


def key_of(request: object) -> tuple[str, object]:
    """Return a request's id as a key: 1, "1" and True are three."""
    return type(request).__name__, request


def can_serve(params: Message) -> Message:
    """Return the params of `initialize` with what Ringfence does for the agent: files and terminals.

    Only version 1 has these; a client of a later version alone declares nothing of the kind.
    """
    version, known = params.get("protocolVersion"), params.get("clientCapabilities")
    if version not in (0, 1) and not isinstance(known, dict):
        return params
    declared = known if isinstance(known, dict) else {}
    files = declared.get("fs")
    fs = {**(files if isinstance(files, dict) else {}), "readTextFile": True, "writeTextFile": True}
    return {**params, "clientCapabilities": {**declared, "fs": fs, "terminal": True}}


def reads_files(params: Message) -> bool:
    """Whether the editor declares in `initialize` that it gives the text of files."""
    capabilities = params.get("clientCapabilities")
    fs = capabilities.get("fs") if isinstance(capabilities, dict) else None
    return isinstance(fs, dict) and fs.get("readTextFile") is True


def chosen(options: Iterable[Any], *kinds: str) -> str | None:
    """Return the id of the option of the first of these kinds that is offered exactly once; None without."""
    offered = [each for each in options if isinstance(each, dict) and isinstance(each.get("optionId"), str)]
    for kind in kinds:
        found = [each["optionId"] for each in offered if each.get("kind") == kind]
        if found and len([each for each in offered if each["optionId"] == found[0]]) == 1:
            return str(found[0])
    return None


def kind_chosen(options: Iterable[Any], result: object) -> str | None:
    """Return the kind of the option that a person selected; None for no selection, "" for no known option."""
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return None
    kinds = [
        each.get("kind")
        for each in options
        if isinstance(each, dict) and each.get("optionId") == outcome.get("optionId")
    ]
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], str) else ""


def selected(option: str | None, why: dict[str, str] | None = None) -> Message:
    """Return the result of a permission request; `cancelled`, which no agent takes for a yes, without one."""
    outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
    return {"outcome": outcome} | ({"_meta": {"ringfence": why}} if why else {})


def error_of(result: Result) -> RpcError:
    """Return the protocol's error for a call that was not carried out; it has what the agent may know."""
    error = result.error or {}
    code, message, hint = str(error.get("code")), str(error.get("message")), error.get("hint")
    data = {"ringfence": {"code": code, "hint": hint}}
    if code == "not_found":
        return RpcError(NOT_FOUND, f"Resource not found: {message}", data)  # agents look for these words
    if code == "cancelled":
        return RpcError(CANCELLED, message, data)
    text = f"{message}. {hint}" if hint else message
    if result.status in ("denied", "approval_required"):
        return RpcError(REFUSED, text, data)
    return RpcError(INVALID_PARAMS, text, data)

"""JSON-RPC 2.0 messages as plain dicts, and the protocol's versions.

Pure: values in, values out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
NO_VERSION, HEADER_MISMATCH = -32022, -32020

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{_PREFIX}protocolVersion"
CLIENT_KEY = f"{_PREFIX}clientInfo"
CAPABILITIES_KEY = f"{_PREFIX}clientCapabilities"
MESSAGE_KEY = "ringfence/message"
SERVER_KEY = f"{_PREFIX}serverInfo"

Message = dict[str, Any]


class RpcError(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(slots=True)
class Peer:
    """The client's facts: the protocol version in use, and its declared capabilities."""

    version: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)

    @property
    def stateless(self) -> bool:
        """Whether the version is of the stateless era."""
        return self.version in STATELESS

    @property
    def can_elicit(self) -> bool:
        """Whether the client shows forms to its user; an empty declaration means forms."""
        declared = self.capabilities.get("elicitation")
        return isinstance(declared, dict) and (not declared or "form" in declared)


def reply(request: Any, result: Message) -> Message:
    """Return the response to a request."""
    return {"jsonrpc": "2.0", "id": request, "result": result}


def refusal(request: Any, error: RpcError) -> Message:
    """Return the error response to a request."""
    body: Message = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": request, "error": body}


def notification(method: str, params: Message) -> Message:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def is_request(message: Message) -> bool:
    """Whether the message is a request: it has a method and an id."""
    return "method" in message and "id" in message


def check(message: Any) -> Message:
    """Return a message in the form of JSON-RPC. RpcError for any other."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "Not a JSON-RPC 2.0 message")
    if "method" in message:
        if not isinstance(message["method"], str):
            raise RpcError(INVALID_REQUEST, "The method is not text")
        if not isinstance(message.get("params", {}), dict):
            raise RpcError(INVALID_PARAMS, "The params are not an object")
        if "id" in message and not _is_id(message["id"]):
            raise RpcError(INVALID_REQUEST, "The id is neither text nor a whole number")
    elif "id" not in message or not ("result" in message or "error" in message):
        raise RpcError(INVALID_REQUEST, "Neither a request, a notification nor a response")
    return message


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def peer_of(message: Message, known: Peer) -> Peer:
    """Return the client of a request: by its envelope (stateless era), else by its handshake."""
    meta = message.get("params", {}).get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return known
    version, capabilities = meta[VERSION_KEY], meta.get(CAPABILITIES_KEY)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta: {VERSION_KEY} is not text")
    if version not in STATELESS:
        data = {"supported": [*STATELESS, *reversed(HANDSHAKE)], "requested": version}
        raise RpcError(NO_VERSION, "Unsupported protocol version", data)
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta: {CAPABILITIES_KEY} is missing or not an object")
    return Peer(version, capabilities)

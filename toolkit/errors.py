"""Errors of calls: the stable codes, and the one exception that carries them.

A message never has a host path and never reveals whether something outside the root exists.
"""

from __future__ import annotations

from typing import Any

from ringfence.policy.value_classes import dataclass
from ringfence.toolkit.advice import as_advice


@dataclass(frozen=True, slots=True)
class Code:
    """Meaning of a code: the result's status, whose fault it was, and what usually helps.

    `fault` is "agent" (the call), "policy" (a rule or a person refused), "author" (the policy's or schema's
    text) or "host" (the disk, the store, this program). `advice` replaces the hint for a person, if the hint
    addresses an agent.
    """

    status: str
    fault: str
    summary: str
    hint: str
    advice: str = ""


UNCHANGED = ", so nothing was changed"  # the end of a message, so that an agent need not check the files


CODES: dict[str, Code] = {
    "invalid_json": Code("error", "agent", "the call is not one JSON object", "send one JSON object a line"),
    "invalid_arguments": Code(
        "error",
        "agent",
        "the arguments do not fit the tool's schema",
        "compare with `ringfence schema tools`",
    ),
    "unknown_tool": Code("error", "agent", "no tool has this name", "`ringfence schema tools` lists them"),
    "path_invalid": Code(
        "error", "agent", "the text can never be a workspace path", "use a path relative to the project root"
    ),
    "outside_root": Code(
        "error", "agent", "the path leads outside the project root", "use a path relative to the project root"
    ),
    "not_confined": Code(
        "error",
        "host",
        "the root reaches the local disk in a way that cannot be confined",
        "give the directory by its path",
    ),
    "root_protected": Code(
        "error", "agent", "the project root itself cannot be changed", "name something below the root"
    ),
    "protected_path": Code(
        "error",
        "agent",
        "no tool changes policies, Ringfence itself and its state, or begins a project in a sub-folder",
        "ask a person to change it",
        "change it with another program",
    ),
    "not_found": Code(
        "error", "agent", "nothing is there", "check the path with list_directory", "check the path"
    ),
    "already_exists": Code("error", "agent", "something is there already", "choose another path"),
    "is_directory": Code("error", "agent", "a file was needed and this is a directory", "name a file"),
    "not_a_directory": Code(
        "error", "agent", "a directory was needed and this is not one", "name a directory"
    ),
    "not_regular_file": Code(
        "error", "agent", "a pipe, device or socket is neither read nor changed", "leave this entry alone"
    ),
    "hard_linked": Code(
        "error",
        "agent",
        "the file has other names and the policy refuses to part them",
        "copy the file and work on the copy",
    ),
    "path_changed": Code(
        "error",
        "host",
        "what was judged is no longer what is there",
        "look again, then send the call again",
        "look again, then try again",
    ),
    "stale_read": Code(
        "error", "agent", "the file changed since this session last read it", "read the file again first"
    ),
    "no_match": Code(
        "error", "agent", "the text to replace was not found", "read the file and copy the text exactly"
    ),
    "not_unique": Code(
        "error", "agent", "the text to replace occurs more than once", "include more of the surrounding lines"
    ),
    "line_out_of_range": Code(
        "error", "agent", "the file has no such line", "read the file to see its lines"
    ),
    "encoding_error": Code(
        "error",
        "agent",
        "the file is not text in an encoding that can be edited safely",
        "leave this file alone",
    ),
    "masked_content": Code(
        "error",
        "agent",
        "the content has a mark that stands for a secret in an answer, or the place is inside such a secret",
        "edit around the mark: the file still has the secret, so leave that part as it is",
        "`ringfence reveal` shows what a mark stands for",
    ),
    "binary_file": Code("error", "agent", "the file is binary", "use get_file_info for its size and times"),
    "too_large": Code("error", "agent", "more than is handled in one call", "ask for a part of it"),
    "invalid_move": Code(
        "error", "agent", "a thing cannot be moved onto or into itself", "choose another destination"
    ),
    "directory_not_empty": Code(
        "error", "agent", "the directory is not empty", "delete what is in it first, or use the delete tool"
    ),
    "upstream_unavailable": Code(
        "error",
        "host",
        "another MCP server, to which the call goes, does not run or does not answer",
        "tell the user; do not send the call again before it is known whether it was done",
        "its standard error says more; see whether its command runs by itself",
    ),
    "upstream_error": Code(
        "error",
        "agent",
        "another MCP server, to which the call goes, could not do it",
        "read its answer and change the arguments",
    ),
    "partial_failure": Code(
        "error",
        "host",
        "some of it was done and some was not",
        "the fields say which; `ringfence undo` takes it back",
    ),
    "not_recoverable": Code(
        "error",
        "host",
        "the history does not hold, or could not keep, what would be needed to bring this back",
        "restore by hand; a call that would take something away for good asks a person first",
    ),
    "history_unavailable": Code(
        "error",
        "host",
        "the history cannot be written, so nothing was changed",
        "tell the user; free space or rights",
        "see that the disk of the state has room and that this user may write to it",
    ),
    "log_unavailable": Code(
        "error",
        "host",
        "workspace or state is not on a disk for which `durable: log` is known to hold",
        "use `durable: true`, or a state on a local ext4 or XFS (`--state`)",
    ),
    "not_settled": Code(
        "error",
        "host",
        "changes from before a power cut could not be made again, so nothing was changed",
        "tell the user",
        "put the workspace of that time back, or wait for a day",
    ),
    "permission_denied": Code(
        "error",
        "host",
        "the operating system does not permit it",
        "report it to the user",
        "look at the owner and the permissions",
    ),
    "io_error": Code(
        "error", "host", "the file system failed", "report it to the user", "look at the disk or the store"
    ),
    "no_reply": Code(
        "error",
        "host",
        "the store did not answer, so it is not known yet whether the change was made",
        "look at the path; the next call finds out, and the log says so",
    ),
    "outcome_unknown": Code(
        "error",
        "host",
        "the store's answer was lost and what is there now does not tell whether the change was made",
        "look at the path; what was there before is in the history",
    ),
    "command_failed": Code(
        "error",
        "host",
        "the command could not be run in its sandbox, or not to the end",
        "`ringfence doctor` says what this machine can do",
    ),
    "level_unavailable": Code(
        "error",
        "host",
        "this machine cannot confine a command as the policy requires",
        "`ringfence doctor` says what is missing; use the file tools",
    ),
    "cancelled": Code(
        "error",
        "agent",
        "the caller called it off before anything was changed",
        "send it again if it is wanted",
        "try again if it is wanted",
    ),
    "unauthorized": Code(
        "error",
        "agent",
        "the request has no token that this server knows",
        "send Authorization: Bearer TOKEN",
    ),
    "forbidden": Code(
        "error",
        "agent",
        "the token, the Host or the Origin does not permit this",
        "ask whoever runs the server",
    ),
    "request_timeout": Code(
        "error",
        "agent",
        "the body of the request did not come in time",
        "send it again, whole",
        "try again",
    ),
    "overloaded": Code(
        "error",
        "host",
        "as many requests of this caller as the server takes are under way",
        "wait a moment, then send it again",
        "try again in a moment",
    ),
    "read_only_store": Code(
        "error",
        "host",
        "the store is open for reading alone, so nothing in it can be changed",
        "do not try again; write to another place, or tell the user",
        "open another place, or this one with the right to write",
    ),
    "internal_error": Code(
        "error",
        "host",
        "a fault in Ringfence; nothing was permitted",
        "report it to the user",
        "report it to those who make Ringfence",
    ),
    "denied_by_policy": Code(
        "denied",
        "policy",
        "a rule of the policy forbids it",
        "do without it, or ask a person",
        "change the policy if this should be allowed",
    ),
    "limit_exceeded": Code(
        "denied",
        "policy",
        "more files or bytes than the policy's limit",
        "ask a person to look at it",
        "change the policy if this should be allowed",
    ),
    "approval_required": Code(
        "approval_required",
        "policy",
        "a person has to approve it",
        "send the same call again once it is granted",
        "`ringfence approvals list` shows what waits for an answer",
    ),
    "approval_stale": Code(
        "approval_required",
        "policy",
        "what was approved is not what would happen now",
        "wait for the new approval, then send the same call again",
        "`ringfence approvals list` shows what waits for an answer",
    ),
    "approval_refused": Code(
        "denied",
        "policy",
        "a person refused it",
        "do not try again; ask what they want instead",
        "`ringfence approvals reopen` lets it be answered again",
    ),
    "no_approver": Code(
        "denied",
        "policy",
        "it needs approval and nobody is there to ask",
        "ask a person to run it",
        "run it at a terminal, or with --ask queue",
    ),
    "policy_invalid": Code(
        "denied", "author", "the policy does not load, so everything is denied", "mend the policy"
    ),
    "schema_invalid": Code("error", "author", "a tool's schema does not load", "mend the schema"),
}


def for_person(code: str, hint: str) -> str:
    """Return a hint in words for a person at a terminal or on a page."""
    known = CODES[code]
    return known.advice if hint == known.hint and known.advice else as_advice(hint)


class CallError(Exception):
    """Error of a call, as fields; interfaces make text from it.

    `message` has no "Error: " in front; `where` is the argument or path that it is about. `status` is the
    code's own, except where a limit asks instead of denying. `hint` is for the agent, `advice` for a person.
    """

    def __init__(  # noqa: PLR0913  the fields of an error, by keyword
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        data: dict[str, Any] | None = None,
        status: str | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint if hint is not None else CODES[code].hint
        self.advice = advice if advice is not None else for_person(code, self.hint)
        self.data = data or {}
        self.status = status or CODES[code].status

    def to_json(self) -> dict[str, Any]:
        """Return the error's code, message, place and hint; `data` and `status` go into the result."""
        return {"code": self.code, "message": self.message, "where": self.where, "hint": self.hint}

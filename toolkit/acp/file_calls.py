"""File calls of an agent: read and written by the tools of its session, as any other door has them.

An editor that gives text is asked for what it shows once reading is permitted, as it may have unsaved
changes. Writing is always Ringfence's own, so that it is recorded and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringfence.toolkit.acp.messages import NOT_FOUND, error_of, text_of
from ringfence.toolkit.acp.tool_calls import Diff
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.call import Result, ToolCall, failed
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session

Editor = Callable[[Message], Any]  # asks the editor for a file's text; None without an answer
_ALL = 1 << 31  # lines
_PIECE = 1 << 20  # bytes of one call's answer, as read_file allows
_BOM = "\ufeff"
_REMEMBERED = 2000


class FileCalls:
    """The file calls of one session. `editor` is None if it does not declare that it gives text."""

    def __init__(self, session: Session, editor: Editor | None) -> None:
        self._session = session
        self._editor = editor
        self._forms: dict[str, tuple[bool, bool]] = {}  # whether a file has a mark at its start, and CRLF
        self._encodings: dict[str, str] = {}  # of the files that are not UTF-8
        self._approved: list[Diff] = []
        self._expected: tuple[str, str] | None = None  # the write at hand, if a person has approved it
        self.written: set[str] = set()  # absolute paths, as the agent named them

    def read(self, params: Message, progress: Progress) -> Message:
        """Return the result of `fs/read_text_file`. Raises RpcError."""
        path, start, limit = _path(params), _number(params, "line") or 1, _number(params, "limit")
        if limit == 0:
            limit = None
        try:
            text = self._on_disk(path, start, limit or _ALL, progress)
        except RpcError as error:
            if error.code != NOT_FOUND:
                raise
            # Reading is permitted; editors have new files that are not saved, and empty ones for any name.
            result, given = self._shown(params)
            if given is None or (given and self._session.policy.detectors):
                raise
            return result
        if start == 1 and limit is None:
            self._note_form(path, text)
        if self._session.policy.detectors:
            return {"content": text}  # only what is on the disk was examined
        result, given = self._shown(params)
        return {"content": text} if given is None else result

    def _shown(self, params: Message) -> tuple[Message, str | None]:
        """Return the editor's answer and the text in it; None where it gives none."""
        result = self._editor(params) if self._editor is not None else None
        given = result.get("content") if isinstance(result, dict) else None
        return (result, given) if isinstance(result, dict) and isinstance(given, str) else ({}, None)

    def write(self, params: Message, progress: Progress) -> Message:
        """Carry out `fs/write_text_file` and return its result. Raises RpcError."""
        path, content = _path(params), text_of(params, "content")
        if path in self._encodings:  # what is written here is UTF-8
            message = f"The file is {self._encodings[path]} text, which a write here would make UTF-8"
            raise error_of(failed(None, CallError("encoding_error", message)))
        content = self._in_form(path, content)
        self._expected = self._approval(path, content)
        arguments = {"path": path, "content": content, "allow_overwrite": True}
        self._done(self._session.call(ToolCall("create_file", arguments), progress))
        self.written.add(path)
        return {}

    def approve(self, diffs: tuple[Diff, ...]) -> None:
        """Remember changes that the editor's person has approved: the same write is not asked about again."""
        self._approved = [*self._approved, *diffs][-_REMEMBERED:]

    def approved(self, request: Request, by: str) -> Answer | None:
        """Return the answer that a person gave to just the write at hand before; None if there is none."""
        given = request.arguments
        if self._expected is None or request.tool != "create_file":
            return None
        fits = (given.get("path"), given.get("content")) == self._expected
        return Answer(True, by=by) if fits else None

    def _approval(self, path: str, content: str) -> tuple[str, str] | None:
        """Return the path and the content if a person has approved just this write, once."""
        for diff in self._approved:
            if diff.path == path and self._in_form(path, diff.new) == content:
                self._approved.remove(diff)
                return (path, content) if self._is_as_shown(diff) else None
        return None

    def _is_as_shown(self, diff: Diff) -> bool:
        """Whether the file still is what the person saw as the content before."""
        call = ToolCall("read_file", {"path": diff.path, "max_lines": _ALL, "max_bytes": _PIECE})
        result = self._session.call(call)
        if not result.ok:
            return bool(result.error and result.error["code"] == "not_found") and not diff.old
        text = result.data.get("content")
        return isinstance(text, str) and "next" not in result.data and _plain(text) == _plain(diff.old or "")

    def _on_disk(self, path: str, start: int, limit: int, progress: Progress) -> str:
        """Return lines of a file by as many calls as their size needs."""
        pieces: list[str] = []
        line, offset = start, 0
        while True:
            arguments = {
                "path": path,
                "start_line": line,
                "max_lines": limit - (line - start),
                "max_bytes": _PIECE,
            }
            arguments |= {"line_offset": offset} if offset else {}
            result = self._session.call(ToolCall("read_file", arguments), progress)
            if result.error is not None and result.error["code"] == "line_out_of_range":
                return ""
            self._done(result)
            if result.data.get("binary") or result.data.get("encoding") == "unknown":
                raise RpcError(INVALID_PARAMS, "The file is not text", {"ringfence": {"code": "binary_file"}})
            if (encoding := str(result.data.get("encoding"))) != "utf-8":
                self._encodings[path] = encoding
            else:
                self._encodings.pop(path, None)
            pieces.append(str(result.data["content"]))
            more = result.data.get("next")
            if more is None or (more["start_line"] - start >= limit and not more["line_offset"]):
                return "".join(pieces)
            line, offset = more["start_line"], more["line_offset"]

    def _note_form(self, path: str, text: str) -> None:
        ends = text.count("\n")
        if len(self._forms) >= _REMEMBERED:
            self._forms.clear()
        self._forms[path] = text.startswith(_BOM), ends > 0 and text.count("\r\n") == ends

    def _in_form(self, path: str, content: str) -> str:
        """Return new content with the line endings and the mark of the file: editors leave both out."""
        marked, crlf = self._forms.get(path, (False, False))
        if crlf and "\r" not in content:
            content = content.replace("\n", "\r\n")
        return _BOM + content if marked and not content.startswith(_BOM) else content

    def _done(self, result: Result) -> None:
        if not result.ok:
            raise error_of(result)


def _plain(text: str) -> str:
    return text.removeprefix(_BOM).replace("\r\n", "\n")


def _path(params: Message) -> str:
    path = text_of(params, "path")
    if not path.startswith("/"):
        raise RpcError(INVALID_PARAMS, "path is not absolute", {"ringfence": {"code": "path_invalid"}})
    return path


def _number(params: Message, name: str) -> int | None:
    value = params.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _ALL):
        raise RpcError(INVALID_PARAMS, f"{name} is not a whole number")
    return value

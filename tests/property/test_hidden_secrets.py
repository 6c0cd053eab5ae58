"""No piece of a secret that a policy hides is in anything that an agent gets: planted secrets, any calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.toolkit.mcp.jsonrpc import HANDSHAKE, Peer
from ringfence.toolkit.mcp.server import Flight, Server
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory
from tests.detection.examples import examples

PIECE = 8
EXAMPLES = [one for one in examples() if one.secrets and one.detector != "match"]
FLOORS = {
    "mask": {"ask": ["read"], "mask": True},
    "ask": {"ask": ["read"]},
    "deny": {"deny": ["read"]},
}
DETECTORS = sorted({one.detector for one in EXAMPLES})
# What is public in the texts around secrets: labels and names of fields.
# A key may be shown with a path and a number before each line, as a search does.
LABELS = re.compile(rb"-----[^\r\n\\-]*-----|[A-Za-z-]{3,40}: [^\r\n\\]*|[\w./]{1,60}[:-][0-9]+[:-]")


def pieces(secret: bytes) -> set[str]:
    """All pieces of a secret without its labels; a line end in it may be shown in another way."""
    found: set[str] = set()
    for part in re.split(rb"[\r\n\s\\]+", LABELS.sub(b"\n", secret)):
        text = part.decode("utf-8", "replace")
        found |= {text[at : at + PIECE] for at in range(len(text) - PIECE + 1)}
    return found


def policy(how: str) -> Policy:
    item = {**FLOORS[how], "paths": ["*"], "content": DETECTORS}
    rules = {"read": "allow", "write": "allow", "delete": "allow"}
    return Policy.loads(json.dumps({"version": 1, "durable": False, "mandatory": [item], "rules": rules}))


def texts(value: Any) -> Iterator[str]:
    """Every text in an answer, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (key, *texts(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)


@st.composite
def contents(draw: st.DrawFn) -> tuple[bytes, set[str]]:
    """A file with secrets on lines among others, with long lines, other line ends and other encodings."""
    planted: set[str] = set()
    parts: list[bytes] = []
    for example in draw(st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=3)):
        parts.append(draw(st.sampled_from([b"", b"one\n", b"two words\n\n", b"x " * 400, b"caf\xc3\xa9 \n"])))
        parts.append(example.text + draw(st.sampled_from([b"\n", b"\n\n", b"\nend ", b"\n" + b"y " * 300])))
        for secret in example.secrets:
            planted |= pieces(secret)
    data = b"".join(parts)
    if draw(st.booleans()):
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    kind = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1"]))
    if kind == "utf-16":
        data = data.decode("utf-8", "replace").encode("utf-16")
    elif kind == "latin-1":
        data += b"\xe9\n"
    return data, planted


@st.composite
def calls(draw: st.DrawFn, planted: set[str]) -> dict[str, Any]:
    path = draw(st.sampled_from(["a.txt", "d/b.txt"]))
    piece = draw(st.sampled_from(sorted(planted)))[: PIECE - 1]
    line = draw(st.integers(1, 30))
    return draw(
        st.sampled_from(
            [
                {"tool": "read_file", "arguments": {"path": path}},
                {"tool": "read_file", "arguments": {"path": path, "start_line": line, "max_lines": 2}},
                {"tool": "read_file", "arguments": {"path": path, "max_bytes": 40, "line_offset": line}},
                {"tool": "read_file", "arguments": {"path": path, "start_line": 2, "line_offset": line}},
                {"tool": "read_files", "arguments": {"paths": ["d/b.txt", path, "none"]}},
                {"tool": "search_text", "arguments": {"path": ".", "query": piece}},
                {"tool": "search_text", "arguments": {"path": path, "query": piece}},
                {"tool": "search_text", "arguments": {"path": "d", "query": ".*", "regex": True}},
                {"tool": "search_text", "arguments": {"path": path, "query": "[A-Z]", "regex": True}},
                {"tool": "edit_file", "arguments": {"path": path, "old_str": piece, "new_str": "z"}},
                {"tool": "edit_file", "arguments": {"path": path, "old_str": "one", "new_str": "1"}},
                {"tool": "edit_file", "arguments": {"path": path, "old_str": "two words", "new_str": "2"}},
                {"tool": "insert_at_line", "arguments": {"path": path, "line": line, "content": "new"}},
                {"tool": "insert_at_line", "arguments": {"path": path, "line": -1, "content": "new"}},
                {"tool": "copy_file", "arguments": {"source": path, "destination": f"c{line}"}},
                {"tool": "read_file", "arguments": {"path": f"c{line}"}},
                {"tool": "move_file", "arguments": {"source": path, "destination": f"c{line}"}},
                {"tool": "create_file", "arguments": {"path": path, "content": "x", "allow_overwrite": True}},
                {"tool": "get_file_info", "arguments": {"path": path}},
                {"tool": "delete_file", "arguments": {"path": path}},
                {"tool": "delete", "arguments": {"path": "d"}},
            ]
        )
    )


def over_mcp(session: Session, call: dict[str, Any]) -> Any:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": call["tool"], "arguments": call["arguments"]},
    }
    return Server(session).answer(message, Peer(HANDSHAKE[-1], {}), Flight())


@pytest.mark.parametrize("how", FLOORS)
@given(data=st.data())
def test_no_piece_of_a_hidden_secret_is_in_an_answer(how: str, data: st.DataObject) -> None:
    fs = private_memory()
    fs.makedirs("/w/d")
    with Session("/w", policy(how), fs=fs, state=":memory:", dry_run=data.draw(st.booleans())) as session:
        planted: set[str] = set()
        for path in ("a.txt", "d/b.txt"):
            content, more = data.draw(contents())
            planted |= more
            fs.pipe_file(f"/w/{path}", content)
        for _ in range(data.draw(st.integers(1, 6))):
            call = data.draw(calls(planted))
            if data.draw(st.booleans()):
                answer = over_mcp(session, call)
            else:
                answer = session.call(call).to_json()
            requests = [request.shown for request in session.approvals.listing(every=True)]
            sent = "\n".join([*texts(answer), *texts(requests)])
            assert not [piece for piece in planted if piece in sent], (call, sent)


@given(data=st.data())
def test_the_pages_of_a_file_are_those_of_what_is_shown_of_it(data: st.DataObject) -> None:
    """A secret that is longer than a page, or on two of them, is masked all the same."""
    content, planted = data.draw(contents())
    most = data.draw(st.integers(4, 60))
    fs = private_memory()
    fs.pipe_file("/w/a.txt", content)
    with Session("/w", policy("mask"), fs=fs, state=":memory:") as session:
        read = {"tool": "read_file", "arguments": {"path": "a.txt", "max_bytes": 1 << 20}}
        whole = session.call(read).data["content"]
        pages, more = [], {"start_line": 1}
        while more:
            page = session.call(
                {"tool": "read_file", "arguments": {"path": "a.txt", "max_bytes": most, **more}}
            )
            assert page.ok and len(page.data["content"].encode()) <= most
            pages.append(page.data["content"])
            more = page.data.get("next", {})
    assert "".join(pages) == whole
    assert not [piece for piece in planted if piece in whole]


@pytest.mark.parametrize("how", ["ask", "deny"])
@given(data=st.data())
def test_no_page_of_a_file_with_a_secret_is_given(how: str, data: st.DataObject) -> None:
    content, _ = data.draw(contents())
    line, offset = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 80))
    fs = private_memory()
    fs.pipe_file("/w/a.txt", content)
    with Session("/w", policy(how), fs=fs, state=":memory:") as session:
        arguments = {"path": "a.txt", "max_bytes": 8, "start_line": line, "line_offset": offset}
        page = session.call({"tool": "read_file", "arguments": arguments})
        assert not page.ok and page.status in ("approval_required", "denied", "error")
        assert page.status != "error" or page.error["code"] == "line_out_of_range"

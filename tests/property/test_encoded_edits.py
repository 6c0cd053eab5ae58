"""Edits of UTF-16 and UTF-32: the same text as in UTF-8, with all other bytes as they were, and back."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory

ALLOW = Policy.loads('{"version": 1, "durable": false, "rules": {"*": "allow"}}')
CODECS = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
# U+0A0A and U+0D0D have bytes that are line ends, and U+1F600 takes two units of UTF-16.
PLAIN = st.text("ab é中\u0a0a\u0d0d\U0001f600", max_size=6)
LINES = st.lists(PLAIN, min_size=1, max_size=5)


def made(text: str, codec: str) -> bytes:
    return "\ufeff".encode(codec) + text.encode(codec)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A text, and a call that edits it."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(draw(LINES)) + draw(st.sampled_from(["", end]))
    new = "\n".join(draw(LINES))
    if draw(st.booleans()):
        arguments: dict[str, Any] = {"line": draw(st.integers(-1, 5)), "content": new}
        return text, {"tool": "insert_at_line", "arguments": arguments}
    start = draw(st.integers(0, max(len(text) - 1, 0)))
    old = text[start : start + draw(st.integers(1, 6))]
    arguments = {"old_str": old, "new_str": new, "replace_all": draw(st.booleans())}
    return text, {"tool": "edit_file", "arguments": arguments}


@given(edit=edits(), codec=st.sampled_from(CODECS))
def test_an_edit_gives_the_text_that_it_gives_in_utf_8(edit: tuple[str, dict[str, Any]], codec: str) -> None:
    text, call = edit
    fs = private_memory()
    fs.makedirs("/w")
    fs.pipe_file("/w/plain", text.encode())
    fs.pipe_file("/w/wide", made(text, codec))
    with Session("/w", ALLOW, fs=fs, state=":memory:") as session:
        calls = [{**call, "arguments": {**call["arguments"], "path": path}} for path in ("plain", "wide")]
        plain, wide = (session.call(each) for each in calls)
        assert plain.error == wide.error or plain.error["code"] == wide.error["code"]
        assert fs.cat_file("/w/wide") == made(fs.cat_file("/w/plain").decode(), codec)
        for name in ("lines", "line", "inserted", "replacements"):
            assert plain.data.get(name) == wide.data.get(name)


@given(lines=LINES, new=PLAIN, codec=st.sampled_from(CODECS))
def test_an_edit_and_its_reverse_leave_every_byte(lines: list[str], new: str, codec: str) -> None:
    text = "\r\n".join([*lines, "<here>", "end"])
    assume(text.count(f"<{new}>") == 0)
    fs = private_memory()
    fs.makedirs("/w")
    fs.pipe_file("/w/a", made(text, codec))
    with Session("/w", ALLOW, fs=fs, state=":memory:") as session:
        for old, other in (("<here>", f"<{new}>"), (f"<{new}>", "<here>")):
            done = session.call(
                {"tool": "edit_file", "arguments": {"path": "a", "old_str": old, "new_str": other}}
            )
            assert done.ok and done.data["encoding"] == codec
    assert fs.cat_file("/w/a") == made(text, codec)

"""Diffs on the pages: kinds and numbers of lines, both sides, files, and code that is coloured unchanged."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("markupsafe", reason="needs the extra `review`")

from ringfence.toolkit.review import diff_view
from ringfence.toolkit.review.shown_text import age, boxed, command, path
from ringfence.toolkit.text import diff

LINES = st.lists(st.text(st.characters(exclude_characters="\n\0", codec="utf-8"), max_size=8), max_size=8)


def data(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@given(LINES, LINES, st.sampled_from(["a.py", "a.txt", "a.json", "--- b", "x/+++ c.rs"]))
def test_lines_are_those_of_both_files(old: list[str], new: list[str], name: str) -> None:
    before, after = data(old), data(new)
    found = diff_view.lines(diff(name, before, after))
    numbered = [line for line in found if line.kind in ("add", "cut", "same")]
    for line in numbered:
        if line.old is not None:
            assert line.text == old[line.old - 1]
        if line.new is not None:
            assert line.text == new[line.new - 1]
        assert html.unescape(re.sub("<[^>]*>", "", str(line.code))) == html.unescape(
            re.sub("<[^>]*>", "", str(boxed(line.text, lines=True)))
        )
    cut, add = ([line.text for line in numbered if line.kind == kind] for kind in ("cut", "add"))
    assert len(old) - len(cut) == len(new) - len(add)
    rows = list(diff_view.sides(found))
    assert [row.old.text for row in rows if row.old and row.old.kind == "cut"] == cut
    assert [row.new.text for row in rows if row.new and row.new.kind == "add"] == add
    if before != after:
        assert list(diff_view.by_file(found)) == [name]


@pytest.mark.parametrize("text", ["--- a/other", "+++ b/other", "@@ -1 +1 @@", "-- x", "++ x", "\\ x"])
def test_content_that_looks_like_a_header_is_content(text: str) -> None:
    found = diff_view.lines(diff("f", data(["", text]), data(["", f"{text}!"])))
    assert [(line.kind, line.text) for line in found[3:]] == [
        ("same", ""),
        ("cut", text),
        ("add", f"{text}!"),
    ]
    assert list(diff_view.by_file(found)) == ["f"]


@pytest.mark.parametrize("name", ["a.py", "a.ts", "a.json", "a.sh", "a.rs", "a.go"])
def test_code_is_coloured_and_escaped(name: str) -> None:
    found = diff_view.lines(diff(name, None, b'x = "<b>&amp;" # 1\n'))
    shown = str(found[-1].code)
    assert 'class="s"' in shown or 'class="n1"' in shown
    assert "<b>" not in shown and "&lt;b&gt;&amp;amp;" in shown


def test_text_of_no_known_language_or_of_any_length_is_plain() -> None:
    for name, text in (("a.txt", b"if 1\n"), ("a.py", b"x = 1 # " + b"y" * 500 + b"\n")):
        assert "<span" not in str(diff_view.lines(diff(name, None, text))[-1].code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("invoice\u202efdp.exe", 'invoice<span class="esc">U+202E</span>fdp.exe'),
        ("\x1b[2J", '<span class="esc">ESC</span>[2J'),
        ("a\u200bb<", 'a<span class="esc">U+200B</span>b&lt;'),
        ("\udcff", '<span class="esc">byte FF</span>'),
        ("a\nb", 'a<span class="esc">LF</span>b'),
        ("\U000e0041", '<span class="esc">U+E0041</span>'),
    ],
)
def test_invisible_characters_stand_in_boxes(text: str, shown: str) -> None:
    assert str(boxed(text)) == shown


def test_paths_break_after_slashes_and_commands_between_words() -> None:
    assert str(path("a/<b>/c")) == '<span class="path">a/<wbr>&lt;b&gt;/<wbr>c</span>'
    assert str(path("a", True)) == '<span class="path">a/</span>'
    assert (
        str(command("a <b"))
        == '<code class="cmd"><span class="w">a</span> <span class="w">&lt;b</span></code>'
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (172_800, "2 days")],
)
def test_ages(seconds: float, words: str) -> None:
    assert age(seconds) == words

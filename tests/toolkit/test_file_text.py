"""Text of files in UTF-8, UTF-16 and UTF-32, compared with Python's own codecs for whole files."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringfence.toolkit.file_text import file_text

MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
# A NUL makes a content binary, and one behind the mark of UTF-16 makes it the mark of UTF-32.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(text=TEXT, other=TEXT, codec=st.sampled_from(sorted(MARKS)))
def test_text_comes_back_as_the_same_bytes(text: str, other: str, codec: str) -> None:
    raw = MARKS[codec] + text.encode(codec)
    found = file_text(raw)
    assert found.encoding == codec
    assert found.data.decode() == text == raw.decode(codec[:6])  # `utf-16` itself reads the mark
    assert found.encoded(found.data) == raw
    assert found.encoded(other.encode()) == MARKS[codec] + other.encode(codec)


@given(data=st.binary() | st.builds(bytes.__add__, st.sampled_from(list(MARKS.values())), st.binary()))
@example(b"\xff\xfe\0\0x\0\0\0")
@example(b"\xff\xfe\0\0x\0")
@example(b"\xff\xfe\0\xd8")
def test_no_bytes_are_lost_or_made_up(data: bytes) -> None:
    found = file_text(data)
    assert found.encoded(found.data) == data
    assert (found.codec is None) == (found.data == data and found.raw == data)
    assert not (found.invalid and found.codec)


@pytest.mark.parametrize(
    ("data", "encoding", "invalid"),
    [
        (b"", "utf-8", False),
        (b"\xef\xbb\xbfx", "utf-8", False),
        (b"caf\xe9", "unknown", False),
        (b"\xff\xfe", "utf-16-le", False),
        (b"\xff\xfex", "unknown", True),
        (b"\xfe\xff\xd8\x00", "unknown", True),
        (b"x\0y\0", "utf-8", False),  # without a mark it is no UTF-16
    ],
)
def test_what_has_no_other_encoding_stays_as_it_is(data: bytes, encoding: str, invalid: bool) -> None:
    found = file_text(data)
    assert (found.encoding, found.invalid) == (encoding, invalid)
    if found.codec is None:
        assert found.data == data

"""Lines that come in pieces are the lines of the whole, however it is cut."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ringfence.toolkit.line_reader import Lines, lines

_MOST = 5


@given(
    st.lists(st.sampled_from([b"a", b"bc", b" ", b"\r", b"\n", b"\n\n", b"12345", b"123456"]), max_size=12),
    st.sets(st.integers(0, 40), max_size=8),
)
def test_pieces_make_the_same_lines(texts: list[bytes], cuts: set[int]) -> None:
    data = b"".join(texts)
    made = Lines(_MOST)
    ends = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[start:end] for start, end in pairwise(ends)]
    found = [line for piece in [*pieces, b""] for line in made.add(piece)]
    whole = list(lines(BytesIO(data), _MOST))
    assert [_shown(line) for line in found] == [_shown(line) for line in whole]


def _shown(line: bytes) -> bytes:
    return line if len(line) <= _MOST else b"too long"


def test_of_a_line_too_long_little_is_kept() -> None:
    made = Lines(10)
    for _ in range(1000):
        assert not list(made.add(b"x" * 100))
    (line,) = made.add(b"\n")
    assert 10 < len(line) <= 200
    assert list(made.add(b"ok\n")) == [b"ok"]

"""The laws of finding, adding and masking, whatever the content."""

from __future__ import annotations

import re
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy.detection import expressions, high_entropy, private_keys, token_formats
from ringfence.policy.detection import find as finding
from ringfence.policy.detection.find import Found, added, find, mask
from ringfence.policy.detection.linear_regex import Budget, Matcher, PatternError, WorkExceeded
from ringfence.policy.detection.table import TABLE
from ringfence.policy.model import Detector
from tests.detection.examples import examples

ALL = [Detector(name) for name in TABLE]
MATCH = Detector("match", r"pin=\d+")
PIECES = [example.text for example in examples()]
NOISE = st.one_of(
    st.text("ab0 =\"'.,:\n\\-_/+eyJ", max_size=30).map(str.encode),
    st.binary(max_size=20),
    st.sampled_from(
        [b"secret = ", b"hash: ", b"-----BEGIN", b"AKIA", b"ghp_", b"xoxb-", b"pin=12", b"\xff\xfe"]
    ),
)
CONTENT = st.lists(st.one_of(st.sampled_from(PIECES), NOISE), max_size=6).map(b"\n".join)
DETECTORS = st.sets(st.sampled_from([*ALL, MATCH])).map(lambda them: sorted(them, key=str))


@given(CONTENT, DETECTORS)
def test_finds_are_in_order_and_within(data: bytes, detectors: list[Detector]) -> None:
    found = find(data, detectors)
    assert {one.detector for one in found} <= set(detectors)
    assert [one.start for one in found] == sorted(one.start for one in found)
    for detector in detectors:
        ends = [0, *(edge for one in found if one.detector == detector for edge in (one.start, one.end))]
        assert ends == sorted(ends)
        assert ends[-1] <= len(data)
        assert all(one.start < one.end for one in found)
        assert find(data, [detector]) == tuple(one for one in found if one.detector == detector)


@given(CONTENT, st.sampled_from([example for example in examples() if example.secrets]), CONTENT)
def test_what_stands_in_other_lines_hides_nothing(before: bytes, example: Any, after: bytes) -> None:
    if before[:2] in (b"\xff\xfe", b"\xfe\xff"):
        before = b" " + before
    data = b"".join([before, b"\n\nwords, and then:\n", example.text, b"\nmore: words.\n", after])
    at = len(before) + len(b"\n\nwords, and then:\n")
    spans = [(one.start, one.end) for one in find(data, [Detector(example.detector)])]
    for secret in example.secrets:
        start = at + example.text.index(secret)
        assert any(first <= start and start + len(secret) <= last for first, last in spans)


@given(CONTENT, CONTENT, DETECTORS)
def test_what_is_added_is_found_and_was_not_there(old: bytes, new: bytes, detectors: list[Detector]) -> None:
    known = {(one.detector, one.secret) for one in find(old, detectors)}
    expected = [one for one in find(new, detectors) if (one.detector, one.secret) not in known]
    assert list(added(old, new, detectors)) == expected
    assert added(None, new, detectors) == find(new, detectors)
    assert added(new, new, detectors) == ()
    assert set(added(old, new, detectors)) <= set(added(None, new, detectors))


@given(CONTENT, st.lists(st.sampled_from(PIECES), max_size=3), CONTENT)
def test_more_before_a_change_never_adds_more(old: bytes, more: list[bytes], new: bytes) -> None:
    if old[:2] in (b"\xff\xfe", b"\xfe\xff"):
        old = b" " + old
    longer = b"\n\nwords, and then:\n".join([old, *more])
    lost = {(one.detector, one.secret) for one in find(old, ALL)} - {
        (one.detector, one.secret) for one in find(longer, ALL)
    }
    # The last line of the old content may go on in what follows: a block that is cut off.
    kept = {one for one in added(longer, new, ALL) if (one.detector, one.secret) not in lost}
    assert kept <= set(added(old, new, ALL))


@given(CONTENT, st.sampled_from([*ALL, MATCH]))
def test_masking_leaves_nothing_to_find(data: bytes, detector: Detector) -> None:
    found = find(data, [detector])
    masked = mask(data, found, lambda one: f" [{one.detector.name} hidden] ".encode())
    assert find(masked, [detector]) == ()
    assert (masked == data) == (not found)


@given(CONTENT, DETECTORS)
def test_masking_changes_nothing_else(data: bytes, detectors: list[Detector]) -> None:
    found = find(data, detectors)
    masked = mask(data, found, lambda _: b"\x01")
    covered = bytearray(len(data))
    for one in found:
        covered[one.start : one.end] = b"\x01" * (one.end - one.start)
    kept = bytes(byte for byte, hidden in zip(data, covered, strict=True) if not hidden)
    if b"\x01" not in data and data[:2] != b"\xff\xfe":
        assert masked.replace(b"\x01", b"") == kept
    assert len(kept) <= len(masked) <= len(kept) + 2 * len(found)


def test_an_edit_that_completes_a_secret_adds_it() -> None:
    (whole,) = [one.text for one in examples() if one.note == "a classic token"]
    assert added(whole[:-1], whole, ALL)
    assert not added(whole, b"x " + whole, ALL)
    old = b'token = ""\n'
    assert [one.detector.name for one in added(old, b'token = "%s"\n' % whole, ALL)] == [
        "github-token",
        "high-entropy",
    ]


def test_a_file_that_changes_its_encoding_adds_nothing() -> None:
    text = "\n".join(example.text.decode() for example in examples())
    for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        assert added(text.encode(), f"\ufeff{text}".encode(codec), [*ALL, MATCH]) == ()
        assert added(f"\ufeff{text}".encode(codec), text.encode(), [*ALL, MATCH]) == ()


@pytest.mark.parametrize("codec", ["utf-16-be", "utf-32-le"])
def test_a_mark_in_utf_16_is_text(codec: str) -> None:
    data = "\ufeffpin=123 é".encode(codec)
    masked = mask(data, find(data, [MATCH]), lambda _: "‹pin›".encode())
    assert masked.decode(codec) == "\ufeff‹pin› é"


def test_a_mark_of_utf_32_does_not_hide_utf_16() -> None:
    data = b"\xff\xfe\0\0" + "pin=123".encode("utf-16-le")
    assert [one.secret for one in find(data, [MATCH])] == [b"pin=123"]


def test_finds_that_overlap_get_one_mark() -> None:
    data = b"api_token = 'ghp" + b"_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17'"
    found = find(data, ALL)
    assert [one.detector.name for one in found] == ["github-token", "high-entropy"]
    assert mask(data, found, lambda one: str(one.detector).encode()) == b"api_token = 'github-token'"


def test_a_secret_is_in_no_representation() -> None:
    (found,) = find(b"pin=9876", [MATCH])
    assert found.secret == b"pin=9876"
    assert "9876" not in repr(found)


def test_what_is_too_large_counts_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MAX_BYTES", 10)
    jwt = Detector("jwt")
    assert find(b"x" * 10, [jwt]) == ()
    whole = Found(jwt, 0, 11, examined=False)
    assert find(b"x" * 11, [jwt]) == (whole,)
    assert added(b"", b"x" * 11, [jwt]) == (whole,)
    assert added(b"y" * 11, b"x" * 11, [jwt]) == (whole,)
    assert added(b"x" * 11, b"x" * 11, [jwt]) == ()
    assert mask(b"x" * 11, [whole], lambda _: b"-") == b"-"


def test_a_secret_counts_as_new_where_the_old_content_was_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MAX_BYTES", 10)
    assert len(added(b"pin=123 and more", b"pin=123", [MATCH])) == 1


def test_an_expression_that_costs_too_much_counts_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MAX_VISITS", 50)
    (found,) = find(b"a" * 200 + b"c", [Detector("match", "(a|b)+c")])
    assert not found.examined
    assert (found.start, found.end) == (0, 201)


def test_an_unknown_detector_is_an_error() -> None:
    with pytest.raises(KeyError):
        find(b"", [Detector("passport")])


@pytest.mark.parametrize("expression", ["", "a*", "^", "$", "^$", "(a|)", r"\b", "a{0,3}"])
def test_an_expression_of_nothing_is_refused(expression: str) -> None:
    with pytest.raises(PatternError, match="empty text"):
        expressions.compiled(expression)


@pytest.mark.parametrize("expression", [r"(a)\1", "(?>a)b", "(", "a*+b"])
def test_an_expression_that_is_not_linear_is_refused(expression: str) -> None:
    with pytest.raises(PatternError):
        expressions.compiled(expression)


EXPRESSIONS = [
    "a",
    "ab",
    "a+",
    "(a|b)c",
    "a.b",
    "^a",
    "b$",
    r"\ba\w*",
    "(?i)AB",
    "x?ab",
    "ab|bc",
    "é",
    "[^a]b",
    "a{2,3}",
    r"a\d*?b",
]


def brute(text: str, expression: str) -> list[tuple[int, int]]:
    """All parts of each line that match, tried one by one with Python's own, joined where they overlap."""
    pattern, hidden, at = re.compile(expression), [], 0
    for line in text.split("\n"):
        shown = line.removesuffix("\r")
        parts = [
            (start, end)
            for start in range(len(shown))
            for end in range(start + 1, len(shown) + 1)
            if _matches(pattern, shown, start, end)
        ]
        spans: list[tuple[int, int]] = []
        for start, end in sorted(parts):
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
        hidden += [(at + start, at + end) for start, end in spans]
        at += len(line) + 1
    return hidden


def _matches(pattern: re.Pattern[str], line: str, start: int, end: int) -> bool:
    """Whether this part matches where it stands; a look ahead for the rest of the line fixes its end."""
    part = pattern.pattern.removeprefix("(?i)")
    exact = re.compile(rf"(?:{part})(?={re.escape(line[end:])}\Z)", pattern.flags)
    return exact.match(line, start) is not None


@pytest.mark.parametrize("expression", EXPRESSIONS)
@settings(max_examples=60)
@given(text=st.text("abcxé1 \n\r\U0001d11e", max_size=10))
def test_spans_are_those_of_all_matches(expression: str, text: str) -> None:
    detector = Detector("match", expression)
    spans = brute(text, expression)
    assert list(expressions.spans(text, expression)) == spans
    for data, codec in ((text.encode(), "utf-8"), (f"\ufeff{text}".encode("utf-16-le"), "utf-16-le")):
        found = find(data, [detector])
        assert [data[one.start : one.end].decode(codec) for one in found] == [text[a:b] for a, b in spans]
        assert [one.secret.decode() for one in found] == [text[a:b] for a, b in spans]


def test_bytes_that_are_no_utf_8_keep_their_places() -> None:
    data = b"\xef\xbb\xbf\xff\xe9 pin=1\x80\xff pin=22"
    assert [(one.start, one.end) for one in find(data, [MATCH])] == [(6, 11), (14, 20)]
    assert [one.secret for one in find(data, [Detector("match", "^.")])] == [b"\xff"]


@pytest.mark.parametrize("expression", ["(a|aa)+b", ".*x.*y", "(a?){20}a{20}", r"(\w+,)*\d", "a|a.*b"])
def test_the_work_of_an_expression_is_linear(expression: str) -> None:
    matcher = Matcher(expression)
    used = []
    for size in (1_000, 2_000, 4_000):
        budget = Budget(10_000_000)
        matcher.spans("a" * size, budget)
        used.append(10_000_000 - budget.left)
    assert used[1] <= 2.1 * used[0]
    assert used[2] <= 2.1 * used[1]
    with pytest.raises(WorkExceeded):
        matcher.spans("a" * 4_000, Budget(used[2] - 1))


HOSTILE = {
    "private-key": [
        b"-----BEGIN PRIVATE KEY-----",
        b"-----BEGIN PRIVATE KEY-----\nab\n",
        b"Private-Lines: 1\n",
    ],
    "aws-access-key": [b"AKIAIOSFODNN7EXAMPL2 ", b"secret_key=", b"AKIA" + b"abcDEF/123" * 4 + b" "],
    "github-token": [b"ghp_", b"ghs_1_ey", b"ghp_" + b"a1B2c3D4e5" * 4],
    "slack-token": [b"-xoxb", b"xoxb-", b"hooks.slack.com/services/A"],
    "jwt": [b"eyJ", b"eyJhbGci.", b"eyJhbGciOiJub25lIn0.", b"eyJ%41"],
    "high-entropy": [
        b"a1",
        b"token='a1",
        b"aaaaaaaaaaaaaaa1 =",
        b"x=(" * 30 + b"'aB3dE6gH9jK2mN5pQ8sT1vW4y'",
    ],
}


@pytest.mark.parametrize(("name", "part"), [(name, part) for name in HOSTILE for part in HOSTILE[name]])
def test_the_work_of_judging_candidates_is_linear(
    name: str, part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts the bytes that are judged, in content made to give as many candidates as it can."""
    judged = 0

    def counting(judge: Any) -> Any:
        def count(text: bytes, *more: Any) -> Any:
            nonlocal judged
            judged += len(text)
            return judge(text, *more)

        return count

    for module, judges in (
        (token_formats, ("_is_aws_id", "_is_aws_secret", "_is_header", "has_checksum")),
        (high_entropy, ("_is_secret", "randomness", "_is_encoded_text")),
    ):
        for judge in judges:
            monkeypatch.setattr(module, judge, counting(getattr(module, judge)))
    for copies in (100, 200, 400):
        judged = 0
        data = part * copies
        found = find(data, [Detector(name)])
        assert judged <= 12 * len(data)
        assert sum(one.end - one.start for one in found) <= len(data)


PATTERNS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (private_keys, token_formats, high_entropy)
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
}
MANY = 1_000  # a repeat of at most so many is bounded


def unbounded(tree: Any) -> list[str]:
    """The repeats without a bound that may give back what they took."""
    found = []
    for code, value in tree:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT) and value[1] > MANY:
            found.append(str(value[2]))
        for part in _within(value):
            found += unbounded(part)
    return found


def _within(value: Any) -> list[Any]:
    if isinstance(value, _parser.SubPattern):
        return [value]
    if isinstance(value, list | tuple):
        return [part for one in value for part in _within(one)]
    return []


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_goes_back_over_what_is_not_bounded(name: str) -> None:
    tree = _parser.parse(PATTERNS[name].pattern.decode("latin-1"))
    assert unbounded(tree) == [], "make it possessive"


def test_the_check_of_patterns_sees_a_repeat() -> None:
    assert len(PATTERNS) > 12
    assert len(unbounded(_parser.parse("(?=a*+(b+c))"))) == 1

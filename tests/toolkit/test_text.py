"""What a reader sees: sizes, times, names and diffs."""

from __future__ import annotations

import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.toolkit import text


@pytest.mark.parametrize(
    ("n", "want"),
    [
        (None, "unknown"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (2355, "2.3 KB"),
        (12595, "12.3 KB"),
        (4096, "4.0 KB"),
        (1024 * 1024 - 1, "1.0 MB"),
        (5 * 1024**3, "5.0 GB"),
        (3 * 1024**6, "3.0 EB"),
        (5000 * 1024**6, "5000.0 EB"),
    ],
)
def test_size(n: int | None, want: str) -> None:
    assert text.size(n) == want


def test_times_are_local_in_text_and_utc_in_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    assert text.rfc3339(1768487025.25) == "2026-01-15T14:23:45.250Z"
    assert len(text.when(1768487025.25)) == len("2026-01-15 14:23:45")
    assert text.when(None) == "unknown"
    assert text.rfc3339(None) is None


@pytest.mark.parametrize("t", [1e30, -1e30, float("nan"), float("inf")])
def test_an_impossible_time_is_unknown(t: float) -> None:
    assert text.when(t) == "unknown"
    assert text.rfc3339(t) is None


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        ("plain ünï 日本 🙂", "plain ünï 日本 🙂"),
        ("a\x1b[2Kb\r", "a\\x1b[2Kb\\x0d"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("\x7f\x85\x9b", "\\x7f\\u0085\\u009b"),
        ("gpj\u202ecod", "gpj\\u202ecod"),
        ("\u2066\u2069\u200e\u200f\u061c", "\\u2066\\u2069\\u200e\\u200f\\u061c"),
        ("a\u200bb\u2060\ufeff\xad", "a\\u200bb\\u2060\\ufeff\\u00ad"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ufe0f\U000e0041\U000e0101", "\\ufe0f\\U000e0041\\U000e0101"),
        ("\udc80", "\\udc80"),
        ("\u3164\u2800", "\\u3164\\u2800"),
    ],
)
def test_escape(raw: str, want: str) -> None:
    assert text.escape(raw) == want


def test_escape_keeps_line_feeds_and_tabs_only_when_asked() -> None:
    assert text.escape("a\n\tb\r\n", newlines=True) == "a\n\tb\\x0d\n"


def test_every_character_without_a_shape_of_its_own_is_escaped() -> None:
    shapeless = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    every = (chr(code) for code in range(0x110000))
    assert [
        char for char in every if unicodedata.category(char) in shapeless and text.escape(char) == char
    ] == []


@given(st.text(st.characters()))
def test_what_is_escaped_is_printable_and_encodes(raw: str) -> None:
    shown = text.escape(raw)
    shown.encode("utf-8")
    assert text.escape(shown) == shown
    assert "\n" not in shown and "\x1b" not in shown


@pytest.mark.parametrize(
    ("data", "want"),
    [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"a\r\nb\r\n", 2), (b"a\rb", 1)],
)
def test_count_lines(data: bytes, want: int) -> None:
    assert text.count_lines(data) == want
    assert len(text.split_lines(data)) == want
    assert b"".join(text.split_lines(data)) == data


def test_plural() -> None:
    assert text.plural(1, "file") == "1 file"
    assert text.plural(0, "file") == "0 files"
    assert text.plural(1200, "directory", "directories") == "1,200 directories"


def test_a_diff_of_a_removal() -> None:
    assert (
        text.diff("src/a.py", b"x\ny\n", None) == "--- a/src/a.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"
    )


def test_a_diff_says_that_the_last_line_has_no_end() -> None:
    assert text.diff("a", b"x", b"x\n").splitlines()[2:] == [
        "@@ -1 +1 @@",
        "-x",
        "\\ No newline at end of file",
        "+x",
    ]


def test_nothing_differs() -> None:
    assert text.diff("a", b"x", b"x") == ""


def test_an_empty_file_that_appears_is_told_from_nothing() -> None:
    assert text.diff("a", None, b"") == "--- /dev/null\n+++ b/a\n"


def test_a_diff_of_bytes_gives_their_number() -> None:
    assert text.diff("i.bin", b"\0" * 1500, None) == "Binary file i.bin, 1,500 bytes\n"
    assert text.diff("i.bin", b"\0", b"\0\1") == "Binary file i.bin, 1 bytes before, 2 bytes after\n"


def test_bytes_that_are_not_utf8_are_seen_to_change() -> None:
    shown = text.diff("a", b"caf\xe9\n", b"caf\\xe9\n")
    assert shown.count("caf\\xe9") == 2


def test_a_name_cannot_forge_a_line_of_a_diff() -> None:
    assert "\n+++ b/x" not in text.diff("a\n+++ b/x", b"1\n", b"2\n")


def test_a_huge_rewrite_is_shown_whole_and_soon() -> None:
    old = b"".join(b"%d\n" % n for n in range(20_000))
    new = b"".join(b"%d\n" % (n * 7 % 20_001) for n in range(20_000))
    lines = text.diff("a", old, new).splitlines()
    assert sum(line.startswith("-") for line in lines[2:]) <= 20_000
    assert len(lines) > 30_000


_LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"d\r\n"]), max_size=30)


@settings(deadline=None, max_examples=50)
@given(_LINES, _LINES, st.booleans())
def test_patch_applies_our_diffs(
    tmp_path_factory: pytest.TempPathFactory, a: list[bytes], b: list[bytes], cut: bool
) -> None:
    """Against an independent reader of unified diffs: git."""
    folder: Path = tmp_path_factory.mktemp("diff")
    before, after = b"".join(a), b"".join(b)
    after = after.rstrip(b"\n") if cut else after
    if before == after or not before or not after:
        return
    (folder / "f").write_bytes(before)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=text.diff("f", before, after).encode(),
        capture_output=True,
        env={"GIT_CEILING_DIRECTORIES": str(folder.parent), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "f").read_bytes() == after


def test_a_short_diff_is_bounded_and_counts_what_it_leaves_out() -> None:
    old, new = b"x\n" * 30, b"y" * 9000 + b"\n" + b"z\n" * 29
    lines = text.short_diff(text.diff("a", old, new)).splitlines()
    assert lines[0] == "@@ -1,30 +1,30 @@" and lines[31] == "+" + "y" * 199 + "…"
    assert len(lines) == 41 and lines[40] == "[21 more lines of the diff not shown]"
    wide = text.short_diff(text.diff("a", b"", ("é" * 190 + "\n").encode() * 30))
    assert len(wide.encode()) <= 4096 + 50 and "more lines" in wide


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        (b"a\r\nb\r\n", b"a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c"),
        (b"a\r\n", b"a\n", "@@ -1 +1 @@\n-a\r\n+a"),
        (b"a\r\nb", b"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\n\\ No newline at end of file\n+b\r"),
        (b"\0", b"x", ""),
        (b"x", b"x", ""),
        (None, b"", ""),
    ],
)
def test_a_short_diff_of_few_lines_is_all_of_it(old: bytes | None, new: bytes, want: str) -> None:
    assert text.short_diff(text.diff("a @@\n@@", old, new)) == want

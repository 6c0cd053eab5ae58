"""Path arguments: one canonical form for every spelling, and a refusal for what is none."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError

ROOT = "/home/me/work"
pieces = st.sampled_from(
    ["a", "b", "..", ".", "", "...", "a b", "é", "*", "-", ".a", "~", "work", "home", "me"]
)
spelled = st.lists(pieces, min_size=1, max_size=8).map("/".join)
anything = st.text(st.characters(codec="utf-8"), max_size=20) | spelled | spelled.map(lambda s: f"{ROOT}/{s}")


def code(text: str, root: str = ROOT) -> str:
    with pytest.raises(CallError) as caught:
        paths.normalise(text, root)
    return caught.value.code


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a", "a"), ("./a", "a"), ("a/", "a"), ("a//b", "a/b"), ("a/./b", "a/b"), (".", "."), ("./", "."),
        ("a/..", "."), ("a/../b", "b"), (ROOT, "."), (ROOT + "/", "."), (ROOT + "/a", "a"), (ROOT + "//a/",
        "a"),
        ("//home/me/work/a", "a"), (ROOT + "/a/../b", "b"), ("...", "..."), (" ", " "), ("-rf", "-rf"),
        ("*", "*"),
        ("a/~", "a/~"), ("a~", "a~"), ("~me", "~me"), ("a:b", "a:b"), ("%2e%2e", "%2e%2e"), ("é" * 127,
        "é" * 127),
    ],
)  # fmt: skip
def test_every_spelling_has_one_form(text: str, canonical: str) -> None:
    assert paths.normalise(text, ROOT) == canonical


@pytest.mark.parametrize(
    "text",
    ["..", "../a", "a/../..", "a/../../a", "/", "/a", "/home", "/home/me/workx", "/home/me/work2/a",
     "/home/me",
     ROOT + "/..", ROOT + "/../work/a", "/proc/self/cwd"],
)  # fmt: skip
def test_what_leads_out_is_outside(text: str) -> None:
    assert code(text) == "outside_root"


@pytest.mark.parametrize(
    "text",
    ["a\0", "\0", "a\nb", "\x1b[2J", "\x7f", "\x85", "a\\b", "\\", "~", "~/a", "file:///a", "s3://b/k",
     "x-y+z.1://h",
     "./~", "a/../~", "./a::b", "/home/me/work/~/x", "/home/me/work/~",
     "a::b", "local::file:///a", "::", "a" * 256, "é" * 128,
     "a/" * 3000, "a/" * 201 + "a"],
)  # fmt: skip
def test_what_is_no_path_is_invalid(text: str) -> None:
    assert code(text) == "path_invalid"


def test_nothing_is_no_path() -> None:
    assert code("") == "invalid_arguments"


def test_without_a_root_of_its_own_no_absolute_path_is_inside() -> None:
    assert code("/a", "") == "outside_root"
    assert code("/", "/") == "outside_root" or paths.normalise("/", "/") == "."


@given(anything)
def test_normalising_is_idempotent_and_never_leaves_the_root(text: str) -> None:
    try:
        found = paths.normalise(text, ROOT)
    except CallError as error:
        assert error.code in ("path_invalid", "outside_root", "invalid_arguments")
        return
    assert paths.normalise(found, ROOT) == found
    assert paths.normalise(f"{ROOT}/{found}", ROOT) == found
    assert found == "." or not {"", ".", ".."} & set(found.split("/"))
    assert paths.join(paths.parts(found)) == found


@given(spelled)
def test_the_text_means_what_posix_says(text: str) -> None:
    """Compared with the standard library, which knows nothing of a root."""
    plain = posixpath.normpath(text.lstrip("/") or ".")
    climbs = plain == ".." or plain.startswith("../")
    relative = text.lstrip("/") or "."
    if relative.split("/")[0] == "~":
        assert code(relative) == "path_invalid"
    elif plain.split("/")[0] == "~":
        assert code(relative) in ("path_invalid", "outside_root")
    elif climbs:
        assert code(relative) == "outside_root"
    else:
        try:
            assert paths.normalise(relative, ROOT) == plain
        except CallError as error:
            # A path that leaves the root and comes back is refused too.
            assert error.code == "outside_root"
            assert ".." in text.split("/")


@given(spelled, spelled)
def test_below_goes_by_names(one: str, other: str) -> None:
    try:
        a, b = paths.normalise(one), paths.normalise(other)
    except CallError:
        return
    first, second = paths.parts(a), paths.parts(b)
    assert paths.is_below(a, b) == (len(first) > len(second) and first[: len(second)] == second)

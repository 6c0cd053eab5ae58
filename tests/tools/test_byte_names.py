r"""Names that are not valid UTF-8: one text (`caf\xe9`) wherever they are shown, which also names them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy
from ringfence.policy.byte_names import as_matched, from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from tests.services.byte_named import CHANGES, SHOWN, make, raw_files

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    make(place)
    return place


def call(session: Session, tool: str, **arguments: Any) -> Any:
    result = session.call({"tool": tool, "arguments": arguments})
    json.dumps(result.to_json(), ensure_ascii=False).encode()  # no door chokes on it
    return result


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name and b"/" not in name))
def test_every_name_of_bytes_has_one_text_and_comes_back(name: bytes) -> None:
    text = from_disk(os.fsdecode(name))
    text.encode("utf-8")
    assert os.fsencode(to_disk(text)) == name


@given(
    st.lists(st.sampled_from(["\\", "x", "8", "e9", "5c", "\\xe9", "\\x5c", "\udce9", "é", "a"]), max_size=8)
)
def test_names_that_look_like_such_a_text_are_told_apart(pieces: list[str]) -> None:
    name = "".join(pieces)
    assert to_disk(from_disk(name)) == name
    assert len(as_matched("a\\xe9\\xffb")) == 4


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (SHOWN, SHOWN),
        ("caf\\xE9.txt", SHOWN),
        ("a/\\xff/../b\\x80", "a/\\xff/../b\\x80"),
        ("\\xc3\\xa9", "é"),  # or one file had two names, and a rule saw one of them
        ("\\x80" * 255, "\\x80" * 255),
    ],
)
def test_a_call_names_it_in_one_spelling(given: str, path: str) -> None:
    assert "/".join(paths.split(given, "")) == path


@pytest.mark.parametrize(
    "given",
    [
        "a\\b",
        "a\\x41",
        "\\x2e\\x2e/x",
        "\\x2fetc",
        "a\\x00",
        "\\x5cxe9",
        "\\xe",
        "\\xc2\\x85",
        "\\x80" * 256,
    ],
)
def test_any_other_backslash_is_refused(given: str) -> None:
    with pytest.raises(CallError) as caught:
        paths.split(given, "")
    assert caught.value.code == "path_invalid"


def test_an_absolute_path_in_a_root_of_such_a_name_is_relative() -> None:
    assert paths.split("/srv/\\xe9/a", os.fsdecode(b"/srv/\xe9")) == ("a",)


def test_they_are_listed_searched_and_read(root: Path) -> None:
    with Session(root, ALLOW, state=":memory:") as session:
        listed = call(session, "list_directory", path=".")
        assert f"[FILE] {SHOWN}" in listed.content
        assert "[FILE] back\\x5cxe9" in listed.content
        assert {row["name"] for row in listed.data["entries"]} == {
            SHOWN,
            "d\\xff",
            "back\\x5cxe9",
            "link\\xe9",
        }
        assert "link\\xe9 -> d\\xff/caf\\xe9.txt" in listed.content
        found = call(session, "search_text", query="needle", path="d\\xff")
        assert {match["path"] for match in found.data["matches"]} == {
            "d\\xff/in/\\x80\\xfe",
            f"d\\xff/{SHOWN}",
        }
        assert call(session, "search_files", pattern="caf?.txt").data["count"] == 2
        assert call(session, "read_file", path=SHOWN).data["content"].startswith("needle")
        assert call(session, "read_file", path="link\\xe9").ok
        assert call(session, "get_file_info", path=f"d\\xff/{SHOWN}").ok
        assert SHOWN in call(session, "directory_tree").content


@pytest.mark.parametrize("state", ["memory", "disk"])
@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
def test_they_are_changed_and_come_back(
    root: Path, tmp_path: Path, tool: str, arguments: dict[str, Any], state: str
) -> None:
    before = raw_files(root)
    kept = ":memory:" if state == "memory" else str(tmp_path / "state")
    with Session(root, ALLOW, state=kept) as session:
        done = call(session, tool, **arguments)
        assert done.ok, done.error
        changed = raw_files(root)
        assert changed != before or tool == "create_directory"
        back = session.undo(done.data["call_id"])
        assert back.ok, back.error
        assert raw_files(root) == before
        assert session.undo(back.data["call_id"]).ok
        assert raw_files(root) == changed


def test_many_files_are_kept_as_they_were_caught_and_come_back(root: Path) -> None:
    for number in range(70):
        Path(os.fsdecode(os.fsencode(root) + b"/d\xff/n\xe9%d" % number)).write_text(str(number))
    before = raw_files(root)
    with Session(root, ALLOW, state=":memory:") as session:
        done = call(session, "delete", path="d\\xff")
        assert done.ok, done.error
        assert session.undo(done.data["call_id"]).ok
    assert raw_files(root) == before


def test_the_policy_counts_a_byte_as_one_character() -> None:
    policy = Policy.loads('version: 1\nrules: {read: {"*": allow, "caf?.txt": deny, "[!a-z]": deny}}\n')
    for path in (SHOWN, "\\xe9"):
        assert policy.effect("a", "read_file", "read", path) is Effect.DENY
        assert policy.within("a", "read_file", "read", ".")(path, False) is Effect.DENY
    assert policy.effect("a", "read_file", "read", "caf\\xe9\\xe9.txt") is Effect.ALLOW


def test_no_other_text_looks_like_one(root: Path) -> None:
    (root / "\x85").write_text("next line, in UTF-8")
    with Session(root, ALLOW, state=":memory:") as session:
        assert "[FILE] \\u0085" in call(session, "list_directory", path=".").content


def test_a_rule_hides_it_and_a_denied_tree_stays(root: Path) -> None:
    hides = Policy.loads(
        'version: 1\nrules: {read: {"*": allow, "d?/": deny}, delete: {"*": allow, "in/": deny}}\n'
    )
    before = raw_files(root)
    with Session(root, hides, state=":memory:") as session:
        assert "d\\xff" not in call(session, "list_directory", path=".").content
        assert call(session, "delete", path="d\\xff").status == "denied"
    assert raw_files(root) == before


def test_what_lies_at_a_protected_place_is_protected_under_any_name(root: Path) -> None:
    held = os.fsdecode(os.fsencode(root) + b"/pol\xe9.yaml")
    Path(held).write_text('version: 1\nrules: {"*": allow}\n')
    with Session(root, held, state=":memory:") as session:
        refused = call(session, "create_file", path="pol\\xe9.yaml", content="", allow_overwrite=True)
        assert refused.error["code"] == "protected_path"

"""One count of lines: the deletion's answer, its diff, and the changes of the session."""

from __future__ import annotations

from pathlib import Path

from ringfence.policy import Policy
from ringfence.toolkit import Session

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


def counted(diff: str) -> int:
    return sum(line.startswith("-") and not line.startswith("---") for line in diff.splitlines())


def test_what_has_no_lines_counts_none_anywhere(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("1\n2\n3\n")
    (tmp_path / "d" / "b").write_text("1\n2")
    (tmp_path / "d" / "c.bin").write_bytes(b"\0\n")
    (tmp_path / "d" / "l").symlink_to("a")
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        data = session.call({"tool": "delete", "arguments": {"path": "d"}}).data
        changes = session.changes()
        diffs = [one.diff for one in changes]
    assert (data["removals"], data["lines"], counted(data["diff"])) == (5, 5, 5)
    assert [(one.path, one.removals) for one in changes] == [
        ("d/a", 3),
        ("d/b", 2),
        ("d/c.bin", 0),
        ("d/l", 0),
    ]
    assert [(file["path"], file["lines"]) for file in data["files"]] == [
        ("d/a", 3), ("d/b", 2), ("d/c.bin", None), ("d/l", None),
    ]  # fmt: skip
    assert [counted(diff) for diff in diffs] == [one.removals for one in changes]
    assert diffs[-1] == "Link d/l -> a, before\n"


def test_a_file_that_takes_the_place_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("nowhere")
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        assert session.call({"tool": "delete", "arguments": {"path": "l"}}).data["removals"] == 0
        assert session.call({"tool": "create_file", "arguments": {"path": "l", "content": "1\n2\n"}}).ok
        (one,) = session.changes()
        diff = one.diff
    assert (one.additions, one.removals) == (2, 0)
    assert diff.startswith("Link l -> nowhere, before\n--- /dev/null\n+++ b/l\n")

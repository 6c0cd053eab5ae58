"""An SFTP server that does not tell the truth: it takes no directory out of service, and no memory."""

from __future__ import annotations

import stat
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.hostile_sftp import ROOT, Odd, Served, hostile

MIB = 1 << 20


def call(served: Served, tool: str, **arguments: Any) -> Any:
    policy = Policy.loads(ALLOW)
    with hostile(served) as fs, Session(ROOT, policy, fs=fs, state=":memory:") as session:
        return session.call({"tool": tool, "arguments": arguments})


def names(result: Any) -> list[str]:
    return [entry["name"] for entry in result.data["entries"]]


def test_a_file_that_sends_more_than_it_says_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from ringfence.toolkit.tools import preconditions as targets

    monkeypatch.setattr(targets, "MAX_EDITED", MIB)
    served = Served([Odd("a", size=4, sent=120 * MIB)])
    result = call(served, "edit_file", path="a", old_str="xx", new_str="y")
    assert result.error and result.error["code"] == "too_large", result
    assert served.bytes < 2 * MIB


@pytest.mark.parametrize("limit", [None, 1000])
def test_a_read_stops_at_its_limit(limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringfence.toolkit.errors import CallError
    from ringfence.toolkit.storage.sftp import Sftp
    from ringfence.toolkit.storage.sftp import view as sftp_view
    from ringfence.toolkit.storage.sftp.connection import Connection

    monkeypatch.setattr(sftp_view, "MAX_FILE", 2000)
    served = Served([Odd("a", size=4, sent=120 * MIB)])
    with hostile(served) as fs:
        tree = Sftp(Connection(fs.ftp), ROOT, StoragePlace(("sftp",), "hostile", ROOT))
        with pytest.raises(CallError, match="larger than"):
            tree.read(tree.resolve(("a",), follow=False), limit)
    assert served.bytes <= 64 << 10


def test_a_size_without_end_is_not_asked_for_in_advance() -> None:
    """A client that asks for all of 4 EB in advance has no memory left before the first byte."""
    served = Served([Odd("a", size=1 << 62, sent=10)])
    with hostile(served) as fs:
        from ringfence.toolkit.errors import CallError
        from ringfence.toolkit.storage.sftp import Sftp
        from ringfence.toolkit.storage.sftp.connection import Connection

        tree = Sftp(Connection(fs.ftp), ROOT, StoragePlace(("sftp",), "hostile", ROOT))
        with pytest.raises(CallError, match="larger than"):
            tree.read(tree.resolve(("a",), follow=False), None)
    assert served.bytes == 0


@pytest.mark.parametrize("name", ["a/b", "", "../up", "/etc/passwd", "x\0y", "d/"])
def test_a_name_that_is_none_is_left_out_and_counted(name: str) -> None:
    served = Served([Odd("good", size=1, sent=1), Odd(name)])
    listed = call(served, "list_directory", path=".")
    assert names(listed) == ["good"], listed
    assert listed.data["left_out"] == 1
    assert "1 name" in listed.content and "is not shown" in listed.content
    assert call(served, "directory_tree").data["left_out"] == 1
    assert call(served, "search_text", query="x").ok


def test_of_two_entries_of_one_name_there_is_one() -> None:
    served = Served([Odd("a", size=1, sent=1), Odd("a", mode=stat.S_IFDIR | 0o755), Odd("b")])
    listed = call(served, "list_directory", path=".")
    assert names(listed) == ["a", "b"]
    assert listed.data["entries"][0]["type"] == "file"
    assert listed.data["left_out"] == 1


def test_an_entry_without_attributes_is_neither_file_nor_directory() -> None:
    served = Served([Odd("a", mode=None, size=None, sent=4), Odd("b", size=None, sent=4)])
    listed = call(served, "list_directory", path=".")
    assert [entry["type"] for entry in listed.data["entries"]] == ["other", "file"], listed
    assert call(served, "get_file_info", path="b").ok
    assert call(served, "read_file", path="b").content.endswith("xxxx")
    for tool in ("read_file", "delete_file"):
        result = call(served, tool, path="a")
        assert result.error and result.error["code"] == "not_regular_file", result


@pytest.mark.parametrize(
    ("sent", "part", "code"), [(40_000, MIB, "io_error"), (100_000, 40_000, ""), (100_000, 999, "")]
)
def test_a_file_is_read_whole_or_not_at_all(sent: int, part: int, code: str) -> None:
    """A server may send less in a reply than was asked for, but not less than the file has."""
    from ringfence.toolkit.errors import CallError
    from ringfence.toolkit.plan.changes import Entry
    from ringfence.toolkit.storage.sftp import Sftp
    from ringfence.toolkit.storage.sftp.connection import Connection

    with hostile(Served([Odd("f", size=100_000, sent=sent, part=part)])) as fs:
        tree = Sftp(Connection(fs.ftp), ROOT, StoragePlace(("sftp",), "hostile", ROOT))
        spot = tree.resolve(("f",), follow=False)
        stat = tree.stat(spot)
        assert stat is not None
        [together] = tree.read_together([Entry("f", stat)], MIB)
        assert together is None or len(together.data) == stat.size
        try:
            found = len(tree.read(spot, judged=stat)), ""
        except CallError as error:
            found = 0, error.code
    assert found == (0 if code else stat.size, code)

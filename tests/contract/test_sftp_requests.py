"""SFTP on a real sshd: how many round trips and messages calls take; a lower number may be put here."""

from __future__ import annotations

import itertools
from collections import Counter as Counts
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.counted_trips import counted
from tests.services.servers import SftpServer, sshd

NUMBERS = itertools.count()
MANY = 100
DEEP = "a/b/c"
# A tool, its arguments, and the most round trips and messages that it takes.
AT_MOST: list[tuple[str, dict[str, Any], int, int]] = [
    ("get_file_info", {"path": "x"}, 1, 1),
    ("get_file_info", {"path": f"{DEEP}/x"}, 1, 4),
    ("get_file_info", {"path": f"{DEEP}/none"}, 1, 4),
    ("read_file", {"path": "x"}, 3, 5),
    ("read_file", {"path": f"{DEEP}/x"}, 3, 8),
    ("create_file", {"path": "new", "content": "1"}, 4, 8),
    ("create_file", {"path": f"{DEEP}/new", "content": "1"}, 4, 14),
    ("create_file", {"path": f"{DEEP}/x", "content": "1", "allow_overwrite": True}, 7, 28),
    ("create_file", {"path": f"{DEEP}/new/dir/x", "content": "1"}, 11, 44),
    ("edit_file", {"path": "x", "old_str": "1", "new_str": "2"}, 7, 19),
    ("edit_file", {"path": f"{DEEP}/x", "old_str": "1", "new_str": "2"}, 7, 28),
    ("insert_at_line", {"path": f"{DEEP}/x", "content": "0", "line": 0}, 7, 28),
    ("delete_file", {"path": f"{DEEP}/x"}, 9, 19),
    ("list_directory", {"path": DEEP}, 3, 8),
    ("move_file", {"source": f"{DEEP}/x", "destination": f"{DEEP}/z"}, 6, 20),
    ("copy_file", {"source": f"{DEEP}/x", "destination": f"{DEEP}/z"}, 7, 23),
    ("create_directory", {"path": f"{DEEP}/e"}, 3, 9),
    ("search_text", {"query": "needle", "path": f"{DEEP}/find", "include_ignored": True}, 15, 525),
    ("search_text", {"query": "needle", "path": f"{DEEP}/find"}, 19, 535),
    ("directory_tree", {"path": DEEP, "include_ignored": True}, 5, 13),
    ("delete", {"path": f"{DEEP}/find"}, 35, 1153),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    with sshd(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture(scope="module")
def file_system(server: SftpServer) -> Iterator[Any]:
    from fsspec.implementations.sftp import SFTPFileSystem

    fs = SFTPFileSystem(**server.options(), skip_instance_cache=True)
    yield fs
    fs.ftp.close()
    fs.client.close()


@pytest.fixture
def root(server: SftpServer) -> Path:
    found = Path(server.root) / f"w{next(NUMBERS)}"
    (found / DEEP / "find").mkdir(parents=True)
    for path in ("x", f"{DEEP}/x", f"{DEEP}/y"):
        (found / path).write_text("1\n")
    for number in range(MANY):
        (found / f"{DEEP}/find/{number}").write_text("needle\n")
    return found


@pytest.mark.parametrize(("tool", "arguments", "trips", "messages"), AT_MOST)
def test_round_trips_of_a_call(
    root: Path, file_system: Any, tool: str, arguments: dict[str, Any], trips: int, messages: int
) -> None:
    with (
        Session(str(root), Policy.loads(ALLOW), fs=file_system, state=":memory:") as session,
        counted() as made,
    ):
        # The quarantine of deletions is made once.
        assert session.call({"tool": "delete_file", "arguments": {"path": f"{DEEP}/y"}}).ok
        made.clear()
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok is ("none" not in str(arguments)), result
        assert made.made <= trips, made.messages
        assert len(made.messages) <= messages, Counts(made.messages)

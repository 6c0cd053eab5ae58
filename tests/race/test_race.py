"""No try escapes, however the names are swapped; the same harness finds the escapes of the usual ways.

RACE_TRIES says how many tries each cell takes: `tox -e race` takes 100,000, otherwise it is a sample.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.race.harness import LAST, OPERATIONS, Arena, ByName, ByText, Count, Ours, attack, attacker

TRIES = int(os.environ.get("RACE_TRIES", "300"))
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the attacker needs renameat2, which is Linux's"),
    pytest.mark.timeout(max(120, TRIES // 10)),
]


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return attacker(tmp_path_factory.mktemp("attacker"))


def tell(capsys: pytest.CaptureFixture[str], what: str, count: Count) -> None:
    if TRIES > 10_000:
        with capsys.disabled():
            print(f"\n{what}: {count}")


@pytest.mark.parametrize(
    ("door", "walk", "relative"),
    [("", False, False), ("", True, False), ("", False, True), ("", True, True), ("file://", False, True)],
    ids=["openat2-absolute", "walk-absolute", "openat2-relative", "walk-relative", "file-url"],
)
@pytest.mark.parametrize(
    ("operation", "last"), [(name, False) for name in OPERATIONS] + [(name, True) for name in LAST]
)
def test_nothing_escapes(
    tmp_path: Path,
    command: list[str],
    capsys: Any,
    operation: str,
    last: bool,
    door: str,
    walk: bool,
    relative: bool,
) -> None:
    arena = Arena(tmp_path, relative=relative)
    ours = Ours(f"{door}{arena.root}")
    if walk:
        from ringfence.toolkit.storage.local.syscalls import Kernel

        ours.local.kernel = Kernel(mounts=True)
    elif not ours.local.kernel.beneath:
        pytest.skip("there is no openat2 here")
    try:
        count = attack(ours, arena, command, operation, TRIES, last=last)
    finally:
        ours.close()
    tell(capsys, f"{operation}{' (last name)' * last}", count)
    assert count.escapes == 0, count
    assert count.done, "nothing was done: the attack has to leave something to attack"


def may(path: str) -> bool:
    """The policy of the test: `secrets/` is denied."""
    return path.split("/")[0] != "secrets"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_link_inside_leads_to_nothing_that_is_denied(
    tmp_path: Path, command: list[str], capsys: Any, operation: str
) -> None:
    arena = Arena(tmp_path, relative=True, denied=True)
    ours = Ours(arena.root, may)
    try:
        count = attack(ours, arena, command, operation, TRIES, last=False)
    finally:
        ours.close()
    tell(capsys, f"{operation} of what is denied", count)
    assert count.escapes == 0, count
    assert count.done


@pytest.mark.parametrize("way", [ByName, ByText])
def test_the_harness_finds_what_is_wrong_with_the_usual_ways(
    tmp_path: Path, command: list[str], capsys: Any, way: Callable[..., Any]
) -> None:
    for number in range(40):
        arena = Arena(tmp_path / str(number), relative=True, denied=way is ByText)
        count = attack(way(arena.root, may), arena, command, "read", max(TRIES, 2000), last=False)
        if count.escapes:
            tell(capsys, f"reading by {way.__name__}", count)
            return
    pytest.fail("the harness found no escape where there are some")

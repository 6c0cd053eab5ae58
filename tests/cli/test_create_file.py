"""A new file is whole or not there: a piece of a policy would be taken for a policy."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ringfence.toolkit.cli.create_file import write_new
from ringfence.toolkit.cli.runner import UsageError
from tests.cli.conftest import Ringfence


@contextmanager
def no_more_than(size: int) -> Iterator[None]:
    """A disk on which no file gets longer than that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files")
@pytest.mark.parametrize("size", [0, 1, 9999])
def test_nothing_is_left_of_what_did_not_fit(tmp_path: Path, size: int) -> None:
    with no_more_than(size), pytest.raises(UsageError, match="cannot be written: File too large"):
        write_new(tmp_path / "new", "x" * 10_000)
    assert list(tmp_path.iterdir()) == []
    write_new(tmp_path / "new", "x" * 10_000)
    with no_more_than(0), pytest.raises(UsageError, match="already exists; it was not changed"):
        write_new(tmp_path / "new", "y")
    assert (tmp_path / "new").read_text() == "x" * 10_000


def test_a_first_policy_that_did_not_fit_can_be_written_again(ringfence: Ringfence, workspace: Path) -> None:
    with no_more_than(10):
        done = ringfence("init")
    assert done.status == 2
    assert "ringfence.yaml cannot be written: File too large" in done.err
    assert ringfence("init").status == 0
    assert ringfence("check").status == 0

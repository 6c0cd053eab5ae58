"""Which processes live: one that only begins is not taken for one that is gone."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from ringfence.toolkit.state.process_locks import Owner


def test_an_owner_that_only_begins_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeper, lock = Owner(str(tmp_path)), fcntl.flock
    found: list[str] = []

    def looked_at_before(fd: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not found:
            found.extend(sweeper.gone())
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", looked_at_before)
    begun = Owner(str(tmp_path))
    assert found
    for owner in found:
        sweeper.forget(owner)
    assert sweeper.dead(begun.name) is False
    begun.close()
    sweeper.close()
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_swept_while_it_begins_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper, lock = Owner(str(tmp_path)), fcntl.flock
    swept: list[str] = []

    def swept_before(fd: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not swept:
            swept.extend(sweeper.gone())
            for owner in swept:
                sweeper.forget(owner)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", swept_before)
    begun = Owner(str(tmp_path))
    assert swept
    assert sweeper.dead(begun.name) is False
    begun.close()
    sweeper.close()

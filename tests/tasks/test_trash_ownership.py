"""The trash beside a task store is used only if nobody else made it or can write to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from tests.tasks.test_tasks import ALLOW, U, V, call, names, put, trash

STRANGER = 65533


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    place = tmp_path / "storage" / "tasks"
    for task in (U, V):
        put(place, task)
    trash(place).mkdir()
    return place


def opened(store: Path) -> Session:
    top = store.parent.parent
    return Session(top / "ws", Policy.loads(ALLOW), state=top / "state", tasks=store)


def refused(store: Path, why: str) -> None:
    put(trash(store), "c3d4e5f6-0718-9012-cdef-012345678901")
    with opened(store) as session:
        for tool, arguments in (
            ("delete_tasks", {"task_ids": [U]}),
            ("restore_tasks", {"task_ids": ["c3d4e5f6-0718-9012-cdef-012345678901"]}),
        ):
            answer = call(session, tool, **arguments)
            assert answer.error, answer.content
            assert answer.error["code"] == "permission_denied"
            assert why in answer.content
            assert str(store) not in answer.content
        assert U in names(store)
        assert call(session, "list_tasks").ok, "only what needs the trash is refused"


def test_a_trash_that_others_can_write_to(store: Path) -> None:
    trash(store).chmod(0o777)
    refused(store, "can be written to by other users")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_trash_of_another_user(store: Path) -> None:
    os.chown(trash(store), STRANGER, STRANGER)
    refused(store, "belongs to another user")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_trash_of_the_user_whose_store_it_is(store: Path) -> None:
    for place in (store, trash(store)):
        os.chown(place, STRANGER, STRANGER)
    with opened(store) as session:
        assert call(session, "delete_tasks", task_ids=[U]).ok
        assert names(trash(store)) == {U}

"""Servers and stores that several files use, and the cases held whatever else the machine does meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any

import pytest

from ringfence.toolkit.tools import search_text
from tests.services.bucket import Bucket
from tests.services.servers import BUCKET, S3Server, moto, s3_file_system, seaweedfs


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers slowly must not have a search end by the clock."""
    monkeypatch.setattr(search_text, "MAX_SECONDS", 100.0)


NUMBERS = itertools.count()


@pytest.fixture(scope="session", params=["seaweedfs", "moto"])
def s3_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    start = {"seaweedfs": seaweedfs, "moto": moto}[request.param]
    with start(tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture(scope="session")
def s3_files(s3_server: S3Server) -> Any:
    return s3_file_system(s3_server)


@pytest.fixture
def bucket(s3_files: Any) -> Bucket:
    return Bucket(s3_files, f"{BUCKET}/w{next(NUMBERS)}")


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has something happen right before the first S3 request of these kinds that is not about a probe."""
    from ringfence.toolkit.storage.s3 import S3

    inner = S3._call

    def install(act: Callable[[], Any], *methods: str) -> None:
        waiting = [act]

        def call(store: S3, method: str, **arguments: Any) -> Any:
            if method in methods and ".ringfence/" not in str(arguments) and waiting:
                Context().run(waiting.pop())  # by somebody else: it is no sending of this request
            return inner(store, method, **arguments)

        monkeypatch.setattr(S3, "_call", call)

    return install

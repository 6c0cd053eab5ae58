"""The call cases on Google Cloud Storage, by gcsfs and an emulator of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ringfence.toolkit.testing.backend_contract import Contract, Remote, content
from tests.services.servers import BUCKET, gcs

NUMBERS = itertools.count()


class Keys(Remote):
    """A prefix of a bucket, filled and looked at by its keys; `name/` marks a directory."""

    def put(self, path: str, what: Any) -> None:
        key = f"{self.root}/{path.rstrip('/')}"
        made = isinstance(what, dict) and "dir" in what
        self.fs.pipe_file(f"{key}/" if made else key, b"" if made else content(what))

    def tree(self) -> dict[str, Any]:
        keys = [key[len(self.root) + 1 :] for key in self.fs.find(self.root)]
        found: dict[str, Any] = {}
        for key in keys:
            if not key.endswith("/"):
                found[key] = self.fs.cat_file(f"{self.root}/{key}")
            elif not any(other != key and other.startswith(key) for other in keys):
                found[key.rstrip("/")] = {"dir": True}
        return {key: what for key, what in found.items() if not key.startswith(".ringfence")}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with gcs(tmp_path_factory.mktemp("gcs")) as found:
        yield found


class TestGcs(Contract):
    @pytest.fixture
    def workspace(self, files: Any) -> Keys:
        return Keys(files, f"{BUCKET}/w{next(NUMBERS)}")

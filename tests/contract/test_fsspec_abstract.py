"""fsspec's own suite for file systems, held against the confined disk; what it cannot pass is listed here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.tests import abstract
from fsspec.tests.abstract import (
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)

from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem

WRITES_RAW = "`get` writes to a raw path of the machine, which the root does not confine"
READS_RAW = "`put` reads a raw path of the machine, which the root does not confine"
FORMS = (
    "{}_directory_recursive",
    "{}_directory_to_existing_directory",
    "{}_directory_to_new_directory",
    "{}_directory_without_files_with_same_name_prefix",
    "{}_file_to_existing_directory",
    "{}_file_to_file_in_existing_directory",
    "{}_file_to_file_in_new_directory",
    "{}_file_to_new_directory",
    "{}_glob_edge_cases",
    "{}_glob_to_existing_directory",
    "{}_glob_to_new_directory",
    "{}_list_of_files_to_existing_directory",
    "{}_list_of_files_to_new_directory",
)
# Each test that is left out, and why; docs/how-to/bring-your-own-file-system.md says the same.
LEFT_OUT = {
    AbstractGetTests: {f"test_{form.format('get')}": WRITES_RAW for form in FORMS}
    | {"test_get_with_source_and_destination_as_list": WRITES_RAW},
    AbstractPutTests: {f"test_{form.format('put')}": READS_RAW for form in FORMS}
    | {"test_copy_with_source_and_destination_as_list": READS_RAW},
}


class Fixtures(AbstractFixtures):  # type: ignore[misc]
    local_fs = None  # only the tests that are left out need a raw disk

    @pytest.fixture
    def fs(self, tmp_path: Path) -> Iterator[ConfinedFileSystem]:
        found = ConfinedFileSystem(str(tmp_path), durable=False, auto_mkdir=True)
        yield found
        found.close()

    @pytest.fixture
    def fs_path(self) -> str:
        return "base"

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        return os.path.join


class TestCopy(AbstractCopyTests, Fixtures):  # type: ignore[misc]
    pass


class TestOpen(AbstractOpenTests, Fixtures):  # type: ignore[misc]
    pass


class TestPipe(AbstractPipeTests, Fixtures):  # type: ignore[misc]
    pass


RUN = (TestCopy, TestOpen, TestPipe)


def names_in(suite: type) -> set[str]:
    return {name for name in dir(suite) if name.startswith("test_")}


def test_each_test_of_the_suite_is_run_or_left_out_with_a_reason() -> None:
    """A newer fsspec may have more of them."""
    suites = [found for found in vars(abstract).values() if isinstance(found, type) and names_in(found)]
    assert len(suites) >= 5
    for suite in suites:
        run = {name for one in RUN if issubclass(one, suite) for name in names_in(one)}
        left_out = LEFT_OUT.get(suite, {})
        assert names_in(suite) == run ^ left_out.keys(), suite
        assert all(left_out.values())


@pytest.mark.parametrize("left_out", LEFT_OUT, ids=lambda suite: suite.__name__)
def test_what_is_left_out_is_refused_before_anything_is_touched(tmp_path: Path, left_out: Any) -> None:
    (tmp_path / "ws").mkdir()
    fs = ConfinedFileSystem(str(tmp_path / "ws"))
    fs.pipe_file("f", b"inside")
    (tmp_path / "raw").write_text("outside")
    for name in ("get", "get_file", "put", "put_file", "download", "upload"):
        for one, other in (("f", str(tmp_path / "new")), (str(tmp_path / "raw"), "g"), ("*", str(tmp_path))):
            with pytest.raises(NotImplementedError):
                getattr(fs, name)(one, other)
    fs.close()
    assert sorted(place.name for place in tmp_path.iterdir()) == ["raw", "ws"]
    assert [place.name for place in (tmp_path / "ws").iterdir()] == ["f"]

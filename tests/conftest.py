"""What every test stands on: state kept away from the user's own, and how hard Hypothesis tries."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Where the machine says to write no byte code, each of the thousands of processes that the tests start would
# compile Ringfence and its libraries anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples whenever one commit is tested, so that a change is told about its own faults only. New
# examples are what `explore` and `thorough` are for.
settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fast", settings.get_profile("default"), max_examples=25)
settings.register_profile("explore", settings.get_profile("default"), derandomize=False, print_blob=True)
settings.register_profile("thorough", settings.get_profile("explore"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# What starts servers, terminals or many processes, kills them, or tries very many things. The rest is the
# quick selection: less than a minute on two cores, with some tests of each part of the program.
SLOW = (
    "tests/acp/test_process.py",
    "tests/acp/test_proxy.py",
    "tests/acp/test_terminals.py",
    "tests/analysis/",
    "tests/bridge/",
    "tests/cli/test_approval_streams.py",
    "tests/cli/test_extras.py",
    "tests/cli/test_file_roots.py",
    "tests/cli/test_parser.py::test_a_command_built_alone_says_what_it_says_among_all",
    "tests/cli/test_process_confinement.py",
    "tests/cli/test_replay.py",
    "tests/cli/test_streams.py",
    "tests/cli/test_table_widths.py",
    "tests/cli/test_terminal.py",
    "tests/cli/test_watch.py",
    "tests/contract/test_alike.py",
    "tests/contract/test_azure",
    "tests/contract/test_cases.py::TestConfinedFileSystem",
    "tests/contract/test_cases.py::TestFileUrl",
    "tests/contract/test_cases.py::TestLocalFileSystem",
    "tests/contract/test_cases.py::TestPyfakefs",
    "tests/contract/test_command_line.py",
    "tests/contract/test_faults.py",
    "tests/contract/test_fsspec_abstract.py",
    "tests/contract/test_gcs.py",
    "tests/contract/test_generic_stores.py",
    "tests/contract/test_hostile_",
    "tests/contract/test_local.py::test_openat2_and_the_walk_agree",
    "tests/contract/test_local.py::test_where_a_path_leads_is_where_the_system_says",
    "tests/compared/test_compared.py::test_a_cell_is_what_its_server_does",
    "tests/contract/test_more_stores.py",
    "tests/contract/test_pyfakefs.py",
    "tests/contract/test_s3",
    "tests/contract/test_sftp",
    "tests/crash/",
    "tests/faults/test_points.py",
    "tests/faults/test_sftp_proxy.py",
    "tests/formats/",
    "tests/audit/test_archive.py",
    "tests/language_server/test_diagnostics.py",
    "tests/language_server/test_editors.py",
    "tests/language_server/test_robustness.py",
    "tests/history/test_path_locks.py",
    "tests/history/test_content_files.py",
    "tests/storage/test_metadata.py",
    "tests/history/test_pruning.py::test_a_prune_that_is_killed_is_finished_by_the_next",
    "tests/audit/test_rotation.py",
    "tests/execution/test_recovery.py",
    "tests/history/test_stale.py",
    "tests/history/test_undo.py",
    "tests/state/test_migrations.py::test_a_death",
    "tests/hooks/test_deadline.py",
    "tests/hooks/test_events.py::test_both_parsers_give_the_same",
    "tests/hooks/test_law.py",
    "tests/hosts/",
    "tests/interop/",
    "tests/isolation/",
    "tests/notices/",
    "tests/pages/",
    "tests/performance/",
    "tests/loading/test_loader.py::test_patterns_that_would_not_fit_are_refused_before_they_are_held",
    "tests/lint/test_suspicious_patterns.py::test_no_plain_pattern_is_reported",
    "tests/property/",
    "tests/race/",
    "tests/review/",
    "tests/rule_offers/test_features_property.py::test_no_offered_rule",
    "tests/rule_offers/test_property.py::test_an_offered_rule",
    "tests/sandbox/",
    "tests/seeds/",
    "tests/serving/",
    "tests/state_repair/test_adopt.py",
    "tests/state_repair/test_check.py",
    "tests/state/test_read_only.py",
    "tests/state_repair/test_salvage.py",
    "tests/tasks/",
    "tests/test_architecture.py::test_types_refuse_a_change_past_apply",
    "tests/test_docs.py::test_a_first_page_is_the_same_at_a_terminal",
    "tests/test_docs.py::test_examples_run",
    "tests/test_docs.py::test_what_a_page_shows_is_what_happens[docs/",
    "tests/together/",
    "tests/tools/test_deep_trees.py",
    "tests/storage/test_local_roots.py",
    "tests/toolkit/test_file_ownership.py",
    "tests/session/test_fast_validation.py",
    "tests/testing/test_pytest_plugin.py",
    "tests/authoring/test_suggest.py",
)
SERVERS = ("[postgres", "-postgres", "[moto")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SLOW) or any(server in item.nodeid for server in SERVERS):
            item.add_marker(pytest.mark.slow)


# pytest lists all its earlier folders to find the next number: 30 ms a test with 9,000 tests in a process.
_NUMBERS = itertools.count()


def _new_folder(factory: pytest.TempPathFactory, kind: str, name: str) -> Path:
    folder = factory.getbasetemp() / kind / f"{name}{next(_NUMBERS)}"
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder of the test's own, in place of pytest's fixture; pytest removes it after three runs."""
    return _new_folder(tmp_path_factory, "t", re.sub(r"\W", "_", request.node.name)[:30])


# Each worker gets a part of the list, and takes from another's when it is done: the tests of a module stay
# together and share its servers, which would else be started for each worker.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the folders of whoever runs it, and none depends on their terminal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(_new_folder(tmp_path_factory, "s", "state")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(_new_folder(tmp_path_factory, "s", "cache")))
    monkeypatch.delenv("RINGFENCE_CACHE", raising=False)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL, started when the first test asks for it."""
    from tests.services.postgres import postgres

    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def state_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where to keep state, once for each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "state")
    url: str = request.getfixturevalue("postgres_url")
    return url

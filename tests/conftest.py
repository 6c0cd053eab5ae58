"""What every test stands on: state kept away from the user's own, and how hard Hypothesis tries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("default"), max_examples=25)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# What starts servers, terminals or processes in numbers, kills processes, or tries very many things. All the rest is the
# quick selection, which takes less than a minute on two cores: each part of the program has some of it.
SLOW = (
    "tests/analysis/",
    "tests/bridge/",
    "tests/cli/test_approval_streams.py",
    "tests/cli/test_extras.py",
    "tests/cli/test_process_confinement.py",
    "tests/cli/test_streams.py",
    "tests/cli/test_terminal.py",
    "tests/cli/test_watch.py",
    "tests/contract/test_alike.py",
    "tests/contract/test_azure",
    "tests/contract/test_cases.py::TestPyfakefs",
    "tests/contract/test_cases.py::TestFileUrlOnPyfakefs",
    "tests/contract/test_command_line.py",
    "tests/contract/test_faults.py",
    "tests/contract/test_fsspec_abstract.py",
    "tests/contract/test_gcs.py",
    "tests/contract/test_generic_stores.py",
    "tests/contract/test_hostile_",
    "tests/contract/test_local.py::test_openat2_and_the_walk_agree",
    "tests/contract/test_local.py::test_where_a_path_leads_is_where_the_system_says",
    "tests/contract/test_more_stores.py",
    "tests/contract/test_pyfakefs.py",
    "tests/contract/test_s3",
    "tests/contract/test_sftp",
    "tests/crash/",
    "tests/faults/test_sftp_proxy.py",
    "tests/formats/",
    "tests/history/test_kept.py::test_a_file_larger_than",
    "tests/history/test_settle.py",
    "tests/history/test_stale.py",
    "tests/history/test_undo.py",
    "tests/hooks/test_deadline.py",
    "tests/hooks/test_law.py",
    "tests/interop/",
    "tests/isolation/",
    "tests/notices/",
    "tests/pages/",
    "tests/performance/",
    "tests/property/",
    "tests/race/",
    "tests/review/",
    "tests/seeds/",
    "tests/serving/",
    "tests/state/test_adoption.py",
    "tests/state/test_reading.py",
    "tests/state/test_salvage.py",
    "tests/tasks/",
    "tests/test_architecture.py::test_types_refuse_a_change_past_apply",
    "tests/test_docs.py::test_a_first_page_is_the_same_at_a_terminal",
    "tests/test_docs.py::test_examples_run",
    "tests/test_docs.py::test_what_a_page_shows_is_what_happens[docs/",
    "tests/together/",
    "tests/toolkit/test_ownership.py",
    "tests/toolkit/test_plainly.py",
    "tests/toolkit/test_pytest_plugin.py",
    "tests/toolkit/test_suggest.py",
)
SERVERS = ("[postgres", "-postgres", "[moto")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SLOW) or any(server in item.nodeid for server in SERVERS):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the folders of whoever runs it, and none depends on their terminal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
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

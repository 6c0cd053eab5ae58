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

# What needs a server, kills processes or tries very many things; `tox -e fast` leaves it out.
SLOW = (
    "tests/analysis/",
    "tests/bridge/",
    "tests/cli/test_streams.py",
    "tests/contract/test_alike.py",
    "tests/contract/test_azure.py",
    "tests/contract/test_s3.py",
    "tests/contract/test_sftp.py",
    "tests/crash/",
    "tests/formats/",
    "tests/history/test_kept.py::test_a_file_larger_than",
    "tests/history/test_stale.py",
    "tests/history/test_undo.py",
    "tests/interop/",
    "tests/isolation/",
    "tests/performance/",
    "tests/notices/",
    "tests/pages/",
    "tests/property/",
    "tests/race/",
    "tests/tasks/",
    "tests/toolkit/test_pytest_plugin.py",
    "tests/review/",
    "tests/serving/",
    "tests/together/",
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

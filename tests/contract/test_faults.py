"""Each remote store under faults: answer, history, audit and the store agree, and nothing is lost.

FAULTS=all makes every run of the table, which takes hours, FAULTS=1/8 an eighth; otherwise it is a sample.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringfence.toolkit.testing.backend_contract import FaultContract
from ringfence.toolkit.testing.faults import KINDS, Faulty
from tests.services.faulty import faulty_azure, faulty_s3, faulty_sftp


@pytest.fixture(scope="module")
def bucket_behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    with faulty_s3(tmp_path_factory.mktemp("moto")) as found:
        yield found


@pytest.fixture(scope="module")
def container_behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    with faulty_azure(tmp_path_factory.mktemp("azurite")) as found:
        yield found


@pytest.fixture(scope="module")
def server_behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    with faulty_sftp(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.mark.xdist_group("faults-s3")
class TestS3(FaultContract):
    @pytest.fixture
    def faulty(self, bucket_behind_proxy: Faulty) -> Faulty:
        return bucket_behind_proxy


@pytest.mark.xdist_group("faults-azure")
class TestAzure(FaultContract):
    @pytest.fixture
    def faulty(self, container_behind_proxy: Faulty) -> Faulty:
        return container_behind_proxy


@pytest.mark.xdist_group("faults-sftp")
class TestSftp(FaultContract):
    kinds = frozenset(KINDS) - {"stale"}

    @pytest.fixture
    def faulty(self, server_behind_proxy: Faulty) -> Faulty:
        return server_behind_proxy

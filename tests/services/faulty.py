"""The stores that the tests have, each behind a fault proxy, with clients that do not wait for long."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import Disk, content
from ringfence.toolkit.testing.faults import Faulty, HttpProxy
from tests.services.bucket import Bucket
from tests.services.servers import (
    AZURE_CONTAINER,
    BUCKET,
    S3Server,
    SftpServer,
    azure_file_system,
    azurite,
    moto,
    s3_file_system,
    sshd,
)

NUMBERS = itertools.count()
# What a session asks a bucket once.
CONDITIONS = ("create", "replace", "copy from", "copy to", "copy over", "delete", "delete many")
WAIT = 1  # seconds that a client waits for a reply; the table's slow ones take longer


@contextlib.contextmanager
def faulty_s3(folder: Path, start: Any = moto) -> Iterator[Faulty]:
    import fsspec

    with start(folder) as server, HttpProxy(server.endpoint) as proxy:
        options = S3Server(proxy.url).options()
        options["config_kwargs"] |= {"read_timeout": WAIT, "connect_timeout": WAIT}
        # It waits longer and longer between its tries, which shows nothing more.
        with patch("botocore.retryhandler.delay_exponential", lambda **_: 0):
            client = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False, **options)
            client.connect()
        client.retries = 2
        raw = s3_file_system(server)

        def open_(root: Bucket, policy: Policy, state: Path) -> Session:
            session = Session(root.root, policy, fs=client, state=state)
            for condition in CONDITIONS:
                session.workspace.backend.supports(condition)  # type: ignore[attr-defined]
            return session

        yield Faulty(proxy, lambda: Bucket(raw, f"{BUCKET}/f{next(NUMBERS)}"), open_)


@contextlib.contextmanager
def faulty_azure(folder: Path) -> Iterator[Faulty]:
    from azure.storage.blob import ContainerClient

    from tests.contract.test_azure import Blobs

    class Overwritten(Blobs):
        def put(self, path: str, what: Any) -> None:
            self.container.upload_blob(self.prefix + path, content(what), overwrite=True)

    with azurite(folder) as connection:
        raw = azure_file_system(connection)
        upstream = connection.partition("BlobEndpoint=")[2].rpartition("/")[0]
        with (
            HttpProxy(upstream) as proxy,
            ContainerClient.from_connection_string(connection, AZURE_CONTAINER) as container,
        ):
            client = _azure_client(connection.replace(upstream, proxy.url))

            def open_(root: Blobs, policy: Policy, state: Path) -> Session:
                return Session(root.root, policy, fs=client, state=state)

            yield Faulty(
                proxy, lambda: Overwritten(raw, f"{AZURE_CONTAINER}/f{next(NUMBERS)}", container), open_
            )


def _azure_client(connection: str) -> Any:
    import fsspec

    client = fsspec.filesystem(
        "az", connection_string=connection, use_listings_cache=False, skip_instance_cache=True
    )
    # It would wait a quarter of a minute before its second try.
    config = client.service_client._config
    config.retry_policy.initial_backoff = config.retry_policy.increment_base = 0
    config.retry_policy.random_jitter_range = 0
    return client


@contextlib.contextmanager
def faulty_sftp(folder: Path) -> Iterator[Faulty]:
    from ringfence.toolkit.testing.faults.sftp_proxy import SftpProxy

    with sshd(folder) as server:
        options = server.options()
        with (
            SftpProxy(hostname=options.pop("host"), **options) as proxy,
            patch("ringfence.toolkit.storage.sftp.connection.REPLY_TIMEOUT", WAIT),
        ):
            clients: list[Any] = []

            def hang_up() -> None:
                while clients:
                    clients.pop().client.close()

            def open_(root: Disk, policy: Policy, state: Path) -> Session:
                hang_up()
                clients.append(_sftp_client(server, proxy.port))
                return Session(str(root.root), policy, fs=clients[-1], state=state, place="sftp-under-test")

            yield Faulty(proxy, lambda: _directory(server), open_)
            hang_up()


def _sftp_client(server: SftpServer, port: int) -> Any:
    from fsspec.implementations.sftp import SFTPFileSystem

    options = {**server.options(), "port": port}
    return SFTPFileSystem(**options, skip_instance_cache=True)


def _directory(server: SftpServer) -> Disk:
    found = Disk(Path(server.root) / f"f{next(NUMBERS)}")
    found.root.mkdir()
    return found

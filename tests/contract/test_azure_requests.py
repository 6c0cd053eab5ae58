"""Azure on its emulator: how many requests calls take. A number that falls may be lowered here."""

from __future__ import annotations

import itertools
from collections import Counter as Counts
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.servers import AZURE_CONTAINER, azure_file_system, azurite

pytestmark = pytest.mark.xdist_group("azure")
NUMBERS = itertools.count()
MANY = 100
DEEP = "a/b/c"
# A tool, its arguments, and the most requests that it takes.
AT_MOST: list[tuple[str, dict[str, Any], int]] = [
    ("get_file_info", {"path": f"{DEEP}/x"}, 1),
    ("get_file_info", {"path": DEEP}, 1),
    ("get_file_info", {"path": f"{DEEP}/none"}, 1),
    ("read_file", {"path": f"{DEEP}/x"}, 1),
    ("create_file", {"path": "new", "content": "1"}, 2),
    ("create_file", {"path": f"{DEEP}/new", "content": "1"}, 2),
    ("create_file", {"path": f"{DEEP}/new", "content": "1", "allow_overwrite": True}, 3),
    ("create_file", {"path": f"{DEEP}/x", "content": "1", "allow_overwrite": True}, 3),
    ("create_file", {"path": f"{DEEP}/new/dir/x", "content": "1"}, 12),
    ("edit_file", {"path": f"{DEEP}/x", "old_str": "1", "new_str": "2"}, 3),
    ("insert_at_line", {"path": f"{DEEP}/x", "content": "0", "line": 0}, 3),
    ("delete_file", {"path": "x"}, 3),
    ("delete_file", {"path": f"{DEEP}/x"}, 3),
    ("delete_file", {"path": "only/x"}, 6),
    ("delete_file", {"path": "two/x"}, 4),
    ("list_directory", {"path": "."}, 1),
    ("list_directory", {"path": DEEP}, 1),
    ("move_file", {"source": "x", "destination": "z"}, 4),
    ("move_file", {"source": f"{DEEP}/x", "destination": f"{DEEP}/z"}, 4),
    ("move_file", {"source": f"{DEEP}/x", "destination": "z"}, 5),
    ("move_file", {"source": "only/x", "destination": "only/z"}, 4),
    ("copy_file", {"source": "x", "destination": "z"}, 3),
    ("copy_file", {"source": f"{DEEP}/x", "destination": f"{DEEP}/z"}, 3),
    ("copy_file", {"source": f"{DEEP}/x", "destination": "z"}, 4),
    ("create_directory", {"path": f"{DEEP}/e"}, 4),
    ("search_text", {"query": "needle", "path": f"{DEEP}/find", "include_ignored": True}, 101),
    ("directory_tree", {"path": DEEP, "include_ignored": True}, 2),
    ("delete", {"path": f"{DEEP}/find"}, 207),
]
# The same where one answer does not show all names of the directory.
AT_MOST_IN_LARGE: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("get_file_info", {"path": f"{DEEP}/y"}, (2, 1)),
    ("create_file", {"path": f"{DEEP}/z", "content": "1"}, (4, 4)),
    ("delete_file", {"path": f"{DEEP}/y"}, (4, 4)),
    ("move_file", {"source": f"{DEEP}/y", "destination": f"{DEEP}/z"}, (7, 6)),
]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with azurite(tmp_path_factory.mktemp("azurite")) as found:
        yield found


@pytest.fixture(scope="module")
def file_system(connection: str) -> Any:
    return azure_file_system(connection)


@pytest.fixture
def root(file_system: Any) -> str:
    found = f"{AZURE_CONTAINER}/w{next(NUMBERS)}"
    single = ("x", "only/x", "two/x", "two/y", f"{DEEP}/x", f"{DEEP}/y")
    files = (*single, *(f"{DEEP}/find/{number}" for number in range(MANY)))
    file_system.pipe({f"{found}/{path}": b"needle 1\n" for path in files})
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that go over the wire, by method and address."""
    import aiohttp

    found: list[str] = []
    send = aiohttp.ClientSession._request

    async def sent(session: Any, method: str, url: Any, **more: Any) -> Any:
        found.append(f"{method} {url}")
        return await send(session, method, url, **more)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", sent)
    return found


@pytest.mark.parametrize(("tool", "arguments", "most"), AT_MOST)
def test_requests_of_a_call(
    root: str, file_system: Any, made: list[str], tool: str, arguments: dict[str, Any], most: int
) -> None:
    with Session(root, Policy.loads(ALLOW), fs=file_system, state=":memory:") as session:
        made.clear()
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.ok is ("none" not in str(arguments)), result
        assert len(made) <= most, Counts(made)


@pytest.mark.parametrize(("tool", "arguments", "most"), AT_MOST_IN_LARGE)
def test_requests_of_a_call_in_a_large_directory(
    root: str,
    file_system: Any,
    made: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    arguments: dict[str, Any],
    most: tuple[int, int],
) -> None:
    from ringfence.toolkit.storage.azure import backend

    monkeypatch.setattr(backend, "_PAGE", 2)  # in order: find/, x
    with Session(root, Policy.loads(ALLOW), fs=file_system, state=":memory:") as session:
        for at_most in most:
            made.clear()
            result = session.call({"tool": tool, "arguments": arguments})
            assert result.ok, result
            assert len(made) <= at_most, Counts(made)
            if "call_id" in result.data:
                session.undo(result.data["call_id"])


def test_requests_for_a_blob_with_tags(root: str, connection: str, file_system: Any, made: list[str]) -> None:
    from azure.storage.blob import ContainerClient

    with ContainerClient.from_connection_string(connection, AZURE_CONTAINER) as container:
        container.get_blob_client(f"{root.partition('/')[2]}/x").set_blob_tags({"t": "1"})
    for tool, arguments, most in (
        ("edit_file", {"path": "x", "old_str": "1", "new_str": "2"}, 4),
        ("move_file", {"source": "x", "destination": "z"}, 5),
        ("delete_file", {"path": "z"}, 4),
    ):
        with Session(root, Policy.loads(ALLOW), fs=file_system, state=":memory:") as session:
            made.clear()
            result = session.call({"tool": tool, "arguments": arguments})
            assert result.ok, result
            assert len(made) <= most, (tool, Counts(made))


def test_where_nothing_may_be_listed_a_file_is_looked_at_by_itself(
    root: str, connection: str, file_system: Any
) -> None:
    import fsspec
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    parts = dict(part.split("=", 1) for part in connection.strip(";").split(";"))
    rights = generate_container_sas(
        parts["AccountName"],
        AZURE_CONTAINER,
        account_key=parts["AccountKey"],
        permission=ContainerSasPermissions(read=True, write=True, delete=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    limited = f"BlobEndpoint={parts['BlobEndpoint']};SharedAccessSignature={rights}"
    fs = fsspec.filesystem(
        "az", connection_string=limited, use_listings_cache=False, skip_instance_cache=True
    )
    with Session(root, Policy.loads(ALLOW), fs=fs, state=":memory:") as session:
        for tool, arguments in (
            ("get_file_info", {"path": "x"}),
            ("read_file", {"path": "x"}),
            ("edit_file", {"path": "x", "old_str": "1", "new_str": "2"}),
            ("delete_file", {"path": "x"}),
        ):
            result = session.call({"tool": tool, "arguments": arguments})
            assert result.ok, result


@pytest.mark.parametrize(("effect", "methods"), [("deny", []), ("ask", ["LIST", "GET"]), ("allow", ["GET"])])
def test_the_first_request_brings_content_only_where_the_policy_allows_it(
    root: str, file_system: Any, made: list[str], effect: str, methods: list[str]
) -> None:
    policy = Policy.loads(f'version: 1\nrules: {{read: {{"*": {effect}}}}}\n')
    with Session(root, policy, fs=file_system, state=":memory:") as session:
        made.clear()
        session.call({"tool": "read_file", "arguments": {"path": f"{DEEP}/x"}})
        assert ["LIST" if "comp=list" in sent else sent.partition(" ")[0] for sent in made] == methods

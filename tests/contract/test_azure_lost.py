"""Azure behind a proxy that loses replies: answers and the history are true, and nothing is lost.

On the emulator, with the client's own retries and no wait between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from ringfence.toolkit.testing.faults import Fault, HttpProxy
from tests.services.lost_replies import CALLS
from tests.services.servers import AZURE_CONTAINER, azure_file_system, azurite

pytestmark = pytest.mark.xdist_group("azure")
NUMBERS = itertools.count()
CHANGES = ("PUT", "DELETE")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with azurite(tmp_path_factory.mktemp("azurite")) as found:
        azure_file_system(found)
        yield found


@pytest.fixture(scope="module")
def proxy(connection: str) -> Iterator[HttpProxy]:
    address = connection.partition("BlobEndpoint=")[2].rpartition("/")[0]
    with HttpProxy(address) as found:
        yield found


@pytest.fixture(scope="module")
def blobs(connection: str) -> Iterator[Any]:
    from azure.storage.blob import ContainerClient

    with ContainerClient.from_connection_string(connection, AZURE_CONTAINER) as client:
        yield client


@pytest.fixture(scope="module")
def file_system(connection: str, proxy: HttpProxy) -> Any:
    """Through the proxy, without the wait of 15 seconds before a request is sent again."""
    import fsspec

    address = connection.partition("BlobEndpoint=")[2].rpartition("/")[0]
    fs = fsspec.filesystem(
        "az",
        connection_string=connection.replace(address, proxy.url),
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    for policy in fs.service_client._pipeline._impl_policies:
        if hasattr(policy, "initial_backoff"):
            policy.initial_backoff = policy.increment_base = policy.random_jitter_range = 0
    return fs


@pytest.fixture
def prefix() -> str:
    return f"lost{next(NUMBERS)}/"


def open_session(file_system: Any, prefix: str, state: Path | str) -> Session:
    root = f"{AZURE_CONTAINER}/{prefix.rstrip('/')}"
    return Session(root, Policy.loads(ALLOW), fs=file_system, state=str(state))


BEFORE = {"a": b"one\ntwo\n", "b": b"b", "d/x": b"x", "d/e/y": b"y", "k": b""}


def fill(blobs: Any, prefix: str) -> dict[str, bytes]:
    """Write the files, and return what `tree` says of them."""
    for name, data in BEFORE.items():
        blobs.upload_blob(prefix + name, data, overwrite=True)
    return {name: md5(data).digest() for name, data in BEFORE.items()}


def tree(blobs: Any, prefix: str) -> dict[str, bytes]:
    """The MD5 of each blob: from the listing, or of its content where the server has none."""
    return {
        blob.name[len(prefix) :]: bytes(
            blob.content_settings.content_md5 or md5(blobs.download_blob(blob.name).readall()).digest()
        )
        for blob in blobs.list_blobs(prefix)
    }


def files(found: dict[str, bytes]) -> dict[str, bytes]:
    """Without the markers of directories, which may stay when a change is not made."""
    return {name: data for name, data in found.items() if not name.endswith("/")}


def changes_of(
    file_system: Any, proxy: HttpProxy, blobs: Any, prefix: str, call: str
) -> tuple[int, dict[str, bytes]]:
    """How many requests change something in a call, and what is there after it."""
    fill(blobs, prefix)
    with open_session(file_system, prefix, ":memory:") as session:
        proxy.arm(None)
        tool, arguments = CALLS[call]
        assert session.call({"tool": tool, "arguments": arguments}).ok
        return sum(seen.method in CHANGES for seen in proxy.seen()), tree(blobs, prefix)


@pytest.mark.parametrize("kind", ["drop after", "refuse after", "drop before", "cut"])
@pytest.mark.parametrize("call", CALLS)
def test_a_lost_reply_changes_no_answer(
    file_system: Any, proxy: HttpProxy, blobs: Any, prefix: str, call: str, kind: str
) -> None:
    count, after = changes_of(file_system, proxy, blobs, prefix, call)
    tool, arguments = CALLS[call]
    for nth in range(1, count + 1):
        place = f"{prefix}{nth}/"
        before = fill(blobs, place)
        with open_session(file_system, place, ":memory:") as session:
            proxy.arm(Fault(kind, nth, methods=CHANGES))
            result = session.call({"tool": tool, "arguments": arguments})
            proxy.arm(None)
            assert result.ok, (nth, result)
            assert tree(blobs, place) == after, nth
            assert session.undo(result.data["call_id"]).ok, nth
            assert files(tree(blobs, place)) == before, nth


@pytest.mark.parametrize("kind", ["drop after", "drop before"])
@pytest.mark.parametrize("call", CALLS)
def test_a_store_that_stays_silent_leaves_what_the_next_start_settles(
    file_system: Any, proxy: HttpProxy, blobs: Any, prefix: str, tmp_path: Path, call: str, kind: str
) -> None:
    count, after = changes_of(file_system, proxy, blobs, prefix, call)
    tool, arguments = CALLS[call]
    for nth in range(1, count + 1):
        place, state = f"{prefix}{nth}/", tmp_path / f"state{nth}"
        before = fill(blobs, place)
        with open_session(file_system, place, state) as session:
            proxy.arm(Fault(kind, nth, methods=CHANGES, down=True))
            result = session.call({"tool": tool, "arguments": arguments})
            proxy.arm(None)
            assert result.error and result.error["code"] in ("no_reply", "partial_failure"), (nth, result)
        with open_session(file_system, place, state) as session:
            items = list(session.history.items("1 = 1", ()))
            assert {item.state for item in items} <= {"done", "aborted"}, (nth, items)
            if {item.state for item in items} == {"done"}:
                assert files(tree(blobs, place)) == files(after), nth
            if "done" in {item.state for item in items}:
                assert session.undo(items[0].call).ok, nth
            assert files(tree(blobs, place)) == before, nth


OTHERS = b"THEIRS"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("create_file", {"path": "n", "content": "new"}, "already_exists"),
        ("edit_file", {"path": "a", "old_str": "one", "new_str": "1"}, "outcome_unknown"),
        ("delete_file", {"path": "a"}, "outcome_unknown"),
    ],
)
def test_what_somebody_wrote_before_the_request_was_sent_again_stays(
    file_system: Any,
    proxy: HttpProxy,
    blobs: Any,
    prefix: str,
    tool: str,
    arguments: dict[str, Any],
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ringfence.toolkit.storage.azure.sends import Sends

    fill(blobs, prefix)
    inner: Callable[..., None] = Sends.note
    sendings: list[str] = []

    def after_them(sent: Sends, method: str, url: str) -> None:
        sendings.append(url)
        if len(sendings) == 2:
            blobs.upload_blob(prefix + arguments["path"], OTHERS, overwrite=True)
        inner(sent, method, url)

    monkeypatch.setattr(Sends, "note", after_them)
    with open_session(file_system, prefix, ":memory:") as session:
        kind = "drop before" if code == "already_exists" else "drop after"
        proxy.arm(Fault(kind, methods=CHANGES))
        result = session.call({"tool": tool, "arguments": arguments})
        proxy.arm(None)
        assert result.error and result.error["code"] == code, result
        states = {item.state for item in session.history.items("1 = 1", ())}
        assert states == {"aborted" if code == "already_exists" else "unknown"}
        assert blobs.download_blob(prefix + arguments["path"]).readall() == OTHERS


def test_what_a_look_alone_has_shown_is_said(
    file_system: Any, proxy: HttpProxy, blobs: Any, prefix: str
) -> None:
    fill(blobs, prefix)
    with open_session(file_system, prefix, ":memory:") as session:
        proxy.arm(Fault("drop after", methods=CHANGES))
        tool, arguments = CALLS["edit"]
        result = session.call({"tool": tool, "arguments": arguments})
        proxy.arm(None)
        assert result.ok and result.data["resolved"] == ["a"], result

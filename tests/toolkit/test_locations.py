"""Places: what names a state, and how a root or a state is shown. Two places share nothing of equal paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Policy, PolicyError
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.cli import main
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace, local_place, shown, split_url
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.machine_identity import container_layer
from ringfence.toolkit.state.open import default_place, former_place
from ringfence.toolkit.storage.fsspec_store.identity import azure_place, identity_of, s3_place, sftp_authority

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
ASK = Policy.loads('version: 1\nrules: {"*": allow, delete: ask}\n')
LIMITED = Policy.loads(
    'version: 1\nrules: {"*": allow}\nlimits: {write: {max_files: 1, per: session, over: deny}}\n'
)


class Server(MemoryFileSystem):  # type: ignore[misc]
    """A server of its own for each host and account: memory that is shared by nobody else."""

    protocol = "ftp"
    cachable = False

    def __init__(self, host: str = "", port: int = 21, username: str = "", **more: Any) -> None:
        super().__init__(host=host, port=port, username=username, **more)
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.makedirs("/srv/p")
        self.pipe_file("/srv/p/cfg", b"OF " + host.encode())


class OtherProtocol(Server):
    protocol = "webdav"


def code(result: Any) -> str:
    return result.error["code"] if result.error else "ok"


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


PAIRS = {
    "two hosts": (lambda: Server("a.example"), lambda: Server("b.example")),
    "two ports": (lambda: Server("a.example"), lambda: Server("a.example", port=2121)),
    "two accounts": (
        lambda: Server("a.example", username="ann", password="x"),
        lambda: Server("a.example", username="bob", password="x"),
    ),
    "two protocols": (lambda: Server("a.example"), lambda: OtherProtocol("a.example")),
    "a store and memory": (lambda: Server("a.example"), MemoryFileSystem),
}


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Any:
    one, two = (make() for make in PAIRS[request.param])
    MemoryFileSystem.store.clear()
    two.makedirs("/srv/p", exist_ok=True)
    two.pipe_file("/srv/p/cfg", b"OF THE OTHER")
    return one, two


def test_two_places_share_no_history_grant_limit_or_stale_read(pair: Any, tmp_path: Path) -> None:
    def on(fs: Any, policy: Policy) -> Session:
        return Session("/srv/p", policy, fs=fs, state=tmp_path / "state", session="s")

    one, two = pair
    with on(one, ASK) as first, on(two, ASK) as second:
        assert first.state.folder != second.state.folder
        asked = call(first, "delete_file", path="cfg")
        first.approvals.answer(asked.data["approval"]["id"], Answer(True, by="ann"))
        assert code(call(second, "delete_file", path="cfg")) == "approval_required"
        gone = call(first, "delete_file", path="cfg")
        assert gone.ok
        assert second.versions("cfg") == [] and len(first.versions("cfg")) == 2
        assert not second.undo(gone.data["call_id"]).ok
        assert call(first, "read_file", path="cfg").error and call(second, "read_file", path="cfg").ok
    with on(one, LIMITED) as first, on(two, LIMITED) as second:
        assert code(call(first, "create_file", path="x", content="")) == "ok"
        assert code(call(first, "create_file", path="y", content="")) == "limit_exceeded"
        assert code(call(second, "create_file", path="x", content="")) == "ok"


def test_a_store_does_not_settle_what_another_left_open(tmp_path: Path) -> None:
    one, two = Server("a.example"), Server("b.example")
    first = Session("/srv/p", ALLOW, fs=one, state=tmp_path / "state")

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    first.workspace.backend.remove = stop  # type: ignore[method-assign]
    first.history.abandon = lambda op: None  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        call(first, "delete_file", path="cfg")
    first.close()
    with Session("/srv/p", ALLOW, fs=two, state=tmp_path / "state") as second:
        assert second.history.orphans() == [] and not second.state.rows("SELECT 1 FROM op")
    with Session("/srv/p", ALLOW, fs=one, state=tmp_path / "state") as again:
        assert again.state.rows("SELECT state FROM op WHERE state <> 'pending'")


def test_a_folder_and_a_store_of_one_path_share_nothing(tmp_path: Path) -> None:
    root = tmp_path / "srv"
    root.mkdir()
    (root / "cfg").write_text("LOCAL-SECRET")
    state = tmp_path / "state"
    with Session(root, ALLOW, state=state) as local:
        assert call(local, "edit_file", path="cfg", old_str="LOCAL", new_str="NEW").ok
    with Session(f"memory://{root}", ALLOW, state=state) as store:
        assert store.versions("cfg") == []
    fs = Server("a.example")
    fs.makedirs(str(root))
    with Session(str(root), ALLOW, fs=fs, state=state) as store:
        assert store.versions("cfg") == []


def places() -> list[StoragePlace]:
    """All kinds of places with the same path, each another one."""
    clients = [
        s3_place(url, "srv/p")
        for url in (
            "https://s3.eu-west-1.amazonaws.com",
            "http://one:9000",
            "http://two:9000",
            "https://one:9000",
        )
    ]
    azure = [
        azure_place(account, url, "srv/p")
        for account, url in (
            ("ann", "https://ann.blob.core.windows.net/"),
            ("bob", "https://bob.blob.core.windows.net/"),
            ("ann", "http://127.0.0.1:10000/ann"),
        )
    ]
    users = [
        StoragePlace(("sftp",), sftp_authority(account, host, port), "/srv/p")
        for account, host, port in (("ann", "h", 22), ("bob", "h", 22), ("ann", "g", 22), ("ann", "h", 2222))
    ]
    stores = [
        identity_of(fs, "/srv/p")
        for fs in (
            MemoryFileSystem(),
            Server("one"),
            Server("two"),
            Server("one:9000", username="ann"),
            OtherProtocol("one"),
            OtherProtocol(base_url="https://one/dav", auth=("ann", "pw")),
            OtherProtocol(base_url="https://one/dav", auth=("bob", "pw")),
        )
    ]
    local = [local_place("/srv/p"), local_place("/srv"), local_place("/http://one:9000/srv/p")]
    # What an S3 server's state is named by is a URL of another protocol, too.
    web = [StoragePlace(("http",), "", "http://one:9000/srv/p"), StoragePlace(("s3+Other",), "", "srv/p")]
    chained = [replace(place, protocols=("simplecache", *place.protocols)) for place in stores]
    alone = [*clients, *azure, *users, *stores, *local, *web, *chained]
    return [*alone, *(place.named(name) for place in alone for name in ("one", "h"))]


def test_no_two_places_have_one_name() -> None:
    named: dict[str, StoragePlace] = {}
    for place in places():
        assert named.setdefault(place.name, place) == place, place.name
    assert len(named) == len(set(places())) > 40


def test_a_chain_is_another_place_than_what_it_leads_to() -> None:
    from fsspec.core import url_to_fs

    MemoryFileSystem().pipe_file("/b/p/x", b"")
    plain, cached = (url_to_fs(f"{chain}memory://b/p")[0] for chain in ("", "simplecache::"))
    assert identity_of(plain, "/b/p").name != identity_of(cached, "/b/p").name
    assert identity_of(cached, "/b/p").protocols == ("simplecache", "memory")


def test_states_that_were_named_uniquely_keep_their_names() -> None:
    for place, before in (
        (local_place("/srv/p"), "/srv/p"),
        (s3_place("https://s3.amazonaws.com", "b/p"), "s3://b/p"),
        (s3_place("http://one:9000", "b/p"), "http://one:9000/b/p"),
        (azure_place("ann", "https://ann.blob.core.windows.net/", "c/p"), "az://ann/c/p"),
        (StoragePlace(("sftp",), sftp_authority("ann", "h", 22), "/srv/p"), "sftp://ann@h:22/srv/p"),
    ):
        assert place.name == before
        assert former_place(place, None) is None


def test_a_store_that_does_not_tell_which_one_it_is_is_refused_until_it_is_named(tmp_path: Path) -> None:
    fs = Server(token="SECRET-TOKEN")
    for told in (fs, Server("a.example", token="SECRET-TOKEN")):  # the token alone tells which account
        with pytest.raises(CallError) as caught:
            Session("/srv/p", ALLOW, fs=told, state=tmp_path / "state")
        assert caught.value.code == "history_unavailable" and "--place" in caught.value.hint
    with Session("/srv/p", ALLOW, fs=fs, state=":memory:") as session:  # which nobody shares
        assert call(session, "read_file", path="cfg").ok
    with Session("/srv/p", ALLOW, fs=fs, state=tmp_path / "state", place="backup") as session:
        assert call(session, "edit_file", path="cfg", old_str="OF", new_str="of").ok
    with Session("/srv/p", ALLOW, fs=fs, state=tmp_path / "state", place="backup") as session:
        assert len(session.versions("cfg")) == 2
    with Session("/srv/p", ALLOW, fs=fs, state=tmp_path / "state", place="other") as session:
        assert session.versions("cfg") == []
    assert not [path for path in tmp_path.rglob("*") if "SECRET" in path.name]


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J"])
def test_a_name_of_a_place_is_plain(name: str, tmp_path: Path) -> None:
    with pytest.raises(CallError, match="name of a place"):
        Session(tmp_path, ALLOW, state=":memory:", place=name)


def test_where_an_ambiguous_history_is_is_said_once_and_it_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = str(tmp_path / "state")
    place = identity_of(Server("a.example"), "/srv/p")
    old = former_place(place, state)
    assert old == default_place(local_place("/srv/p"), state)  # what a local folder's still is
    Path(old).mkdir(parents=True)
    for _ in range(2):
        with Session("/srv/p", ALLOW, fs=Server("a.example"), state=state) as session:
            assert session.state.folder == default_place(place, state)
    assert [old in record.getMessage() for record in caplog.records] == [True]
    assert list(Path(old).iterdir()) == []


# ------------------------------------------------------------------- what is shown

URLS = ("sftp://{}@files.example/srv", "postgresql://{}@db.example:5432/r", "s3::http://{}@one:9000/b")
PASSWORD = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6).map("Pw9".__add__)


@given(st.sampled_from(URLS), st.text(st.characters(codec="utf-8")), PASSWORD, st.booleans())
def test_no_password_is_ever_shown(url: str, user: str, password: str, encoded: bool) -> None:
    written = f"{quote(user, safe='')}:{quote(password, safe='') if encoded else password}"
    for text in (url.format(written), url.format(written).replace("://", ":/", 1)):
        said = shown(text)
        assert password not in said and "Pw9" not in said
    try:
        split_url(url.format(written))
    except CallError as error:
        assert "Pw9" not in f"{error}{error.hint}{error.where}"


@given(PASSWORD)
def test_no_password_in_the_parameters_is_shown(password: str) -> None:
    for begin in ("?password=", "?sslmode=require&password=", "#"):
        assert "Pw9" not in shown(f"postgresql://db.example/r{begin}{password}")


def test_what_is_shown_says_where_it_is() -> None:
    for text, said in (
        ("sftp://me:pw@h:2222/srv", "sftp://h:2222/srv"),
        ("sftp://me@h/srv", "sftp://h/srv"),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("simplecache::s3://bucket", "simplecache::s3://bucket"),
        ("postgresql://[::1]:5432/db?sslmode=require", "postgresql://[::1]:5432/db"),
        ("postgresql://u:pw", "postgresql://u:…"),
        ("/srv/a b", "/srv/a b"),
        ("me:pw@host:/srv", "…@host:/srv"),
    ):
        assert shown(text) == said
    place = StoragePlace(("sftp",), sftp_authority("m@e", "::1", 22), "/srv")
    assert (shown(place), place.name) == ("sftp://[::1]:22/srv", "sftp://m%40e@[::1]:22/srv")


SECRET = "hunter2SECRET"
LEAKS: dict[str, tuple[str, ...]] = {
    "a percent sign": ("--state", f"postgresql://u:{SECRET}%ss@127.0.0.1:1/r"),
    "a blank": ("--state", f"postgresql://u:{SECRET} x@127.0.0.1:1/r"),
    "no host": ("--state", f"postgresql://u:{SECRET}/r"),
    "a slash": ("--state", f"postgresql://u:{SECRET}/x@127.0.0.1:1/r"),
    "no server": ("--state", f"postgresql://u:{SECRET}@127.0.0.1:1/r"),
    "a parameter": ("--state", f"postgresql://127.0.0.1:1/r?user=u&password={SECRET}&x=y"),
    "one slash": ("--state", f"postgresql:/u:{SECRET}@127.0.0.1:1/r"),
    "another database": ("--state", f"mysql://u:{SECRET}@127.0.0.1/r"),
    "sftp": ("--root", f"sftp://me:{SECRET}@127.0.0.1:1/srv"),
    "a port": ("--root", f"sftp://me:{SECRET}[/x@127.0.0.1:1/srv"),
    "ftp": ("--root", f"ftp://me:{SECRET}@127.0.0.1:1/srv"),
    "a chain": ("--root", f"simplecache::ftp://me:{SECRET}@127.0.0.1:1/srv"),
    "a folder": ("--root", f"sftp:/me:{SECRET}@127.0.0.1/srv"),
    "unknown": ("--root", f"nosuch://me:{SECRET}@127.0.0.1/srv"),
    "an option": ("--rot", f"sftp://me:{SECRET}@127.0.0.1/srv"),
    "an endpoint": ("--root", "s3://b", "--endpoint", f"ftp://u:{SECRET}@127.0.0.1/"),
}


@pytest.mark.parametrize("words", LEAKS.values(), ids=list(LEAKS))
@pytest.mark.parametrize(
    "command", [("log",), ("call", "list_directory", "{}"), ("doctor",)], ids=lambda w: w[0]
)
def test_no_command_prints_a_password(
    words: tuple[str, ...],
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    if command == ("doctor",) and words[0] == "--state":
        words = ("--root", words[1])
    try:
        main([*command, *words])
    except Exception as error:
        pytest.fail(f"a traceback: {type(error).__name__}")
    out, err = capfd.readouterr()
    assert SECRET not in out + err + caplog.text
    assert not [path for path in tmp_path.rglob("*") if SECRET in path.name]


# ------------------------------------------------------------------- machines

CONTAINER = "36 35 0:58 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/d/{}/diff,workdir=/w\n"


def machine(monkeypatch: pytest.MonkeyPatch, home: Path, **files: str) -> Any:
    """What /etc/machine-id, mountinfo and boot_id say, and where the user's state is."""
    from ringfence.toolkit.state import machine_identity

    monkeypatch.setattr(machine_identity.socket, "gethostname", lambda: "app")
    found = {name.replace("machine_id", "machine-id"): text for name, text in files.items()}
    monkeypatch.setattr(machine_identity, "_read", lambda place: found.get(Path(place).name, ""))
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return machine_identity


def test_two_containers_of_one_image_are_two_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place, url = local_place("/work"), "postgresql://db.example/r"
    found = []
    for name in ("one", "two", "one"):
        machine(monkeypatch, tmp_path / name, machine_id="baked", mountinfo=CONTAINER.format(name))
        found.append(default_place(place, url))
        named = default_place(place.named("app"), url)
        # The same for both, and what the schema of a host of this name was called before.
        assert named == former_place(place, url)
    assert found[0] == found[2] != found[1]


def test_a_machine_stays_the_same_for_all_its_users_and_after_a_restart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [
        (here.machine_identity(), here.kernel_identity())
        for user, boot in (("ann", "1"), ("bob", "1"), ("ann", "2"))
        for here in [machine(monkeypatch, tmp_path / user, machine_id="id", boot_id=boot, mountinfo="x - y")]
    ]
    assert len({name for name, _ in found}) == 1
    assert [kernel for _, kernel in found].count(found[0][1]) == 2 and found[0][1] != found[2][1]
    assert not (tmp_path / "ann").exists()
    other = machine(monkeypatch, tmp_path, machine_id="another", mountinfo="x - y").machine_identity()
    assert other != found[0][0]


def test_what_lies_on_top_is_the_root_of_a_container() -> None:
    disk = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    assert container_layer(disk) is None
    assert container_layer(CONTAINER.format("one")) == "/d/one/diff"
    assert container_layer(disk + CONTAINER.format("one")) == "/d/one/diff"
    assert container_layer("22 1 0:5 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw\n") == ""
    assert container_layer("22 1 0:5 / /var rw - overlay overlay rw,upperdir=/x\n") is None


# ------------------------------------------------------------------- task stores


def test_a_policy_names_no_store_of_tasks() -> None:
    for url in ("s3://bucket/tasks", "simplecache::ftp://h/x", "file:///srv/tasks"):
        with pytest.raises(PolicyError) as caught:
            Policy.loads(f'version: 1\ntasks: {{path: "{url}"}}\n')
        assert "--tasks" in str(caught.value)


def test_a_task_store_is_no_tree_that_holds_the_workspace(tmp_path: Path) -> None:
    fs = MemoryFileSystem()
    fs.makedirs("/t/inner", exist_ok=True)
    for tasks in ("/t", "/t/inner", "/"):
        with pytest.raises(CallError, match="task folders cannot be in"):
            Session("/t/inner", ALLOW, fs=fs, state=":memory:", tasks=tasks)


@pytest.mark.parametrize("scheme", ["ftp", "sftp", "nosuch", "simplecache::ftp"])
def test_a_task_store_that_cannot_be_opened_is_an_error_of_the_call(scheme: str, tmp_path: Path) -> None:
    url = f"{scheme}://me{'' if scheme == 'sftp' else ':' + SECRET}@127.0.0.1:1/x"
    with pytest.raises(CallError) as caught:
        Session(tmp_path, ALLOW, state=":memory:", tasks=url)
    assert SECRET not in f"{caught.value}{caught.value.hint}"


@pytest.mark.parametrize(
    "error", [EOFError(), TypeError("pw " + SECRET), OSError(5, "gone"), ValueError(SECRET)]
)
def test_whatever_opening_a_store_raises_is_an_error_of_the_call(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import fsspec

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(fsspec, "core", SimpleNamespace(url_to_fs=fail))
    with pytest.raises(CallError) as caught:
        Session(tmp_path, ALLOW, state=":memory:", tasks="ftp://127.0.0.1/x")
    assert caught.value.code == "io_error" and SECRET not in f"{caught.value}{caught.value.hint}"


def test_an_account_is_known_however_it_is_given() -> None:
    adlfs = pytest.importorskip("adlfs", reason="no adlfs: pip install 'ringfence[azure]'")
    key = "c2VjcmV0" * 8
    served = f"AccountKey={key};DefaultEndpointsProtocol"
    for options, name in (
        ({"account_name": "ann", "account_key": key}, "az://ann/c/p"),
        ({"account_name": "ann", "sas_token": "?sv=2020&sig=SECRET"}, "az://ann/c/p"),
        (
            {"connection_string": f"{served}=https;AccountName=ann;EndpointSuffix=core.windows.net"},
            "az://ann/c/p",
        ),
        (
            {"connection_string": f"{served}=http;AccountName=ann;BlobEndpoint=http://127.0.0.1:9/ann;"},
            '["az", "http", "ann@127.0.0.1:9", "/c/p"]',
        ),
    ):
        place = identity_of(adlfs.AzureBlobFileSystem(**options, skip_instance_cache=True), "c/p")
        assert place.name == name
        assert place.former == ("az:///c/p" if "connection_string" in options else "")
        assert "SECRET" not in f"{place}{shown(place)}"

"""Running commands in the sandbox: what they see, what they leave, their streams, limits, and their end."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.toolkit.sandbox import Ended, Limits, SandboxError, Spec, run
from tests.sandbox.conftest import PYTHON

pytestmark = pytest.mark.usefixtures("overlay_works")

Shell = Callable[..., Ended]


@pytest.fixture
def shell(place: Path) -> Shell:
    """Run a line of the shell in the workspace; keywords are those of Spec, and `limits` those of Limits."""

    def call(line: str, **given: object) -> Ended:
        fields = {name: given.pop(name) for name in list(given) if name in Spec.__dataclass_fields__}
        limits = Limits(**fields.pop("limits", {}))  # type: ignore[arg-type] # the test gives a dict
        shutil.rmtree(place / "scratch")
        (place / "scratch").mkdir(mode=0o700)
        spec = Spec(
            ("/bin/sh", "-c", line), str(place / "workspace"), str(place / "scratch"), limits=limits, **fields
        )  # type: ignore[arg-type] # the test knows the fields
        return run(spec, **given)  # type: ignore[arg-type] # the test knows the arguments

    return call


def upper(place: Path) -> dict[str, str]:
    """The names in the upper directory, with what each is."""
    found = {}
    for path in sorted((place / "scratch" / "upper").rglob("*")):
        mode = path.lstat().st_mode
        kind = "deleted" if stat.S_ISCHR(mode) else "directory" if stat.S_ISDIR(mode) else "file"
        found[str(path.relative_to(place / "scratch" / "upper"))] = kind
    return found


def test_changes_land_in_the_scratch_and_nowhere_else(place: Path, shell: Shell) -> None:
    workspace = place / "workspace"
    (workspace / "old").write_text("old")
    (workspace / "gone").write_text("gone")
    ended = shell("echo new > made; echo more >> old; rm gone; mkdir d; cat old")
    assert (ended.status, ended.output, ended.level) == (0, b"oldmore\n", "overlay")
    assert upper(place) == {"d": "directory", "gone": "deleted", "made": "file", "old": "file"}
    assert sorted(os.listdir(workspace)) == ["gone", "old"]
    assert (workspace / "old").read_text() == "old"
    assert sorted(os.listdir(place / "scratch")) == ["upper"]


@pytest.mark.parametrize(
    ("line", "status", "number"),
    [("exit 42", 42, None), ("kill -TERM $$", 143, 15), ("kill -9 $$", 137, 9), ("exit 0", 0, None)],
)
def test_status(shell: Shell, line: str, status: int, number: int | None) -> None:
    ended = shell(line)
    assert (ended.status, ended.signal, ended.stopped) == (status, number, None)


@pytest.mark.parametrize(
    ("argv", "status"), [(("no-such-program",), 127), (("/etc/passwd",), 126), (("/",), 126)]
)
def test_a_program_that_cannot_be_started(place: Path, argv: tuple[str, ...], status: int) -> None:
    ended = run(Spec(argv, str(place / "workspace"), str(place / "scratch")))
    assert ended.status == status
    assert argv[0].encode() in ended.output


def test_hidden_names_do_not_exist_and_their_directories_look_as_before(place: Path, shell: Shell) -> None:
    inner = place / "workspace" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "key").write_text("secret")
    (inner / "plain").write_text("plain")
    (place / "workspace" / "a").chmod(0o750)
    os.utime(place / "workspace" / "a", (1_000_000, 1_000_000))
    ended = shell(
        "ls a/b; cat a/b/key; stat -c '%a %Y' a; echo x > a/b/key", hidden=("a/b/key", "no/such", "a/z")
    )
    assert b"plain\n" in ended.output
    assert b"secret" not in ended.output
    assert b"750 1000000\n" in ended.output
    assert upper(place) == {"a": "directory", "a/b": "directory", "a/b/key": "file"}
    assert stat.S_IMODE((place / "scratch" / "upper" / "a").stat().st_mode) == 0o750


def test_through_directories_are_written_at_once(place: Path, shell: Shell) -> None:
    (place / "workspace" / "node_modules").mkdir()
    ended = shell("echo x > node_modules/made && echo y > plain", through=("node_modules",))
    assert ended.status == 0, ended.output
    assert (place / "workspace" / "node_modules" / "made").read_text() == "x\n"
    assert upper(place) == {"plain": "file"}


def test_a_through_directory_that_is_a_link_is_refused(place: Path, shell: Shell) -> None:
    (place / "workspace" / "link").symlink_to("/etc")
    with pytest.raises(SandboxError) as caught:
        shell("true", through=("link",))
    assert caught.value.code == "mount_refused"


@pytest.mark.parametrize(
    "name", ["with:colon", "with,comma", "with\\backslash", "with space\n", "bytes\udcff"]
)
def test_odd_names_of_workspace_and_scratch(place: Path, name: str) -> None:
    workspace, scratch = place / name, place / f"s{name}"
    (workspace / "hidden").mkdir(parents=True)
    scratch.mkdir(mode=0o700)
    spec = Spec(("/bin/sh", "-c", "echo x > made; ls"), str(workspace), str(scratch), hidden=("hidden",))
    ended = run(spec)
    assert (ended.status, ended.output) == (0, b"made\n")
    assert (scratch / "upper" / "made").read_text() == "x\n"


def test_a_workspace_below_the_temporary_directory(tmp_path: Path) -> None:
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir(mode=0o700)
    (tmp_path / "beside").touch()
    ended = run(Spec(("/bin/sh", "-c", "pwd; echo x > made; ls .."), str(workspace), str(scratch)))
    assert ended.output.decode().split("\n") == [str(workspace), "workspace", ""]
    assert (scratch / "upper" / "made").exists()


def test_private_directories_begin_empty_and_can_be_written(shell: Shell) -> None:
    ended = shell("for d in /tmp /var/tmp /dev/shm /run; do ls -A $d; echo x > $d/made && cat $d/made; done")
    assert ended.output == b"x\n" * 4


def test_devices(shell: Shell) -> None:
    ended = shell("ls /dev; head -c 3 /dev/zero | wc -c; echo x > /dev/null; head -c 9 /dev/urandom | wc -c")
    listed = b"fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".replace(b" ", b"\n")
    assert ended.output == listed + b"\n3\n9\n"


def test_the_machine_is_read_only_and_the_home_is_thrown_away(shell: Shell) -> None:
    ended = shell("touch /usr/x /etc/x 2>&1; echo x > $HOME/ringfence-test && cat $HOME/ringfence-test")
    assert ended.output.count(b"Read-only file system") == 2
    assert ended.output.endswith(b"x\n")
    assert not (Path.home() / "ringfence-test").exists()


def test_a_home_with_very_deep_directories_is_thrown_away(place: Path, shell: Shell) -> None:
    line = "cd $HOME && i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done"
    ended = shell(f"{line}; sleep 50", limits={"seconds": 60})
    assert ended.stopped == "scratch"
    assert os.listdir(place / "scratch") == ["upper"]


def test_loopback_is_up_and_nothing_else_is_reached(shell: Shell) -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "c = socket.create_connection(s.getsockname()); print('connected', open('/proc/net/dev').read())"
    )
    ended = shell(f'{PYTHON} -c "{code}"')
    assert b"connected" in ended.output, ended.output
    devices = [line.split(b":")[0].strip() for line in ended.output.splitlines() if b": " in line]
    assert devices == [b"lo"]


def test_with_a_network_the_machines_loopback_is_reached(shell: Shell) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('connected')"
        line = f'{PYTHON} -c "{code}"'
        assert shell(line, network=True).output == b"connected\n"
        assert b"connected" not in shell(line).output


def test_the_environment_the_mask_and_the_directory(place: Path, shell: Shell) -> None:
    (place / "workspace" / "sub").mkdir()
    ended = shell("echo $A; umask; pwd", env={"A": "given"}, cwd="sub")
    assert ended.output.decode() == f"given\n0022\n{place}/workspace/sub\n"


@pytest.mark.parametrize("size", [0, 5, 70_000, 3_000_000])
def test_bytes_as_input(shell: Shell, size: int) -> None:
    assert shell("wc -c", stdin=b"x" * size).output.strip() == str(size).encode()


def test_input_that_nobody_reads(shell: Shell) -> None:
    assert shell("exit 3", stdin=b"x" * 3_000_000).status == 3


def test_a_file_as_input_cannot_be_opened_again(place: Path, shell: Shell) -> None:
    given = place / "given"
    given.write_text("text")
    with given.open("rb") as held:
        ended = shell("cat; echo changed > /proc/self/fd/0", stdin=held.fileno())
    assert ended.output.startswith(b"text")
    assert given.read_text() == "text"


def test_a_pipe_as_input(shell: Shell) -> None:
    read, write = os.pipe()
    os.write(write, b"piped")
    os.close(write)
    assert shell("cat", stdin=read).output == b"piped"
    os.close(read)


def test_output_is_streamed_and_its_end_kept(shell: Shell) -> None:
    pieces: list[tuple[int, bytes]] = []
    line = "echo out; echo err >&2; head -c 100000 /dev/zero; printf end"
    ended = shell(
        line, on_output=lambda stream, piece: pieces.append((stream, piece)), limits={"output": 1000}
    )
    assert ended.output_bytes == sum(len(piece) for _, piece in pieces) == 100_011
    assert len(ended.output) == 1000
    assert ended.output.endswith(b"\0end")
    assert b"".join(piece for stream, piece in pieces if stream == 2) == b"err\n"


ONE = f"{PYTHON} -c \"x = b'x' * (40 << 20); import time; time.sleep(100)\""
TWO_FIFTHS = f"{ONE} & {ONE} & {ONE} & wait"  # each takes two fifths of what all may


@pytest.mark.parametrize(
    ("stopped", "line", "limits"),
    [
        ("seconds", "sleep 100", {"seconds": 0.5}),
        ("output", "yes", {"output": 1000}),
        ("scratch", "head -c 100000000 /dev/zero > big", {"scratch": 1 << 20}),
        ("scratch", "while :; do head -c 500000 /dev/zero > $(mktemp -p .); done", {"scratch": 3 << 20}),
        ("processes", "for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; wait", {"processes": 5}),
        (
            "memory",
            f"{PYTHON} -c \"x = b'x' * (100 << 20); import time; time.sleep(100)\" & wait",
            {"memory": 64 << 20},
        ),
    ],
    ids=["seconds", "output", "one-large-file", "many-files", "processes", "memory"],
)
def test_limits(shell: Shell, stopped: str, line: str, limits: dict[str, float]) -> None:
    if stopped == "memory":  # a single process gets no more memory, so two of them are needed
        line = (
            " & ".join([f"{PYTHON} -c \"x = b'x' * (40 << 20); import time; time.sleep(100)\""] * 3)
            + " & wait"
        )
    ended = shell(line, limits={"seconds": 60, **limits})
    assert ended.stopped == stopped, ended


def test_memory_of_one_process_is_limited_by_the_kernel(shell: Shell) -> None:
    ended = shell(f"{PYTHON} -c \"x = b'x' * (200 << 20)\"", limits={"memory": 100 << 20})
    assert b"MemoryError" in ended.output


def test_a_directory_that_the_command_cannot_enter_counts_as_well(shell: Shell) -> None:
    more = "head -c 500000 /dev/zero > d/$(date +%N); chmod 0 d; sleep 0.05; chmod 700 d"
    line = f"mkdir d; while :; do {more}; done"
    assert shell(line, limits={"seconds": 60, "scratch": 3 << 20}).stopped == "scratch"


def test_background_processes_end_with_the_command(place: Path, shell: Shell) -> None:
    (place / "workspace" / "out").mkdir()
    line = "(setsid sh -c 'sleep 0.5; echo late > out/late' &) ; exit 0"
    began = time.monotonic()
    assert shell(line, through=("out",)).status == 0
    assert processes_with(str(place)) == []
    time.sleep(max(0.0, began + 0.7 - time.monotonic()))  # until it would have written
    assert os.listdir(place / "workspace" / "out") == []


def processes_with(text: str) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in line:
            found.append(name)
    return found


def test_check_cancels(shell: Shell) -> None:
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyError("cancelled")

    with pytest.raises(KeyError):
        shell("sleep 1000", check=check)


def test_a_callback_that_fails_ends_the_command(shell: Shell) -> None:
    def fail(stream: int, piece: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        shell("echo x; sleep 1000", on_output=fail)


def test_many_at_once_from_threads(place: Path) -> None:
    found: list[int] = []

    def one(number: int) -> None:
        scratch = place / f"scratch{number}"
        scratch.mkdir(mode=0o700)
        found.append(
            run(Spec(("/bin/sh", "-c", f"exit {number}"), str(place / "workspace"), str(scratch))).status
        )

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(8))


def test_a_server_that_was_killed_is_started_again(place: Path, shell: Shell) -> None:
    from ringfence.toolkit.sandbox.server_client import SERVER

    assert shell("exit 1").status == 1
    assert SERVER._server is not None
    SERVER._server.kill()
    SERVER._server.wait()
    assert shell("exit 2").status == 2


def test_a_scratch_is_used_again_only_without_changes(place: Path) -> None:
    where = (str(place / "workspace"), str(place / "scratch"))
    (place / "scratch" / "manifest").write_text("of the caller")
    for name in ("work", "private", "home0/work/work"):
        (place / "scratch" / name).mkdir(parents=True)  # as a killed run leaves them
    assert run(Spec(("true",), *where)).status == 0
    assert run(Spec(("touch", "made"), *where)).status == 0
    with pytest.raises(SandboxError) as caught:
        run(Spec(("true",), *where))
    assert (caught.value.code, caught.value.place) == ("bad_request", "scratch")
    assert sorted(os.listdir(place / "scratch")) == ["manifest", "upper"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("workspace", {"workspace": "/no/such"}),
        ("workspace", {"workspace": "/"}),
        ("workspace", {"workspace": "relative"}),
        ("scratch", {"scratch": "/usr"}),
        ("argv", {"argv": ()}),
        ("argv", {"argv": ("a\0b",)}),
        ("cwd", {"cwd": "../outside"}),
        ("hidden", {"hidden": ("/etc",)}),
        ("hidden", {"hidden": ("a/../../b",)}),
        ("through", {"through": ("",)}),
        ("hidden_places", {"hidden_places": ("/var",)}),
        ("read_only_places", {"read_only_places": ("/etc",)}),
        ("level", {"level": "strong"}),
    ],
)
def test_bad_requests(place: Path, field: str, change: dict[str, object]) -> None:
    fields = {"argv": ("true",), "workspace": str(place / "workspace"), "scratch": str(place / "scratch")}
    if field == "hidden_places":
        change = {"hidden_places": (str(place),)}
    with pytest.raises(SandboxError) as caught:
        run(Spec(**{**fields, **change}))  # type: ignore[arg-type] # wrong on purpose
    assert (caught.value.code, caught.value.place) == ("bad_request", field)
    assert caught.value.hint


def test_a_scratch_that_others_may_read_is_refused(place: Path) -> None:
    (place / "scratch").chmod(0o755)
    with pytest.raises(SandboxError) as caught:
        run(Spec(("true",), str(place / "workspace"), str(place / "scratch")))
    assert caught.value.place == "scratch"


def test_more_hidden_and_shown_places(place: Path, tmp_path: Path, shell: Shell) -> None:
    (place / "state").mkdir()
    (place / "state" / "history").write_text("history")
    (place / "token").write_text("token")
    (tmp_path / "tool").write_text("tool")
    line = f"ls {place}/state; cat {place}/token; cat {tmp_path}/tool; echo x > {tmp_path}/tool"
    ended = shell(
        line,
        hidden_places=(str(place / "state"), str(place / "token")),
        read_only_places=(str(tmp_path / "tool"),),
    )
    assert b"history" not in ended.output
    assert b"token\n" not in ended.output.replace(b"/token", b"")
    assert ended.output.count(b"Permission denied") == 2
    assert b"tool" in ended.output
    assert (tmp_path / "tool").read_text() == "tool"


def test_git_metadata_outside_is_read_only_and_said(place: Path, shell: Shell) -> None:
    main = place / "main"
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=main, check=True)
    (place / "workspace").rmdir()
    subprocess.run([*git, "worktree", "add", "-q", str(place / "workspace")], cwd=main, check=True)
    ended = shell("git log --oneline; touch x; git add x")
    assert b"first" in ended.output
    assert b"Read-only file system" in ended.output
    assert len(ended.notes) == 2
    assert str(main / ".git") in ended.notes[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a mount point in the workspace")
def test_a_mount_point_in_the_workspace_is_refused_and_copied(place: Path, shell: Shell) -> None:
    inner = place / "workspace" / "inner mount"
    inner.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(inner)], check=True)
    try:
        (inner / "file").touch()
        with pytest.raises(SandboxError) as caught:
            shell("true", hidden=("inner mount",))
        assert (caught.value.code, caught.value.place) == ("mount_inside", "inner mount")
        assert shell("ls 'inner mount'", level="copy").output == b"file\n"
        assert shell("echo x > 'inner mount/new'", level="copy", through=("inner mount",)).status == 0
        assert sorted(os.listdir(inner)) == ["file", "new"]
    finally:
        subprocess.run(["umount", str(inner)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a mount point in the home")
def test_a_home_with_a_mount_point_is_read_only_without_its_secrets(
    place: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.sandbox import resolving

    home = place / "home"
    for name in (".ssh", "inner"):
        (home / name).mkdir(parents=True)
    (home / ".ssh" / "id").write_text("private")
    (home / ".netrc").write_text("private")
    monkeypatch.setenv("HOME", str(home))
    resolving._own.cache_clear()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(home / "inner")], check=True)
    try:
        ended = shell("cat $HOME/.ssh/id $HOME/.netrc; ls $HOME/.ssh; touch $HOME/x")
    finally:
        subprocess.run(["umount", str(home / "inner")], check=True)
        resolving._own.cache_clear()
    assert b"private" not in ended.output
    assert b"Read-only file system" in ended.output
    assert ended.notes == (f"{home} is read-only inside, since it has mount points.",)


PROGRAMS = {
    "git": "git init -q . && touch f && git add f && git -c user.name=A -c user.email=a@b.c commit -qm m",
    "node": 'node -e \'const c = require("child_process").execSync("echo child"); console.log(String(c))\'',
    "npm": 'echo \'{"name": "p", "version": "1.0.0"}\' > package.json && npm pack --silent',
    "make": "printf 'all: a b\\na b:\\n\\techo $@ > $@\\n' > Makefile && make -s -j2 && cat a b",
    "sqlite3": "sqlite3 db 'create table t(x); insert into t values(1); select * from t'",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_work(shell: Shell, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    ended = shell(PROGRAMS[program])
    assert ended.status == 0, ended.output.decode()


def test_python_in_parallel(shell: Shell) -> None:
    code = "import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, -2]))"
    ended = shell(f"cat > p.py; {PYTHON} p.py", stdin=code.encode())
    assert ended.output == b"[1, 2]\n"


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.3])
def test_a_caller_that_is_killed_leaves_no_process_and_no_mount(place: Path, delay: float) -> None:
    mark = f"sleep 1234{os.getpid()}"
    spec = Spec(("/bin/sh", "-c", f"{mark} & {mark}"), str(place / "workspace"), str(place / "scratch"))
    code = f"from ringfence.toolkit.sandbox import *\nprint('ready', flush=True)\nrun({spec!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    caller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert caller.stdout and caller.stdout.readline() == b"ready\n"
    time.sleep(delay)  # the moment at which it is killed is what differs between the cases
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    caller.stdout.close()
    end = time.monotonic() + 20
    while (
        left := [*processes_with(mark.replace(" ", "\0")), *servers_of(caller.pid)]
    ) and time.monotonic() < end:
        time.sleep(0.02)
    assert left == []
    assert str(place) not in Path("/proc/self/mountinfo").read_text()


def servers_of(caller: int) -> list[str]:
    """Fork servers of a caller: the number of the caller is their last argument."""
    return [name for name in processes_with("sandbox.fork_server") if last_argument(name) == str(caller)]


def last_argument(name: str) -> str:
    try:
        return Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")[-2].decode()
    except (OSError, IndexError):
        return ""

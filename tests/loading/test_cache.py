"""Kept forms: the policy that its sources say, used only when nothing could have changed or forged it."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringfence import policy
from ringfence.policy import Policy, PolicyError
from ringfence.policy.loading import cache
from ringfence.policy.loading import loader as loading
from ringfence.policy.loading.serialize import from_plain, to_plain

TEXT = """
version: 1
extends: [base.yaml, baseline]
mandatory:
  - {deny: [read, write], paths: [".ssh", "*.pem"], except: ["tests/**"], reason: keys stay}
  - {deny: write, paths: .cache, except_tools: run_command}
  - {deny: run, commands: [git push *], except: [git push -n *]}
rules:
  read: allow
  run: {"*": allow, "make *": {effect: ask, reason: slow}}
  delete: {"*": ask, "tmp/*": allow, "*.go": {effect: deny, reason: the build owns these}}
limits: {delete: [{max_files: 5, over: ask}, {max_bytes: 100, per: session, over: deny}]}
agents:
  coder: {rules: {delete: {"x/*": allow}, run: {"make *": allow}}, limits: {delete: {max_files: 2000}}}
  "review-*": {rules: {"*": deny, read: allow}}
invariants: [never: {agent: "*", action: delete, path: "secrets/**", verdict: allow, reason: why}]
hard_links: refuse
durable: false
mode: monitor
tasks: {path: ../tasks, max_tasks: 7}
commands: {network: on, discard: [a/], through: b/, limits: {seconds: 5, memory: 1GiB}}
cases:
  - {action: run, command: make, want: ask}
  - {agent: coder, action: delete, path: x/a.go, want: allow, note: said}
"""


@pytest.fixture
def place() -> Path:
    found = cache.folder()
    assert found is not None
    return Path(found)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text("version: 1\nrules: {write: {a: deny}}\n")
    (tmp_path / "ringfence.yaml").write_text(TEXT)
    return tmp_path / "ringfence.yaml"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every time the sources themselves are read as YAML."""
    found: list[str] = []
    real = loading.load

    def load(path: Path, **options: Any) -> Any:
        found.append(str(path))
        return real(path, **options)

    monkeypatch.setattr(loading, "load", load)
    return found


def same(one: Policy, other: Policy) -> bool:
    return (one.content, one.revision, one.files) == (other.content, other.revision, other.files)


def test_it_is_the_same_policy(file: Path, reads: list[str]) -> None:
    plain = Policy.load(file, kept=False)
    del reads[:]
    first, second = Policy.load(file), Policy.load(file)
    assert len(reads) == 1
    assert same(first, plain)
    assert same(second, plain)
    assert second.explain("coder", "delete", "a.go") == plain.explain("coder", "delete", "a.go")
    assert list(second.content.agents) == list(plain.content.agents)


@pytest.mark.parametrize("name", policy.READY_MADE)
def test_plain_data_says_all_of_a_policy(name: str) -> None:
    content = Policy.load(policy.ready_made(name), kept=False).content
    again = from_plain(json.loads(json.dumps(to_plain(content))))
    assert again == content
    assert repr(again) == repr(content)


def test_a_changed_source_is_read_again(file: Path, reads: list[str]) -> None:
    Policy.load(file)
    base = file.with_name("base.yaml")
    old = base.stat()
    base.write_text("version: 1\nrules: {write: {b: deny}}\n")
    os.utime(base, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert same(Policy.load(file), Policy.load(file, kept=False))
    assert str(Policy.load(file).content.rules["write"][0].pattern) == "b"
    base.unlink()
    with pytest.raises(PolicyError):
        Policy.load(file)


def test_a_source_that_leads_elsewhere_now_is_read_again(file: Path, reads: list[str]) -> None:
    Policy.load(file)
    base = file.with_name("base.yaml")
    base.rename(file.with_name("other.yaml"))
    base.symlink_to("other.yaml")
    Policy.load(file)
    assert len(reads) == 2


def test_another_program_reads_it_itself(
    file: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Policy.load(file)
    monkeypatch.setattr(cache, "_FORMAT", cache._FORMAT + 1)
    Policy.load(file)
    assert len(reads) == 2


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_not_believed(
    file: Path, place: Path, reads: list[str], mode: int
) -> None:
    Policy.load(file)
    place.chmod(mode)
    Policy.load(file)
    assert len(reads) == 2
    place.chmod(0o700)
    Policy.load(file)
    assert len(reads) == 2


@pytest.mark.parametrize("mode", [0o660, 0o606])
def test_a_form_that_others_can_write_is_not_believed(
    file: Path, place: Path, reads: list[str], mode: int
) -> None:
    Policy.load(file)
    (only,) = place.iterdir()
    only.chmod(mode)
    Policy.load(file)
    assert len(reads) == 2


def test_what_somebody_else_owns_is_not_believed(
    file: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Policy.load(file)
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    Policy.load(file)
    assert len(reads) == 2


def test_a_link_in_place_of_either_is_not_followed(file: Path, place: Path, reads: list[str]) -> None:
    Policy.load(file)
    (only,) = place.iterdir()
    moved = only.rename(file.with_name("moved"))
    only.symlink_to(moved)
    Policy.load(file)
    assert len(reads) == 2
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")
    Policy.load(file)
    assert len(reads) == 3


def test_a_broken_form_is_made_anew(file: Path, place: Path, reads: list[str]) -> None:
    wanted = Policy.load(file)
    (only,) = place.iterdir()
    data = only.read_bytes()
    broken = [b"", data[:100], data.replace(b"tmp", b"src", 1), b"\xff" * 10, data[:-1] + b"]"]
    for number, each in enumerate(broken, 2):
        only.write_bytes(each)
        assert same(Policy.load(file), wanted)
        assert len(reads) == number
    assert only.read_bytes() == data


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        None,
        {"rules": 3},
        {"rules": {"read": [[1]]}},
        {"rules": {"read": [["a"], [], [], [], [], [], []]}},
    ],
)
def test_data_of_another_form_is_made_anew(file: Path, place: Path, reads: list[str], content: Any) -> None:
    import hashlib

    wanted = Policy.load(file)
    (only,) = place.iterdir()
    body = json.loads(only.read_bytes().partition(b"\n")[2])
    content = {**body["content"], **content} if content else content  # the rest is as it was
    text = json.dumps({**body, "content": content}).encode()
    only.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
    assert same(Policy.load(file), wanted)
    assert len(reads) == 2


def test_it_can_be_switched_off_and_put_elsewhere(
    file: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    Policy.load(file)
    assert not place.exists()
    monkeypatch.setenv(cache.VARIABLE, "not/absolute")
    Policy.load(file)
    assert cache.folder() is None
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "forms"))
    Policy.load(file)
    assert len(list((tmp_path / "forms").iterdir())) == 1
    assert oct((tmp_path / "forms").stat().st_mode & 0o777) == "0o700"


def test_a_folder_that_cannot_be_made_stops_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(file / "below-a-file"))
    assert same(Policy.load(file), Policy.load(file, kept=False))


def test_only_so_many_are_kept(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST", 6)
    for number in range(20):
        other = file.with_name(f"p{number}.yaml")
        other.write_text("version: 1\n")
        Policy.load(other)
        assert len(list(place.iterdir())) <= 6


def _load_often(path: str, answers: Any) -> None:
    answers.put([Policy.load(path).revision for _ in range(30)])


def test_many_at_once_each_get_the_whole_policy(file: Path, place: Path) -> None:
    wanted = Policy.load(file, kept=False).revision
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    others = [context.Process(target=_load_often, args=(str(file), answers)) for _ in range(4)]
    for each in others:
        each.start()
    for _ in range(10):
        for form in place.glob("*"):
            form.unlink(missing_ok=True)
    found = [answers.get() for _ in others]
    for each in others:
        each.join()
        each.close()
    assert all(revision == wanted for each in found for revision in each)


def test_a_session_protects_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringfence.toolkit.session.session import Session

    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / ".cache"))
    (tmp_path / "ringfence.yaml").write_text('version: 1\nrules: {"*": allow}\n')
    loaded = Policy.load(tmp_path / "ringfence.yaml")
    (form,) = (tmp_path / ".cache").iterdir()
    with Session(tmp_path, loaded, state=":memory:") as session:
        arguments = {"path": f".cache/{form.name}"}
        error = session.call({"tool": "delete_file", "arguments": arguments}).error
        assert error is not None
        assert error["code"] == "protected_path"


@pytest.mark.parametrize("missing", [(), ("_sha2",), ("_sha2", "_sha256")])
def test_digests_need_no_built_in_module(missing: tuple[str, ...]) -> None:
    """`_sha2` and `_sha256` are private to CPython: a version without them falls back on hashlib."""
    code = f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\n"
    code += "from ringfence.policy.loading import cache; print(cache.sha256(b'x').hexdigest())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(b"x").hexdigest()

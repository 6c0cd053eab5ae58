"""A host's own spelling of names that are not UTF-8, or look like the text of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ringfence.policy import Effect, Policy
from ringfence.toolkit.hooks.judge import Judge
from ringfence.toolkit.hooks.touch import Touch

READING = Policy.loads('version: 1\nrules: {"*": allow, read: {"*": allow, "secrets/": deny}}\n')


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    os.makedirs(os.fsencode(tmp_path) + b"/secrets/d\xff")
    (tmp_path / "secrets/key").write_text("k")
    try:
        (tmp_path / os.fsdecode(b"plain\xe9")).write_text("p")
        os.symlink(b"secrets/d\xff", os.fsencode(tmp_path) + b"/in\xff")
    except OSError:
        pytest.skip("a file system that takes only UTF-8")
    (tmp_path / "plain\\xe9").symlink_to("secrets/key")
    return Judge(str(tmp_path), READING, "a", str(tmp_path))


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("plain\udce9", Effect.ALLOW),
        ("in\udcff", Effect.DENY),  # for where it leads
        ("plain\\xe9", Effect.DENY),  # to the host a file with a backslash, which here leads to a secret
        ("any\\xe9", Effect.DENY),
    ],
)
def test_what_a_host_names_is_what_is_judged(judge: Judge, path: str, want: Effect) -> None:
    verdict = judge.judge([Touch("read_file", ("read",), path)])
    assert verdict is not None
    assert verdict.effect is want


def test_a_search_of_a_folder_with_such_names_is_judged(judge: Judge, tmp_path: Path) -> None:
    os.makedirs(os.fsencode(tmp_path) + b"/open\xff/in\xfe")
    touch = Touch("search_text", ("read",), "open\udcff", within=())
    verdict = judge.judge([touch])
    assert verdict is not None
    assert verdict.effect is Effect.ALLOW

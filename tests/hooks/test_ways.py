"""A search of a host from a denied directory is permitted where all that it would show may be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringfence.policy import Effect, Policy
from ringfence.toolkit.hooks.judge import Judge
from ringfence.toolkit.hooks.touch import READ, Touch

ALLOW_LIST = "{'*': deny, 'src/**': allow, 'src/new/': ask, 'src/keys/': deny, 'src/keys/pub/': allow}"
CASES = [
    ("search_text", "src/lib", (), Effect.ALLOW),
    ("search_text", "src", ("*.py",), Effect.ALLOW),
    ("search_files", "src", ("*.py",), Effect.ALLOW),
    ("list_directory", "src/lib", (), Effect.ALLOW),
    ("search_text", "src", ("*.md",), Effect.ASK),
    ("search_text", "src", (), Effect.DENY),
    ("search_files", "src", (), Effect.DENY),
    ("list_directory", "src", (), Effect.DENY),
    ("search_text", "src", ("*.none",), Effect.DENY),  # as if the directory were not there
    ("search_text", "none", (), Effect.DENY),
    ("search_text", ".", (), Effect.DENY),
    ("search_text", ".", ("*.py",), Effect.ALLOW),
    ("search_text", "src/keys", (), Effect.DENY),
    ("search_text", "src/keys", ("*.pub",), Effect.ALLOW),
    ("search_text", "other", (), Effect.DENY),
    ("read_file", "src", None, Effect.DENY),
]


@pytest.mark.parametrize(("tool", "path", "within", "effect"), CASES)
def test_a_search_from_a_denied_directory(
    tool: str, path: str, within: tuple[str, ...] | None, effect: Effect, tmp_path: Path
) -> None:
    for name in ("src/lib/a.py", "src/new/b.md", "src/keys/id", "src/keys/pub/k.pub", "other/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    policy = Policy.loads(f"version: 1\nrules: {{read: {ALLOW_LIST}}}\n")
    touch = Touch(tool, READ, path, within, names=tool in ("search_files", "list_directory"))
    said = Judge(str(tmp_path), policy, "default", str(tmp_path)).judge((touch,))
    assert said is not None
    assert (said.effect, said.unsure) == (effect, False)

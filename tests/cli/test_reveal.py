"""`reveal` prints what a mark stands for, from the file as it is now."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Ringfence

POLICY = """
version: 1
rules:
  read: {"*": allow, "a*": {effect: ask, content: {match: "pw-[0-9]+"}, mask: true}}
"""


def test_a_person_opens_a_mark(
    workspace: Path, policy: Callable[[str], Path], ringfence: Ringfence, tmp_path: Path
) -> None:
    policy(POLICY)
    state = ("--state", str(tmp_path / "state"))
    (workspace / "a").write_text("x\npw-4711\n", encoding="utf-8")
    answer = ringfence("call", "read_file", '{"path": "a"}', *state)
    assert "4711" not in answer.out + answer.err
    found = re.search(r"\[hidden match [0-9a-f]{6}\]", answer.out)
    assert found
    shown = ringfence("reveal", found[0], *state)
    assert (shown.status, shown.out, shown.err) == (0, "pw-4711\n", "match: pw-[0-9]+ in a, line 2:\n")
    (workspace / "a").write_text("y\ny\npw-4711\npw-9\n", encoding="utf-8")
    told = ringfence("reveal", found[0], "--json", *state).json
    assert told == {"detector": "match: pw-[0-9]+", "path": "a", "line": 3, "secret": "pw-4711"}
    (workspace / "a").write_text("pw-4712\n", encoding="utf-8")
    gone = ringfence("reveal", found[0], *state)
    assert gone.status != 0 and "is not there now" in gone.err and "pw-47" not in gone.out + gone.err
    unknown = ringfence("reveal", "[hidden match 000000]", *state)
    assert unknown.status != 0 and "No answer of this workspace" in unknown.err

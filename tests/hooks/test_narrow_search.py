"""A narrowed search leaves out the denied files and no other, by what ripgrep does with such a pattern."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.toolkit.hooks.judge import Judge
from ringfence.toolkit.hooks.narrow_search import narrowed
from ringfence.toolkit.hooks.tool_arguments import touches

NAMES = st.sampled_from(["a", "b", "c", "d", "f", "g", "h i", ".env", "x.md"])
FILES = st.sets(st.lists(NAMES, min_size=1, max_size=3).map(tuple), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(files=FILES, data=st.data())
def test_exactly_the_denied_files_are_left_out(files: set[tuple[str, ...]], data: st.DataObject) -> None:
    files = {
        file for file in files if not any(file != other and file == other[: len(file)] for other in files)
    }
    denied = data.draw(st.sets(st.sampled_from(sorted(files))))
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder, *file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x", encoding="utf-8")
        start = data.draw(st.sampled_from([".", *sorted({file[0] for file in files if len(file) > 1})]))
        below = {file for file in files if start in (".", file[0])}
        rules = {"*": "allow"} | {"/" + "/".join(file): "deny" for file in sorted(denied)}
        policy = Policy.loads(json.dumps({"version": 1, "rules": {"read": rules}}))
        given_ = {"pattern": "x", "path": start}
        (touch,) = touches("claude-code", "Grep", given_)
        found = narrowed(Judge(folder, policy, "a", folder), touch, given_, "glob")
    event("narrowed" if found else "not narrowed")
    if found is None:
        return
    names = set(re.findall(r"[^!{},]+", found["glob"]))
    assert found == given_ | {"glob": found["glob"]}
    skip = 0 if start == "." else 1
    assert {file for file in below if names & set(file[skip:])} == denied & below != set()


def test_a_name_that_is_allowed_elsewhere_or_has_a_meaning_in_a_pattern_is_not_left_out(
    tmp_path: Path,
) -> None:
    for denied, other, pattern in (
        ("keys/id", "src/id", "!keys"),
        ("src/id", "src/a", "!id"),
        ("id", "src/id", None),
        ("src/id", "id/a", None),
        ("{a,b}", "c", None),
        ("a b", "c", None),
    ):
        root = tmp_path / denied.replace("/", "-")
        for name in (denied, other):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("x", encoding="utf-8")
        escaped = "/" + re.sub(r"([{}])", r"[\1]", denied)
        policy = Policy.loads(json.dumps({"version": 1, "rules": {"read": {"*": "allow", escaped: "deny"}}}))
        (touch,) = touches("claude-code", "Grep", {"pattern": "x"})
        found = narrowed(Judge(str(root), policy, "a", str(root)), touch, {"pattern": "x"}, "glob")
        assert (found or {}).get("glob") == pattern, denied

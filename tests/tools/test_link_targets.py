"""A listing says where a link leads only to an agent that may read what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session

LINKS = {
    "to_folder": "secrets",
    "to_file": "secrets/key",
    "to_nothing": "secrets/gone",
    "through_link": "to_folder/key",
    "to_open": "open",
    "in_open": "open/note",
}
SHOWN = {"to_open": "open", "in_open": "open/note"}
DENIED = {
    "the folder": ('"secrets/": deny', SHOWN),
    "its name": ('"secrets": deny', SHOWN),
    "what is in it": ('"secrets/**": deny', SHOWN | {"to_folder": "secrets"}),  # itself it is listed
    "one file": ('"secrets/key": deny', SHOWN | {"to_folder": "secrets", "to_nothing": "secrets/gone"}),
}


@pytest.mark.parametrize("tool", ["list_directory", "directory_tree"])
@pytest.mark.parametrize("case", DENIED)
def test_the_target_of_a_link_is_shown_where_it_may_be_read(tmp_path: Path, tool: str, case: str) -> None:
    root = tmp_path / "ws"
    for folder in ("secrets", "open"):
        (root / folder).mkdir(parents=True)
    (root / "secrets/key").write_text("1")
    (root / "open/note").write_text("2")
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    rule, shown = DENIED[case]
    policy = Policy.loads(f'version: 1\nrules: {{read: {{"*": allow, {rule}}}}}\n')
    with Session(root, policy, state=":memory:") as session:
        result = session.call({"tool": tool, "arguments": {"path": "."}})
    found = {}
    for line in result.content.splitlines():
        before, arrow, after = line.partition(" -> ")
        if arrow:
            found[before.split()[-1]] = after.split()[0]
    assert found == shown

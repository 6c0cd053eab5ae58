"""What an agent may not read it does not learn: no byte, and no name that it did not say itself."""

from __future__ import annotations

import json
import os
import posixpath
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy
from ringfence.toolkit.session.session import Session

# Every name and every content occurs once, so that its appearance in an answer is no accident.
names = [f"q{n}z" for n in range(12)]
effects = st.sampled_from(["allow", "ask", "deny", "deny"])


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    """Paths to what is there: "/" a folder, "m..." a file's content, "->..." a link."""
    found: dict[str, str] = {}
    folders = [""]
    for name in names[: draw(st.integers(2, len(names)))]:
        path = draw(st.sampled_from(folders)) + name
        kind = draw(st.sampled_from(["file", "file", "folder", "link"]))
        if kind == "folder":
            found[path] = "/"
            folders.append(path + "/")
        elif kind == "file":
            found[path] = f"m{name}m one\n"
        elif found:
            target = draw(st.sampled_from([*found, "nowhere"]))
            found[path] = "->" + posixpath.relpath(target, posixpath.dirname(path) or ".")
    return found


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    # A decision shows its rule, so no pattern spells a name out.
    spelt = [f"q{n}?" for n in range(len(names))]
    patterns = st.sampled_from(
        [*spelt, *(f"{name}/" for name in spelt), *(f"/{name}/*" for name in spelt[:4])]
    )
    read = {"*": draw(st.sampled_from(["allow", "allow", "deny", "ask"]))}
    read |= draw(st.dictionaries(patterns, effects, max_size=5))
    rules = {"read": read, "write": "allow", "delete": draw(st.sampled_from(["allow", "allow", "deny"]))}
    floor = draw(st.lists(patterns, max_size=1))
    mandatory = [{"deny": ["read"], "paths": floor}] if floor else []
    return Policy.loads(json.dumps({"version": 1, "durable": False, "rules": rules, "mandatory": mandatory}))


@st.composite
def calls(draw: st.DrawFn, tree: dict[str, str]) -> dict[str, Any]:
    path = st.sampled_from([*tree, *tree, ".", "new", *(f"{known}/new" for known in tree)])
    one: dict[str, Any] = {"path": draw(path)}
    two = {"source": draw(path), "destination": draw(path), "allow_overwrite": draw(st.booleans())}
    tool, arguments = draw(
        st.sampled_from(
            [
                ("read_file", one), ("get_file_info", one), ("list_directory", {**one, "show_hidden": True}),
                ("directory_tree", one), ("search_files", {**one, "pattern": "*"}),
                ("search_files", {**one, "pattern": "**/q*z"}),
                ("search_text", {**one, "query": "one"}),
                ("search_text", {**one, "query": "m.*m", "regex": True}),
                ("delete", one), ("delete", one), ("delete_file", one), ("move_file", two), ("move_file",
                two),
                ("copy_file", two), ("edit_file", {**one, "old_str": "one", "new_str": "two"}),
                ("edit_file", {**one, "old_str": "none", "new_str": "two"}),
                ("insert_at_line", {**one, "content": "x\n", "line": 1}), ("create_directory", one),
                ("create_file", {**one, "content": "x", "allow_overwrite": draw(st.booleans())}),
            ]
        )
    )  # fmt: skip
    return {"tool": tool, "arguments": arguments}


def plant(root: str, tree: dict[str, str]) -> None:
    for path, what in tree.items():
        if what == "/":
            os.mkdir(f"{root}/{path}")
        elif what.startswith("->"):
            os.symlink(what[2:], f"{root}/{path}")
        else:
            Path(root, path).write_text(what)


def way(tree: dict[str, str], policy: Policy, path: str) -> Effect:
    """The loosest verdict below a folder: its name is on the way to what has it."""
    below = [(each, what) for each, what in tree.items() if each.startswith(path + "/")]
    effects = (policy.effect("default", "read", "read", each, what == "/") for each, what in below)
    return min(effects, default=Effect.DENY)


def check(tree: dict[str, str], policy: Policy, call: dict[str, Any], dry_run: bool) -> None:
    with tempfile.TemporaryDirectory() as root:
        plant(root, tree)
        with Session(root, policy, state=":memory:", dry_run=dry_run) as session:
            result = session.call(call)
    assert result.error is None or result.error["code"] != "internal_error", result
    shown = result.to_line()
    said = json.dumps(call)
    for path, what in tree.items():
        effect = policy.effect("default", "read", "read", path, what == "/")
        if effect != Effect.ALLOW and what.startswith("m"):
            assert what.split()[0] not in shown, (path, call["tool"])
        name = path.rpartition("/")[2]
        if effect == Effect.DENY and way(tree, policy, path) != Effect.ALLOW and name not in said:
            assert name not in shown, (path, call["tool"])


@given(st.data(), trees(), policies(), st.booleans())
def test_nothing_unreadable_is_in_an_answer(
    data: st.DataObject, tree: dict[str, str], policy: Policy, dry_run: bool
) -> None:
    for call in data.draw(st.lists(calls(tree), min_size=3, max_size=6)):
        check(tree, policy, call, dry_run)

"""The same random calls on two backends: every answer and the tree that is left are the same."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ringfence.policy import Policy
from ringfence.toolkit.storage.open import private_memory
from ringfence.toolkit.testing.backend_contract import Disk, Remote

POLICY = Policy.loads(
    'version: 1\ndurable: false\nrules: {"*": {"*": allow, "b/b": deny}, delete: {"*": allow, "c": ask}}\n'
)
names = st.sampled_from(["a", "b", "c", "a[1]", "é"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
contents = st.sampled_from(["", "one\n", "one\ntwo\n", "one\none\n", "x"])


class Alike(RuleBasedStateMachine):
    """Compares the results and trees of stores with those of the local disk."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        memory = private_memory()
        memory.makedirs("/workspace")
        self.trees: list[Disk | Remote] = [Disk(Path(self.folder.name)), Remote(memory, "/workspace")]
        self.sessions = [tree.open(POLICY, "default") for tree in self.trees]

    def teardown(self) -> None:
        for session in self.sessions:
            session.close()
        self.folder.cleanup()

    def call(self, tool: str, **arguments: Any) -> None:
        answers = [session.call({"tool": tool, "arguments": arguments}) for session in self.sessions]
        first, *others = [self.comparable(answer) for answer in answers]
        for other in others:
            assert other == first, (tool, arguments)

    def comparable(self, answer: Any) -> tuple[Any, ...]:
        """Return the part of a result that may not differ: without ids, times and permissions."""
        code = answer.error["code"] if answer.error else None
        hidden = re.sub(
            r"(?m)^(Modified|Created|Accessed|Permissions|Size):.*|[0-9a-f]{6,}", "", answer.content
        )
        return answer.status, code, hidden if code != "approval_required" else ""

    @rule(path=paths, content=contents, overwrite=st.booleans(), parents=st.booleans())
    def create(self, path: str, content: str, overwrite: bool, parents: bool) -> None:
        self.call(
            "create_file", path=path, content=content, allow_overwrite=overwrite, create_parents=parents
        )

    @rule(path=paths, old=st.sampled_from(["one", "x", "two\n"]))
    def edit(self, path: str, old: str) -> None:
        self.call("edit_file", path=path, old_str=old, new_str="new")

    @rule(path=paths, line=st.integers(-1, 3))
    def insert(self, path: str, line: int) -> None:
        self.call("insert_at_line", path=path, content="in", line=line)

    @rule(tool=st.sampled_from(["delete", "delete_file", "create_directory"]), path=paths)
    def on_one(self, tool: str, path: str) -> None:
        self.call(tool, path=path)

    @rule(tool=st.sampled_from(["move_file", "copy_file"]), one=paths, two=paths, overwrite=st.booleans())
    def on_two(self, tool: str, one: str, two: str, overwrite: bool) -> None:
        self.call(tool, source=one, destination=two, allow_overwrite=overwrite)

    @rule(tool=st.sampled_from(["read_file", "list_directory", "directory_tree"]), path=paths)
    def read(self, tool: str, path: str) -> None:
        self.call(tool, path=path)

    @rule(query=st.sampled_from(["one", "x"]))
    def search(self, query: str) -> None:
        self.call("search_text", query=query)
        self.call("search_files", pattern="*")

    @invariant()
    def the_trees_are_the_same(self) -> None:
        first, *others = [tree.tree() for tree in self.trees]
        for other in others:
            assert other == first


TestAlike = Alike.TestCase
TestAlike.settings = settings(max_examples=60, stateful_step_count=20)

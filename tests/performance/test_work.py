"""The work done does not grow: counted operations, never seconds. A number that falls may be lowered here."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Effect, Policy
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.name_index import NameIndex
from ringfence.toolkit import Session
from ringfence.toolkit.state import sqlite as sqlite_state
from tests.history.test_redo_log import is_ext4_or_xfs

COUNTED = Path(__file__).with_name("counted.py")
# For one call: statements of SQL; files opened, listed, renamed, removed or made through the interpreter;
# functions of Python that were entered, with some room (a directory of 28 entries is listed).
# A file that is replaced, deleted or copied is opened once for what is attached to it, and once more before
# the intent if it is replaced, for what the new file gets. One statement of each change is for where the
# history is, by which a plan that another call has overtaken is refused.
AT_MOST = {
    "create_file": (16, 3, 655),
    "read_file": (4, 1, 285),
    "get_file_info": (3, 0, 257),
    "edit_file": (17, 8, 875),
    "list_directory": (3, 2, 645),
    "copy_file": (18, 5, 765),
    "move_file": (20, 3, 860),
    "delete_file": (16, 9, 820),
}

# Transactions, those that wait for the disk, and syncs of files and directories. The file of a single write
# is synced during the intent's transaction.
COMMITS_AND_SYNCS = {
    "create_file": (2, 1, 2),
    "edit_file": (2, 1, 2),
    "copy_file": (2, 1, 2),
    "move_file": (2, 1, 2),
    "delete_file": (2, 1, 2),
}
# The same under `durable: log`: the intent is the only wait. A copy has metadata, so it is not logged.
LOGGED = {**COMMITS_AND_SYNCS, "create_file": (2, 1, 0), "edit_file": (2, 1, 0), "delete_file": (2, 1, 0)}


def calls(folder: Path, rules: int, durable: str = "true") -> dict[str, dict[str, float]]:
    root = folder / f"root{rules}"
    root.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, str(COUNTED), str(root), str(rules), durable],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def test_a_call_does_no_more_work_than_it_did(tmp_path: Path) -> None:
    few, many = calls(tmp_path / "few", 10), calls(tmp_path / "many", 1_000)
    assert few.keys() == AT_MOST.keys()
    for tool, (sql, files, functions) in AT_MOST.items():
        # A change entered some more if it had to wait for the thread that writes its file.
        assert max(few[tool].pop("functions"), many[tool].pop("functions")) <= functions, tool
        assert few[tool] == many[tool]  # neither the disk nor the state is asked more for more rules
        assert few[tool]["sql"] <= sql, tool
        assert few[tool]["files"] <= files, tool
        assert few[tool]["policy"] == 0, tool  # the policy is not read again
        # A change waits for its intent and for what it syncs; a call that changes nothing waits for nothing.
        assert waits(few[tool]) == COMMITS_AND_SYNCS.get(tool, (1, 0, 0)), tool


def waits(counts: dict[str, float]) -> tuple[float, ...]:
    return tuple(counts[what] for what in ("commits", "waits", "syncs"))


def test_the_record_of_a_call_changes_few_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_state, "_OFTEN", 1 << 30)  # the log grows by every page that is written
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "f").write_text("x")
    policy = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\n')
    with Session(tmp_path / "root", policy, state=tmp_path / "state") as session:
        (log,) = (tmp_path / "state").rglob("state.db-wal")

        def pages() -> int:
            return log.stat().st_size // (24 + 4096)

        before, counted = pages(), 300
        for _ in range(counted):
            assert session.call({"tool": "get_file_info", "arguments": {"path": "f"}}).ok
        # Its own page; every fourth time a new one; and after 256 those of the index for all of them.
        assert counted < pages() - before < 2 * counted


def test_a_logged_change_waits_once(tmp_path: Path) -> None:
    if not is_ext4_or_xfs(tmp_path):
        pytest.skip("needs ext4 or XFS")
    found = calls(tmp_path, 10, "log")
    assert {tool: waits(found[tool]) for tool in AT_MOST} == {
        tool: LOGGED.get(tool, (1, 0, 0)) for tool in AT_MOST
    }
    for tool, (sql, files, _) in AT_MOST.items():
        assert found[tool]["sql"] <= sql + (LOGGED.get(tool) != COMMITS_AND_SYNCS.get(tool)), tool  # its row
        assert found[tool]["files"] <= files, tool


WORDS = [f"{a}{b}{c}" for a in "bcdfgh" for b in "aeiou" for c in "klmnpr"]


def patterns(count: int) -> list[str]:
    chance = random.Random(count)
    found: dict[str, None] = {}
    while len(found) < count:
        a, b, c = chance.choices(WORDS, k=3)
        n = chance.randrange(10_000)
        shapes = (
            f"{a}{n}/**",
            f"{a}/{b}{n}/*.{c}",
            f"*{n}.{a}",
            f"{a}/**/{b}{n}*.py",
            f"**/{b}{n}/",
            f"*{a}{n}*",
        )
        found[chance.choice(shapes)] = None
    return list(found)


def paths(count: int) -> list[str]:
    chance = random.Random(1)
    folders = ["/".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(50)]
    return [f"{chance.choice(folders)}/{chance.choice(WORDS)}{number}.py" for number in range(count)]


def work(rules: list[str], judged: list[str], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what judging these paths costs a machine that knows none of them."""
    counts: Counter[str] = Counter()
    machine = Matcher(rules)
    find = NameIndex.find

    class Tried(str):
        """A name that counts what it is compared with."""

        __slots__ = ()

        def startswith(self, *given: Any) -> bool:
            counts["tried"] += 1
            return super().startswith(*given)

        def endswith(self, *given: Any) -> bool:
            counts["tried"] += 1
            return super().endswith(*given)

        def find(self, *given: Any) -> int:
            counts["tried"] += 1
            return super().find(*given)

        def __contains__(self, text: object) -> bool:
            counts["tried"] += 1
            return super().__contains__(text)  # type: ignore[operator]

    def counted_find(self: NameIndex, name: str) -> tuple[int, ...]:
        counts["looked up"] += 1
        return find(self, Tried(name))

    with monkeypatch.context() as patch:
        patch.setattr(NameIndex, "find", counted_find)
        for path in judged:
            machine.at(path)
    counts["steps"] = machine.steps
    return counts


def test_ten_thousand_rules_try_hardly_more_than_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = paths(1_000)
    few, many = (work(patterns(count), judged, monkeypatch) for count in (10, 10_000))
    assert many["looked up"] == few["looked up"]  # each name once, whatever the rules
    assert many["tried"] <= 4 * len(judged)  # of 10,000 patterns four are tried on a path, not all
    assert many["steps"] <= 2 * len(judged)


def test_a_file_is_no_work_where_its_folder_has_the_last_word() -> None:
    machine = Matcher([*(f"n{number}*" for number in range(1_000)), "d/**", "*.x"])
    machine.file("d/any")
    known = machine.steps
    for number in range(1_000):
        assert machine.file(f"d/n{number}.py").last == {0: 1_000}
    assert machine.steps == known
    for number in range(1_000):
        assert machine.file(f"d/n{number}.x").last == {0: 1_001}
    assert machine.steps <= known + 1_000  # here the name has it


@pytest.mark.parametrize(
    "shape", ["shared-prefix-*x{}*y", "*{}a*b{}*", "**/d{}/**", "src/**/*{}*.py", "**/src/*/x{}/**"]
)
def test_rules_made_to_hurt_are_not_all_tried(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [shape.format(number, number) for number in range(1_000, 6_000)]
    judged = [f"src/a{n}/d{n}/shared-prefix-{n}ab{n}y{n}.py" for n in range(7_000, 7_100)]
    found = work(rules, judged, monkeypatch)
    assert found["looked up"] <= 4 * len(judged)
    assert found["tried"] <= 20 * len(judged)


def test_a_tree_is_judged_by_carrying_each_directory_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory's state is worked out once, from its parent's, and serves all that is in it."""
    depth, width = 40, 25
    folders = ["/".join(f"d{level}" for level in range(below)) for below in range(1, depth + 1)]
    tree = [path for folder in folders for path in (folder, *(f"{folder}/f{n}" for n in range(width)))]
    machine = Matcher(["**/d3/**/f7", "d0/*/d2", "*.py", "f1*"])
    counts: Counter[str] = Counter()
    step = Matcher.step

    def counted(self: Matcher, state: object, name: str) -> object:
        counts["steps"] += 1
        return step(self, state, name)  # type: ignore[arg-type]

    monkeypatch.setattr(Matcher, "step", counted)
    for path in tree:
        machine.at(path)
    # One for each entry, one for each directory as a directory: the depth does not come into it.
    assert counts["steps"] <= len(tree) + len(folders)


def test_carried_down_or_judged_alone_is_the_same() -> None:
    rules = {pattern: ("deny", "ask", "allow")[at % 3] for at, pattern in enumerate(patterns(60))}
    rules |= {"*.py": "ask", "bak/": "deny", "bak/**/cal*": "allow", "**/fum/**": "deny", "/bek": "allow"}
    text = "version: 1\nrules:\n  delete:\n" + "".join(f'    "{p}": {e}\n' for p, e in rules.items())
    chance = random.Random(3)
    tree: dict[str, bool] = {}
    for path in paths(300) + [f"bak/{a}/{b}" for a in WORDS[:12] for b in ("cal1", "fum", "x.py")]:
        parts = path.split("/")
        tree |= {"/".join(parts[:at]): True for at in range(1, len(parts))}
        tree[path] = chance.random() < 0.2

    def judge(policy: Policy, path: str) -> Effect:
        return policy.effect("a", "delete", "delete", path, tree[path])

    carried = Policy.loads(text)
    together = [judge(carried, path) for path in sorted(tree)]
    alone = [judge(Policy.loads(text), path) for path in sorted(tree)[::7]]
    assert together[::7] == alone
    assert len(set(together)) == 3

"""Tree of the matrix: what a folder shows, compared with counting by hand; kinds, ends, filters, reasons."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy
from ringfence.toolkit.authoring import matrix_tree
from ringfence.toolkit.authoring.matrix import Cell, Matrix, Row, actions_of, agents_of, matrix
from ringfence.toolkit.authoring.matrix_tree import Note
from ringfence.toolkit.workspace.workspace import Workspace

POLICY = """\
version: 1
rules:
  read: allow
  write: {"*": ask, "docs/**": allow, "docs/no": deny}
  delete: {"*": ask}
agents:
  coder:
    rules:
      write.edit: {"src/**": {effect: allow, until: 2999-12-05}}
"""


@pytest.fixture
def judged(tmp_path: Path) -> Matrix:
    for name in ("docs/a", "docs/b", "docs/no", "src/x.py", "src/in/y.py", "top"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    policy = Policy.loads(POLICY, file="p.yaml").at(0)
    with closing(Workspace(str(tmp_path))) as workspace:
        return matrix(workspace, policy, ".", agents_of(policy), actions_of(policy))


def cells(judged: Matrix, path: str, agent: str, action: str) -> matrix_tree.Shown:
    tree = matrix_tree.tree(judged)
    return tree.cells(path)[tree.agents.index(agent) * 3 + tree.actions.index(action)]


def test_a_folder_shows_what_most_files_get_and_what_differs(judged: Matrix) -> None:
    assert cells(judged, "docs", "default", "write") == matrix_tree.Shown(
        Effect.ALLOW, (Note(1, Effect.DENY),)
    )
    root = cells(judged, ".", "default", "write")
    assert root == matrix_tree.Shown(Effect.ASK, (Note(2, Effect.ALLOW), Note(1, Effect.DENY)))
    assert cells(judged, "src", "default", "write") == matrix_tree.Shown(Effect.ASK, same=True)
    assert cells(judged, "empty", "default", "write") == matrix_tree.Shown(Effect.ASK, same=True)
    assert cells(judged, "docs/no", "default", "write") == matrix_tree.Shown(Effect.DENY)


def test_a_kind_that_is_looser_is_named_with_its_end(judged: Matrix) -> None:
    (note,) = cells(judged, "src", "coder", "write").notes
    assert (note.count, note.effect, note.kind) == (None, Effect.ALLOW, "edit")
    assert note.until is not None
    assert cells(judged, "src/x.py", "coder", "write").notes == (note,)
    (first, *_) = cells(judged, ".", "coder", "write").notes
    assert (first.count, first.kind, first.until) == (2, "edit", note.until)


def test_filters_keep_files_and_the_folders_that_hold_them(judged: Matrix) -> None:
    def paths(name: str) -> set[str]:
        return set(matrix_tree.tree(judged, matrix_tree.FILTERS[name][1]).nodes)

    assert paths("differ") == {".", "src", "src/x.py", "src/in", "src/in/y.py"}
    assert paths("delete") == {"."}
    assert paths("write") == {".", "docs", "docs/a", "docs/b", "src", "src/x.py", "src/in", "src/in/y.py"}
    assert paths("denied") == {".", "docs", "docs/no"}


def test_reasons_are_rules_with_their_files(judged: Matrix) -> None:
    found = matrix_tree.reasons(judged, "docs", "default", "write")
    kinds = {(one.action, str(one.cell.effect), one.files) for one in found}
    assert kinds == {
        (f"write.{kind}", *rest)
        for kind in ("create", "replace", "edit")
        for rest in (("allow", 2), ("deny", 1))
    }
    assert {one.cell.where for one in found} == {"p.yaml:4"}
    (one,) = matrix_tree.reasons(judged, "top", "default", "delete")
    assert (one.files, one.example, str(one.cell.effect)) == (1, "top", "ask")
    assert matrix_tree.reasons(judged, "nowhere", "default", "delete") == []


NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@settings(deadline=None, max_examples=60)
@given(files=st.dictionaries(NAMES, st.sampled_from(list(Effect)), min_size=1, max_size=12))
def test_counts_are_those_of_counting_every_file_again(files: dict[str, Effect]) -> None:
    files = {
        path: effect for path, effect in files.items() if not any(one.startswith(f"{path}/") for one in files)
    }
    kinds = [Cell(effect, "r") for effect in Effect]
    rows = [Row(path, False, (kinds.index(Cell(effect, "r")),)) for path, effect in sorted(files.items())]
    tree = matrix_tree.tree(Matrix((("default", "read"),), kinds, rows))
    for path, node in tree.nodes.items():
        below = [effect for one, effect in files.items() if path in (".", one) or one.startswith(f"{path}/")]
        assert node.files == len(below)
        (cell,) = tree.cells(path)
        count = Counter(below)
        assert count[cell.effect] == max(count.values())
        assert {note.effect: note.count for note in cell.notes} == {
            effect: number for effect, number in count.items() if effect is not cell.effect
        }

"""The page about the architecture against the code: packages, stages, modules and functions that it names."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.test_architecture import MAY_IMPORT

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
HINT = "run `python docs/images/architecture.py`"
SVG = "{http://www.w3.org/2000/svg}"
STAGES = ("parse", "validate", "resolve", "decide", "plan", "tighten", "approve", "intent", "apply", "record")


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(IMAGES))
    monkeypatch.delitem(sys.modules, "architecture", raising=False)
    import architecture

    monkeypatch.delitem(sys.modules, "architecture")
    return architecture


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_table_and_the_picture_are_made_from_the_table_of_imports(drawing: ModuleType) -> None:
    assert drawing.page(text(), MAY_IMPORT) == text(), HINT
    picture = (IMAGES / "architecture.svg").read_text(encoding="utf-8")
    assert drawing.picture(MAY_IMPORT) == picture, HINT
    for name, below in MAY_IMPORT.items():
        row = next(line for line in text().splitlines() if line.startswith(f"| [`{name}`]"))
        assert set(re.findall(r"`([\w.]+)`", row.split("|")[3])) == below


def test_each_box_of_the_picture_stands_above_what_it_imports(drawing: ModuleType) -> None:
    picture = ElementTree.fromstring((IMAGES / "architecture.svg").read_text(encoding="utf-8"))
    width, height = (float(picture.attrib[name]) for name in ("width", "height"))
    boxes = picture.findall(f"{SVG}rect")
    assert len(boxes) == len(MAY_IMPORT)
    for box in boxes:
        x, y, wide, high = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert x >= 0 <= y
        assert x + wide <= width
        assert y + high <= height
    at = {name: level for level, names in drawing.levels(MAY_IMPORT).items() for name in names}
    assert all(at[below] < at[name] for name, names in MAY_IMPORT.items() for below in names)


def definitions(path: Path) -> set[str]:
    """What a module defines: functions, classes and, as `Class.method`, methods."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return found


def test_the_modules_and_functions_named_exist() -> None:
    places = re.findall(r"`((?:policy|toolkit)/[\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", text())
    assert len(places) > 20
    for file, names in places:
        missing = set(re.findall(r"`([\w.]+)`", names)) - definitions(ROOT / file)
        assert not missing, f"{file} has no {missing}"


def test_the_places_named_on_the_page_of_the_design_exist() -> None:
    design = (PAGE.parent / "design.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:policy|toolkit|rules)/[\w/.]*)`", design)
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    part = text().split(f"{heading}\n", 1)[1]
    table = re.search(r"^\|.*?(?:\n\n|\Z)", part, re.M | re.S)
    assert table is not None
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[0].strip().splitlines()[2:]]


def test_each_stage_has_a_row_with_its_place() -> None:
    stages = rows("## The stages of a call")
    assert tuple(row[0] for row in stages) == STAGES
    assert all(re.search(r"`[\w/]+\.py`: `\w", row[2]) for row in stages)
    beside = " ".join(row[0] for row in rows("## What happens beside calls"))
    assert all(act in beside for act in ("undo", "recovery", "retention"))


def test_the_calls_of_run_are_listed_in_their_order() -> None:
    source = ast.parse((ROOT / "toolkit" / "session" / "pipeline.py").read_text(encoding="utf-8"))
    (run,) = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == "run"]
    calls = [node for node in ast.walk(run) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    made = [ast.unparse(node.func).removeprefix("approve or ") for node in calls]
    made = [name for name in made if name not in ("len", "bool")]
    listed = rows("### The calls of `run`")
    assert [name for row in listed for name in re.findall(r"`([\w.]+)`", row[0])] == made
    assert {stage for row in listed for stage in row[1].split(", ")} - {"answer"} <= set(STAGES)

"""The plots of the benchmarks are pictures: well-formed, each row in them, nothing outside of the frame."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    import _plots

    monkeypatch.delitem(sys.modules, "_plots")
    return _plots


def inside(picture: ElementTree.Element) -> bool:
    """Whether everything is within the frame, as far as places say so."""
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for each in picture.iter():
        for name, most in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height)):
            if not 0 <= float(each.attrib.get(name, 0)) <= most:
                return False
        if any(not 0 <= float(each.attrib.get(name, 0)) <= height for name in ("y1", "y2", "cy")):
            return False
    return True


def texts(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter(f"{SVG}text")]


def test_decisions_show_every_row_and_no_label_covers_another(drawn: ModuleType) -> None:
    rows = {
        "one": {"10": 1.0, "100": 2.0, "10000": 9.0},
        "two": {"10": 50.0, "100": 900.0, "10000": 80_000.0},
        "three": {"10": 50.0, "100": 900.0, "10000": 79_000.0},
    }
    picture = ElementTree.fromstring(drawn.decisions(rows))
    lines = picture.findall(f"{SVG}polyline")
    assert len(lines) == 3
    assert {*rows, "10", "10,000"} <= set(texts(picture))
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 60 <= x <= 460
            assert 0 < y <= 320
    places = sorted(float(each.attrib["y"]) for each in picture.iter(f"{SVG}text") if each.text in rows)
    assert all(below - above >= 14 for above, below in itertools.pairwise(places))
    assert inside(picture)


def test_calls_show_a_pair_for_each_tool_and_store(drawn: ModuleType) -> None:
    table = {"read": (900.0, 20_000.0), "write & move": (3.0, 1_000_000.0)}
    picture = ElementTree.fromstring(drawn.calls({"disk": table, "s3": table, "sftp": table}))
    assert len(picture.findall(f"{SVG}circle")) == 2 * 2 * 3
    assert {"read", "write & move", "disk", "s3", "sftp", "1", "1,000,000"} <= set(texts(picture))
    assert inside(picture)


def test_bars_are_as_long_as_their_figures(drawn: ModuleType) -> None:
    picture = ElementTree.fromstring(drawn.bars("a title", "s", {"short": 1.0, "long": 4.0}))
    _, *bars = picture.findall(f"{SVG}rect")
    short, long = (float(bar.attrib["width"]) for bar in bars)
    assert long == pytest.approx(4 * short)
    assert {"a title", "short", "long", "1.00 s", "4.00 s"} == set(texts(picture))
    assert inside(picture)

"""The plot of the benchmarks is a picture: well-formed, each row in it, nothing outside of the frame."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]


def test_the_plot_shows_every_row() -> None:
    spec = importlib.util.spec_from_file_location("bench", ROOT / "benchmarks" / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    rows = {
        "one": {"10": 1.0, "100": 2.0, "10000": 9.0},
        "two": {"10": 50.0, "100": 900.0, "10000": 80_000.0},
    }
    picture = ElementTree.fromstring(bench.chart(rows))
    lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
    texts = {each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert len(lines) == 2
    assert {"one", "two", "10", "10,000"} <= texts
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 60 <= x <= 460
            assert 0 < y <= 320

"""Writes docs/reference/doors.md from the table of doors: `python -m tests.doors.page`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs/reference/doors.md"
COLUMNS = {
    "reads": "reads",
    "writes": "writes",
    "deletes": "deletes",
    "searches": "searches",
    "commands_run": "shell commands",
    "subagents": "sub-agents, background",
    "servers": "tools of other MCP servers",
    "asks": "asks a person",
    "undo": "undo",
}
MARKS = {"yes": "✓", "part": "(✓)", "no": "–"}
NOT_TRIED = "not tried"


def load() -> dict[str, Any]:
    """Return the table: the tests by their short names, and the doors."""
    found: dict[str, Any] = yaml.safe_load((HERE / "doors.yaml").read_text(encoding="utf-8"))
    return found


def page() -> str:
    """Return the page's text."""
    table = load()
    parts = [(HERE / "page.md").read_text(encoding="utf-8"), _overview(table["doors"])]
    parts += [_door(door, table["tests"]) for door in table["doors"]]
    return "\n".join(parts)


def _overview(doors: list[Mapping[str, Any]]) -> str:
    rows = [
        f"| [{door['door']}](#{_anchor(door['door'])}) | "
        + " | ".join(MARKS[door[key][0]] for key in COLUMNS)
        + " |"
        for door in doors
    ]
    head = f"| door | {' | '.join(COLUMNS.values())} |\n|{'---|' * (len(COLUMNS) + 1)}"
    return "\n".join(["## All doors\n", head, *rows, ""])


def _door(door: Mapping[str, Any], tests: Mapping[str, str]) -> str:
    rows = [
        f"| {title} | {MARKS[door[key][0]]} {door[key][1]} | {_tests(door[key], tests)} |"
        for key, title in COLUMNS.items()
    ]
    return "\n".join(
        [
            f"## {door['door'][0].upper()}{door['door'][1:]}\n",
            f"Installed by: {door['install']}. `ringfence doctor`: {door['doctor']}."
            f" [How-to](../how-to/{door['guide']}).\n",
            "| | enforced | shown by |\n|---|---|---|",
            *rows,
            f"\nWhat bypasses it: {door['bypass']}.\n",
        ]
    )


def _tests(cell: list[Any], tests: Mapping[str, str]) -> str:
    named = [f"`{tests[name].removeprefix('tests/')}`" for name in cell[2]]
    return ", ".join(named) or ("" if cell[0] == "no" else NOT_TRIED)


def _anchor(title: str) -> str:
    return title.lower().replace("`", "").replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit()

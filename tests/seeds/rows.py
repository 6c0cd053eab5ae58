"""The rows as data, and what one may be written with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]


class _Loader(yaml.SafeLoader):
    """Safe YAML with two tags for what is long: `!times` and `!numbered`."""


def _times(loader: yaml.SafeLoader, node: Any) -> str:
    count, text = loader.construct_sequence(node)
    return str(text) * int(count)


def _numbered(loader: yaml.SafeLoader, node: Any) -> list[str] | dict[str, Any]:
    """Texts with `{n}` filled in; with a third item, files of that content."""
    count, text, *content = loader.construct_sequence(node)
    names = [text.replace("{n}", f"{number:04}") for number in range(count)]
    return dict.fromkeys(names, content[0]) if content else names


_Loader.add_constructor("!times", _times)
_Loader.add_constructor("!numbered", _numbered)
ROWS: list[dict[str, Any]] = [
    row for file in sorted(HERE.glob("*.yaml")) for row in yaml.load(file.read_text("utf-8"), _Loader)["rows"]
]
SETUP = {"disk", "files", "tasks", "outside", "modes", "policy", "agent", "steps"}
AFTER = {"tree", "tasks_after", "outside_after", "records", "versions", "changes", "requests"}
COUNTS = {"CF": 57, "DF": 51, "GI": 26, "DT": 74, "TK": 91, "CALLS": 16}
STEPS = {"tool", "raw", "again", "person", "meanwhile", "undo", "cli"}
CHECKS = {"steps", "tool", "offered", "prompt", "tests", "docs"}
WANT = {"status", "code", "content", "contains", "lacks", "data"}  # what the contract's cases know, too
ANSWER = {*WANT, "hint", "decision", "title", "preview"}
PRINTED = {"exit", "prints", "complains", "lacks"}
ABOUT = {"name", "title", "safety", "categories", "required", "optional", "parameters"}

"""Prints the lowest versions that pyproject.toml allows, as constraints for pip: one `name==version` a line.

For what has no lower bound nothing is said. Reads pyproject.toml alone, and asks no registry.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*(?P<version>[0-9][0-9A-Za-z.]*)")


def lowest(project: dict[str, Any], extras: tuple[str, ...]) -> Iterator[str]:
    """The lowest version of each dependency, and of each of these extras and what they name."""
    name = project["name"]
    wanted, rows = list(extras), list(project["dependencies"])
    for extra in wanted:  # grows while it is read
        for row in project["optional-dependencies"][extra]:
            if row.startswith(f"{name}["):
                wanted += [each for each in row[len(name) + 1 : -1].split(",") if each not in wanted]
            else:
                rows.append(row)
    for row in dict.fromkeys(rows):
        found = _BOUND.match(row)
        if found is not None:
            yield f"{found['name']}=={found['version']}"


if __name__ == "__main__":
    with PROJECT.open("rb") as file:
        print(*lowest(tomllib.load(file)["project"], ("test",)), sep="\n")

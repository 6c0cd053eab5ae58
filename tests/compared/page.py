"""Writes docs/reference/compared-with-file-servers.md from the cases: `python -m tests.compared.page`."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

from tests.compared import rows
from tests.compared.servers import SERVERS, Server

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/reference/compared-with-file-servers.md"


def page() -> str:
    """Return the page's text."""
    found = rows.load()
    servers = "\n".join(map(_server, SERVERS.values()))
    parts = [(HERE / "page.md").read_text(encoding="utf-8").format(servers=servers)]
    for group, members in groupby(found, key=lambda row: row.group):
        parts.append(f"## {group}\n\n{_table(list(members))}")
    parts.append(_others_have(found))
    return "\n".join(parts)


def _server(server: Server) -> str:
    number = versions().get(server.package)
    named = f"`{server.package}` {number}" if number else "this checkout"
    return f"- **{server.name}** ({named}): {server.setting}."


def versions() -> dict[str, str]:
    """Return the version of each package that is compared with, by name."""
    found: dict[str, str] = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    lines = (HERE / "serena.in").read_text(encoding="utf-8").splitlines()
    return {**found, **dict(line.split("==") for line in lines if line)}


def _table(members: list[rows.Row]) -> str:
    lines = [f"| | {' | '.join(SERVERS)} |", f"|---|{'---|' * len(SERVERS)}"]
    for row in members:
        cells = [f"{rows.MARKS[row.cells[name].mark]} {row.cells[name].text}" for name in SERVERS]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _others_have(found: list[rows.Row]) -> str:
    """List what another server does wholly and Ringfence not at all."""
    lines = ["## What others have and Ringfence does not", ""]
    for row in found:
        having = [name for name in SERVERS if row.cells[name].mark == "yes"]
        if row.cells["ringfence"].mark == "no" and having:
            lines.append(f"- {row.title[0].upper()}{row.title[1:]}: {', '.join(having)}.")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

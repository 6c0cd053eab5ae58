"""Claim: text answers take at most 1.25 times the tokens of the shortest of four other file servers.

Counted are the jobs that all of them do. The servers and how they are started are those of tests/compared. A
host shows the model either an answer's text or its fields as JSON; where there are fields, both are counted.
`tools` is what the list of tools costs before the first call: names, descriptions and input schemas as JSON.
Tokens are those of the vocabulary o200k_base. Needs `python -m tests.compared.install`.

    python benchmarks/compared_answers.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from _size import not_measured, size  # noqa: E402

from tests.compared.install import HERE as COMPARED  # noqa: E402
from tests.compared.servers import SERVERS, Connection, Server, started  # noqa: E402
from tests.interop import npm  # noqa: E402

FILES = size(100, 10)
AT_MOST = 1.25
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Shown:
    """What the model is shown of an answer: its text, and its fields as JSON where there are any."""

    text: str
    fields: str | None = None


def jobs(path: str) -> dict[str, dict[str, Call]]:
    """Return the calls of each job by server, with absolute names below `path` where it wants these."""
    module, folder = "src/0/module_0.py", "src/0"
    new, moved = "docs/guide.md", "docs/moved.md"
    text = "# Guide\n\nHow to begin.\n"
    old, changed = "return value * 3\n", "return value * 33\n"
    there = f"{path}/"
    return {
        "read a file of 1 kB": {
            "ringfence": ("read_file", {"path": module}),
            "server-filesystem": ("read_text_file", {"path": there + module}),
            "desktop-commander": ("read_file", {"path": there + module}),
            "fast-filesystem": ("fast_read_file", {"path": there + module}),
            "serena": ("read_file", {"relative_path": module}),
        },
        "list a folder of 20 files": {
            "ringfence": ("list_directory", {"path": folder}),
            "server-filesystem": ("list_directory", {"path": there + folder}),
            "desktop-commander": ("list_directory", {"path": there + folder}),
            "fast-filesystem": ("fast_list_directory", {"path": there + folder}),
            "serena": ("list_dir", {"relative_path": folder, "recursive": False}),
        },
        "the tree of 100 files": {
            "ringfence": ("directory_tree", {"path": "src"}),
            "server-filesystem": ("directory_tree", {"path": there + "src"}),
            "desktop-commander": ("list_directory", {"path": there + "src", "depth": 3}),
            "fast-filesystem": ("fast_get_directory_tree", {"path": there + "src"}),
            "serena": ("list_dir", {"relative_path": "src", "recursive": True}),
        },
        "find 5 files by name": {
            "ringfence": ("search_files", {"pattern": "module_1?.py", "path": folder}),
            "server-filesystem": ("search_files", {"pattern": "**/module_1?.py", "path": there + folder}),
            "desktop-commander": ("start_search", {"pattern": "module_1?.py", "path": there + folder}),
            "fast-filesystem": ("fast_search_files", {"pattern": "module_1", "path": there + folder}),
            "serena": ("find_file", {"file_mask": "module_1?.py", "relative_path": folder}),
        },
        "find a text in 20 files": {
            "ringfence": ("search_text", {"query": "function_3(", "path": folder}),
            "desktop-commander": (
                "start_search",
                {
                    "pattern": "function_3\\(",
                    "path": there + folder,
                    "searchType": "content",
                    "contextLines": 0,
                },
            ),
            "fast-filesystem": (
                "fast_search_code",
                {"pattern": "function_3\\(", "path": there + folder, "context_lines": 0},
            ),
            "serena": ("search_for_pattern", {"substring_pattern": "function_3\\(", "relative_path": folder}),
        },
        "edit a line": {
            "ringfence": ("edit_file", {"path": module, "old_str": old, "new_str": changed}),
            "server-filesystem": (
                "edit_file",
                {"path": there + module, "edits": [{"oldText": old, "newText": changed}]},
            ),
            "desktop-commander": (
                "edit_block",
                {"file_path": there + module, "old_string": old, "new_string": changed},
            ),
            "fast-filesystem": (
                "fast_edit_block",
                {"path": there + module, "old_text": old, "new_text": changed},
            ),
            "serena": (
                "replace_content",
                {"relative_path": module, "needle": old, "repl": changed, "mode": "literal"},
            ),
        },
        "write a new file": {
            "ringfence": ("create_file", {"path": new, "content": text}),
            "server-filesystem": ("write_file", {"path": there + new, "content": text}),
            "desktop-commander": ("write_file", {"path": there + new, "content": text}),
            "fast-filesystem": ("fast_write_file", {"path": there + new, "content": text}),
            "serena": ("create_text_file", {"relative_path": new, "content": text}),
        },
        "move it": {
            "ringfence": ("move_file", {"source": new, "destination": moved}),
            "server-filesystem": ("move_file", {"source": there + new, "destination": there + moved}),
            "desktop-commander": ("move_file", {"source": there + new, "destination": there + moved}),
            "fast-filesystem": ("fast_move_file", {"source": there + new, "destination": there + moved}),
        },
        "what is known about it": {
            "ringfence": ("get_file_info", {"path": module}),
            "server-filesystem": ("get_file_info", {"path": there + module}),
            "desktop-commander": ("get_file_info", {"path": there + module}),
            "fast-filesystem": ("fast_get_file_info", {"path": there + module}),
        },
        "read what is not there": {
            "ringfence": ("read_file", {"path": "docs/none.md"}),
            "server-filesystem": ("read_text_file", {"path": there + "docs/none.md"}),
            "desktop-commander": ("read_file", {"path": there + "docs/none.md"}),
            "fast-filesystem": ("fast_read_file", {"path": there + "docs/none.md"}),
            "serena": ("read_file", {"relative_path": "docs/none.md"}),
        },
    }


def measure(server: Server) -> dict[str, Shown]:
    """Start the server and return what a model is shown for each job."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        root, home = Path(scratch, "project"), Path(scratch, "home")
        fill(root)
        home.mkdir()
        with started(server, root, home) as connection:
            shown = {"tools": Shown(definitions(connection))}
            for job, calls in jobs(str(root)).items():
                if server.name in calls:
                    answer = connection.call(*calls[server.name])
                    if answer.failed != (job == "read what is not there"):
                        raise SystemExit(f"{server.name}, {job}: {answer.text}")
                    fields = None if answer.fields is None else compact(answer.fields)
                    shown[job] = Shown(answer.text, fields)
            return shown


def definitions(connection: Connection) -> str:
    """Return the tools as they are described to a model."""
    told = ("name", "description", "inputSchema")
    return compact([{name: tool[name] for name in told} for tool in connection.tools.values()])


def fill(root: Path) -> None:
    """Write the files: five folders of modules."""
    content = "".join(f"def function_{n}(value):\n    return value * {n}\n\n" for n in range(20))
    for number in range(FILES):
        path = root / "src" / str(number % 5) / f"module_{number // 5}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (root / "docs").mkdir()


def compact(value: Any) -> str:
    """Return the value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def tokens(texts: list[str]) -> list[int]:
    """Return the number of tokens of each text."""
    done = npm.run("tokens.mjs", given=json.dumps(texts), folder=COMPARED)
    found: list[int] = json.loads(done.stdout)
    return found


def main() -> int:
    """Print the lengths; the status is 1 if the claim does not hold."""
    for server in SERVERS.values():
        if missing := server.missing():
            return not_measured(missing)
    found = {server.name: measure(server) for server in SERVERS.values()}
    answers = [one for shown in found.values() for one in shown.values()]
    texts = list({text for one in answers for text in (one.text, one.fields or "")})
    count = dict(zip(texts, tokens(texts), strict=True))
    names = ["tools", *jobs("")]
    print("tokens of the text, of the fields after a slash; characters in brackets")
    print("| | " + " | ".join(found) + " |")
    print("|---|" + "---|" * len(found))
    for name in names:
        print(f"| {name} | " + " | ".join(cell(shown.get(name), count) for shown in found.values()) + " |")
    common = [name for name in names[1:] if all(name in shown for shown in found.values())]
    total = {name: sum(count[shown[job].text] for job in common) for name, shown in found.items()}
    print(
        f"| the {len(common)} jobs that all do, text | " + " | ".join(f"{n:,}" for n in total.values()) + " |"
    )
    ratio = total.pop("ringfence") / min(total.values())
    print(f"{ratio:.2f} times the shortest of the others")
    return int(ratio > AT_MOST)


def cell(shown: Shown | None, count: dict[str, int]) -> str:
    """Return what the table says of one answer."""
    if shown is None:
        return "–"
    if shown.fields is None:
        return f"{count[shown.text]:,} ({len(shown.text):,})"
    return f"{count[shown.text]:,}/{count[shown.fields]:,} ({len(shown.text):,}/{len(shown.fields):,})"


if __name__ == "__main__":
    sys.exit(main())

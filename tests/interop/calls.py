"""The calls that every client makes."""

from __future__ import annotations

from typing import Any

# Each tool once, with what makes it succeed under the workspace's policy.
CALLS: dict[str, dict[str, Any]] = {
    "get_project_root": {},
    "read_file": {"path": "docs/guide.md"},
    "read_files": {"paths": ["docs/guide.md"]},
    "get_file_info": {"path": "docs/guide.md"},
    "list_directory": {"path": "docs"},
    "directory_tree": {},
    "search_files": {"pattern": "*.md"},
    "search_text": {"query": "first"},
    "create_file": {"path": "tmp/new.txt", "content": "one\ntwo\n"},
    "edit_file": {"path": "tmp/new.txt", "old_str": "two", "new_str": "three"},
    "insert_at_line": {"path": "tmp/new.txt", "content": "zero\n", "line": 0},
    "create_directory": {"path": "tmp/dir"},
    "copy_file": {"source": "tmp/new.txt", "destination": "tmp/dir/copy.txt"},
    "move_file": {"source": "tmp/dir/copy.txt", "destination": "tmp/moved.txt"},
    "delete_file": {"path": "tmp/moved.txt"},
    "delete": {"path": "tmp/dir"},
}

"""The calls at each of whose requests the store's reply is lost."""

from __future__ import annotations

from typing import Any

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("create_file", {"path": "new/n", "content": "new"}),
    "replace": ("create_file", {"path": "a", "content": "other", "allow_overwrite": True}),
    "edit": ("edit_file", {"path": "a", "old_str": "one", "new_str": "1"}),
    "copy": ("copy_file", {"source": "a", "destination": "c"}),
    "move": ("move_file", {"source": "a", "destination": "c"}),
    "move over": ("move_file", {"source": "a", "destination": "b", "allow_overwrite": True}),
    "move tree": ("move_file", {"source": "d", "destination": "f"}),
    "delete": ("delete_file", {"path": "a"}),
    "delete tree": ("delete", {"path": "d"}),
    "directory": ("create_directory", {"path": "new/m"}),
}

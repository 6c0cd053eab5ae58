"""Open files: what the editor has open, in which folders it works, and every policy found there.

Text that is not saved counts before what is on disk. Reads files and writes none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ringfence.toolkit.language_server.documents import Document, read
from ringfence.toolkit.project_root import POLICY_FILE

MOST_FILES = 2_000  # YAML files that are looked into for a policy
MOST_FOLDERS = 20_000
_NOT_OURS = frozenset({"node_modules", "venv", "__pycache__"})  # with every folder that begins with a dot


class OpenFiles:
    """The documents of an editor, by path, and its workspace folders."""

    def __init__(self) -> None:
        self.documents: dict[Path, Document] = {}
        self.folders: list[Path] = []
        self.encoding = "utf-16"

    def copy(self) -> OpenFiles:
        """Return the files as they are now, for another thread."""
        out = OpenFiles()
        out.documents, out.folders, out.encoding = dict(self.documents), list(self.folders), self.encoding
        return out

    def get(self, path: Path) -> Document | None:
        """Return a file as the editor has it, or else as it is on disk; None for one that cannot be read."""
        return self.documents.get(path) or read(path, self.encoding)

    def unsaved(self) -> dict[str, bytes]:
        """Return the bytes of every open document by its real path."""
        return {os.path.realpath(path): document.data for path, document in self.documents.items()}

    def workspace_of(self, path: Path) -> Path:
        """Return the folder that the patterns of a policy start at, as far as that is known."""
        if path.name == POLICY_FILE:
            return path.parent
        return next((folder for folder in self.folders if path.is_relative_to(folder)), path.parent)

    def policies(self) -> Iterator[Document]:
        """Yield each policy that is open or in a workspace folder, up to a bound."""
        yield from (document for document in self.documents.values() if document.is_policy)
        left = MOST_FILES
        for path in _yaml_files(self.folders):
            if path in self.documents:
                continue
            left -= 1
            if left < 0:
                return
            document = read(path, self.encoding)
            if document is not None and document.is_policy:
                yield document


def _yaml_files(folders: list[Path]) -> Iterator[Path]:
    left = MOST_FOLDERS
    for folder in folders:
        for place, below, files in os.walk(folder):
            left -= 1
            if left < 0:
                return
            below[:] = sorted(name for name in below if not name.startswith(".") and name not in _NOT_OURS)
            yield from (Path(place, name) for name in sorted(files) if name.endswith((".yaml", ".yml")))

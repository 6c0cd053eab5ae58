"""Opening of a directory of this machine as a confined tree.

The only place that makes a `Local` for a root.
"""

from __future__ import annotations

import os

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.local.backend import Local


def refuse_windows() -> None:
    """Raise CallError `io_error` on Windows, where the local disk cannot be confined."""
    if os.sep == "\\":
        raise CallError(
            "io_error",
            "A workspace on disk is not confined on Windows yet, and is refused",
            hint="use WSL, or a workspace elsewhere (memory://, s3://, sftp://)",
        )


def open_local(root: str, *, durable: bool = True) -> Local:
    """Open the directory at the path `root`. CallError `not_found`, `not_a_directory` or `io_error`."""
    refuse_windows()
    if not os.path.isdir(root):
        found = os.path.lexists(root)
        raise CallError(
            "not_a_directory" if found else "not_found",
            f"The project root {'is not a directory' if found else 'does not exist'}",
            hint="give an existing directory with --root",
        )
    return Local(root, durable=durable)

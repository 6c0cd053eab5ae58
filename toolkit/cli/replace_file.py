"""Replaces the text of a file at a person's command: all of it at once, with the mode that it had.

A link to the file stays a link. Never leaves a part of the new text at the file's name.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ringfence.toolkit.cli.runner import UsageError


def replace_text(file: Path, text: str) -> None:
    """Put the text in place of what the file holds, or make the file. UsageError where that fails."""
    real = Path(os.path.realpath(file))
    new = real.with_name(f"{real.name}.{secrets.token_hex(4)}.new")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        with new.open("xb") as out:
            out.write(text.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())
        if real.exists():
            new.chmod(real.stat().st_mode & 0o7777)
        new.replace(real)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None

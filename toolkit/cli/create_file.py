"""Makes a file that a person asked for: a new one, and whole, or none. Never touches one that is there."""

from __future__ import annotations

from pathlib import Path

from ringfence.toolkit.cli.runner import UsageError


def write_new(path: Path, text: str) -> None:
    """Raises UsageError where it is there already or cannot be written."""
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"{path} already exists; it was not changed") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with file:
            file.write(text)
    except BaseException as error:
        path.unlink(missing_ok=True)  # a piece of it would be taken for the whole
        if isinstance(error, OSError):
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        raise

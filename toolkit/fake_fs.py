"""Working under a fake file system (pyfakefs): what a package reads of its own files is read past it.

Knows the fake only by what it does to `os`; does nothing where there is none.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager


def is_faked() -> bool:
    """Whether `os` has been taken over, so that calls past it (SQLite's, the kernel's) are no use."""
    return not isinstance(os.open, types.BuiltinFunctionType)


@contextmanager
def past_the_fake() -> Iterator[None]:
    """For as long as the block runs, files are the real ones; for what is read of a package's own."""
    fake = getattr(os, "filesystem", None)
    if fake is None:
        yield
        return
    fake.pause()
    try:
        yield
    finally:
        fake.resume()


def import_past_the_fake() -> None:
    """Import what reads files of its own package when first imported; in the fake these are not there."""
    if hasattr(os, "filesystem") and "jsonschema" not in sys.modules:
        with past_the_fake():
            import jsonschema  # noqa: F401

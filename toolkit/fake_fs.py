"""Support for a fake file system (pyfakefs): a package's own files are read from the real one.

Detects the fake only by its changes to `os`; does nothing without one.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager


def is_faked() -> bool:
    """Whether `os` is faked, so that calls that bypass it (SQLite's, the kernel's) would see other files."""
    return not isinstance(os.open, types.BuiltinFunctionType)


@contextmanager
def past_the_fake() -> Iterator[None]:
    """Use the real file system while the block runs, for a package's own files."""
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
    """Import modules that read files of their own package at import; the fake file system does not have
    these.
    """
    if hasattr(os, "filesystem") and "jsonschema" not in sys.modules:
        with past_the_fake():
            import jsonschema  # noqa: F401

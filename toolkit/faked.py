"""Working under a fake file system (pyfakefs): what a package reads of its own files is read past it.

Knows the fake only by what it does to `os`; does nothing where there is none.
"""

from __future__ import annotations

import os
import sys
import types


def is_faked() -> bool:
    """Whether `os` has been taken over, so that calls past it (SQLite's, the kernel's) are no use."""
    return not isinstance(os.open, types.BuiltinFunctionType)


def import_past_the_fake() -> None:
    """Import what reads files of its own package when first imported; in the fake these are not there."""
    fake = getattr(os, "filesystem", None)
    if fake is None or "jsonschema" in sys.modules:
        return
    fake.pause()
    try:
        import jsonschema  # noqa: F401
    finally:
        fake.resume()

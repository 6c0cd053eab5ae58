"""Extras of the package: which modules each one brings, and how to install it.

Imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

# Each extra, and the modules that it brings.
EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "s3": ("s3fs",),
        "sftp": ("paramiko",),
        "azure": ("adlfs",),
        "postgres": ("psycopg",),
        "serve": ("starlette", "uvicorn"),
        "review": ("starlette", "uvicorn", "jinja2", "pygments"),
        "watch": ("textual",),
        "lsp": ("pygls", "lsprotocol"),
    }
)
# The URL schemes of roots that need an extra.
SCHEMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("s3", "s3a"), "s3"),
        **dict.fromkeys(("sftp", "ssh"), "sftp"),
        **dict.fromkeys(("az", "abfs", "abfss", "adl"), "azure"),
    }
)


def is_installed(extra: str) -> bool:
    """Whether every module of the extra can be imported."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def install(extra: str) -> str:
    """Return the command that installs the extra.

    The name is satisfied by the installed package, so pip and uv ask an index only for the extra's own
    requirements: the command needs neither a checkout nor Ringfence on an index.
    """
    return f"pip install 'ringfence[{extra}]'"

"""The import names of the last release, `policy` and `toolkit`, where a program has none of its own.

They stand behind everything else that is found, and only in a process that has imported `ringfence`: a
project's own package of such a name is never hidden.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# What was documented, and where it is now.
MOVED = {
    "policy": "ringfence.policy",
    "toolkit": "ringfence.toolkit",
    "toolkit.amend": "ringfence.toolkit.session.amend",
    "toolkit.approvals": "ringfence.toolkit.approvals",
    "toolkit.asynchronous": "ringfence.toolkit.session.aio",
    "toolkit.board": "ringfence.toolkit.monitoring.dashboard",
    "toolkit.call": "ringfence.toolkit.call",
    "toolkit.cli": "ringfence.toolkit.cli",
    "toolkit.contract": "ringfence.toolkit.testing.backend_contract",
    "toolkit.dialects": "ringfence.toolkit.catalog.vendor_formats",
    "toolkit.errors": "ringfence.toolkit.errors",
    "toolkit.fsspec_local": "ringfence.toolkit.storage.local.fsspec_adapter",
    "toolkit.instructions": "ringfence.toolkit.catalog.instructions",
    "toolkit.mcp": "ringfence.toolkit.mcp",
    "toolkit.mcp.definitions": "ringfence.toolkit.catalog.mcp_definitions",
    "toolkit.offers": "ringfence.toolkit.catalog.offers",
    "toolkit.session": "ringfence.toolkit.session.session",
    "toolkit.testing": "ringfence.toolkit.testing.trial",
    "toolkit.text": "ringfence.toolkit.text",
    "toolkit.tools": "ringfence.toolkit.tools",
}


_OURS = __file__.rpartition("/")[0].rpartition("/")[0] + "/"


def _places(found: ModuleSpec) -> list[str]:
    """The folders of a package without `__init__.py`, else the file."""
    return list(found.submodule_search_locations or ()) if found.origin is None else [found.origin]


class OldNames:
    """A finder of modules (PEP 451) that gives way to what the path has; also the loader of what it finds."""

    def __init__(self) -> None:
        self._standing: set[str] = set()

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """Find an old name; a submodule only below one that was found here."""
        above = name.rpartition(".")[0]
        if name not in MOVED or (above and above not in self._standing):
            return None
        from importlib.machinery import ModuleSpec, PathFinder

        own = None if above else PathFinder.find_spec(name)
        if own is not None and any(place != _OURS + name for place in _places(own)):
            return None  # a package or module of the program's own
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, _spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Have the old name stand for the new one."""
        import warnings
        from importlib import import_module

        old, new = module.__name__, MOVED[module.__name__]
        self._standing.add(old)
        told = f"`{old}` is `{new}` now; the old name goes with the next release"
        warnings.warn(told, DeprecationWarning, 2)
        found = import_module(new)
        module.__doc__ = found.__doc__
        module.__getattr__ = lambda name: getattr(found, name)  # type: ignore[method-assign]
        if hasattr(found, "__all__"):
            module.__all__ = found.__all__  # type: ignore[attr-defined]

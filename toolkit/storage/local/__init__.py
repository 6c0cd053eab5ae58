"""Local disk, confined by directory descriptors: the spot that was judged is the spot that is changed.

No access leaves the root, however names are swapped meanwhile. No promise against a process that moves a
directory out of the root while it is open.
"""

from __future__ import annotations

TYPE_CHECKING = False  # by hand: a hook needs a module of this package, and no backend
if TYPE_CHECKING:
    from typing import Any

    from ringfence.toolkit.storage.local.backend import Local

__all__ = ["Local"]


def __getattr__(name: str) -> Any:
    if name != "Local":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ringfence.toolkit.storage.local.backend import Local

    globals()["Local"] = Local
    return Local

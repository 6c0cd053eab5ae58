"""Local disk, confined by directory descriptors: the spot that was judged is the spot that is changed.

No access leaves the root, however names are swapped meanwhile. No promise against a process that moves a
directory out of the root while it is open.
"""

from __future__ import annotations

from ringfence._lazy_names import lazy_names

TYPE_CHECKING = False  # by hand: a hook needs a module of this package, and no backend
if TYPE_CHECKING:
    from ringfence.toolkit.storage.local.backend import Local

__all__ = ["Local"]

_HOMES = {"Local": "backend"}

__getattr__ = lazy_names(__name__, _HOMES)

"""Local disk, confined by directory descriptors: what is judged and what is acted on are one spot.

No access leaves the root however names are swapped meanwhile. Does not promise anything against a process
that moves a directory out of the root while it is held.
"""

from ringfence.toolkit.storage.local.backend import Local

__all__ = ["Local"]

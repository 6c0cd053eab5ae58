"""Ready-made policies: their names and their files.

The files are in `ringfence/rules`, which is a link to `rules/` in a checkout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

READY_MADE = ("agents", "baseline", "locked-down", "read-only", "trusted-local")


def ready_made(name: str) -> Path:
    """Return the file of a ready-made policy; KeyError for an unknown name."""
    from pathlib import Path  # a policy without a base needs none

    if name not in READY_MADE:
        raise KeyError(name)
    return Path(__file__).parents[2] / "rules" / f"{name}.yaml"

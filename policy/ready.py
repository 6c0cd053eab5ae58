"""The ready-made policies: their names, and where their files are.

They are data in `rules/` of a checkout and travel inside this package in a wheel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

READY_MADE = ("agents", "baseline", "locked-down", "read-only", "trusted-local")


def ready_made(name: str) -> Path:
    """Return the file of a ready-made policy; KeyError for a name that is none."""
    from pathlib import Path  # a policy without a base needs none

    if name not in READY_MADE:
        raise KeyError(name)
    package = Path(__file__).resolve().parent
    # The wheel's copy first: beside an installed package `rules` can be somebody else's.
    places = (package / "rules", package.parent / "rules")
    return next(
        (place / f"{name}.yaml" for place in places if (place / f"{name}.yaml").is_file()),
        places[0] / f"{name}.yaml",
    )

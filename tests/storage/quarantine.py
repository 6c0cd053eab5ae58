"""Where deletions are caught, beside the state of a test or in its workspace."""

from __future__ import annotations

from pathlib import Path


def caught(root: Path, names: str = "*") -> list[Path]:
    """What is caught of the workspace at `root`, whose states are beside it."""
    places = [root / ".ringfence", *root.parent.rglob("quarantine")]
    found = (place for folder in places for place in folder.glob(names))
    return [place for place in found if place.name != ".gitignore"]

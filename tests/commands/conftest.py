"""What the tests of commands stand on: overlays made by the kernel, and the places of the sandbox's tests."""

from __future__ import annotations

from tests.commands.overlays import overlays
from tests.sandbox.conftest import overlay_works, place

__all__ = ["overlay_works", "overlays", "place"]

"""The places of the tests of commands: for a session with its sandbox, and overlays without one."""

from __future__ import annotations

from tests.commands.overlays import overlays
from tests.sandbox.conftest import overlay_works, place

__all__ = ["overlay_works", "overlays", "place"]

"""The places of the sandbox's tests, for commands that run through a session."""

from __future__ import annotations

from tests.sandbox.conftest import overlay_works, place

__all__ = ["overlay_works", "place"]

"""What the contract's cases say is held whatever else the machine does meanwhile."""

from __future__ import annotations

import pytest

from toolkit.tools import search_text


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers slowly must not have a search end by the clock."""
    monkeypatch.setattr(search_text, "MAX_SECONDS", 100.0)

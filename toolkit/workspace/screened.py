"""Screened content: what of a file an answer may have, once secrets that the policy masks are hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Screened(NamedTuple):
    """Content as an agent may see it, with a mark in the place of each secret that the policy masks.

    `data` is None if all of it is hidden. `hidden` are the spans of the original that the agent does not see
    without a person, in bytes.
    """

    data: bytes | None
    hidden: tuple[tuple[int, int], ...] = ()


# From a path with its other names, its content, and what to do if the policy does not let the agent have it:
# "refuse" or ask, "leave out" or ask, or "hide".
Screen = Callable[[tuple[str, ...], bytes, str], Screened]

"""Sets of small numbers as bits of an integer: union, intersection and comparison in one operation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_FEW: Final = 24
_OF_BYTE: Final = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))


def mask(numbers: Iterable[int]) -> int:
    """Return the integer in which exactly these bits are set."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def numbers(bits: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set, in ascending order."""
    if bits.bit_count() > _FEW:
        row = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
        return tuple(8 * at + bit for at, byte in enumerate(row) if byte for bit in _OF_BYTE[byte])
    out = []
    while bits:
        low = bits & -bits
        out.append(low.bit_length() - 1)
        bits ^= low
    return tuple(out)

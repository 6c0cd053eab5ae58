"""A chain of lines checked, and the same said by what has all of them before it: slower, and plain to see."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ringfence.toolkit.audit.file_verifier import check_file
from ringfence.toolkit.audit.hash_chain import (
    BEGINNING,
    Checked,
    Fault,
    Record,
    check,
    line,
    parsed,
    seal,
    sealed,
)


def chained(
    count: int, key: bytes | None = None, after: tuple[int, str] = BEGINNING, text: str = ""
) -> Iterator[str]:
    seq, prev = after
    for number in range(seq + 1, seq + 1 + count):
        body = json.dumps({"event": "call", "seq": number, "tool": text}, separators=(",", ":"))
        now = seal(prev, body, key)
        yield line(body, prev, now)
        prev = now


def check_lines(
    text: str,
    key: bytes | None = None,
    anchors: Iterable[tuple[int, str]] = (),
    after: tuple[int, str] = BEGINNING,
) -> Checked:
    return check_file(io.BytesIO(text.encode()), key, anchors, after)


def check_at_once(
    text: str,
    key: bytes | None = None,
    anchors: Iterable[tuple[int, str]] = (),
    after: tuple[int, str] = BEGINNING,
) -> Checked:
    """What `check_lines` says, from the whole text."""
    lines = text.split("\n")
    whole = lines.pop() == ""  # else the last line was not written to its end
    if not whole:
        lines = text.split("\n")
    rows = [parsed(one) for one in lines]
    true = [row if row is not None and sealed(row, key) else None for row in rows]
    numbers = {row.seq for row in true if row is not None}
    torn: list[int] = []
    faults: list[Fault] = []
    kept: dict[int, Record] = {}
    for at, (row, seq) in enumerate(zip(rows, _numbers(true, rows, after), strict=True)):
        cut = not whole and '{"hash":"'.startswith(lines[at][:9])
        if true[at] is not None and seq in kept:
            faults.append(Fault(seq, "repeated"))
        elif row is None and (cut if at == len(lines) - 1 else lines[at + 1].startswith(lines[at])):
            torn.append(seq)
        elif true[at] is None and (seq in kept or seq in numbers):
            faults.append(Fault(seq, "unreadable" if row is None else "altered"))
        else:
            kept[seq] = replace(row, seq=seq, number=seq) if row else Record(seq, None, "", "", "")
    order = list(kept)
    faults += [Fault(seq, "swapped") for seq, right in zip(order, sorted(order), strict=True) if seq != right]
    checked = check([kept[seq] for seq in sorted(kept)], key, anchors, after)
    every = sorted({*faults, *checked.faults}, key=lambda fault: (fault.seq, fault.what))
    return Checked(every, len(kept), torn, checked.unchecked, checked.more)


def _numbers(
    true: Sequence[Record | None], rows: Sequence[Record | None], after: tuple[int, str]
) -> list[int]:
    """The number of each line: its own where that can be believed, else by those around it."""
    high: list[int | None] = []
    for row in reversed(true):
        high.append(row.seq if row is not None else high[-1] if high else None)
    found: list[int] = []
    (low, follows), before = after, -1
    for at, (row, claimed, next_) in enumerate(zip(true, rows, reversed(high), strict=True)):
        if row is not None:
            found.append(row.seq)
            low, follows, before = row.seq, row.hash, at
        elif claimed is not None and claimed.prev == follows:
            found.append(low + 1)
        elif claimed is not None and low < claimed.seq and (next_ is None or claimed.seq < next_):
            found.append(claimed.seq)
        else:
            found.append(low + at - before)
    return found

"""The chain of audit records: how each is sealed to the one before, and where a chain does not hold.

Pure: from values to values. A record's text is never put into another form before it is checked.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

START = "0" * 64
BEGINNING = (0, START)  # what the first record follows
_KEYED = "hmac:"
_NAMED = 1000  # missing records in a row that are named one by one
_SEAL = "(?:hmac:)?[0-9a-f]{64}"
_LINE = re.compile(rf'\{{"hash":"({_SEAL})","prev":"({_SEAL})",(.*)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at record `seq`.

    "altered", "missing", "swapped", "repeated", "unreadable", "unkeyed" (sealed without the key where the
    key was in use) or "anchor" (not what was anchored).
    """

    seq: int
    what: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record where it stands: `seq` by its place, `number` by its own text (None: not to be read)."""

    seq: int
    number: int | None
    body: str
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found.

    `torn` are records of which only a piece was written by a process that was killed then, `unchecked` counts
    those that were sealed with a key that was not given.
    """

    faults: list[Fault]
    records: int
    torn: list[int] = field(default_factory=list)
    unchecked: int = 0


def seal(prev: str, body: str, key: bytes | None = None) -> str:
    """What ties `body` to all the records before it; with a key, only who has it can make another one."""
    text = f"{prev}\n{body}".encode()
    if key is None:
        return hashlib.sha256(text).hexdigest()
    return _KEYED + hmac.new(key, text, hashlib.sha256).hexdigest()


def line(body: str, prev: str, seal: str) -> str:
    """A record as a line of its own; one JSON object with the fields of the record."""
    return f'{{"hash":"{seal}","prev":"{prev}",{body[1:]}\n'


def number(body: str) -> int | None:
    """The number that a record's text says it has; None for one that cannot be read."""
    try:
        found = json.loads(body).get("seq")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, int) else None


def parsed(text: str) -> Record | None:
    """The record of a line; None for one that is not whole."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    body = "{" + match[3]
    found = number(body)
    return None if found is None else Record(found, found, body, match[2], match[1])


def check(
    records: Sequence[Record],
    key: bytes | None = None,
    anchors: Iterable[tuple[int, str]] = (),
    after: tuple[int, str] = BEGINNING,
) -> Checked:
    """Every place at which a chain, given in the order of its numbers, does not hold.

    It begins with the one after record `after`, given by its number and seal.
    """
    faults: list[Fault] = []
    (before, prev), keyed, plain = after, after[1].startswith(_KEYED), 0
    expected = before + 1
    for record in records:
        # A number made up by hand may be far away.
        faults += [Fault(seq, "missing") for seq in range(expected, min(record.seq, expected + _NAMED))]
        follows = record.seq == expected
        if record.number is None:
            faults.append(Fault(record.seq, "unreadable"))
        elif record.number != record.seq:
            faults.append(Fault(record.seq, "swapped"))
        elif not _sealed(record, key) or (follows and "" not in (prev, record.prev) and record.prev != prev):
            faults.append(Fault(record.seq, "altered"))
        elif key is not None and keyed and not record.hash.startswith(_KEYED):
            faults.append(Fault(record.seq, "unkeyed"))
        plain = 0 if record.hash.startswith(_KEYED) else record.seq
        keyed = keyed or not plain
        expected, prev = record.seq + 1, record.hash
    if key is not None and plain and not keyed:
        faults.append(Fault(plain, "unkeyed"))  # none was: whoever wrote it anew had no key either
    held = {record.seq: record.hash for record in records}
    faults += [Fault(seq, "anchor") for seq, anchor in anchors if held.get(seq) != anchor]
    unchecked = sum(record.hash.startswith(_KEYED) for record in records) if key is None else 0
    return Checked(faults, len(records), unchecked=unchecked)


def check_lines(
    text: str,
    key: bytes | None = None,
    anchors: Iterable[tuple[int, str]] = (),
    after: tuple[int, str] = BEGINNING,
) -> Checked:
    """The same for the lines of a file, in which records can also stand in the wrong order or twice."""
    lines = text.split("\n")
    whole = lines.pop() == ""  # else the last line was not written to its end
    if not whole:
        lines = text.split("\n")
    rows = [parsed(one) for one in lines]
    true = [row if row is not None and _sealed(row, key) else None for row in rows]
    numbers = {row.seq for row in true if row is not None}
    torn: list[int] = []
    faults: list[Fault] = []
    kept: dict[int, Record] = {}
    for at, (row, seq) in enumerate(zip(rows, _numbers(true, rows, after), strict=True)):
        last = at == len(lines) - 1
        if true[at] is not None and seq in kept:
            faults.append(Fault(seq, "repeated"))
        elif row is None and ((last and not whole) or (not last and lines[at + 1].startswith(lines[at]))):
            torn.append(seq)
        elif true[at] is None and (seq in kept or seq in numbers):
            faults.append(Fault(seq, "unreadable" if row is None else "altered"))
        else:
            kept[seq] = replace(row, seq=seq, number=seq) if row else Record(seq, None, "", "", "")
    order = list(kept)
    faults += [Fault(seq, "swapped") for seq, right in zip(order, sorted(order), strict=True) if seq != right]
    checked = check([kept[seq] for seq in sorted(kept)], key, anchors, after)
    every = sorted({*faults, *checked.faults}, key=lambda fault: (fault.seq, fault.what))
    return Checked(every, len(kept), torn, checked.unchecked)


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


def _sealed(record: Record, key: bytes | None) -> bool:
    if record.hash.startswith(_KEYED):
        return key is None or hmac.compare_digest(seal(record.prev, record.body, key), record.hash)
    return seal(record.prev, record.body) == record.hash


def as_anchor(text: str) -> tuple[int, str]:
    """What `NUMBER:SEAL` says. Raises ValueError."""
    seq, _, anchor = text.strip().partition(":")
    if not seq.isascii() or not seq.isdigit() or re.fullmatch(_SEAL, anchor) is None:
        raise ValueError(text)
    return int(seq), anchor

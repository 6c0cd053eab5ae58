"""Hash chain of audit records: seals each record to the one before and finds where a chain breaks.

Pure: from values to values. A record's text is never reformatted before it is checked.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

START = "0" * 64
BEGINNING = (0, START)  # the seal before the first record
KEYED = "hmac:"
_NAMED = 1000  # consecutive records with the same fault that are listed singly
_SEAL = "(?:hmac:)?[0-9a-f]{64}"
_LINE_BEGINS = b'{"hash":"'
_LINE = re.compile(rf'\{{"hash":"({_SEAL})","prev":"({_SEAL})",(.*)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at record `seq`.

    "altered", "missing", "swapped", "repeated", "unreadable", "too long" (a line that cannot be a record),
    "unkeyed" (sealed without the key where the key was in use), "anchor" (not the anchored record) or "index"
    (the log finds it by other values than its own).
    """

    seq: int
    what: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record in its place: `seq` is its position, `number` is in its text (None: unreadable)."""

    seq: int
    number: int | None
    body: str
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check.

    `torn` counts records of which a killed process wrote only a part, `unchecked` those sealed with a key
    that was not given, `more` further faults in a row of equal ones, `unrecorded` calls in the history
    without a record. `stopped` is the line at which checking a file was given up, because too little of it is
    consistent; 0 for none.
    """

    faults: list[Fault]
    records: int
    torn: list[int] = field(default_factory=list)
    unchecked: int = 0
    more: int = 0
    stopped: int = 0
    unrecorded: int = 0

    @property
    def holds(self) -> bool:
        """Whether no fault was found in the records that could be checked."""
        return not (self.faults or self.stopped or self.unrecorded)

    @property
    def whole(self) -> bool:
        """Whether all records were checked, without a fault."""
        return self.holds and not self.unchecked


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive records, each sealed to the one before, all with a key or all without.

    Or a single damaged record, and `what` is its fault.
    """

    first: int
    last: int
    prev: str
    hash: str
    what: str = ""

    @property
    def keyed(self) -> bool:
        """Whether the records are sealed with a key."""
        return self.hash.startswith(KEYED)

    def __len__(self) -> int:
        return self.last - self.first + 1


def seal(prev: str, body: str, key: bytes | None = None) -> str:
    """Return the seal of `body` and all records before it: SHA-256 in hex, or HMAC-SHA-256 with a key."""
    text = f"{prev}\n{body}".encode()
    if key is None:
        return hashlib.sha256(text).hexdigest()
    return KEYED + hmac.new(key, text, hashlib.sha256).hexdigest()


def line(body: str, prev: str, seal: str) -> str:
    """Return a record as one line: a JSON object with the record's fields."""
    return f'{{"hash":"{seal}","prev":"{prev}",{body[1:]}\n'


def begins_a_record(text: bytes) -> bool:
    """Whether a record may begin with this part of a line."""
    return _LINE_BEGINS.startswith(text[: len(_LINE_BEGINS)].partition(b"\n")[0])


def number(body: str) -> int | None:
    """Return the number in a record's text; None for an unreadable one."""
    try:
        found = json.loads(body).get("seq")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, int) else None


def parsed(text: str) -> Record | None:
    """Return the record of a line; None for an incomplete one."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    body = "{" + match[3]
    found = number(body)
    return None if found is None else Record(found, found, body, match[2], match[1])


def check(
    records: Iterable[Record],
    key: bytes | None = None,
    anchors: Iterable[tuple[int, str]] = (),
    after: tuple[int, str] = BEGINNING,
) -> Checked:
    """Find every break of a chain that is given in the order of its numbers.

    It starts after the record `after`, given by its number and seal.
    """
    return check_runs((_alone(record, key) for record in records), key, anchors, after, Faults())


def _alone(record: Record, key: bytes | None) -> Run:
    what = ""
    if record.number is None:
        what = "unreadable"
    elif record.number != record.seq:
        what = "swapped"
    elif not sealed(record, key):
        what = "altered"
    return Run(record.seq, record.seq, record.prev, record.hash, what)


class Faults:
    """The faults found so far; of many equal ones in a row only the first are listed."""

    def __init__(self) -> None:
        self.named: set[Fault] = set()
        self.more = 0

    def add(self, what: str, first: int, last: int | None = None) -> None:
        """Add a fault of the records `first` to `last`."""
        last = first if last is None else last
        # A forged number may be far away.
        self.named.update(Fault(seq, what) for seq in range(first, min(last + 1, first + _NAMED)))
        self.more += max(last + 1 - first - _NAMED, 0)

    def sorted(self) -> list[Fault]:
        """Return the faults in the order of the records."""
        return sorted(self.named, key=lambda fault: (fault.seq, fault.what))


def check_runs(
    runs: Iterable[Run],
    key: bytes | None,
    anchors: Iterable[tuple[int, str]],
    after: tuple[int, str],
    found: Faults,
) -> Checked:
    """Check runs as `check` does; no run continues beyond an anchored record. Adds to `found`."""
    anchored = set(anchors)
    lost = set(anchored)
    (before, prev), keyed, plain = after, after[1].startswith(KEYED), 0
    expected = before + 1
    records = unchecked = 0
    for run in runs:
        first = run.first
        if first > expected:
            found.add("missing", expected, first - 1)
        if run.what or (first == expected and "" not in (prev, run.prev) and run.prev != prev):
            found.add(run.what or "altered", first)
            first += 1
        if key is not None and keyed and not run.keyed:
            found.add("unkeyed", first, run.last)
        plain = 0 if run.keyed else run.last
        keyed = keyed or not plain
        lost.discard((run.last, run.hash))
        records += len(run)
        unchecked += len(run) if run.keyed and key is None else 0
        expected, prev = run.last + 1, run.hash
    if key is not None and plain and not keyed:
        found.add("unkeyed", plain)  # no record is keyed: whoever rewrote the log had no key either
    for seq, _ in lost:
        found.add("anchor", seq)
    return Checked(found.sorted(), records, unchecked=unchecked, more=found.more)


def sealed(record: Record, key: bytes | None) -> bool:
    """Whether a record's seal matches its text, with this key or without any."""
    if record.hash.startswith(KEYED):
        return key is None or hmac.compare_digest(seal(record.prev, record.body, key), record.hash)
    return seal(record.prev, record.body) == record.hash


def as_anchor(text: str) -> tuple[int, str]:
    """Return number and seal from a text `NUMBER:SEAL`. ValueError."""
    seq, _, anchor = text.strip().partition(":")
    if not seq.isascii() or not seq.isdigit() or re.fullmatch(_SEAL, anchor) is None:
        raise ValueError(text)
    return int(seq), anchor

"""The chain of audit records: how each is sealed to the one before, and where a chain does not hold.

Pure: from values to values. A record's text is never put into another form before it is checked.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

START = "0" * 64
BEGINNING = (0, START)  # what the first record follows
KEYED = "hmac:"
_NAMED = 1000  # records in a row with one fault that are named one by one
_SEAL = "(?:hmac:)?[0-9a-f]{64}"
_LINE_BEGINS = b'{"hash":"'
_LINE = re.compile(rf'\{{"hash":"({_SEAL})","prev":"({_SEAL})",(.*)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at record `seq`.

    "altered", "missing", "swapped", "repeated", "unreadable", "too long" (a line that can be no record),
    "unkeyed" (sealed without the key where the key was in use), "anchor" (not what was anchored) or "index"
    (the log finds it by something else than it says).
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
    those that were sealed with a key that was not given, `more` faults in a row with those that are named,
    `unrecorded` calls that the history knows and no record tells of.
    `stopped` is the line at which a file was given up, of which too little goes together; 0 for none.
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
        """Whether nothing is wrong with what could be checked."""
        return not (self.faults or self.stopped or self.unrecorded)

    @property
    def whole(self) -> bool:
        """Whether all of it was checked, and nothing is wrong with it."""
        return self.holds and not self.unchecked


@dataclass(frozen=True, slots=True)
class Run:
    """Records in a row, each sealed to the one before it, all with a key or all without; or a single one that
    is not as it was written, with `what` is wrong with it."""

    first: int
    last: int
    prev: str
    hash: str
    what: str = ""

    @property
    def keyed(self) -> bool:
        return self.hash.startswith(KEYED)

    def __len__(self) -> int:
        return self.last - self.first + 1


def seal(prev: str, body: str, key: bytes | None = None) -> str:
    """What ties `body` to all the records before it; with a key, only who has it can make another one."""
    text = f"{prev}\n{body}".encode()
    if key is None:
        return hashlib.sha256(text).hexdigest()
    return KEYED + hmac.new(key, text, hashlib.sha256).hexdigest()


def line(body: str, prev: str, seal: str) -> str:
    """A record as a line of its own; one JSON object with the fields of the record."""
    return f'{{"hash":"{seal}","prev":"{prev}",{body[1:]}\n'


def begins_a_record(text: bytes) -> bool:
    """Whether this may begin with a piece of a line, of whatever length."""
    return _LINE_BEGINS.startswith(text[: len(_LINE_BEGINS)].partition(b"\n")[0])


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
    records: Iterable[Record],
    key: bytes | None = None,
    anchors: Iterable[tuple[int, str]] = (),
    after: tuple[int, str] = BEGINNING,
) -> Checked:
    """Every place at which a chain, given in the order of its numbers, does not hold.

    It begins with the one after record `after`, given by its number and seal.
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
    """The faults found so far; of many in a row that are the same, only the first are named one by one."""

    def __init__(self) -> None:
        self.named: set[Fault] = set()
        self.more = 0

    def add(self, what: str, first: int, last: int | None = None) -> None:
        last = first if last is None else last
        # A number made up by hand may be far away.
        self.named.update(Fault(seq, what) for seq in range(first, min(last + 1, first + _NAMED)))
        self.more += max(last + 1 - first - _NAMED, 0)

    def sorted(self) -> list[Fault]:
        return sorted(self.named, key=lambda fault: (fault.seq, fault.what))


def check_runs(
    runs: Iterable[Run],
    key: bytes | None,
    anchors: Iterable[tuple[int, str]],
    after: tuple[int, str],
    found: Faults,
) -> Checked:
    """The same for runs, none of which goes on past a record that is anchored; adds to what was `found`."""
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
        found.add("unkeyed", plain)  # none was: whoever wrote it anew had no key either
    for seq, _ in lost:
        found.add("anchor", seq)
    return Checked(found.sorted(), records, unchecked=unchecked, more=found.more)


def sealed(record: Record, key: bytes | None) -> bool:
    if record.hash.startswith(KEYED):
        return key is None or hmac.compare_digest(seal(record.prev, record.body, key), record.hash)
    return seal(record.prev, record.body) == record.hash


def as_anchor(text: str) -> tuple[int, str]:
    """What `NUMBER:SEAL` says. Raises ValueError."""
    seq, _, anchor = text.strip().partition(":")
    if not seq.isascii() or not seq.isdigit() or re.fullmatch(_SEAL, anchor) is None:
        raise ValueError(text)
    return int(seq), anchor

"""Finds of detectors in content: all of them, those that a change adds, and content with them masked.

What cannot be examined is one find over the whole content, so a caller that forgets about it errs on the side
of strictness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from ringfence.policy.detection import expressions
from ringfence.policy.detection.encodings import ascii_units, byte_spans, encoding
from ringfence.policy.detection.linear_regex import WorkExceeded
from ringfence.policy.detection.table import TABLE
from ringfence.policy.model import Detector

MAX_BYTES = 16 << 20  # a longer content is not examined


@dataclass(frozen=True, slots=True)
class Found:
    """Where a detector found a secret, in bytes, and the secret in UTF-8.

    With `examined` False the content is too large (or too costly for an expression): the find covers all of
    it, and `secret` is empty.
    """

    detector: Detector
    start: int
    end: int
    secret: bytes = field(default=b"", repr=False)
    examined: bool = True


def find(data: bytes, detectors: Iterable[Detector]) -> tuple[Found, ...]:
    """Return what the detectors find in `data`, in order of place.

    Finds of one detector do not overlap. Raises KeyError for a detector that does not exist, and PatternError
    for an expression that was not checked before.
    """
    found = [one for detector in dict.fromkeys(detectors) for one in _found(data, detector)]
    return tuple(sorted(found, key=lambda one: (one.start, -one.end)))


def added(old: bytes | None, new: bytes, detectors: Iterable[Detector]) -> tuple[Found, ...]:
    """Return those finds of `new` whose secret is no find of `old` (None: there was nothing).

    A find that was not examined counts, unless nothing changes at all.
    """
    if old == new:
        return ()
    found = find(new, detectors)
    if not found or old is None:
        return found
    wanted = dict.fromkeys(one.detector for one in found)
    known = {(one.detector, one.secret) for one in find(old, wanted) if one.examined}
    return tuple(one for one in found if not one.examined or (one.detector, one.secret) not in known)


def mask(data: bytes, found: Iterable[Found], mark: Callable[[Found], bytes]) -> bytes:
    """Return `data` with a mark in the place of each find, as `apart` gives them.

    A mark is text in UTF-8; in UTF-16 content it is written in UTF-16.
    """
    how = encoding(data)
    parts, at = [], 0
    for one in apart(found):
        parts += [data[at : one.start], how.encode(mark(one).decode("utf-8", "surrogateescape"))]
        at = one.end
    return b"".join([*parts, data[at:]])


def apart(found: Iterable[Found]) -> list[Found]:
    """Return finds that do not overlap: of those that do, the first reaches to the end of the last."""
    out: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if out and one.start < out[-1].end:
            out[-1] = replace(out[-1], end=max(out[-1].end, one.end))
        else:
            out.append(one)
    return out


def _found(data: bytes, detector: Detector) -> Iterator[Found]:
    if len(data) > MAX_BYTES:
        yield Found(detector, 0, len(data), examined=False)
        return
    how = encoding(data)
    try:
        spans = list(_spans(data, detector))
    except WorkExceeded:
        yield Found(detector, 0, len(data), examined=False)
        return
    for start, end in spans:
        secret = data[start:end]
        if how.codec != "utf-8":
            secret = secret.decode(how.codec, how.errors).encode("utf-8", "surrogatepass")
        yield Found(detector, start, end, secret)


def _spans(data: bytes, detector: Detector) -> Iterator[tuple[int, int]]:
    how = encoding(data)
    if detector.name == "match":
        yield from byte_spans(data, how, expressions.spans(how.text(data), detector.expression))
        return
    kind = TABLE[detector.name]
    units, wide = ascii_units(data, how)
    if kind.markers and not any(marker in units for marker in kind.markers):
        return
    before = how.mark if wide > 1 else 0
    for start, end in _apart(kind.spans(units)):
        yield before + wide * start, before + wide * end


def _apart(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans in order, those that overlap as one."""
    last: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if last and start < last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last:
            yield last
        last = (start, end)
    if last:
        yield last

"""Random text in assignments and quotes: a key, a password or a token of a format that nobody publishes.

A value counts by how random it looks, less strictly after a name such as `token`; hexadecimal text only after
such a name, since most of it is digests. `benchmarks/detection.py` measures the thresholds.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Iterator

MIN_LENGTH, MAX_LENGTH = 16, 200  # what is longer is data, not a secret that somebody types or passes
MIN_LENGTH_UNNAMED = 24
MIN_LENGTH_HEX = 32
# Of all neighbours, how many differ in kind (capital, small letter, digit); random text has 0.6.
MIN_CHANGES, MIN_CHANGES_UNNAMED = 0.15, 0.38
# Of the bits that random text of this length and alphabet has.
MIN_ENTROPY, MIN_ENTROPY_UNNAMED = 0.75, 0.8

_RUN = re.compile(
    rb"(?<![A-Za-z0-9+/_.@%-])(?=[A-Za-z_+/-]*+[0-9])[A-Za-z0-9+/_-]{16,}+={0,2}(?![A-Za-z0-9.@%:({\[])"
)
# Read backwards from the value, which takes one attempt: its quote, what assigns it, and its name.
_ASSIGNS = rb"[ \t]{0,8}(?:>=|[=:]{1,3}!?|>%s)[ \t]{0,8}[\"'\])]{0,2}([A-Za-z0-9_.-]{1,64}+)"
_ASSIGNED = re.compile(rb"[\"'`](?:[bru]|/W'?)?" + _ASSIGNS % rb"|[(,]" + rb"|" + _ASSIGNS % b"")
_QUOTES = (b'"', b"'", b"`")
_BEFORE = 96  # how much before a value its name is looked for in
_SECRET_NAME = re.compile(
    rb"(?i)secret|token|passw|passphrase|pwd|api_?-?key|auth(?!or)|credential|private_?-?key"
    rb"|access_?-?key|encryption_?-?key|signing_?-?key|bearer"
)
_DIGEST_NAME = re.compile(
    rb"(?i)^h1$|hash|sha\d|digest|checksum|integrity|md5|etag|fingerprint|commit|revision|public|nonce|sig(?:nature)?$"
    rb"|uuid|guid|(?:^|[_.-])id$|cert|sitekey|resolved|path|file|url"
)
# `sha512-…`, a UUID, and an entity tag that is a length and a SHA-1.
_DIGEST_VALUE = re.compile(
    rb"(?i)(?:sha\d{1,3}|md5|h1)[-_]|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$|[0-9a-f]{1,8}-[a-z0-9+/]{27}$"
)
_HEX = re.compile(rb"[0-9a-f-]++|[0-9A-F-]++")
_PRINTABLE = frozenset(b"\t\r\n" + bytes(range(32, 127)))
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_SMALL, _CAPITAL, _DIGIT = range(3)
_KINDS = bytes(_DIGIT if n < ord("A") else _CAPITAL if n < ord("a") else _SMALL for n in range(256))
_SIGNS = b"+/-_"


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each value that looks random."""
    for found in _RUN.finditer(data):
        start, end = found.span()
        if end - start > MAX_LENGTH:
            continue
        quote = data[start - 1 : start]
        assigned = _ASSIGNED.match(data[max(0, start - _BEFORE) : start][::-1])
        whole = data[end : end + 1] == quote if quote in _QUOTES else assigned
        if whole and _is_secret(found[0].rstrip(b"="), _name(assigned)):
            yield start, end


def _name(assigned: re.Match[bytes] | None) -> bytes:
    return (assigned[1] or assigned[2])[::-1] if assigned else b""


def _is_secret(text: bytes, name: bytes) -> bool:
    # The last word of a name counts: a `token_hash` is a digest, a `hash_token` is not.
    secret, digest = _last(_SECRET_NAME, name), _last(_DIGEST_NAME, name)
    if _DIGEST_VALUE.match(text) or digest > secret:
        return False
    named = secret >= 0
    if _HEX.fullmatch(text):
        return named and len(text) >= MIN_LENGTH_HEX and randomness(text, 16) >= MIN_ENTROPY
    kinds = text.translate(_KINDS, _SIGNS)
    changes = sum(map(int.__ne__, kinds, kinds[1:])) / len(kinds)
    if named and changes >= (MIN_CHANGES if kinds.count(_DIGIT) > 1 else MIN_CHANGES_UNNAMED):
        return randomness(text, 36) >= MIN_ENTROPY
    return (
        len(text) >= MIN_LENGTH_UNNAMED
        and len(set(kinds)) == 3
        and changes >= MIN_CHANGES_UNNAMED
        and randomness(text, 62) >= MIN_ENTROPY_UNNAMED
        and not _is_encoded_text(text)
    )


def _last(words: re.Pattern[bytes], name: bytes) -> int:
    """Where the last of these words begins in a name; -1 if there is none."""
    return max((found.start() for found in words.finditer(name)), default=-1)


def _is_encoded_text(text: bytes) -> bool:
    """Whether this is the base64 of plain text, and so as random as that text."""
    whole = text[: len(text) // 4 * 4].translate(_FROM_URL_SAFE)
    plain = base64.b64decode(whole)
    return sum(byte in _PRINTABLE for byte in plain) >= 0.9 * len(plain)


def randomness(text: bytes, alphabet: int) -> float:
    """Return the entropy of the characters of `text`, as a part of the most that this length can have."""
    size = len(text)
    bits = -sum(n / size * math.log2(n / size) for n in Counter(text).values())
    return bits / math.log2(min(size, alphabet))

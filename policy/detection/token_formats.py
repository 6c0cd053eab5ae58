"""Tokens whose format their vendor publishes: AWS, GitHub, Slack and JSON Web Tokens.

What stands before a token must not hide it, so a pattern consumes its prefix alone and looks ahead for the
rest. Each look ahead is bounded, or ends where the next prefix can begin, which keeps the work linear.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from itertools import chain

Spans = Iterator[tuple[int, int]]

# An escape (`\n`, `%3D`) ends in a letter or a digit and still is a boundary.
_ESCAPE = rb"(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})"
_WORD_START = rb"(?:(?<![A-Za-z0-9])|" + _ESCAPE + rb")"
_BASE64URL_START = rb"(?:(?<![A-Za-z0-9_-])|" + _ESCAPE + rb")"

MAX_ACCOUNT = 999_999_999_999  # an account of AWS has twelve digits
_AWS_ID = re.compile(_WORD_START + rb"A[KS]IA(?=([A-Z2-7]{16})(?![A-Za-z0-9]))")
_AWS_NAMED = re.compile(
    rb"(?i:secret[_ .-]?(?:access[_ .-]?)?key[a-z_]{0,16})[\"'\]]{0,2}\s{0,8}(?:=>|:=|[:=,>])\s{0,8}[\"'(]?"
    rb"(?=([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=]))"
)
_AWS_SECRET = re.compile(rb"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_BESIDE = 200  # how far from its id a secret key is looked for, in bytes

_GITHUB = re.compile(rb"gh[oprsu]_(?=([A-Za-z0-9]{36,255}+))")
_GITHUB_FINE = re.compile(rb"github_pat_(?=([A-Za-z0-9]{22}_[A-Za-z0-9]{59}))")
_GITHUB_APP = re.compile(rb"ghs_\d{1,12}_(?=ey|ew)")
_BASE62 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_SLACK = re.compile(
    _WORD_START + rb"(?:xox[a-z](?:\.xox[a-z])?|xapp|xwfp)(?=((?:-[A-Za-z0-9%]{1,300}+){1,6}+))"
)
_SLACK_HOOK = re.compile(
    rb"hooks\.slack(?:-gov)?\.com/(?=((?:services|workflows|triggers)(?:/[A-Za-z0-9]{1,64}+){3,4}+))"
)

# Three parts are signed, five are encrypted (RFC 7516); without `alg` a signature may be empty.
_JWT = (
    rb"e[yw][A-Za-z0-9_-]{6,}+(?=(\.(?:[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+|\.[A-Za-z0-9_-]{16,}+)"
    rb"(?:\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++)?+))"
)
_JWT_ALONE = re.compile(_BASE64URL_START + _JWT)
_JWT_HERE = re.compile(_JWT)


def aws_access_key(data: bytes) -> Spans:
    """Yield the ids of access keys, and secret keys that stand beside an id or after their name."""
    for found in _AWS_ID.finditer(data):
        if _is_aws_id(found[1]):
            yield found.start(), found.end(1)
            yield from _aws_secrets_beside(data, found.start(), found.end(1))
    for found in _AWS_NAMED.finditer(data):
        if _is_aws_secret(found[1]):
            yield found.span(1)


def _aws_secrets_beside(data: bytes, start: int, end: int) -> Spans:
    for near in _AWS_SECRET.finditer(data, max(0, start - _AWS_BESIDE), end + _AWS_BESIDE):
        # The bound hides from the pattern what follows there.
        whole = _AWS_SECRET.match(data, near.start())
        if whole and _is_aws_secret(whole[0]):
            yield whole.span()


def _is_aws_id(letters: bytes) -> bool:
    """Whether the 16 characters can be an id: those from Q on hold the number of the account."""
    if len(set(letters)) < 6:
        return False
    number = int.from_bytes(base64.b32decode(letters), "big")
    return not number >> 79 or 0 < (number >> 39) & ((1 << 40) - 1) <= MAX_ACCOUNT


def _is_aws_secret(text: bytes) -> bool:
    return len(set(text)) >= 15 and text.upper() != text != text.lower()


def github_token(data: bytes) -> Spans:
    """Yield tokens with their checksum, fine-grained ones, and those of an app that hold a JWT."""
    for found in _GITHUB.finditer(data):
        text = found[1]
        if has_checksum(text[:36]):
            yield found.start(), found.start(1) + 36
        elif len(text) >= 60 and len(set(text)) >= 16:  # refresh tokens; their checksum is not published
            yield found.start(), found.end(1)
    for found in _GITHUB_FINE.finditer(data):
        if len(set(found[1])) >= 16:
            yield found.start(), found.end(1)
    for found in _GITHUB_APP.finditer(data):
        token = _JWT_HERE.match(data, found.end())
        if token and _is_header(token[0]):
            yield found.start(), token.end(1)


def has_checksum(text: bytes) -> bool:
    """Whether the last six characters are the CRC-32 of those before, in base 62."""
    left, digits = zlib.crc32(text[:-6]), bytearray()
    for _ in range(6):
        left, digit = divmod(left, 62)
        digits.insert(0, _BASE62[digit])
    return text[-6:] == bytes(digits)


def slack_token(data: bytes) -> Spans:
    """Yield tokens by their prefix, and the addresses of webhooks."""
    for found in chain(_SLACK.finditer(data), _SLACK_HOOK.finditer(data)):
        parts = re.split(rb"[-/]", found[1])
        secret = parts[-1]
        if len(secret) >= 16 and len(set(secret)) >= 8:
            yield found.start(), found.end(1)


def jwt(data: bytes) -> Spans:
    """Yield JSON Web Tokens: their first part is a JSON object with `alg`."""
    for found in _JWT_ALONE.finditer(data):
        if _is_header(found[0]):
            yield found.start(), found.end(1)


def _is_header(text: bytes) -> bool:
    try:
        header = json.loads(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and isinstance(header.get("alg"), str)

"""Private keys as text: PEM blocks, also where they are quoted or cut off, and PuTTY's files.

The label of a block alone is no find: it needs MIN_BODY characters of base64 after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MIN_BODY = 32  # a shorter body holds the names of algorithms and nothing of the key
MIN_DISTINCT = 10  # a body of fewer different characters is a placeholder

# What may stand between two lines of a body: it may be quoted in code, in JSON, in a shell or in a diff, or
# shown with the number of each line, alone or after a path.
_NUMBER = rb"(?<=[\r\n \t])(?:[A-Za-z0-9_./-]{1,120}[:-])?[0-9]{1,7}[:|\t-]"
_GAP = rb"""(?:""" + _NUMBER + rb"""|[ \t\r\n"'`,#*|>.+]|\\{1,8}[nrt"']?|//|%0[AaDd]|%20|&#1[03];)"""
_LINE_END = rb"""(?=[ \t]*+(?:[\r\n"'`\\%&]|-{2}|\Z))"""
_FIELD = rb"""[A-Za-z][A-Za-z-]{1,30}:[ \t][^\r\n"\\]{0,200}+"""  # `Proc-Type: 4,ENCRYPTED`, `Version: …`
_RUN = rb"[A-Za-z0-9+/=]"
_PEM = re.compile(
    rb"-----? ?BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-----?"
    rb"(?P<body>(?:" + _GAP + rb"{1,64}+(?:" + _RUN + rb"{32,}+|" + _RUN + rb"{1,31}+" + _LINE_END + rb"|"
    + _FIELD + rb"))*+)"
    rb"(?:" + _GAP + rb"{0,64}+-----? ?END [A-Z0-9 ]{0,60}-----?)?+"
)  # fmt: skip
_BREAK = rb"(?:\\[rn]|[\r\n]){1,4}+"
_PUTTY = re.compile(
    rb"Private-Lines: \d{1,4}(?P<body>"
    + _BREAK
    + _RUN
    + rb"{16,}+(?:"
    + _BREAK
    + _RUN
    + rb"++"
    + _LINE_END
    + rb")*+)"
)
_FIELDS = re.compile(_FIELD)
_RUNS = re.compile(_RUN + rb"{16,}+")


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each private key."""
    for pattern in (_PEM, _PUTTY):
        for found in pattern.finditer(data):
            body = b"".join(_RUNS.findall(_FIELDS.sub(b"", found["body"])))
            if len(body) >= MIN_BODY and len(set(body)) >= MIN_DISTINCT:
                yield found.span()

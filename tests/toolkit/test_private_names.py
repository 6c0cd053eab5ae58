"""The names that CPython does not publish: each exists and does what it is used for, or is replaced.

`docs/explanation/dependencies.md` lists them. A new version of Python that changes one fails here first.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from re import _constants, _parser  # type: ignore[attr-defined]

import pytest

from ringfence.policy.loading.cache import sha256

PARTS = {
    "a": "LITERAL",
    ".": "ANY",
    "[^a]": "NOT_LITERAL",
    "[ab]": "IN",
    "a|bc": "BRANCH",
    "(a)": "SUBPATTERN",
    "a*": "MAX_REPEAT",
    "a*?": "MIN_REPEAT",
    "^": "AT",
}


@pytest.mark.parametrize("pattern", PARTS)
def test_a_parsed_pattern_has_the_parts_that_the_matcher_reads(pattern: str) -> None:
    tree = _parser.parse(pattern)
    ((code, _),) = list(tree)
    assert code is getattr(_constants, PARTS[pattern])
    assert int(tree.state.flags) == re.UNICODE


def test_a_repeat_and_a_group_have_their_fields() -> None:
    ((_, (least, most, inner)),) = list(_parser.parse("(?:ab){2,}"))
    assert (least, most) == (2, _constants.MAXREPEAT)
    assert len(inner) == 2
    ((_, (number, add, drop, group)),) = list(_parser.parse("(?i:a)"))
    assert (number, add, drop, len(group)) == (None, re.IGNORECASE, 0, 1)


def test_the_digest_of_the_interpreter_is_that_of_hashlib() -> None:
    assert sha256(b"a policy").hexdigest() == hashlib.sha256(b"a policy").hexdigest()


def test_without_the_interpreters_own_the_digest_is_hashlibs() -> None:
    program = (
        "import sys; sys.modules['_sha2'] = sys.modules['_sha256'] = None\n"
        "import hashlib; from ringfence.policy.loading import cache\n"
        "assert cache.sha256 is hashlib.sha256\n"
        "print(cache.sha256(b'x').hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(b"x").hexdigest()

"""Known content: found for exactly one version, and bounded."""

from __future__ import annotations

import pytest

from ringfence.toolkit.plan.changes import FILE, Stat
from ringfence.toolkit.storage import known_content
from ringfence.toolkit.storage.known_content import KnownContent

VERSION = Stat(FILE, 3, 1_000.25, identity='"tag"')


@pytest.mark.parametrize(
    ("path", "stat", "is_known"),
    [
        ("a", VERSION, True),
        ("a", VERSION._replace(identity="tag", modified=1_000.0), True),  # another reply about that version
        ("b", VERSION, False),
        ("a", VERSION._replace(identity='"other"'), False),
        ("a", VERSION._replace(size=4), False),
        ("a", VERSION._replace(modified=1_001.0), False),
    ],
)
def test_content_is_that_of_one_version(path: str, stat: Stat, is_known: bool) -> None:
    known = KnownContent()
    known.put("a", VERSION, b"abc")
    assert known.get(path, stat) == (b"abc" if is_known else None)


def test_the_oldest_content_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_content, "_MAX_BYTES", 8)
    known = KnownContent()
    for path in ("a", "b", "b", "c"):
        known.put(path, VERSION, b"abc")
    assert [known.get(path, VERSION) for path in ("a", "b", "c")] == [None, b"abc", b"abc"]
    known.put("large", VERSION, b"123456789")
    assert not any(known.get(path, VERSION) for path in ("a", "b", "c", "large"))

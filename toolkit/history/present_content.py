"""Content of pruned versions that the workspace's files still have.

Only reads, and reads a file only if its size is that of such a version.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.versions import Version
from ringfence.toolkit.plan.changes import FILE
from ringfence.toolkit.plan.content import hashed, sha256
from ringfence.toolkit.storage.backend import Tree, at


def present_digests(tree: Tree, versions: Sequence[Version]) -> frozenset[str]:
    """Return the digests of forgotten versions that a file at one of the versions' paths has now.

    A file that cannot be read has none of them.
    """
    missing = {version.digest: version.size for version in versions if version.forgotten}
    if not missing:
        return frozenset()
    found = set()
    for path in sorted({version.path for version in versions}):
        with suppress(CallError):
            found.add(_digest(tree, path, set(missing.values())))
    return frozenset(digest for digest in found if digest is not None and digest in missing)


def _digest(tree: Tree, path: str, sizes: set[int]) -> str | None:
    with at(tree, path) as spot:
        stat = tree.stat(spot)
        if stat is None or stat.kind != FILE or stat.size not in sizes:
            return None
        if tree.traits.quarantines:
            return hashed(tree.chunks(spot, stat))[0]
        return sha256(tree.read(spot, None, stat))

"""A workspace whose policy asks, with a session in it: what people are asked and what is recorded of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ringfence.toolkit import Session

POLICY = """\
version: 1
rules:
  read: allow
  write: {"*": ask, "docs/**": allow}
  delete: {"*": ask, "docs/**": deny}
"""


@contextmanager
def asking(folder: Path, *names: str) -> Iterator[Session]:
    """The session of agent `coder` in `folder/w`, which has files of these names."""
    for name in names:
        (folder / "w" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "w" / name).write_text("one\n")
    (folder / "policy.yaml").write_text(POLICY)
    state = folder / "state"
    with Session(folder / "w", folder / "policy.yaml", agent="coder", session="s", state=state) as opened:
        yield opened

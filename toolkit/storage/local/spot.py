"""A spot on the local disk: an open directory, a name in it, and the real path.

A value; opens nothing and closes nothing.
"""

from __future__ import annotations

import os

from ringfence.policy.byte_names import to_disk
from ringfence.policy.value_classes import dataclass, field
from ringfence.toolkit import paths


@dataclass(slots=True)
class LocalSpot:
    """An open directory and one name in it.

    `names` are displayed; `name` is the disk's name of the entry. `owned`: releasing the spot closes `fd`.
    `rest` counts the further names below a name that does not exist, or that (`blocked`) is not a directory.
    `seen` is the entry's status when the spot was resolved, for the first reader; `folder` is the open
    directory that the spot came from.
    """

    fd: int
    names: tuple[str, ...]
    rest: int = 0
    owned: bool = False
    blocked: bool = False
    folder: object = field(default=None, compare=False)
    path: str = field(init=False)
    name: str = field(init=False)
    seen: os.stat_result | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        self.path = paths.join(self.names)
        self.name = to_disk(self.names[len(self.names) - 1 - self.rest]) if self.names else "."

"""Entries of a tree as plans see them: what is at a path, and its facts. Values only."""

# Without `annotations` of `__future__`: NamedTuple compiles each that is a text, and the first takes 0.7 ms
# of every start that looks at a file.
from collections.abc import Collection
from typing import Literal, NamedTuple

FILE, DIRECTORY, LINK, OTHER = "file", "directory", "link", "other"
SET_ID = 0o6000  # the bits of a mode that let a program run as its owner or group


class Stat(NamedTuple):
    """Facts about an entry. Times are POSIX seconds, sizes bytes; None if the store does not report a value.

    `identity` is a text that differs whenever the entry may have been replaced or may have other content.
    """

    kind: str
    size: int | None = None
    modified: float | None = None
    accessed: float | None = None
    mode: int | None = None
    links: int = 1
    target: str | None = None
    identity: str = ""


class FileNames(NamedTuple):
    """Names of the files in one directory. `text` has each between slashes, so one search in it tells whether
    any begins or ends with something.
    """

    names: Collection[str]
    text: str

    @classmethod
    def of(cls, names: Collection[str]) -> "FileNames":
        """Return these names with their text."""
        return cls(names, f"/{'/'.join(names)}/")

    def has(self, name: str) -> bool:
        """Whether a file has this name."""
        return f"/{name}/" in self.text


class Entry(NamedTuple):
    """One entry of a tree: its canonical workspace-relative path and its facts."""

    path: str
    stat: Stat

    @property
    def name(self) -> str:
        """The last name of the entry's path."""
        return self.path.rpartition("/")[2]


# What a call needs of a path besides its stat: the content of a file, the names in a directory, everything
# below a directory, or everything below an entry that the call deletes or moves. Of an object and a directory
# of one name, "names" and "entries" take the directory, all others the object.
LooksFor = Literal["", "content", "names", "entries", "tree"]


class Place(NamedTuple):
    """A resolved path argument.

    `named` is the normalised argument, `real` the canonical path that it leads to; `stat` is None if nothing
    exists there. `link`: the last name is a link, whether or not it was followed.
    """

    argument: str
    named: str
    real: str
    stat: Stat | None
    link: bool = False

    @property
    def kind(self) -> str | None:
        """The kind of what exists there; None if nothing does."""
        return self.stat.kind if self.stat else None

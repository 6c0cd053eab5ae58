"""Moves among a command's differences: what went at one path and came with the same content at another.

A directory is one move if everything in it is the same. Only what has one possible partner is paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.commands.comparison import Created, Differences
from ringfence.toolkit.plan.changes import DIRECTORY, EXECUTABLE, FILE, LINK, Entry, Move, Stat
from ringfence.toolkit.plan.content import sha256

Digest = Callable[[str, Stat], str]
_Partners = dict[str, tuple[list[str], list[str]]]
_MANY = 64  # from this many directories with the same content on, none is looked at
IsDiscarded = Callable[[str, bool], bool]


def moves(found: Differences, digest: Digest, is_discarded: IsDiscarded) -> list[Move]:
    """Return the moves. `digest` returns that of a file of the workspace; what is discarded moves along."""
    if not found.deletions or not (found.created or found.links):
        return []
    pairing = _Pairing(found, digest, is_discarded)
    return [*pairing.directories(), *pairing.files(), *pairing.links()]


class _Pairing:
    def __init__(self, found: Differences, digest: Digest, is_discarded: IsDiscarded) -> None:
        self._found = found
        self._digest = digest
        self._is_discarded = is_discarded
        self._stats: dict[str, Stat] = {}
        self._children: dict[str, list[str]] = {}
        for deleted in found.deletions.values():
            for entry in (Entry(deleted.path, deleted.stat), *deleted.entries):
                self._stats[entry.path] = entry.stat
                self._children.setdefault(paths.parent(entry.path), []).append(entry.path)
        self._made: dict[str, list[str]] = {}
        for path in (*found.directories, *found.created, *found.links):
            self._made.setdefault(paths.parent(path), []).append(path)
        self._shapes: dict[Any, int] = {}
        self._contents: dict[str, str] = {}
        self._taken: set[str] = set()  # tops of sources and destinations that are paired already

    # -------------------------------------------------------------- directories

    def directories(self) -> Iterator[Move]:
        if not self._found.directories:
            return
        shapes = self._deleted_shapes()
        deleted, made = self._by_shape(shapes), self._by_shape(self._made_shapes())
        partners: dict[int, _Partners] = {}
        # Outermost first: what is below a pair moves along with it.
        for old in sorted(shapes, key=paths.parts):
            shape = shapes[old]
            if shape not in made or self._is_taken(old):
                continue
            if shape not in partners:
                partners[shape] = self._partners(deleted[shape], made[shape])
            sources, targets = partners[shape][self._contents_of_deleted(old)]
            if not targets or len(sources) + len(targets) > _MANY:
                continue
            targets = self._left(targets)
            if len(targets) == 1 and self._left(sources) == [old]:
                self._taken |= {old, targets[0]}
                yield Move(old, targets[0], self._stats[old], entries=tuple(self._below(old)))

    def _partners(self, deleted: list[str], made: list[str]) -> _Partners:
        """Return directories of one shape by their contents: those that went, and those that came."""
        found: _Partners = {}
        for path in self._left(deleted):
            found.setdefault(self._contents_of_deleted(path), ([], []))[0].append(path)
        for path in self._left(made):
            found.setdefault(self._contents_of_made(path), ([], []))[1].append(path)
        return found

    def _by_shape(self, shapes: dict[str, int]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for path, shape in shapes.items():
            found.setdefault(shape, []).append(path)
        return found

    def _left(self, known: list[str]) -> list[str]:
        return [path for path in known if not self._is_taken(path)]

    def _is_taken(self, path: str) -> bool:
        return path in self._taken or any(above in self._taken for above in paths.above(path))

    def _deleted_shapes(self) -> dict[str, int]:
        """Return a number for each directory that went; those with the same entries have the same one."""
        shapes: dict[str, int] = {}
        below: dict[str, list[tuple[str, int]]] = {}
        for path in sorted(self._stats, key=paths.parts, reverse=True):
            stat = self._stats[path]
            directory = stat.kind == DIRECTORY
            if directory:
                shape = self._shape(tuple(sorted(below.pop(path, []))))
                shapes[path] = shape
            else:
                mode = (stat.mode or 0) & EXECUTABLE
                key = (stat.kind, stat.size, mode) if stat.kind == FILE else (stat.kind, stat.target)
                shape = self._shape(key)
            if not self._is_discarded(path, directory):
                below.setdefault(paths.parent(path), []).append((path.rpartition("/")[2], shape))
        return self._not_empty(shapes)

    def _made_shapes(self) -> dict[str, int]:
        """Return the same numbers for each directory that came."""
        shapes: dict[str, int] = {}
        found = self._found
        for path in sorted(found.directories, key=paths.parts, reverse=True):
            inner = []
            for child in self._made.get(path, ()):
                if child in found.directories:
                    shape = shapes[child]
                elif child in found.links:
                    shape = self._shape((LINK, found.links[child].target))
                else:
                    effect = found.created[child].effect
                    shape = self._shape((FILE, effect.size, effect.mode & EXECUTABLE))
                inner.append((child.rpartition("/")[2], shape))
            shapes[path] = self._shape(tuple(sorted(inner)))
        return self._not_empty(shapes)

    def _shape(self, key: Any) -> int:
        return self._shapes.setdefault(key, len(self._shapes))

    def _not_empty(self, shapes: dict[str, int]) -> dict[str, int]:
        empty = self._shapes.get(())
        return {path: shape for path, shape in shapes.items() if shape != empty}

    def _contents_of_deleted(self, path: str) -> str:
        """Return a digest of all files below a directory, in an order that its shape alone decides."""
        if path not in self._contents:
            files = (
                (entry.path, self._digest(*entry))
                for entry in self._below(path)
                if entry.stat.kind == FILE and not self._is_discarded(entry.path, False)
            )
            self._contents[path] = _digest_of(files)
        return self._contents[path]

    def _contents_of_made(self, path: str) -> str:
        files, todo = [], [path]
        while todo:
            for child in self._made.get(todo.pop(), ()):
                if child in self._found.directories:
                    todo.append(child)
                elif child in self._found.created:
                    files.append((child, self._found.created[child].digest()))
        return _digest_of(files)

    def _below(self, path: str) -> Iterator[Entry]:
        todo = list(reversed(self._children.get(path, [])))
        while todo:
            child = todo.pop()
            yield Entry(child, self._stats[child])
            todo += reversed(self._children.get(child, []))

    # ------------------------------------------------------------ files and links

    def files(self) -> Iterator[Move]:
        deleted = {
            p: s for p, s in self._stats.items() if s.kind == FILE and s.size and not self._is_taken(p)
        }
        made = {p: c for p, c in self._found.created.items() if c.effect.size and not self._is_taken(p)}
        sizes = {stat.size for stat in deleted.values()} & {new.effect.size for new in made.values()}
        sources = _grouped((self._digest(p, s), p) for p, s in deleted.items() if s.size in sizes)
        targets = _grouped((new.digest(), p) for p, new in made.items() if new.effect.size in sizes)
        for key in sources.keys() & targets.keys():
            (old, *others), (new, *more) = sources[key], targets[key]
            if not others and not more and _same_mode(self._stats[old], made[new]):
                self._taken |= {old, new}
                yield Move(old, new, self._stats[old])

    def links(self) -> Iterator[Move]:
        """Pair links that kept their name and target; a target that stays may lead anywhere."""
        deleted = [p for p, s in self._stats.items() if s.kind == LINK and not self._is_taken(p)]
        made = [p for p in self._found.links if not self._is_taken(p)]
        sources = _grouped(((p.rpartition("/")[2], self._stats[p].target), p) for p in deleted)
        targets = _grouped(((p.rpartition("/")[2], self._found.links[p].target), p) for p in made)
        for key in sources.keys() & targets.keys():
            (old, *others), (new, *more) = sources[key], targets[key]
            if not others and not more and old != new:
                self._taken |= {old, new}
                yield Move(old, new, self._stats[old])


def _digest_of(files: Iterable[tuple[str, str]]) -> str:
    ordered = sorted(files, key=lambda file: paths.parts(file[0]))
    return sha256("".join(digest for _, digest in ordered).encode())


def _grouped(pairs: Iterable[tuple[Any, str]]) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for key, path in pairs:
        found.setdefault(key, []).append(path)
    return found


def _same_mode(stat: Stat, new: Created) -> bool:
    return not ((stat.mode or 0) ^ new.effect.mode) & EXECUTABLE

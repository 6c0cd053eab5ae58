"""Patterns of grants: which paths a pattern matches, and which patterns are the narrowest for given paths.

Pure. Patterns are written and matched as in a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ringfence.policy.invisible_characters import is_invisible

MOST_LISTED = 5  # paths that one pattern lists one by one
_ANY_NAMES = ("a1/q7", "Z_9/W_", "é/ü")  # a pattern that matches all of these leaves out few names


def literal(path: str) -> str:
    """Return the pattern that matches this path and everything below it."""
    return "/" + escaped(path)


def escaped(text: str) -> str:
    """Return text as a pattern in which every character stands for itself."""
    return "".join(f"[{c}]" if c in "*?[{}" else c for c in text)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether the pattern matches a path. Raises ValueError for an invalid
    pattern.

    Paths are matched as files, so a pattern for directories only matches the paths in them.
    """
    from ringfence.policy.patterns.matcher import Matcher
    from ringfence.policy.patterns.syntax import PatternError

    try:
        machine = Matcher([pattern])
    except PatternError as error:
        raise ValueError(str(error)) from None

    def matches(path: str) -> bool:
        try:
            return machine.matches(path, path == ".")
        except ValueError:
            return False  # the text is no valid path

    return matches


def is_everything(pattern: str) -> bool:
    """Whether a pattern matches nearly every path, such as `*`, `**`, `/*`, `*/` or `**/?*`. An invalid
    pattern does not.
    """
    try:
        return all(map(matcher(pattern), _ANY_NAMES))
    except ValueError:
        return False


def narrowest(paths: Iterable[str]) -> tuple[str, ...]:
    """Return patterns that match all the paths, narrowest first; none if the paths cannot be written as a
    pattern.
    """
    known = list(dict.fromkeys(paths))
    outer = outermost(known)
    if not outer or not all(map(_can_be_written, outer)):
        return ()
    return tuple(found for found in dict.fromkeys(_candidates(outer, known)) if _fits(found, known))


def outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that lie in none of the others."""
    known = dict.fromkeys(paths)
    return [path for path in known if not any(above in known for above in _above(path))]


def _candidates(outer: list[str], known: list[str]) -> Iterator[str]:
    if len(outer) == 1:
        yield literal(outer[0])
    elif len(outer) <= MOST_LISTED and not any("," in path for path in outer):
        yield "/{" + ",".join(map(escaped, outer)) + "}"
    folders = {path.rpartition("/")[0] for path in outer}
    if len(folders) == 1 and len(outer) == len(known):  # not a directory together with its entries
        folder = folders.pop()
        endings = {_ending(path) for path in outer}
        if len(endings) == 1 and (ending := endings.pop()):
            yield (literal(folder) if folder else "") + f"/*{escaped(ending)}"
        folders = {folder}
    if common := _common(folders):
        yield literal(common) + "/"


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return "." + name.rpartition(".")[2] if "." in name[1:] else ""


def _common(folders: set[str]) -> str:
    """Return the deepest directory that contains all of these or is one of them; "" is the root."""
    parts = [folder.split("/") for folder in folders]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


def _can_be_written(path: str) -> bool:
    parts = path.split("/")
    return not (
        "\\" in path or any(map(is_invisible, path)) or any(part in ("", ".", "..") for part in parts)
    )


def _fits(pattern: str, paths: list[str]) -> bool:
    try:
        return all(map(matcher(pattern), paths))
    except ValueError:  # longer than a pattern may be
        return False


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path

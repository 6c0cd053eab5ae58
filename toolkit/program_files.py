"""Files of the running program: where it was loaded from, and how to start it without loading foreign code.

Reads the interpreter's settings and the environment only; opens no file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import ringfence

# The import path at the start, before `leave` removed entries: the next start has them again.
STARTED_WITH = tuple(sys.path)
COMMAND = "ringfence"

_PACKAGE = os.path.dirname(os.path.abspath(ringfence.__file__ or __file__))
# In a checkout the package holds links to these.
_LINKED = tuple(os.path.realpath(os.path.join(_PACKAGE, name)) for name in ("policy", "toolkit"))
# Python imports these by itself, before any program, from any folder of the import path.
_CUSTOM = ("sitecustomize.", "sitecustomize/", "usercustomize.", "usercustomize/")
_STARTED = (f"{COMMAND}/", f"{COMMAND}-start/")
_OF_A_PREFIX = ("bin", "lib", "lib64", "include", "pyvenv.cfg")


def trees(roots: tuple[str, ...]) -> Iterator[str]:
    """Yield the absolute paths that the program was loaded from; nothing in them may change.

    A folder that is one of the `roots` is left out, but not the packages of an environment in it.
    """
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    given: list[tuple[str, str]] = []
    for place in _absolute((*prefixes, *sys.path, *_others())):
        real = os.path.realpath(place)
        if any(within(root, place) or within(root, real) for root in roots):
            # At or above a root: only the names listed separately are protected.
            if place in prefixes and (place in roots or real in roots):
                yield from (os.path.join(place, name) for name in _OF_A_PREFIX)
        elif not any(within(place, one) and within(real, other) for one, other in given):
            given.append((place, real))
            yield place


def names() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield folders with the prefixes of names in them that the next start would run; each name is followed
    by a slash.
    """
    for entry in _absolute((*STARTED_WITH, *sys.path)):
        yield entry, _CUSTOM
    for folder in _path():
        yield folder, _STARTED


def leave(root: str) -> None:
    """Stop importing from the workspace, except packages that are installed in it.

    For the command, not for a program that embeds a session. A project may be on the import path (`pip
    install -e`) and an agent may write there: a file that it adds must not be imported as a module.
    """
    if not is_isolated():
        return
    import site

    real, library = os.path.realpath(root), os.path.dirname(os.__file__)
    users = (site.USER_SITE,) if site.ENABLE_USER_SITE and site.USER_SITE else ()
    places = (sys.prefix, sys.base_prefix, library, *site.getsitepackages(), *users)
    installed = [found for place in places if (found := os.path.realpath(place)) != real]
    sys.path[:] = [
        entry
        for entry in sys.path
        if not within(found := os.path.realpath(entry), real)
        or any(within(found, place) for place in installed)
        or os.path.dirname(found) == os.path.dirname(library)  # the archive `python311.zip`
    ]


def start() -> list[str] | None:
    """Return the command line that starts this program isolated, from any folder; None if that is impossible.

    `-I` leaves out packages of `pip install --user`, so such an installation is started without the
    environment's variables and the current folder, but with the user's packages.
    """
    from subprocess import run

    where = "import ringfence; print(ringfence.__file__)"
    for flags in (["-I"], ["-E", "-P"]):
        done = run([sys.executable, *flags, "-c", where], cwd="/", capture_output=True, check=False)
        if os.fsdecode(done.stdout.strip()) == os.path.join(_PACKAGE, "__init__.py"):
            return [sys.executable, *flags, "-m", "ringfence"]
    return None


def is_isolated() -> bool:
    """Whether this process was started so that it can import installed packages only."""
    return bool(sys.flags.ignore_environment and sys.flags.safe_path)


def within(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or lies below it; compares text only."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _path() -> Iterator[str]:
    """Yield the folders in which a shell searches for the command."""
    return _absolute(os.environ.get("PATH", "").split(os.pathsep))


def _absolute(places: Iterable[str]) -> Iterator[str]:
    """Yield each place once as an absolute path; nothing for a name in a missing current folder."""
    for place in dict.fromkeys(places):
        try:
            yield os.path.abspath(place)
        except FileNotFoundError:
            continue


def _others() -> Iterator[str]:
    """Yield our package, the command and its folder, the script, byte code, and the user's packages."""
    yield from (_PACKAGE, *_LINKED)
    yield os.path.dirname(sys.executable or "/")
    script = sys.argv[0] if sys.argv else ""
    if os.path.basename(script).startswith(COMMAND):
        yield os.path.dirname(script)
    yield from (found for folder in _path() if os.path.lexists(found := os.path.join(folder, COMMAND)))
    if running := getattr(sys.modules.get("__main__"), "__file__", None):
        yield running
    if sys.pycache_prefix:
        yield sys.pycache_prefix
    site = sys.modules.get("site")
    if site is not None and site.ENABLE_USER_SITE and site.USER_SITE:
        yield site.USER_SITE

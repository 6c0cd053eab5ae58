"""Policies of a git revision, together with the files that they extend.

Reads names and contents from git, each by its exact name, and changes nothing in the repository.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ringfence.policy import Policy
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.project_root import POLICY_FILE

_FILES, _LINK = ("100644", "100755"), "120000"
_YAML = (".yaml", ".yml")


def load_revision(revision: str, path: str) -> Policy:
    """The policy REV:path; as with git the path starts at the top of the repository, with `./` here.

    Raises UsageError if there is no such revision or file, PolicyError if the policy does not load.
    """
    if not revision or revision.startswith("-"):
        raise UsageError(f"{revision}:{path}: neither a file nor a revision of git")
    if path.startswith("./"):
        path = os.path.relpath(Path.cwd().resolve() / path, top_folder())
    with checkout(revision) as folder:
        if not (folder / path).is_file() or not _is_inside(folder / path, folder):
            raise UsageError(f"{revision} has no policy {path}")
        return Policy.load(folder / path)


def top_folder() -> Path:
    """The top directory of the repository of the current directory. Raises UsageError outside one."""
    return Path(os.fsdecode(_git("rev-parse", "--show-toplevel")).rstrip("\n"))


def policy_files() -> list[str]:
    """The policies of the work tree that git does not ignore, by path from the repository's top."""
    listed = _git("-C", str(top_folder()), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    return sorted(name for name in names if is_policy(name) and (top_folder() / name).is_file())


def is_policy(path: str) -> bool:
    """Whether a path has the name of a workspace's policy."""
    return PurePosixPath(path).name == POLICY_FILE


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A temporary folder with the YAML files and the links of a revision; no link in it leads out of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        links = []
        for path, content, is_link in _entries(revision):
            place = folder / path
            if os.path.realpath(place.parent) != str(place.parent) or os.path.lexists(place):
                continue  # a tree that no git writes: it would lead through a link
            place.parent.mkdir(parents=True, exist_ok=True)
            if is_link:
                place.symlink_to(os.fsdecode(content))
                links.append(place)
            else:
                place.write_bytes(content)
        for place in links:
            # Links lead through one another, so where one leads is known only now.
            if not _is_inside(place, folder):
                place.unlink()
        yield folder


def _is_inside(place: Path, folder: Path) -> bool:
    if place.is_symlink() and place.readlink().is_absolute():
        return False
    return Path(os.path.realpath(place)).is_relative_to(folder)


def _entries(revision: str) -> list[tuple[str, bytes, bool]]:
    """Path, content, and whether it is a link, of each YAML file and link; files come before links."""
    listed = _git("-C", str(top_folder()), "ls-tree", "-r", "-z", revision).split(b"\0")
    wanted: list[tuple[bool, str, str]] = []
    for row in filter(None, listed):
        facts, _, raw = row.partition(b"\t")
        mode, _, name = facts.decode("ascii").split(" ", 2)
        path = os.fsdecode(raw)
        if {"..", ".git", ""} & set(PurePosixPath(path).parts) or path.startswith("/"):
            continue
        if mode == _LINK or (mode in _FILES and path.endswith(_YAML)):
            wanted.append((mode == _LINK, path, name))
    wanted.sort()
    contents = _contents([name for _, _, name in wanted])
    return [(path, content, link) for (link, path, _), content in zip(wanted, contents, strict=True)]


def _contents(names: list[str]) -> Iterator[bytes]:
    """The contents of these objects, in order."""
    answer = _git(
        "-C", str(top_folder()), "cat-file", "--batch", given="".join(f"{name}\n" for name in names)
    )
    at = 0
    for _ in names:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split(b" ")[2])
        yield answer[end + 1 : end + 1 + size]
        at = end + size + 2


def _git(*arguments: str, given: str = "") -> bytes:
    # No name is a pattern, whatever is in it.
    environment = {**os.environ, "GIT_LITERAL_PATHSPECS": "1"}
    try:
        done = subprocess.run(
            ["git", *arguments], input=given.encode("ascii"), capture_output=True, check=True, env=environment
        )
    except FileNotFoundError:
        raise UsageError("git is not installed") from None
    except subprocess.CalledProcessError as error:
        raise UsageError(f"git: {error.stderr.decode(errors='replace').strip()}") from None
    return done.stdout

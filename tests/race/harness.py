"""The race: a process swaps names without pause while the tools' own operations run, and escapes are counted.

What is attacked is the local backend by the steps that a call takes: resolve, judge, look, act. The naive
ways are attacked by the same harness, to show that it finds what there is to find.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Delete, Entry, Move
from ringfence.toolkit.storage.local import Local
from ringfence.toolkit.workspace.workspace import Workspace

INSIDE, OUTSIDE = b"INSIDE", b"OUTSIDE-SECRET"
HERE = Path(__file__).parent


@dataclass(slots=True)
class Count:
    """What came of the tries: escapes are reads of what lies outside; changes there are found afterwards."""

    tries: int = 0
    done: int = 0
    refused: int = 0
    escapes: int = 0
    codes: dict[str, int] = field(default_factory=dict)


def attacker(folder: Path) -> list[str]:
    """The command of the attacker: compiled where there is a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    program = folder / "attacker"
    if compiler and not program.exists():
        subprocess.run([compiler, "-O2", "-o", program, HERE / "attacker.c"], check=True)
    return [str(program)] if compiler else [sys.executable, str(HERE / "attacker.py")]


@contextlib.contextmanager
def swapping(command: list[str], first: Path, second: Path) -> Iterator[None]:
    process = subprocess.Popen([*command, str(first), str(second)])
    try:
        time.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()


class Arena:
    """A root with `dir` and a link beside it that leads out (or to `secrets/`), and what lies there."""

    def __init__(self, base: Path, *, relative: bool, denied: bool = False) -> None:
        self.base = base
        self.root = base / "root"
        self.outside = self.root / "secrets" if denied else base / "outside"
        (self.root / "dir").mkdir(parents=True)
        self.outside.mkdir(parents=True, exist_ok=True)
        target = os.path.relpath(self.outside, self.root) if relative else str(self.outside)
        (self.root / "link").symlink_to(target)
        (self.root / "file").write_bytes(INSIDE)
        (self.root / "filelink").symlink_to(f"{target}/f")
        for folder, content in ((self.root / "dir", INSIDE), (self.outside, OUTSIDE)):
            (folder / "f").write_bytes(content)
            for name in ("tree", "tree/sub"):
                (folder / name).mkdir()
            (folder / "tree/sub/g").write_bytes(content)
        (self.outside / "MARK").write_bytes(b"")
        self.before = self.picture()

    def picture(self) -> dict[str, Any]:
        """Everything outside, so that any change there shows."""
        found: dict[str, Any] = {}
        for place, folders, files in os.walk(self.outside):
            for name in folders + files:
                path = os.path.join(place, name)
                info = os.lstat(path)
                found[path] = (info.st_mode, info.st_ino, info.st_mtime_ns, info.st_size)
        return found

    def changes_outside(self) -> int:
        now = self.picture()
        return sum(now.get(path) != self.before.get(path) for path in now.keys() | self.before.keys())


class Ours:
    """The operations as a session makes them, on spots of the local backend; `root` is a path or a URL."""

    def __init__(self, root: Path | str, judge: Callable[[str], bool] = lambda path: True) -> None:
        opened = Workspace(str(root), durable=False).backend
        assert isinstance(opened, Local), "a directory of this machine is confined however it is named"
        self.local = opened
        self.judge = judge
        self._number = 0

    def close(self) -> None:
        self.local.close()

    @contextlib.contextmanager
    def _spot(self, path: str, *, follow: bool = True) -> Iterator[Any]:
        spot = self.local.resolve(paths.parts(path), follow=follow)
        try:
            if not (self.judge(path) and self.judge(spot.path)):
                raise CallError("denied_by_policy", "no")
            yield spot
        finally:
            self.local.release(spot)

    def _temporary(self) -> str:
        self._number += 1
        return f".ringfence-{self._number}"

    def read(self, path: str) -> bytes:
        with self._spot(path) as spot:
            return self.local.read(spot)

    def stat(self, path: str) -> int:
        with self._spot(path) as spot:
            found = self.local.stat(spot)
            return int(found.identity.partition(":")[0]) if found else 0

    def list(self, path: str) -> list[str]:
        with self._spot(path) as spot, self.local.folder(spot) as folder:
            return [name for name, _ in folder.scan()]

    def create(self, path: str) -> None:
        with self._spot(path) as spot:
            self.local.check(spot)
            self.local.create(spot, INSIDE, None, self._temporary())

    def overwrite(self, path: str) -> None:
        with self._spot(path) as spot:
            stat = self.local.stat(spot)
            if stat is None:
                raise CallError("not_found", "nothing there")
            before = self.local.read(spot)
            assert before == INSIDE, "what is overwritten or edited was read from outside"
            self.local.check(spot)
            self.local.replace(spot, INSIDE, stat, None, self._temporary())

    edit = overwrite

    def move(self, source: str, destination: str) -> None:
        with self._spot(source, follow=False) as old, self._spot(destination, follow=False) as new:
            stat = self.local.stat(old)
            if stat is None:
                raise CallError("not_found", "nothing there")
            self.local.check(old)
            self.local.check(new)
            self.local.move(old, new, Move(old.path, new.path, stat))

    def delete(self, path: str) -> None:
        with self._spot(path, follow=False) as spot:
            stat = self.local.stat(spot)
            if stat is None:
                raise CallError("not_found", "nothing there")
            entries = tuple(self._tree(spot, spot.path)) if stat.kind == DIRECTORY else ()
            self.local.check(spot)
            for _ in self.local.remove(spot, Delete(spot.path, stat, entries), self._temporary()):
                pass

    def _tree(self, spot: Any, path: str) -> Iterator[Entry]:
        with self.local.folder(spot) as folder:
            for name, stat in folder.scan():
                yield Entry(f"{path}/{name}", stat)
                if stat.kind == DIRECTORY:
                    yield from self._tree(folder.spot(name), f"{path}/{name}")


class ByName:
    """How it is often done: `realpath`, compare with the root, then open by name."""

    def __init__(self, root: Path, judge: Callable[[str], bool] = lambda path: True) -> None:
        self.root = os.path.realpath(root)
        self.judge = judge

    def close(self) -> None:
        pass

    def _checked(self, path: str) -> str:
        real = os.path.realpath(os.path.join(self.root, path))
        if os.path.commonpath([real, self.root]) != self.root:
            raise CallError("outside_root", "no")
        if not self.judge(os.path.relpath(real, self.root)):
            raise CallError("denied_by_policy", "no")
        return os.path.join(self.root, path)

    def read(self, path: str) -> bytes:
        with open(self._checked(path), "rb") as file:
            return file.read()

    def stat(self, path: str) -> int:
        return os.stat(self._checked(path)).st_ino

    def list(self, path: str) -> list[str]:
        return os.listdir(self._checked(path))

    def create(self, path: str) -> None:
        with open(self._checked(path), "xb") as file:
            file.write(INSIDE)

    def overwrite(self, path: str) -> None:
        with open(self._checked(path), "wb") as file:
            file.write(INSIDE)

    edit = overwrite

    def move(self, source: str, destination: str) -> None:
        os.rename(self._checked(source), self._checked(destination))

    def delete(self, path: str) -> None:
        real = self._checked(path)
        shutil.rmtree(real) if os.path.isdir(real) else os.unlink(real)


class ByText(ByName):
    """The root kept by the kernel, but the policy asked about the text of the path alone."""

    def _checked(self, path: str) -> str:
        if not self.judge(path):
            raise CallError("denied_by_policy", "no")
        return os.path.join(self.root, path)


OPERATIONS = ("create", "overwrite", "read", "list", "stat", "edit", "move", "delete", "tree")
LAST = ("overwrite", "read", "stat", "edit")  # with a file swapped for a link to a file


def attack(ways: Any, arena: Arena, command: list[str], operation: str, tries: int, *, last: bool) -> Count:
    """Run one operation `tries` times while the names are swapped, or longer, until both sides were met."""
    first, second = ("file", "filelink") if last else ("dir", "link")
    secret = os.stat(arena.outside / "f").st_ino
    count = Count()
    at = "file" if last else "dir/f"
    with swapping(command, arena.root / first, arena.root / second):
        for n in range(60 * tries):
            if n >= tries and ((count.done and count.refused) or count.escapes):
                break
            count.tries = n + 1
            try:
                match operation:
                    case "create":
                        ways.create(f"dir/n{n}")
                    case "overwrite" | "edit":
                        getattr(ways, operation)(at)
                    case "read":
                        count.escapes += ways.read(at) not in (INSIDE, b"")
                    case "list":
                        count.escapes += "MARK" in ways.list("dir")
                    case "stat":
                        count.escapes += ways.stat(at) == secret
                    case "move":
                        ways.create(f"m{n}")
                        ways.move(f"m{n}", f"dir/m{n}")
                    case "delete":
                        ways.create(f"dir/d{n}")
                        ways.delete(f"dir/d{n}")
                    case "tree":
                        _plant(arena.root / "dir", n)
                        ways.delete("dir/tree" if n % 2 else f"dir/t{n}")
                count.done += 1
            except (CallError, OSError) as error:
                count.refused += 1
                code = error.code if isinstance(error, CallError) else str(error.errno)
                count.codes[code] = count.codes.get(code, 0) + 1
    if last and operation in ("overwrite", "edit") and not count.done:
        # What is looked at again just before it is replaced seldom comes through while names are swapped all
        # the time; once they are left alone it has to.
        _put_back(arena.root / first, arena.root / second)
        getattr(ways, operation)(at)
        count.done += 1
    count.escapes += arena.changes_outside()
    return count


def _put_back(file: Path, link: Path) -> None:
    if file.is_symlink():
        aside = file.with_name("aside")
        file.rename(aside)
        link.rename(file)
        aside.rename(link)


def _plant(folder: Path, n: int) -> None:
    """A tree to delete, made on a descriptor of the real directory: the harness itself never escapes."""
    try:
        fd = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        for name in (f"t{n}", "tree", "tree/sub"):
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.mkdir(name, dir_fd=fd)
        with contextlib.suppress(FileNotFoundError):
            os.close(os.open("tree/sub/g", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
            os.close(os.open(f"t{n}/x", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    finally:
        os.close(fd)

"""The wheel in an environment that every user can read, and workspaces that hold hostile modules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
NEEDED = (
    *("PyYAML", "jsonschema", "referencing", "fsspec", "platformdirs", "rich", "shtab"),
    *("starlette", "uvicorn", "jinja2", "pygments", "pytest"),
)
POLICY = 'version: 1\nrules: {read: {"*": allow, "secret/**": deny}, write: {"*": allow}, delete: ask}\n'
# Ours, what Python itself imports at its start, what we import, and what we would import if it were there.
MODULES = (
    *("policy/__init__", "policy/engine", "toolkit/__init__", "toolkit/cli/__init__", "toolkit/testing"),
    *("ringfence/__init__", "ringfence/__main__", "ringfence/policy/__init__", "ringfence/toolkit/__init__"),
    *("sitecustomize", "usercustomize", "encodings/__init__", "site", "os", "json"),
    *("re", "sqlite3", "argparse", "yaml", "rich/__init__", "fsspec/__init__", "jsonschema/__init__"),
    *("fqdn", "idna", "uvloop", "httptools", "uvicorn", "jinja2", "_pytest/__init__", "conftest"),
)


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it, in a folder that can be read by everybody."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    @property
    def site(self) -> Path:
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder / "venv")}))


@pytest.fixture(scope="session")
def installed() -> Iterator[Installed]:
    pytest.importorskip("hatchling", reason="builds the wheel")
    folder = Path(tempfile.mkdtemp(prefix="ringfence-installed-"))
    found = Installed(folder)
    try:
        build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        (wheel,) = folder.glob("*.whl")
        pip = [str(found.bin / "python"), "-I", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True, cwd="/")
        for needed in closure(NEEDED):
            copy(needed, found.site)
        (found.bin / "pytest").write_text(
            f"#!{found.bin}/python\nimport sys, pytest\nsys.exit(pytest.main())\n", encoding="utf-8"
        )
        for place in (folder, *folder.rglob("*")):
            if not place.is_symlink():
                place.chmod(0o755 if place.is_dir() or place.parent == found.bin else 0o644)
        yield found
    finally:
        shutil.rmtree(folder)


def closure(names: Sequence[str]) -> Iterator[Distribution]:
    """Distributions of this environment and all that they need."""
    todo, seen = list(names), set[str]()
    while todo:
        name = todo.pop()
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform or Python
        yield found
        needs = [each for each in found.requires or () if "extra" not in each.partition(";")[2]]
        todo += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needs]


def copy(found: Distribution, site: Path) -> None:
    for file in found.files or ():
        if file.parts[0] != ".." and file.suffix != ".pth" and file.suffix != ".pyc":
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)


@dataclass(frozen=True)
class Hostile:
    """A workspace with hostile modules in it, and one user who starts programs there."""

    installed: Installed
    folder: Path
    as_user: tuple[str, ...]

    @property
    def root(self) -> Path:
        return self.folder / "work"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.installed.bin}:/usr/bin:/bin",
            "PYTHONPATH": f".:{self.root}:",
            "HOME": str(self.folder / "home"),
            "LC_ALL": "C.UTF-8",
        }

    def command(self, words: Sequence[str]) -> list[str]:
        return [*self.as_user, *words]

    def run(self, *words: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(words),
            input=given,
            cwd=self.root,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=100,
        )

    def imported(self) -> list[str]:
        """The hostile modules that were run so far."""
        return sorted(path.name for path in (self.folder / "marks").iterdir())

    def plant(self, module: str) -> None:
        """A module that leaves a mark when it is imported, and that ends the process then."""
        mark = self.folder / "marks" / module.replace("/", ".")
        file = self.root / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"import posix; posix.close(posix.open({str(mark)!r}, 65, 0o666))\n", encoding="utf-8"
        )

    def hand_over(self) -> None:
        if self.as_user:
            for place in (self.folder, *self.folder.rglob("*")):
                os.chown(place, NOBODY, NOBODY)


@pytest.fixture(params=["ordinary", "root"])
def user(request: pytest.FixtureRequest, installed: Installed) -> tuple[str, ...]:
    """The words in front of a command that make it the user's."""
    if os.geteuid() != 0:
        if request.param == "root":
            pytest.skip("only root can start a program as root")
        return ()
    if request.param == "root":
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv to start a program as somebody else")
    words = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    # The interpreter may lie in root's home: then the user may read everything, and no more than others do.
    reads = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    for more in ((), reads):
        probe = [*words, *more, "sh", "-c", 'exec "$0" -c ""', str(installed.bin / "python")]
        if subprocess.run(probe, capture_output=True).returncode == 0:
            return (*words, *more)
    pytest.skip("this Python cannot be read by an ordinary user")


@pytest.fixture
def workspace(installed: Installed, user: tuple[str, ...]) -> Iterator[Callable[..., Hostile]]:
    """Makes a workspace that holds some hostile modules; its folder is not below one of root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="ringfence-hostile-"))
    folder.chmod(0o755)
    for name in ("marks", "home", "work/src", "work/secret"):
        (folder / name).mkdir(parents=True)

    def make(modules: Sequence[str] = MODULES) -> Hostile:
        hostile = Hostile(installed, folder, user)
        for module in modules:
            hostile.plant(module)
        (hostile.root / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
        (hostile.root / "src" / "a.txt").write_text("alpha\n", encoding="utf-8")
        (hostile.root / "secret" / "key").write_text("k\n", encoding="utf-8")
        (hostile.root / "x.pth").write_text("import sitecustomize\n", encoding="utf-8")
        hostile.hand_over()
        return hostile

    yield make
    shutil.rmtree(folder)

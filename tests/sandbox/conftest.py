"""A place outside the private directories, and drivers that run commands as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.sandbox import levels

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = 54321  # a user id without an account, which owns nothing else
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable

Driver = Callable[..., dict[str, Any]]


def root_of_places() -> str:
    """A directory that no private directory of a sandbox covers, and that an ordinary user may enter."""
    return "/var/lib" if os.geteuid() == 0 else str(Path.home())


@pytest.fixture(scope="session")
def overlay_works() -> None:
    """Skip, with the reason, where the machine allows no sandbox of the highest level."""
    report = levels(root_of_places())[0]
    if not report.works:
        pytest.skip(f"level overlay does not work here: {report.missing}; {report.hint}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with an empty `workspace` and an empty `scratch`."""
    made = Path(os.path.realpath(tempfile.mkdtemp(prefix="ringfence-test-", dir=root_of_places())))
    (made / "workspace").mkdir()
    (made / "scratch").mkdir(mode=0o700)
    yield made
    shutil.rmtree(made)


def users() -> list[str]:
    return ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"]


@pytest.fixture(scope="session")
def library() -> Iterator[Path]:
    """A copy of the sandbox that everybody may read, below packages without the rest of Ringfence."""
    made = Path(tempfile.mkdtemp(prefix="ringfence-library-", dir=root_of_places()))
    made.chmod(0o755)
    package = made / "ringfence" / "toolkit"
    package.mkdir(parents=True)
    for above in (package.parent, package):
        (above / "__init__.py").touch()
    shutil.copytree(
        ROOT / "toolkit" / "sandbox", package / "sandbox", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(Path(__file__).with_name("driver.py"), made / "driver.py")
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session", params=users())
def user(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def identity(user: str) -> dict[str, Any]:
    """What makes a subprocess one of the user."""
    return (
        {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}
        if os.geteuid() == 0 and user != "root"
        else {}
    )


@pytest.fixture(scope="session")
def driver(user: str, library: Path, overlay_works: None) -> Iterator[Driver]:
    """A function that runs one Spec, given by its fields, and returns the fields of what came of it."""
    home = library / f"home-{user}"
    (home / ".ssh").mkdir(parents=True, exist_ok=True)  # set up again where the tests are mixed
    (home / ".ssh" / "id").write_text("private")
    if identity(user):
        for path in (home, home / ".ssh", home / ".ssh" / "id"):
            os.chown(path, ORDINARY, ORDINARY)
    process = subprocess.Popen(
        [PYTHON, "-I", "-S", str(library / "driver.py"), str(library)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd="/",
        **identity(user),
    )
    assert process.stdin and process.stdout
    written, read = process.stdin, process.stdout

    def ask(**spec: Any) -> dict[str, Any]:
        written.write(json.dumps({"spec": spec}).encode() + b"\n")
        written.flush()
        answer: dict[str, Any] = json.loads(read.readline())
        return answer

    ask.home = str(home)  # type: ignore[attr-defined] # for the tests that look into it
    yield ask
    written.close()
    read.close()
    assert process.wait(30) == 0

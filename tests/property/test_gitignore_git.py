"""Rules of `.gitignore` files against git itself: which names `git check-ignore` ignores.

Each example has a directory of its own in one repository, with a `.gitignore` in it and one further down.
out: what git alone reads differently (a class across a slash, two stars after other characters of a name),
and characters of several bytes, which git counts by the byte.
"""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ringfence.toolkit.gitignore_rules import GITIGNORE, Applied, GitignoreRules, is_ignored

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is what this compares with")

TREE = [
    "a", "b/", "ab", "a.b/", "b/a", "b/ab", "b/b/", "b/b/a", "b/b/b/", "b/b/b/ab", "b/-", "a.b/a", "a.b/ba/",
    "a.b/ba/a", "A", "ba/", "ba/ab/", "ba/ab/b", "x y", "x ", "#", "!a", "]", "-", "[", "a*", "a\\", "1",
]  # fmt: skip
ATOMS = [
    "a", "b", "a", "b", ".", "*", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b]", "[a-b]", "[]-]", "[!]a]",
    "[a",
    "[b-a]", "[[:alpha:]]", "[[:digit:]x]", "[[:no:]]", "[\\]a]", "[\\a-b]", "[a-]", "[[:]", "-", "A", "]",
    " ",
    "\\", "\\a", "\\*", "!", "#",
]  # fmt: skip
FOLDER = "b"  # has a file of its own
LEFT_OUT = re.compile(r"[^/*]\*\*|\*\*[^/*]|\[[^\]]*/")


def line(chance: random.Random) -> str:
    while True:
        body = "".join(chance.choices(ATOMS, k=chance.randint(1, 5)))
        made = ("!" if chance.random() < 0.25 else "") + body + ("/" if chance.random() < 0.15 else "")
        if not LEFT_OUT.search(made):
            return made


def made_up(seed: int, count: int) -> list[tuple[str, str]]:
    chance = random.Random(seed)

    def file() -> str:
        return "".join(
            line(chance) + chance.choice(["\n", "\n", "\r\n"]) for _ in range(chance.randint(1, 3))
        )

    return [(file(), file()) for _ in range(count)]


def git_ignores(root: Path, files: list[tuple[str, str]]) -> set[str]:
    subprocess.run(["git", "init", "-q", str(root)], check=True, timeout=60)
    for number, (outer, inner) in enumerate(files):
        place = root / f"p{number}"
        for path in TREE:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).mkdir(exist_ok=True) if path.endswith("/") else (place / path).touch()
        (place / GITIGNORE).write_bytes(outer.encode())
        (place / FOLDER / GITIGNORE).write_bytes(inner.encode())
    asked = [f"p{number}/{path.removesuffix('/')}" for number in range(len(files)) for path in TREE]
    done = subprocess.run(
        ["git", "-c", "core.ignorecase=false", "-c", "core.excludesFile=/dev/null", "check-ignore",
         "--no-index", "-z", "--stdin"],
        input="\0".join(asked).encode(), capture_output=True, cwd=root, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    return {path for path in done.stdout.decode().split("\0") if path}


def ours(number: int, outer: str, inner: str) -> set[str]:
    top = f"p{number}"
    rules: Applied = [(top, GitignoreRules(outer))]
    nested: Applied = [(f"{top}/{FOLDER}", GitignoreRules(inner)), *rules]
    found: set[str] = set()
    for each in TREE:  # parents first
        path = f"{top}/{each.removesuffix('/')}"
        applied = nested if path.startswith(f"{top}/{FOLDER}/") else rules
        if path.rpartition("/")[0] in found or is_ignored(applied, path, each.endswith("/")):
            found.add(path)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_git_ignores_the_same_names(tmp_path: Path, seed: int) -> None:
    files = made_up(seed, 120)
    expected = git_ignores(tmp_path, files)
    got = set[str]().union(*(ours(number, *texts) for number, texts in enumerate(files)))
    assert expected, "some names are ignored"
    wrong = [(files[int(path[1:].partition("/")[0])], path, path in expected) for path in expected ^ got]
    assert wrong == []

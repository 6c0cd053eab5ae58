"""Patterns against git itself: a match is what `git check-ignore` says for that one pattern.

Many patterns share one repository: each has a directory of its own with a .gitignore of one line, over the
same small tree, so that one run of git answers thousands of pairs. The tree is real, for patterns that match
directories only. Left out: what only one side knows (braces, a leading ./, `!`, `\\`), and characters of
several bytes beside `?` and classes, which git counts by the byte.
"""

import itertools
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ringfence.policy.lint.suspicious_patterns import suspects
from ringfence.policy.patterns.matcher import matches
from ringfence.policy.patterns.syntax import PatternError, parse

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is what this compares with")

NAMES = ["a", "b", "ab", "a.b", ".a", "A", "ba", "a]", "-", "[", "é", "aé", "x y", "#", "@b", "]"]
TREE = [
    "a", "b/", "ab", "a.b/", ".a/", "b/a", "b/ab", "b/b/", "b/b/a", "b/b/b/", "b/b/b/ab", "b/-", "a.b/a",
    "a.b/a.b",
    "a.b/ba/", "a.b/ba/a", ".a/.a", ".a/b/", ".a/b/a]", "A", "ba/", "ba/[", "ba/ab/", "ba/ab/é", "aé",
    "é/", "é/a",
    "x y", "#", "@b/", "@b/1", "]", "-", "a]/", "a]/b/", "a]/b/a",
]  # fmt: skip
ATOMS = [
    "a",
    "b",
    ".",
    "*",
    "**",
    "?",
    "/",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-b]",
    "[]-]",
    "[!]a]",
    "-",
    "A",
    "]",
    "é",
    " ",
]


def tree_holds(root: Path) -> None:
    for path in TREE:
        place = root / path
        if path.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()


def git_says(root: Path, patterns: list[str]) -> dict[tuple[int, str], bool]:
    """Ask git once about every pattern and every path of the tree."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for number, pattern in enumerate(patterns):
        place = root / f"p{number}"
        place.mkdir()
        tree_holds(place)
        (place / ".gitignore").write_text(pattern + "\n", encoding="utf-8")
    # Without the slash: git looks at the tree to see what is a directory, and takes a slash for a name below.
    asked = [f"p{number}/{path.removesuffix('/')}" for number in range(len(patterns)) for path in TREE]
    done = subprocess.run(
        ["git", "-c", "core.ignorecase=false", "-c", "core.excludesFile=/dev/null", "check-ignore",
         "--no-index", "-z", "--stdin", "-v", "-n"],
        input="\0".join(asked).encode(), capture_output=True, cwd=root, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    fields = done.stdout.decode().split("\0")[:-1]
    answers = {fields[at + 3]: bool(fields[at + 2]) for at in range(0, len(fields), 4)}
    return {
        (number, path): answers[f"p{number}/{path.removesuffix('/')}"]
        for number in range(len(patterns))
        for path in TREE
    }


def git_crosses(pattern: str) -> list[str]:
    """What `**` and a slash after literal text stand for in git alone, which matches without that text.

    So `a**/b` is `a*/**/b` there, and by the same token `ab`.
    """
    glued = re.fullmatch(r"([^*?\[]*[^*?\[/])\*{2,}/(.+)", pattern)
    if not glued:
        return []
    text, rest = glued.groups()
    front = text if "/" in text else f"/{text}"  # with a slash in it the pattern is tied to the root
    return [f"{front}*/**/{rest}", f"{front}{rest}", *git_crosses(f"{front}{rest}")]


def differences(root: Path, patterns: list[str]) -> list[tuple[str, str, bool]]:
    said = git_says(root, patterns)
    return [
        (pattern, path, said[number, path])
        for (number, pattern), path in itertools.product(enumerate(patterns), TREE)
        if (path.isascii() or not set(pattern) & set("?["))
        and any(
            matches(each, path.removesuffix("/"), path.endswith("/"))
            for each in (pattern, *git_crosses(pattern))
        )
        is not said[number, path]
    ]


def readable(pattern: str) -> bool:
    try:
        parse(pattern)
    except PatternError:
        return False
    # git takes a line that begins with # as a comment and cuts blanks at the end
    if pattern.startswith(("#", "./")) or pattern.endswith(" ") or "{" in pattern or "}" in pattern:
        return False
    return pattern.isascii() or not set(pattern) & set("?[")  # git counts bytes there


def made_up(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        if chance.random() < 0.5:
            pattern = "".join(chance.choices(ATOMS, k=chance.randint(1, 6)))
        else:
            segments = [
                chance.choice(
                    ["**", "*", "?", chance.choice(NAMES), "".join(chance.choices(ATOMS[:4], k=2)), "b", "a"]
                )
                for _ in range(chance.randint(1, 4))
            ]
            pattern = chance.choice(["", "", "/"]) + "/".join(segments) + chance.choice(["", "", "/", "/**"])
        if readable(pattern):
            found[pattern] = None
    return list(found)


@pytest.mark.parametrize("seed", range(4))
def test_matches_as_git_does(seed: int, tmp_path: Path) -> None:
    assert differences(tmp_path, made_up(seed, 300)) == []


def test_matches_as_git_does_where_it_is_known_to_be_hard(tmp_path: Path) -> None:
    patterns = [
        "**", "*", "/**", "**/", "/*", "*/", "**/**", "**/*", "*/**", "a/**/", "**/a/**", "b/**/a", "b/**",
        "/b/**/",
        "b/**/**", "**/b/**/b", "a**", "**a", "b/**a", "***", "b/***/a", "[]]", "[]-]", "[!]]", "[a-]",
        "[--b]",
        "[^^]", "?", "??", "a?b", "b/", "b/b/", "/b", "b/a", "*.b", "a.*", "*a*", "[[]", "a]", "*b*/",
        "*/b/*",
    ]  # fmt: skip
    assert differences(tmp_path, patterns) == []


def test_stars_glued_to_a_name_are_one_star_and_git_itself_makes_more_of_some(tmp_path: Path) -> None:
    patterns = [
        "a**/b", "b**/a", "b**/ab", "/b**", "b**/", "x/a**", "b/b**/a", "a.b**/a", "b***/a", "***/a",
        "b**b/a", "*b**/a", "**b/a", "b/**b", "b/a**", "/b**/a", "b**/**/a", "b**/*", "?**/a", "b/b**",
        "b/b**/", "***", ".a**/a]", "b****/a", "b**a", "b**/b/**", "b/***", "[b]**/a",
    ]  # fmt: skip
    assert differences(tmp_path, patterns) == []
    crossing = [pattern for pattern in patterns if git_crosses(pattern)]
    assert [pattern for pattern in crossing if "pattern-glued-stars" not in suspects(pattern)] == []
    assert crossing[:3] == ["a**/b", "b**/a", "b**/ab"]
    # The same text without what git makes of it: one star, as its manual says.
    assert not matches("b**/a", "b/b/a")
    assert matches("b**/a", "ba/a")

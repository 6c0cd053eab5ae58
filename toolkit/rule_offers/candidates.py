"""Candidates for a rule: patterns from narrow to wide, and the keys that they can stand below.

Pure. Whether a candidate answers the request, and whether it is safe, is found out elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringfence.policy.commands import patterns as word_patterns
from ringfence.policy.commands.needs import judged
from ringfence.policy.commands.patterns import WordPattern
from ringfence.policy.model import RUN, Need, kinds_of
from ringfence.policy.patterns.syntax import PatternError
from ringfence.toolkit.grant_patterns import escaped, is_everything, literal, outermost

NARROW, FOLDER, KIND = "narrow", "folder", "kind"
WIDTHS = (NARROW, FOLDER, KIND)
WORDS = {NARROW: "this file", FOLDER: "this folder", KIND: "this kind of file"}
COMMAND_WORDS = {
    NARROW: "this command",
    FOLDER: "this subcommand, with any arguments",
    KIND: "this program, with any arguments",
}
MOST_PATHS = 5  # paths that one rule names one by one
# Programs that run other commands or code from their arguments: a rule for all their arguments allows all.
RUNS_OTHERS = frozenset(
    (
        "ash", "bash", "busybox", "chroot", "command", "dash", "doas", "env", "eval", "exec", "find", "fish",
        "ksh", "make", "nice", "node", "nohup", "npx", "parallel", "perl", "php", "python", "python3", "ruby",
        "sh", "ssh", "stdbuf", "su", "sudo", "time", "timeout", "uvx", "watch", "xargs", "zsh",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """Patterns of one width, and the keys to try for them, the narrowest first."""

    width: str
    words: str
    patterns: tuple[str, ...]
    keys: tuple[str, ...]


def candidates(tool: str, asks: Sequence[Need], rule_patterns: Sequence[str | None] = ()) -> list[Candidate]:
    """Return the candidates for a tool and its needs that ask; `rule_patterns`: of the rules that ask.

    None for trees that are deleted, for tasks, and for what no pattern can name.
    """
    if all(need.action == RUN for need in asks):
        return list(_distinct(_for_commands(asks))) if asks else []
    if any(need.action == RUN or (need.action == "delete" and need.directory) for need in asks):
        return []
    paths = list(dict.fromkeys(need.path for need in asks))
    if not all(map(_can_be_written, paths)):
        return []
    keys = _keys(tool, asks)
    return list(_distinct(Candidate(*each, keys) for each in _for_paths(paths, rule_patterns)))


def _distinct(found: Iterator[Candidate]) -> Iterator[Candidate]:
    seen: set[tuple[str, ...]] = set()
    for each in found:
        if each.patterns not in seen:
            seen.add(each.patterns)
            yield each


def _keys(tool: str, asks: Sequence[Need]) -> tuple[str, ...]:
    """Return the keys that such needs can be ruled by, the narrowest first.

    A tool that writes in several ways is wider than the one way that is asked about.
    """
    names = list(dict.fromkeys(need.name for need in asks))
    found = [tool]
    if len(names) == 1 and "." in names[0] and len(kinds_of(tool)) > 1:
        found.insert(0, names[0])
    if len(names) == 1:
        found.append(names[0])
    return tuple(dict.fromkeys(found))


def _for_paths(
    paths: list[str], rule_patterns: Sequence[str | None]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    outer = outermost(paths)
    if len(outer) <= MOST_PATHS:
        name = WORDS[NARROW] if len(outer) == 1 else "these files"
        yield NARROW, name, tuple(literal(path) for path in outer)
    folder = _common([path.rpartition("/")[0] for path in paths])
    if folder:
        yield FOLDER, WORDS[FOLDER], (f"{literal(folder)}/*",)
    endings = {_ending(path) for path in paths}
    if len(endings) == 1 and (ending := endings.pop()):
        base = _common([folder, *(_fixed(pattern) for pattern in rule_patterns)]) if rule_patterns else ""
        pattern = f"{literal(base)}/**/*{escaped(ending)}" if base else f"*{escaped(ending)}"
        if not is_everything(pattern):
            yield KIND, WORDS[KIND], (pattern,)


def _for_commands(asks: Sequence[Need]) -> Iterator[Candidate]:
    lines = [judged(need.path) for need in asks]
    if any(
        len(each) != 1 or each[0] is None or any(type(word) is not str for word in each[0]) for each in lines
    ):
        return  # only a rule for every command matches such a line
    commands = [tuple(map(str, each[0] or ())) for each in lines]
    for width, size in ((NARROW, None), (FOLDER, 2), (KIND, 1)):
        if size is not None and any(_runs_others(words) or len(words) < size for words in commands):
            continue
        texts = [word_patterns.text_of(WordPattern(words[:size], size is not None)) for words in commands]
        if all(map(_is_pattern, texts)):
            yield Candidate(width, COMMAND_WORDS[width], tuple(dict.fromkeys(texts)), (RUN,))


def _runs_others(words: tuple[str, ...]) -> bool:
    return words[0].rpartition("/")[2] in RUNS_OTHERS


def _is_pattern(text: str) -> bool:
    try:
        word_patterns.parse(text)
    except PatternError:
        return False
    return True


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return "." + name.rpartition(".")[2] if "." in name[1:] and not name.endswith(".") else ""


def _fixed(pattern: str | None) -> str:
    """Return the folder that a rule's pattern is about: its names before the first wildcard."""
    names = (pattern or "").removeprefix("./").removeprefix("/").split("/")
    if len(names) == 1:
        return ""
    fixed = []
    for name in names[:-1]:
        if set(name) & set("*?[{"):
            break
        fixed.append(name)
    return "/".join(fixed)


def _common(folders: Sequence[str]) -> str:
    """Return the deepest folder that is one of these or contains them; "" is the root."""
    shared: list[str] = []
    for names in zip(*(folder.split("/") for folder in folders), strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


def _can_be_written(path: str) -> bool:
    from ringfence.policy.patterns.syntax import parse

    if path in ("", ".") or path.partition("/")[0] == "@tasks":
        return False
    try:
        parse(literal(path))
    except PatternError:
        return False
    return True

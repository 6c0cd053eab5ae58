"""A policy's rules as one map of the OpenCode fork, in which the longest pattern decides, at any position.

A star there crosses slashes, and two stars mean the same as one: extra stars raise a pattern's precedence. A
rule that cannot be expressed exactly covers more paths if it denies or asks, and is left out if it allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ringfence.policy.model import Effect
from ringfence.policy.patterns.syntax import ANY_NAME, CROSS, Branch, Name, parse
from ringfence.toolkit.formats.flatten import widens
from ringfence.toolkit.formats.model import FormatError, Left, tightened

Rules = list[tuple[str, Effect]]


def longest_decides(
    rules: Sequence[tuple[str, Effect]], root: str, action: str
) -> tuple[dict[str, str], list[Left]]:
    """Return the map for rules of which the last match decides, and what it cannot express exactly."""
    left: list[Left] = []
    prefix = root.rstrip("/") + "/"
    if "*" in prefix or "\\" in prefix:
        raise FormatError("the workspace's path has a star or a backslash in it, which no pattern can have")
    start = max((at for at, (pattern, _) in enumerate(rules) if pattern == "*"), default=-1)
    base = rules[start][1] if start >= 0 else Effect.ASK
    written: Rules = []
    for pattern, effect in rules[start + 1 :]:
        for branch in parse(pattern).branches:
            written = _with(written, branch, effect, base, prefix)
            if _wider(branch, effect):
                why = (
                    "it would allow more there; left out"
                    if effect is Effect.ALLOW
                    else "applied to more paths"
                )
                left.append(Left(action, f"{pattern}: {effect}", why))
    found: dict[str, Effect] = {}
    for text, effect in written:
        _place(found, text, effect, action, left)
    return {"*": str(base), **{text: str(effect) for text, effect in found.items()}}, left


def _wider(branch: Branch, effect: Effect) -> bool:
    """Whether a branch would match more there: a star within names, or a directory's own name as a file's."""
    return widens(branch) or _is_special(branch) or (branch.directory and effect is not Effect.ALLOW)


def _with(written: Rules, branch: Branch, effect: Effect, base: Effect, prefix: str) -> Rules:
    """Return the rules with one more branch, which opens nothing that they and the base deny."""
    texts = [prefix + text for text in _texts(branch, effect)]
    if not _wider(branch, effect) or effect is Effect.DENY:
        return written + [(text, effect) for text in texts]
    if effect is Effect.ALLOW:
        return written
    if base is Effect.DENY:
        return written + [(text, Effect.DENY) for text in texts]
    return tightened(written, [(text, effect) for text in texts], lambda rule: rule[1])


def _place(found: dict[str, Effect], text: str, effect: Effect, action: str, left: list[Left]) -> None:
    """Add a pattern that takes precedence over the existing ones with another effect."""
    rivals = [each for each, other in found.items() if other is not effect and _meet(each, text)]
    key, folder = text, text.removesuffix("/*")
    while key in rivals or any(_rank(each) > _rank(key) for each in rivals):
        at = key.rfind("*") if "*" in key else len(key)
        key = f"{key[:at]}*{key[at:]}"
    if key != text and "*" not in text:
        if effect is Effect.ALLOW:
            left.append(Left(action, f"{text}: {effect}", "a longer pattern decides there; left out"))
            return
        left.append(Left(action, f"{text}: {effect}", "denied for all that begins so"))
        effect = Effect.DENY
    found[key] = effect
    if key != text and folder != text and "*" not in folder:
        # Only a pattern that ends in "/*" also matches the folder itself.
        _place(found, folder, effect, action, left)


def _rank(pattern: str) -> tuple[int, str]:
    return len(pattern), pattern


def _meet(one: str, other: str) -> bool:
    """Whether two patterns may match the same path, by their literal prefixes and suffixes."""
    starts = sorted((one.partition("*")[0], other.partition("*")[0]), key=len)
    if "*" in one and "*" in other:
        ends = sorted((one.rpartition("*")[2], other.rpartition("*")[2]), key=len)
        return starts[1].startswith(starts[0]) and ends[1].endswith(ends[0])
    return starts[1].startswith(starts[0])


def _texts(branch: Branch, effect: Effect) -> list[str]:
    """Return the patterns of a branch and everything below it.

    An allow does not include a directory itself.
    """
    out: list[str] = []
    for text in _crossing(branch):
        last = branch.segments[-1]
        if branch.directory and effect is Effect.ALLOW:
            out.append(f"{text}/**")
        elif last == ANY_NAME:
            out.append(f"{text}*")  # "x/*" alone would also match x itself
        elif text.endswith("*"):
            out.append(text)
        else:
            out += [text, f"{text}/*"] if "*" in text else [f"{text}/*"]
    return list(dict.fromkeys(out))


def _crossing(branch: Branch) -> list[str]:
    """Return the branch where a star crosses slashes: `**/` is nothing, or a star and a slash."""
    options: list[tuple[str, ...]] = []
    for at, segment in enumerate(branch.segments):
        if segment is CROSS:
            continue
        name = _name(segment)
        slash = "/" if at > 1 or (at == 1 and branch.segments[0] is not CROSS) else ""
        crossed = at > 0 and branch.segments[at - 1] is CROSS
        options.append((slash + name, f"{slash}*/{name}") if crossed and name[0] != "*" else (slash + name,))
    return ["".join(picked) for picked in itertools.product(*options)]


def _name(name: Name) -> str:
    runs = [
        "".join("*" if not isinstance(atom, str) or set("*\\") & set(atom) else atom for atom in piece)
        for piece in name.pieces
    ]
    return "*".join(runs)


def _is_special(branch: Branch) -> bool:
    """Whether a name contains a literal star or backslash, which this syntax cannot express."""
    return any(
        isinstance(atom, str) and bool(set("*\\") & set(atom))
        for segment in branch.segments
        if segment is not CROSS
        for piece in segment.pieces
        for atom in piece
    )

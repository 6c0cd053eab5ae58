"""Each tool's own rules once more, written from its documentation with `re`, as judges of single paths.

Share nothing with `toolkit.formats`: they get the settings as data and answer for one path.
"""

from __future__ import annotations

import re
from typing import Any

Verdict = str


def crossing(pattern: str, path: str, *, question: bool = True) -> bool:
    """A wildcard whose star takes slashes, on the whole path."""
    parts = [
        ".*" if c == "*" else "." if c == "?" and question else re.escape(c)
        for c in pattern.replace("\\", "/")
    ]
    expression = "".join(parts)
    if question and expression.endswith("\\ .*"):
        expression = expression[:-4] + "(\\ .*)?"
    return re.fullmatch(expression, path, re.DOTALL) is not None


def opencode(rules: list[tuple[str, str, str]], action: str, path: str) -> Verdict:
    """(action, resource, effect) in order: the last that matches."""
    for named, resource, effect in reversed(rules):
        if crossing(named, action) and crossing(resource, path):
            return effect
    return "ask"


OPENCODE_STARTS = [
    ("*", "*", "allow"),
    ("read", "*", "allow"),
    ("read", "*.env", "ask"),
    ("read", "*.env.*", "ask"),
    ("read", "*.env.example", "allow"),
]


def opencode_map(permission: Any) -> list[tuple[str, str, str]]:
    """The older form as rules."""
    if isinstance(permission, str):
        return [("*", "*", permission)]
    rules = []
    for action, said in permission.items():
        for resource, effect in ({"*": said} if isinstance(said, str) else said).items():
            rules.append((action, resource, effect))
    return rules


def fork(agent: dict[str, Any], everybody: dict[str, Any], tool: str, path: str) -> Verdict:
    """The agent's key, everybody's, the agent's `*`, everybody's `*`; the longest pattern of a map."""
    for maps, key in ((agent, tool), (everybody, tool), (agent, "*"), (everybody, "*")):
        said = _longest(maps.get(key), path)
        if said:
            return said
    return "allow" if tool == "read" else "ask"


def _longest(value: Any, path: str) -> Verdict | None:
    if value is None or isinstance(value, str):
        return value
    fitting = [p for p in value if p != "*" and (crossing(p, path, question=False) or p == f"{path}/*")]
    chosen = max(fitting, key=lambda p: (len(p), p), default="*")
    found: Verdict | None = value.get(chosen)
    return found


def gitignored(pattern: str, path: str) -> bool:
    """Whether a .gitignore pattern, seen from its anchor, matches a path or a folder above it."""
    folder = pattern.endswith("/")
    body = pattern.rstrip("/")
    anchored = "/" in body
    expression = _gitignore_regex(body.removeprefix("/"))
    names = path.split("/")
    for end in range(1, len(names) + 1):
        if end == len(names) and folder:
            continue
        starts = [0] if anchored else range(end)
        for start in starts:
            if (anchored or start == end - 1) and re.fullmatch(expression, "/".join(names[start:end])):
                return True
    return False


def _gitignore_regex(body: str) -> str:
    parts = body.split("/")
    out = ""
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            out += ".+" if last else "(?:[^/]+/)*"
            continue
        out += re.sub(r"\\\*+", "[^/]*", re.escape(part)).replace("\\?", "[^/]")
        out += "" if last else "/"
    return out


def claude(permissions: dict[str, list[str]], tool: str, path: str, *, never_asks: bool = False) -> Verdict:
    """Deny, then ask, then allow; what may not be read may not be edited."""
    asks = "deny" if never_asks else "ask"
    tools = {"read": ("Read",), "create_file": ("Edit", "Write")}.get(tool, ("Edit",))
    for effect in ("deny", "ask", "allow"):
        for rule in permissions.get(effect, ()):
            match = re.fullmatch(r"(\w+)(?:\((.*)\))?", rule)
            assert match
            named = match[1] in tools or (match[1] == "Read" and effect == "deny")
            if named and (match[2] is None or _claude_fits(match[2], effect, path)):
                return asks if effect == "ask" else effect
    return "allow" if tool == "read" else asks


def _claude_fits(what: str, effect: str, path: str) -> bool:
    if effect != "allow" and re.fullmatch(r"[^/*?]+/\*\*", what):
        what = f"**/{what}"
    if what.startswith("./"):
        what = what[1:]
    return gitignored(what, path)

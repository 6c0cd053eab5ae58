"""Each tool's own rules once more, written from its documentation with `re`, as judges of single paths.

Share nothing with `ringfence.toolkit.formats`: they get the settings as data and answer for one path.
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
        out += "".join(map(_gitignore_piece, re.findall(r"\\.|\[[^\]]+\]|.", part)))
        out += "" if last else "/"
    return out


def _gitignore_piece(piece: str) -> str:
    """A class as the library `ignore` has it: nothing negates it, and a star in it is no star."""
    if piece[0] == "[" and len(piece) > 1:
        return (
            "[" + re.sub(r"([\\\]\[^!&~|])", r"\\\1", piece[1:-1]) + "]"
            if not set(piece) & set("*?")
            else "(?!)"
        )
    return {"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece.removeprefix("\\") or piece))


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


def claude_settings(settings: dict[str, Any], tool: str, path: str) -> Verdict:
    """With the keys that change what a prompt becomes; a denial for `*` is one for every tool."""
    permissions = settings.get("permissions", {})
    mode = permissions.get("defaultMode")
    if mode == "plan" and tool != "read":
        return "deny"
    never = (
        mode == "dontAsk"
        or settings.get("denyInsteadOfPrompting")
        or permissions.get("denyInsteadOfPrompting")
    )
    named = {
        effect: [
            each
            for rule in permissions.get(effect, ())
            for each in (["Read", "Edit"] if rule == "*" and effect != "allow" else [rule])
            if re.fullmatch(r"(Read|Edit|Write)(\([^!].*\))?", each) and not each.startswith("Write(")
        ]
        for effect in ("allow", "ask", "deny")
    }
    if mode in ("acceptEdits", "bypassPermissions") and "Edit" not in named["allow"]:
        named["allow"].append("Edit")
    return claude(named, tool, path, never_asks=bool(never))


def opencode_settings(settings: dict[str, Any], agent: str, tool: str, path: str) -> Verdict:
    """The older form: rules of everybody, then the agent's; a tool that is off is denied."""
    rules = OPENCODE_STARTS + opencode_map(settings.get("permission", {}))
    levels = [settings.get("tools", {})]
    for key in ("mode", "agent"):
        own = settings.get(key, {}).get(agent, {})
        rules = rules + opencode_map(own.get("permission", {}))
        levels.insert(0, own.get("tools", {}))
    theirs = {"read": "read", "create_file": "write", "edit_file": "edit", "delete": "edit"}[tool]
    for level in levels:
        if theirs in level:
            if not level[theirs]:
                return "deny"
            break
        if "*" in level:
            if not level["*"]:
                return "deny"
            break
    return opencode(rules, "read" if tool == "read" else "edit", path)


def fork_settings(settings: dict[str, Any], agent: str, tool: str, path: str) -> Verdict:
    """Its rules, and what an agent's `tools` turns off."""
    permission = settings.get("permission", {})
    own = settings.get("agents", {}).get(agent, {})
    theirs = {"read": "read", "create_file": "write", "edit_file": "edit", "delete": "delete"}[tool]
    if own.get("tools", {}).get(theirs) is False:
        return "deny"
    return fork(own.get("permission", {}), permission.get("rules", {}), theirs, path)


def gemini_reads(expression: str) -> bool:
    """Gemini CLI's own check (`isSafeRegExp`): it ignores a rule whose expression does not pass."""
    return len(expression) <= 2048 and not re.search(r"\([^)]*[*+?{].*\)[*+?{]", expression)


def gemini(rules: list[dict[str, Any]], agent: str, called: str, path: str, conditions: bool) -> Verdict:
    """The highest priority, of equals the first; `conditions`: whether those beside the path hold."""
    import json

    arguments = json.dumps({"file_path": path}, separators=(",", ":"), ensure_ascii=False)
    for rule in sorted(rules, key=lambda rule: -int(rule["priority"])):
        tools = rule.get("toolName", "*")
        if not {"*", called} & set([tools] if isinstance(tools, str) else tools):
            continue
        if rule.get("subagent", agent) != agent or "default" not in rule.get("modes", ["default"]):
            continue
        if "commandPrefix" in rule or ("interactive" in rule and not conditions):
            continue
        pattern = rule.get("argsPattern")
        if pattern is None or re.search(str(pattern), arguments):
            return {"ask_user": "ask"}.get(str(rule["decision"]), str(rule["decision"]))
    return "allow" if called == "read_file" else "ask"


Entry = tuple[str, str]  # a path of a profile, and its access


def codex(entries: list[Entry], approval: str, action: str, path: str) -> Verdict:
    """A deny at or above a path, then a glob, then the deepest entry; what does not get through is asked."""
    asks = "deny" if approval == "never" else "ask"
    fitting = [(name, access) for name, access in entries if _codex_fits(name, path)]
    if any(access in ("deny", "none") for _, access in fitting):
        return "deny"
    globs = [access for name, access in fitting if "*" in name.removesuffix("/**") and access != "write"]
    deepest = max(
        (
            (_depth(name), access == "write", access)
            for name, access in fitting
            if "*" not in name.removesuffix("/**")
        ),
        default=(0, False, "nothing"),
    )[2]
    access = globs[0] if globs else deepest
    if access == "nothing":
        return asks
    if action == "read":
        return "allow"
    return ("ask" if approval == "untrusted" else "allow") if access == "write" else asks


def _depth(name: str) -> int:
    return 0 if name in (".", "/") else 1 + name.removesuffix("/**").strip("/").count("/")


def _codex_fits(name: str, path: str) -> bool:
    return name in (".", "/") or gitignored("/" + name.removesuffix("/**"), path)


def ignored(lines: list[str], path: str) -> Verdict:
    """As npm's `ignore`: no notice of case, the last line that matches; below an ignored directory all is."""
    names = path.lower().split("/")
    for end in range(1, len(names) + 1):
        here, last, said = "/".join(names[:end]), end == len(names), False
        for line in lines:
            body = line.removeprefix("!").lower()
            if not body or (body.endswith("/") and last):
                continue
            expression = _gitignore_regex(body.strip("/") if body.endswith("/") else body.removeprefix("/"))
            seen = here if "/" in body.rstrip("/") else names[end - 1]
            if re.fullmatch(expression, seen):
                said = not line.startswith("!")
        if said:
            return "deny"
    return "ask"


def owned(text: str, path: str, *, classes: bool) -> bool:
    """Whether a CODEOWNERS file names an owner for a path: in any section, the last line that matches.

    `classes`: brackets are a class (GitLab) or characters (GitHub). GitHub has no sections: what looks like
    the head of one has no effect there.
    """
    sections: dict[str, bool] = {}
    name, everybody = "", False
    for line in text.splitlines():
        words = []
        for word in re.findall(r"(?:\\.|\S)+", line):
            if word[0] == "#":
                break
            words.append(word)
        head = re.match(r"\^?\[([^\]]+)\](\[\d+\])?(?=\s|$)", line)
        if head:
            if classes:
                name, everybody = head[1].lower(), "@" in line
            continue
        if words and not words[0].startswith("!"):
            body = words[0].replace("\\ ", " ")
            if _owns(body, path, classes):
                sections[name] = len(words) > 1 or everybody
    return any(sections.values())


def _owns(pattern: str, path: str, classes: bool) -> bool:
    """A path or a folder above it; a star at the end is of one name only, `/**` of what is inside."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/")
    parts = [re.escape(part).replace("\\*", "[^/]*").replace("\\?", "[^/]") for part in body.split("/")]
    if classes:
        parts = [re.sub(r"\\\[(\w+)\\\]", r"[\1]", part) for part in parts]
    stars = ["(?:.+/)?" if part == "[^/]*[^/]*" else part + "/" for part in parts]
    if anchored and parts[-1] == "[^/]*[^/]*":
        stars[-1] = ".+/"
    expression = ("" if anchored else "(?:.+/)?") + "".join(stars)
    below = "" if anchored and body.endswith("/*") else ".+" if pattern.endswith("/") else "(?:.+)?"
    return re.fullmatch(expression + below, path + "/") is not None


Prefix = tuple[list[str | list[str]], str]  # the words of a rule, each one of some, and its decision


def prefix_rules(rules: list[Prefix], command: list[str]) -> str:
    """Codex's rules for commands: of all rules whose words a command begins with, the strictest."""
    said = ["nothing"]
    for words, decision in rules:
        begins = zip(words, command, strict=False)
        if len(command) >= len(words) and all(
            it in ([word] if isinstance(word, str) else word) for word, it in begins
        ):
            said.append(decision)
    return max(said, key=["nothing", "allow", "prompt", "forbidden"].index)

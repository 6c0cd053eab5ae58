"""Random settings of each tool: an import says the same as the tool, but where it says that it does not."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.policy.model import Effect
from ringfence.toolkit.formats.equivalence import Comparison, compare, judge
from ringfence.toolkit.formats.model import FormatError, Imported, Setting
from ringfence.toolkit.formats.registry import FORMATS
from ringfence.toolkit.formats.yaml_writer import policy_text
from tests.formats import judges

EFFECTS = st.sampled_from(["allow", "ask", "deny"])
NAMES = st.sampled_from(["a", "b", "ab", "a.b", ".env", "A", "a b"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
FLAT = st.lists(
    st.sampled_from(["a", "b", ".", "*", "/", "?", "/*", "*/", " *"]), min_size=1, max_size=6
).map("".join)
SEGMENT = st.sampled_from(["a", "b", "*", "a*", "*.b", "**", "?", "ab", ".env", "*b*"])
GIT = st.builds(
    lambda start, names, end: start + "/".join(names) + end,
    st.sampled_from(["", "/", ""]),
    st.lists(SEGMENT, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
Own = Callable[[str, str, str], str]  # agent, their tool, path -> verdict


def imported(name: str, text: str, setting: Setting | None = None) -> tuple[Imported, Policy, Comparison]:
    found = FORMATS[name].read(text, setting or Setting())
    policy = Policy.loads(policy_text(found, "test"))
    return found, policy, compare(found.subjects, policy)


# Every path of up to four of these characters.
EVERY_PATH = [
    "".join(letters)
    for length in range(1, 5)
    for letters in itertools.product("ab./", repeat=length)
    if all(part.strip(".") for part in "".join(letters).split("/"))
]


def hold(
    name: str, text: str, paths: list[str], own: Own, setting: Setting | None = None, *, looser: bool = False
) -> None:
    """The tool's own judge against the policy, and both against what the comparison says."""
    found, policy, compared = imported(name, text, setting)
    assert not compared.undecided
    if not looser:
        assert not [each for each in compared.found if each.looser]
        for subject in found.subjects:
            for path in EVERY_PATH:
                theirs = Effect[own(subject.agent, subject.tool, path).upper()]
                ours = policy.effect(subject.agent, subject.tool, subject.action, path)
                assert ours >= theirs or (subject.denies_only and theirs is not Effect.DENY), (subject, path)
    assert compare(found.subjects, policy, quick=False) == compared
    for subject in found.subjects:
        listed = {(d.source, d.result) for d in compared.found if d.subject == subject}
        for path in paths:
            theirs = Effect[own(subject.agent, subject.tool, path).upper()]
            assert judge(subject, path) is theirs, (subject, path)
            for directory in (False, True):
                ours = policy.effect(subject.agent, subject.tool, subject.action, path, directory)
                if subject.denies_only and ours is not Effect.DENY:
                    ours = Effect.ASK
                assert ours is theirs or (theirs, ours) in listed, (subject, path, theirs, ours)
    for each in compared.found:
        said = own(each.subject.agent, each.subject.tool, each.example.path)
        assert Effect[said.upper()] is each.source, each
        assert each.source is not each.result


MAP = st.one_of(EFFECTS, st.dictionaries(FLAT | st.just("*"), EFFECTS, max_size=4))
PERMISSION = st.one_of(
    EFFECTS, st.dictionaries(st.sampled_from(["read", "edit", "*", "e*"]), MAP, max_size=3)
)


@given(PERMISSION, st.none() | PERMISSION, st.lists(PATHS, max_size=12))
def test_opencode_map(everybody: object, own: object, paths: list[str]) -> None:
    settings: dict[str, object] = {"permission": everybody}
    if own is not None:
        settings["agent"] = {"coder": {"permission": own}}

    def says(agent: str, tool: str, path: str) -> str:
        rules = judges.OPENCODE_STARTS + judges.opencode_map(everybody)
        rules += judges.opencode_map(own) if agent == "coder" else []
        return judges.opencode(rules, "read" if tool == "read" else "edit", path)

    hold("opencode", json.dumps(settings), paths, says)


RULES = st.lists(
    st.tuples(st.sampled_from(["read", "edit", "*", "?ead"]), FLAT | st.just("*"), EFFECTS), max_size=6
)


@given(RULES, st.lists(PATHS, max_size=12))
def test_opencode_array(rules: list[tuple[str, str, str]], paths: list[str]) -> None:
    listed = [dict(zip(("action", "resource", "effect"), rule, strict=True)) for rule in rules]
    relative = [rule for rule in rules if not rule[1].startswith("/")]  # absolute ones: a test of their own

    def says(agent: str, tool: str, path: str) -> str:
        return judges.opencode(relative, "read" if tool == "read" else "edit", path)

    kept = [rule for rule in listed if not rule["resource"].startswith("/")]
    hold("opencode", json.dumps({"permissions": kept}), paths, says)


TOOL_MAPS = st.dictionaries(st.sampled_from(["*", "read", "write", "edit", "delete"]), MAP, max_size=4)
THEIRS = {
    "read": "read",
    "create_file": "write",
    "edit_file": "edit",
    "insert_at_line": "edit",
    "delete": "delete",
}


@pytest.mark.parametrize("absolute", [False, True])
@given(everybody=TOOL_MAPS, own=st.none() | TOOL_MAPS, paths=st.lists(PATHS, max_size=12))
@example(everybody={"*": {"*/*": "allow"}}, own=None, paths=["a", "a/b", "*"])
@example(everybody={"*": {"a*/*": "allow", "*": "deny"}}, own=None, paths=["a", "ab", "a*", "ab/c"])
@example(everybody={"*": {"/a/b/a*/*": "allow", "*": "deny"}}, own=None, paths=["a", "ab", "a*", "ab/c"])
def test_fork(
    absolute: bool, everybody: dict[str, object], own: dict[str, object] | None, paths: list[str]
) -> None:
    settings: dict[str, object] = {"permission": {"rules": everybody}}
    if own is not None:
        settings["agents"] = {"coder": {"permission": own}}

    def says(agent: str, tool: str, path: str) -> str:
        mine = own if agent == "coder" and own is not None else {}
        whole = f"/a/b/{path}" if absolute else path
        return judges.fork(mine, everybody, THEIRS[tool], whole)

    if not absolute and '"/' in json.dumps(settings):
        return  # from the file system's root, which no path of the workspace begins with
    hold("opencode-fork", json.dumps(settings), paths, says, Setting(root="/a/b", absolute=absolute))


CLAUDE = st.lists(
    st.builds(
        lambda tool, what: f"{tool}({what})" if what else tool,
        st.sampled_from(["Read", "Edit"]),
        st.none() | GIT,
    )
    | st.just("Write"),
    max_size=3,
)


@pytest.mark.parametrize("mode", ["default", "dontAsk"])
@given(allow=CLAUDE, ask=CLAUDE, deny=CLAUDE, paths=st.lists(PATHS, max_size=12))
@example(allow=["Read(a/**/)"], ask=[], deny=["Read(**/)"], paths=["a", "a/b", "a/b/a"])
@example(allow=["Write"], ask=["Edit(a)"], deny=["Edit(b)"], paths=["a", "b", "ab"])
def test_claude_code(mode: str, allow: list[str], ask: list[str], deny: list[str], paths: list[str]) -> None:
    permissions = {"allow": allow, "ask": ask, "deny": deny}

    def says(agent: str, tool: str, path: str) -> str:
        return judges.claude(permissions, tool, path, never_asks=mode == "dontAsk")

    text = json.dumps({"permissions": {**permissions, "defaultMode": mode}})
    hold("claude-code", text, paths, says)
    assert imported("claude-code", text)[2].none


IGNORED = st.lists(st.builds(lambda mark, line: mark + line, st.sampled_from(["", "", "!"]), GIT), max_size=4)


@given(IGNORED, st.lists(PATHS, max_size=12), st.booleans())
@example(lines=["**/", "!a/**/"], paths=["a", "a/b", "a/b/a"], exact_case=True)
@example(lines=["a/a", "**/a/a", "!a/a"], paths=["a/a/a"], exact_case=False)
@example(lines=["b", "*.b", "!a/b", "!a.b"], paths=["a.b/a.b", "a/b/a", "b/a.b"], exact_case=False)
def test_ignore_files(lines: list[str], paths: list[str], exact_case: bool) -> None:
    text = "\n".join(lines)

    def says(agent: str, tool: str, path: str) -> str:
        ignored = False
        names = path.split("/")
        for end in range(1, len(names) + 1):
            here, last = "/".join(names[:end]).lower(), end == len(names)
            for line in [*lines, ".clineignore"]:
                body = line.removeprefix("!").lower()
                if body.endswith("/") and last:
                    continue
                if _itself(body.rstrip("/") if body.endswith("/") else body, here):
                    ignored = not line.startswith("!")
            if ignored:
                return "deny"
        return "ask"

    hold("clineignore", text, paths, says, Setting(exact_case=exact_case), looser=exact_case)


def _itself(body: str, path: str) -> bool:
    """Whether a pattern matches a path and no folder above it."""
    import re

    expression = judges._gitignore_regex(body.removeprefix("/"))
    seen = path if "/" in body else path.rpartition("/")[2]
    return re.fullmatch(expression, seen) is not None


@given(st.lists(GIT, min_size=1, max_size=4), st.lists(PATHS, min_size=1, max_size=12))
def test_ignore_files_as_git_has_them(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], paths: list[str]
) -> None:
    folder = repository(tmp_path_factory)
    (folder / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = ["git", "-c", "core.ignorecase=true", "check-ignore", "--no-index", "--stdin", "-z"]
    done = subprocess.run(command, cwd=folder, input="\0".join(paths).encode(), capture_output=True)
    ignored = set(done.stdout.decode().split("\0"))
    found = FORMATS["clineignore"].read("\n".join(lines), Setting())
    for path in paths:
        said = judge(found.subjects[0], path)
        assert (said is Effect.DENY) is (path in ignored), (lines, path)


_REPOSITORY: list[Path] = []


def repository(factory: pytest.TempPathFactory) -> Path:
    if not _REPOSITORY or not _REPOSITORY[0].is_dir():
        _REPOSITORY[:] = [factory.mktemp("git")]
        subprocess.run(["git", "init", "-q", str(_REPOSITORY[0])], check=True)
    return _REPOSITORY[0]


VALUES = st.lists(
    st.sampled_from(
        ["a", "b", r"\.", "/", '[^"]*', "[^/]*", "(a|b/)", "(a/)?", "[a-b]", ".*", "[^/]", r"\d", "a?"]
    ),
    min_size=1,
    max_size=4,
).map("".join)
TOML = st.fixed_dictionaries(
    {
        "toolName": st.sampled_from(["read_file", "write_file", "replace", "*", "run_shell_command"]),
        "decision": st.sampled_from(["allow", "ask_user", "deny"]),
        "priority": st.integers(0, 5),
    },
    optional={
        "argsPattern": st.builds(lambda v, end: f'"file_path":"{v}{end}', VALUES, st.sampled_from(["", '"'])),
        "subagent": st.just("coder"),
    },
)


def _asks(value: str) -> list[dict[str, object]]:
    whole = {"toolName": "read_file", "decision": "ask_user", "priority": 1}
    return [{**whole, "argsPattern": f'"file_path":"{value}'}]


@given(st.lists(TOML, max_size=4), st.lists(PATHS, max_size=12))
@example(rules=_asks("a[^/]"), paths=["a", "ab", "abc", "a/b", "b"])
@example(rules=_asks("a[^/][^/]*[^/].*"), paths=["a", "ab", "abc", "a/b", "b"])
@example(rules=_asks("a[^/][^/][^/]"), paths=["a", "ab", "abc", "abcd", "a/b"])
@example(rules=_asks('a[^/"]'), paths=["a", "ab", "abc", "a/b"])
@example(rules=_asks("a[^/b].?"), paths=["a", "ab", "ac", "a/b"])
def test_gemini(rules: list[dict[str, object]], paths: list[str]) -> None:
    import re

    text = "\n".join(
        "[[rule]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in rule.items())
        for rule in rules
    )
    theirs = {"read": "read_file", "create_file": "write_file"}

    def says(agent: str, tool: str, path: str) -> str:
        called = theirs.get(tool, "replace")
        arguments = json.dumps({"file_path": path}, separators=(",", ":"), ensure_ascii=False)
        for rule in sorted(rules, key=lambda rule: -int(str(rule["priority"]))):
            if rule["toolName"] not in ("*", called) or rule.get("subagent", agent) != agent:
                continue
            pattern = rule.get("argsPattern")
            if pattern is None or re.search(str(pattern), arguments):
                return {"ask_user": "ask"}.get(str(rule["decision"]), str(rule["decision"]))
        return "allow" if tool == "read" else "ask"

    try:
        hold("gemini", text, paths, says)
    except FormatError as error:
        assert "argsPattern" in str(error)

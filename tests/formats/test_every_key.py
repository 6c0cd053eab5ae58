"""Random settings with every key of each format: an import never lets through what the settings do not."""

from __future__ import annotations

import json
import shlex
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.policy.model import Effect
from ringfence.toolkit.formats.equivalence import compare
from ringfence.toolkit.formats.model import Setting
from ringfence.toolkit.formats.registry import FORMATS
from ringfence.toolkit.formats.yaml_writer import policy_text
from tests.formats import judges
from tests.formats.test_laws import CLAUDE, EVERY_PATH, GIT, MAP, TOML, Own
from tests.formats.test_unexpected_values import toml

TOOLS = {"read": "read", "create_file": "write", "edit_file": "write", "delete": "delete"}
AGENTS = ["default", "coder"]


def never_looser(name: str, text: str, own: Own, tools: dict[str, str] = TOOLS) -> None:
    found = FORMATS[name].read(text, Setting(root="/w/s"))
    policy = Policy.loads(policy_text(found, "every key"))
    for agent in AGENTS:
        for tool, action in tools.items():
            for path in EVERY_PATH:
                theirs = Effect[own(agent, tool, path).upper()]
                for directory in (False, True):
                    ours = policy.effect(agent, tool, action, path, directory)
                    assert ours >= theirs, (agent, tool, path, text)
    assert not [each for each in compare(found.subjects, policy).found if each.looser]


LISTS = {
    key: st.lists(CLAUDE.filter(bool).map(lambda rules: rules[0]) | st.sampled_from(OTHERS), max_size=3)
    for key, OTHERS in (
        ("allow", ["MultiEdit", "*", "Edit(!a)", "Bash(ls)", "Grep", "Read(x"]),
        ("ask", ["NotebookEdit", "*", "Read(!b)", "mcp__x"]),
        ("deny", ["MultiEdit", "*", "Write", "Glob(a)", "Edit(!a/b)", "Edit([[:alpha:]])"]),
    )
}
MODES = st.sampled_from(["default", "dontAsk", "plan", "acceptEdits", "bypassPermissions", "auto"])
PLACES = st.lists(st.sampled_from(["a", "./b", "~/x", "//w/s/a", "/a", "**/b"]), max_size=2)
CLAUDES = st.fixed_dictionaries(
    {
        "permissions": st.fixed_dictionaries(
            {}, optional={**LISTS, "defaultMode": MODES, "additionalDirectories": PLACES}
        )
    },
    optional={
        "denyInsteadOfPrompting": st.booleans(),
        "hooks": st.just({"PreToolUse": [{}]}),
        "sandbox": st.fixed_dictionaries(
            {},
            optional={
                "filesystem": st.fixed_dictionaries({}, optional={"denyRead": PLACES, "denyWrite": PLACES})
            },
        ),
    },
)


@given(CLAUDES)
def test_claude_code(settings: dict[str, Any]) -> None:
    def says(agent: str, tool: str, path: str) -> str:
        return judges.claude_settings(settings, tool, path)

    tools = {tool: action for tool, action in TOOLS.items() if tool != "delete"}
    never_looser("claude-code", json.dumps(settings), says, tools)


SWITCHES = st.dictionaries(st.sampled_from(["write", "edit", "read", "*", "bash"]), st.booleans(), max_size=3)
PERMISSION = MAP | st.dictionaries(st.sampled_from(["read", "edit", "*", "bash"]), MAP, max_size=3)
OWN = st.fixed_dictionaries({}, optional={"permission": PERMISSION.filter(bool), "tools": SWITCHES})
OPENCODES = st.fixed_dictionaries(
    {"permission": st.dictionaries(st.sampled_from(["read", "edit", "*", "bash"]), MAP, max_size=3)},
    optional={
        "tools": SWITCHES,
        "agent": st.fixed_dictionaries({"coder": OWN}),
        "mode": st.fixed_dictionaries({"coder": OWN}),
    },
)


def _nested(permission: Any) -> bool:
    """Whether a permission has only actions as keys, as OpenCode wants it."""
    return isinstance(permission, str) or set(permission) <= {"read", "edit", "*", "bash"}


@given(OPENCODES)
@example(
    {
        "permission": {},
        "agent": {"coder": {"tools": {"*": False}}},
        "mode": {"coder": {"tools": {"write": True}}},
    }
)
def test_opencode(settings: dict[str, Any]) -> None:
    for key in ("agent", "mode"):
        own = settings.get(key, {}).get("coder", {})
        if not _nested(own.get("permission", "allow")):
            del own["permission"]

    def says(agent: str, tool: str, path: str) -> str:
        return judges.opencode_settings(settings, agent, tool, path)

    never_looser("opencode", json.dumps(settings), says)


KEYS = ["read", "write", "edit", "delete", "*", "grep", "patch", "bash"]
FORKS = st.fixed_dictionaries(
    {
        "permission": st.fixed_dictionaries(
            {"rules": st.dictionaries(st.sampled_from(KEYS), MAP, max_size=4)},
            optional={"edit": MAP, "skill": MAP, "*": MAP},
        )
    },
    optional={
        "agents": st.fixed_dictionaries(
            {
                "coder": st.fixed_dictionaries(
                    {},
                    optional={
                        "permission": st.dictionaries(st.sampled_from(KEYS), MAP, max_size=3),
                        "tools": st.dictionaries(st.sampled_from(["write", "delete", "ls"]), st.booleans()),
                    },
                )
            }
        )
    },
)


@given(FORKS)
def test_opencode_fork(settings: dict[str, Any]) -> None:
    def says(agent: str, tool: str, path: str) -> str:
        return judges.fork_settings(settings, agent, tool, path)

    if '"/' not in json.dumps(settings):  # from the file system's root
        never_looser("opencode-fork", json.dumps(settings), says)


GEMINIS = st.lists(
    st.builds(
        lambda rule, more: {**rule, **more},
        TOML,
        st.fixed_dictionaries(
            {},
            optional={
                "modes": st.lists(st.sampled_from(["default", "plan", "yolo"]), min_size=1, max_size=2),
                "interactive": st.booleans(),
                "denyMessage": st.just("no"),
                "commandPrefix": st.just("rm"),
                "toolName": st.just(["write_file", "replace"]),
            },
        ),
    ),
    max_size=4,
)


@given(GEMINIS)
def test_gemini(rules: list[dict[str, Any]]) -> None:
    names = {"read": "read_file", "create_file": "write_file", "edit_file": "replace"}
    text = "\n".join("[[rule]]\n" + "\n".join(f"{k} = {toml(v)}" for k, v in rule.items()) for rule in rules)
    for conditions in (False, True):

        def says(agent: str, tool: str, path: str, holding: bool = conditions) -> str:
            return judges.gemini(rules, agent, names[tool], path, holding)

        never_looser("gemini", text, says, {tool: TOOLS[tool] for tool in names})


ACCESS = st.sampled_from(["read", "write", "deny", "none"])
SCOPED = st.dictionaries(
    st.sampled_from([".", "a", "b", "a/b", "a/**", "a/b/a", "**/*.b", "*.a", "./b"]), ACCESS, max_size=4
)
FILESYSTEM = st.fixed_dictionaries(
    {},
    optional={":root": ACCESS, ":workspace_roots": SCOPED, "/w/s/a": ACCESS, "/w": ACCESS, ":tmpdir": ACCESS},
)


def entries_of(filesystem: dict[str, Any]) -> list[judges.Entry]:
    """The entries of one table by their paths in the workspace; what is above it has no depth."""
    found = [("/", filesystem[key]) for key in (":root", "/w") if key in filesystem]
    found += [("a", filesystem["/w/s/a"])] if "/w/s/a" in filesystem else []
    return found + [
        (name.removeprefix("./"), said) for name, said in filesystem.get(":workspace_roots", {}).items()
    ]


@given(
    st.sampled_from(["untrusted", "on-failure", "on-request", "never"]),
    st.none() | st.sampled_from([":read-only", ":workspace"]),
    FILESYSTEM,
)
@example("on-request", ":workspace", {":workspace_roots": {"a": "read", "a/b": "write", "**/*.b": "deny"}})
@example("never", None, {":root": "write", ":workspace_roots": {".": "read"}})
def test_codex_profiles(approval: str, parent: str | None, filesystem: dict[str, Any]) -> None:
    profile: dict[str, Any] = {"filesystem": filesystem} | ({"extends": parent} if parent else {})
    text = toml_document(
        {"approval_policy": approval, "default_permissions": "dev", "permissions": {"dev": profile}}
    )
    base: dict[str, Any] = {":root": "read"} if parent else {}
    if parent == ":workspace":
        base[":workspace_roots"] = {".": "write", ".git": "read", ".agents": "read", ".codex": "read"}
    merged = {**base, **filesystem}
    if ":workspace_roots" in base and ":workspace_roots" in filesystem:
        merged[":workspace_roots"] = {**base[":workspace_roots"], **filesystem[":workspace_roots"]}

    def says(agent: str, tool: str, path: str) -> str:
        above = [each for each in entries_of(merged) if each[0] == "/"]
        inside = [
            (name, access)
            for name, access in entries_of(merged)
            if name != "/" and not ("*" in name.removesuffix("/**") and access == "write")
        ]
        fitting = [each for each in inside if judges._codex_fits(each[0], path)]
        # What is above the workspace counts only where nothing in it does.
        return judges.codex(fitting or above[-1:], approval, TOOLS[tool], path)

    never_looser("codex", text, says)


@given(
    st.sampled_from(["read-only", "workspace-write", "danger-full-access"]),
    st.sampled_from(["untrusted", "on-failure", "on-request", "never"]),
)
def test_codex_modes(mode: str, approval: str) -> None:
    entries = {
        "read-only": [(".", "read")],
        "workspace-write": [(".", "write"), (".git", "read"), (".codex", "read"), (".agents", "read")],
        "danger-full-access": [(".", "write")],
    }[mode]
    text = f'sandbox_mode = "{mode}"\napproval_policy = "{approval}"\n'
    found = FORMATS["codex"].read(text, Setting())
    policy = Policy.loads(policy_text(found, "modes"))
    for path in ["a", "a/b", ".git", ".git/config", ".codex/config.toml", ".agents/x", ".github/x"]:
        for tool, action in TOOLS.items():
            said = policy.effect("default", tool, action, path)
            assert str(said) == judges.codex(entries, approval, action, path), (tool, path)


def toml_document(settings: dict[str, Any]) -> str:
    return "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in settings.items()) + "\n"


OWNERS = st.lists(st.sampled_from(["@a", "@org/team", "me@example.org"]), max_size=2)
OWNED = st.lists(st.tuples(GIT, OWNERS), max_size=4)


@given(OWNED)
@example([("/docs/", ["@a"]), ("docs/a", [])])
def test_codeowners(lines: list[tuple[str, list[str]]]) -> None:
    text = "\n".join(" ".join([pattern, *owners]) for pattern, owners in lines)
    found = FORMATS["codeowners"].read(text, Setting())
    written = policy_text(found, "owners")
    # After a policy that allows every change.
    assert written.count("\n  write:\n") in (0, 1)
    policy = Policy.loads(written.replace("\n  write:\n", '\n  write:\n    "**": allow\n'))
    for path in EVERY_PATH:
        owned = [own for pattern, own in lines if own and judges.gitignored(pattern.rstrip("/"), path)]
        effect, rule = policy.verdict("default", "create_file", "write", path)
        if owned:
            assert effect is Effect.ASK, path
            assert rule is not None
            assert rule.reason == f"owned by {' '.join(owned[-1])}"
        elif "\n  write:\n" in written:
            assert effect is Effect.ALLOW, path
    assert len([left for left in found.left if not left.harmless]) == len(
        {n for n, (_, own) in enumerate(lines) if not own}
    )


LINES = st.one_of(
    st.builds(lambda pattern, owners: " ".join([pattern, *owners]), GIT, OWNERS),
    st.builds(
        lambda pattern, owners: " ".join([pattern, *owners]),
        st.sampled_from(["[ab]", "[ab].b", "/a/[b]", "a\\\\ b", "a/*", "[ab]/", "*.[ab]"]),
        OWNERS,
    ),
    st.sampled_from(["[Docs]", "[Docs][2] @a", "^[Free] @a", "# @a", "!a", "!a @a", "a @a # @b", "[a][1]"]),
)
NAMED = [*EVERY_PATH, "[ab]", "[ab].b", "a/[b]", "a b", "b/a b", "[ab]/a", "a.[ab]", "Docs"]


@given(st.lists(LINES, max_size=5))
@example(["[ab].b @a"])
@example(["[ab].b @a", "/b"])
@example(["/a/* @a", "a/b"])
@example(["a/** @a"])
def test_what_has_an_owner_by_the_hosts_documentation_asks(lines: list[str]) -> None:
    text = "\n".join(lines).replace("\\\\", "\\")
    written = policy_text(FORMATS["codeowners"].read(text, Setting()), "owners")
    policy = Policy.loads(written.replace("\n  write:\n", '\n  write:\n    "**": allow\n'))
    for path in NAMED:
        if any(judges.owned(text, path, classes=classes) for classes in (False, True)):
            assert policy.effect("default", "create_file", "write", path) is Effect.ASK, (lines, path)
            assert policy.effect("default", "delete", "delete", path) is Effect.ASK, (lines, path)


WORD = st.sampled_from(["cat", "rm", "-r", "a", "a/b", "git"])
PREFIX = st.tuples(
    st.lists(st.one_of(WORD, st.lists(WORD, min_size=1, max_size=2)), min_size=1, max_size=3),
    st.sampled_from(["allow", "prompt", "forbidden"]),
)
BY_COMMAND = {"cat": "read", "rm": "delete", "tee": "write"}  # what a file tool does instead


@given(
    st.lists(PREFIX, min_size=1, max_size=4),
    st.sampled_from(sorted(BY_COMMAND)),
    st.sampled_from(["a", "a/b"]),
)
@example([(["cat", "a"], "forbidden"), (["cat"], "allow")], "cat", "a")
def test_no_file_tool_is_let_through_what_a_rule_for_commands_stops(
    rules: list[judges.Prefix], command: str, path: str
) -> None:
    text = "".join(f"prefix_rule(pattern = {words!r}, decision = {said!r})\n" for words, said in rules)
    found = FORMATS["codex"].read(text, Setting())
    policy = Policy.loads(policy_text(found, "rules"))
    action = BY_COMMAND[command]
    said = policy.effect("default", action, action, path)
    if judges.prefix_rules(rules, [command, path]) in ("prompt", "forbidden"):
        assert said is not Effect.ALLOW
    # Whatever they say of commands, nobody is asked less about a file: a policy without rules asks.
    assert said is Effect.ASK
    assert found.left == []


WORDS = ["cat", "rm", "-r", "a", "a/b", "git", "other"]


@given(st.lists(PREFIX, min_size=1, max_size=4), st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
def test_prefix_rules_decide_as_they_do_there(rules: list[judges.Prefix], words: list[str]) -> None:
    text = "".join(f"prefix_rule(pattern = {each!r}, decision = {said!r})\n" for each, said in rules)
    policy = Policy.loads(policy_text(FORMATS["codex"].read(text, Setting()), "rules"))
    theirs = {"nothing": Effect.ASK, "allow": Effect.ALLOW, "prompt": Effect.ASK, "forbidden": Effect.DENY}
    wanted = theirs[judges.prefix_rules(rules, words)]
    assert policy.effect("default", "run", "run", shlex.join(words)) is wanted


def test_the_judge_of_prefix_rules_says_what_the_documentation_says() -> None:
    rules: list[judges.Prefix] = [
        (["git", ["push", "fetch"]], "prompt"),
        (["git"], "allow"),
        (["git", "push", "--force"], "forbidden"),
    ]
    said = {
        command: judges.prefix_rules(rules, command.split())
        for command in (
            "git status",
            "git fetch",
            "git push",
            "git push --force x",
            "git push x --force",
            "gi",
        )
    }
    assert list(said.values()) == ["allow", "prompt", "prompt", "forbidden", "prompt", "nothing"]

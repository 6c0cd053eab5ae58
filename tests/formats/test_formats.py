"""Other tools' settings as cases; the examples; what cannot be read; export and back; the two commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import READY_MADE, Policy, ready_made
from ringfence.policy.model import Effect
from ringfence.toolkit.cli.table.authoring import FORMATS as NAMED
from ringfence.toolkit.cli.table.authoring import WRITTEN
from ringfence.toolkit.formats import equivalence as disagree
from ringfence.toolkit.formats import wildcard
from ringfence.toolkit.formats.equivalence import compare
from ringfence.toolkit.formats.exporting import outgoing
from ringfence.toolkit.formats.flatten import flat
from ringfence.toolkit.formats.model import FormatError, Setting
from ringfence.toolkit.formats.registry import FORMATS
from ringfence.toolkit.formats.yaml_writer import policy_text
from tests.cli.conftest import Ringfence, ringfence, workspace

__all__ = ["ringfence", "workspace"]
HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = yaml.safe_load((HERE / "cases.yaml").read_text(encoding="utf-8"))
EXAMPLES = HERE.parents[1] / "examples" / "policies"
ROOT = Setting(root="/home/user/work", home="/home/user")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    setting = Setting(root=ROOT.root, home=ROOT.home, exact_case=case.get("exact_case", False))
    found = FORMATS[case["format"]].read(case["text"], setting)
    text = policy_text(found, "a case")
    said = {key: list(rules.items()) for key, rules in yaml.safe_load(text)["rules"].items()}
    assert said == {key: list(rules.items()) for key, rules in case["rules"].items()}
    assert [left.where for left in found.left] == case["left"]
    assert all(left.why for left in found.left)
    assert len(compare(found.subjects, Policy.loads(text)).found) == case["disagree"]


@pytest.mark.parametrize("name", ["clineignore", "rooignore"])
def test_a_line_of_any_length_is_answered_at_once(name: str) -> None:
    """A line of 200,000 characters took minutes; its start is used, and the reason is reported."""
    for text, why in [
        ("x" * 200_000, "it has 200000 characters; only its start is used, which is stricter"),
        (
            "x" * 990,
            "with both cases of its letters it is too long; written with '?' for each, which is stricter",
        ),
        ("a/" + "[" * 2000, "it has 2002 characters; only its start is used, which is stricter"),
    ]:
        found = FORMATS[name].read(text + "\n", ROOT)
        assert [left.why for left in found.left] == [why]
        assert len(found.left[0].what) < 200
        policy = Policy.loads(policy_text(found, "long"))
        assert policy.effect("default", "read", "read", text) is Effect.DENY
        assert policy.effect("default", "read", "read", "b") is Effect.ASK


@pytest.mark.parametrize(
    ("name", "text", "where", "harmless", "denied", "asked"),
    [
        ("clineignore", "k\na//b", "line 2", True, "k/x", "a/b"),
        ("clineignore", "./auto/*\nk", "line 1", True, "k/x", "auto/b"),
        ("clineignore", "k\nx\\", "line 2", True, "k/x", "x"),
        ("rooignore", "ok\n[z-a]/x", "line 2", False, "q", "q"),
        ("rooignore", "a[[:alpha:]]\nk", "line 1", False, "ab/x", "b"),
        ("rooignore", "k*\n!k[[:alpha:]]", "line 2", False, "kb", "b"),
        ("clineignore", "k\na\tb", "line 2", False, "a.b", "ab"),
        (
            "claude-code",
            '{"permissions": {"deny": ["Read(x", "Read(k)"]}}',
            "permissions.deny[0]",
            False,
            "k",
            "x",
        ),
        (
            "claude-code",
            '{"permissions": {"deny": ["Read(a[[:alpha:]])"]}}',
            "permissions.deny[0]",
            False,
            "ab/c",
            "b",
        ),
        (
            "claude-code",
            '{"permissions": {"deny": ["Read(!k)", "Read(k)"]}}',
            "permissions.deny[0]",
            False,
            "k",
            "b",
        ),
    ],
)
def test_one_line_that_cannot_be_said_is_left_out_or_stricter(
    name: str, text: str, where: str, harmless: bool, denied: str, asked: str
) -> None:
    found = FORMATS[name].read(text, ROOT)
    assert [(left.where, left.harmless) for left in found.left] == [(where, harmless)]
    policy = Policy.loads(policy_text(found, "one line"))
    assert policy.effect("default", "read", "read", denied) is Effect.DENY
    if denied != asked:
        assert policy.effect("default", "read", "read", asked) is not Effect.DENY
    assert not [each for each in compare(found.subjects, policy).found if each.looser]


def test_an_allow_that_takes_another_back_asks() -> None:
    settings = {"permissions": {"allow": ["Edit(src/**)", "Edit(!src/gen/**)"]}}
    found = FORMATS["claude-code"].read(json.dumps(settings), ROOT)
    policy = Policy.loads(policy_text(found, "back"))
    assert policy.effect("default", "edit_file", "write", "src/a") is Effect.ALLOW
    assert policy.effect("default", "edit_file", "write", "src/gen/a") is Effect.ASK
    assert [left.where for left in found.left] == ["permissions.allow[1]"]


def test_the_formats_named_are_the_formats_there_are() -> None:
    assert tuple(FORMATS) == NAMED
    assert tuple(name for name, each in FORMATS.items() if each.write is not None) == WRITTEN


# The file, the disagreements, and those that are not below a name that the settings match by itself.
SHOWN = {
    "claude-code.settings.json": ("claude-code", 0, 0),
    "opencode.json": ("opencode", 3, 0),
    "opencode-map.jsonc": ("opencode", 0, 0),
    "opencode-fork.json": ("opencode-fork", 1, 0),
    "gemini.toml": ("gemini", 0, 0),
    "cline.clineignore": ("clineignore", 0, 0),
    "roo.rooignore": ("rooignore", 0, 0),
}


def test_every_example_has_its_report() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_imported_and_reported(name: str) -> None:
    given_format, count, elsewhere = SHOWN[name]
    found = FORMATS[given_format].read((EXAMPLES / name).read_text(encoding="utf-8"), ROOT)
    policy = Policy.loads(policy_text(found, name))
    compared = compare(found.subjects, policy)
    assert (len(compared.found), len(compared.elsewhere), compared.undecided) == (count, elsewhere, ())


def test_the_seed_example_means_what_the_design_says() -> None:
    found = FORMATS["opencode-fork"].read((EXAMPLES / "opencode-fork.json").read_text(encoding="utf-8"), ROOT)
    policy = Policy.loads(policy_text(found, "seed"))
    for agent, path, want in [
        ("default", "tmp/a.txt", Effect.ALLOW),
        ("default", "main.go", Effect.DENY),
        ("default", "README", Effect.ASK),
        ("default", "tmp/x.go", Effect.ALLOW),  # the longer pattern decides there, not the later one
        ("coder", "internal/test/a.go", Effect.ALLOW),
        ("coder", "main.go", Effect.ASK),
    ]:
        assert policy.effect(agent, "delete", "delete", path) is want, (agent, path)


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("claude-code", "[]", ""),
        ("claude-code", '{"permissions": {"deny": "Read"}}', "permissions.deny"),
        ("claude-code", '{"permissions": {"deny": [1]}}', "permissions.deny[0]"),
        ("claude-code", '{"permissions": {}, "permissions": {}}', ""),
        ("opencode", '{"permission": {"edit": "maybe"}}', "permission.edit"),
        ("opencode", '{"permissions": [{"action": "edit", "resource": "*"}]}', "permissions[0]"),
        ("opencode", "{", ""),
        ("opencode-fork", '{"permission": {"rules": {"delete": {"*": 1}}}}', "permission.rules.delete"),
        ("gemini", "[[rule]]\ndecision = 'allow'", "rule[0]"),
        ("gemini", "[[rule]]\ndecision = 'perhaps'\npriority = 1", "rule[0]"),
        ("gemini", "not toml", ""),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(name: str, text: str, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        FORMATS[name].read(text, ROOT)
    assert caught.value.where == where
    assert caught.value.message


@given(st.sampled_from(sorted(FORMATS)), st.text(alphabet='{}[]":,*/!.a\\\n =', max_size=40))
def test_no_text_is_a_fault(name: str, text: str) -> None:
    try:
        policy_text(FORMATS[name].read(text, ROOT), "anything")
    except FormatError as error:
        assert error.message


FLAT = st.lists(st.sampled_from(["a", "b", "*", "?", "/", "."]), min_size=1, max_size=7).map("".join)


@given(FLAT, st.lists(st.sampled_from(["a", "b", "ab", ".a", "b."]), min_size=1, max_size=4).map("/".join))
def test_a_wildcard_and_its_patterns_match_the_same(pattern: str, path: str) -> None:
    from ringfence.policy.patterns.matcher import matches

    tokens = wildcard.tokens(pattern)
    itself = {end for end in range(1, len(path) + 1) if path[end : end + 1] in ("", "/")}
    wanted = any(_matches(pattern, path[:end]) for end in itself)
    assert any(matches(said, path) for said in wildcard.patterns(tokens)) is wanted


def _matches(pattern: str, path: str) -> bool:
    from tests.formats.judges import crossing

    return crossing(pattern, path)


SAYABLE = """
version: 1
rules:
  read: {"*": allow, "*.pem": deny, "secrets": deny}
  write: {"*": ask, "src/**": allow, "src/**/*.lock": deny, "{a,b}/c": allow, "*.pem": deny, "secrets": deny}
  delete: {"*": ask, "src/**": allow, "src/**/*.lock": deny, "{a,b}/c": allow}
"""


@pytest.mark.parametrize("name", ["claude-code", "gemini", "opencode", "opencode-fork"])
def test_a_policy_goes_out_and_comes_back(name: str) -> None:
    given_format = FORMATS[name]
    assert given_format.write is not None
    policy = Policy.loads(SAYABLE)
    back = given_format.read(given_format.write(flat(policy, "default", ROOT.root)).text, ROOT)
    subjects = [each for each in back.subjects if each.action != "delete"]
    assert compare(subjects, policy).found == ()
    again = Policy.loads(policy_text(back, "back"))
    assert all(each.none for each in [compare(subjects, again)])


@pytest.mark.parametrize("ready", READY_MADE)
@pytest.mark.parametrize("name", WRITTEN)
def test_no_ready_made_policy_becomes_looser(name: str, ready: str) -> None:
    policy = Policy.load(ready_made(ready))
    out = outgoing(policy, FORMATS[name], "default", ROOT)
    compared = compare(out.subjects, policy)
    assert not compared.undecided
    assert not [each for each in compared.found if each.result > each.source]
    for subject in out.subjects:
        for path in (
            ".env",
            "id_rsa",
            "a/.ssh/x",
            "src/a.py",
            "tmp/a",
            "x.pem",
            ".env.example",
            "venv",
            ".git",
        ):
            ours = policy.effect("default", subject.tool, subject.action, path)
            theirs = disagree.judge(subject, path)
            if subject.denies_only:
                ours = max(ours, Effect.ASK)
            if ours is not theirs:
                assert (theirs, ours) in {(each.source, each.result) for each in compared.found}


def test_import_writes_a_policy_and_reports(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "o.json").write_text('{"permission": {"edit": {"*.go": "deny"}, "bash": "ask"}}')
    done = ringfence("import", "opencode", "o.json", "--out", "ringfence.yaml", "--json")
    assert done.status == 1
    assert (workspace / "ringfence.yaml").read_text(encoding="utf-8") == done.json["policy"]
    assert done.json["left_out"] == []
    row = next(row for row in done.json["disagree"] if row["action"] == "write")
    assert (row["path"], row["source"], row["result"], row["looser"]) == (".go/x", "allow", "deny", False)
    assert done.json["disagree_elsewhere"] == []
    assert ringfence("check").status == 0
    again = ringfence("import", "opencode", "o.json", "--out", "ringfence.yaml")
    assert again.status == 2
    assert "it was not changed" in again.err


def test_import_agrees_and_0(ringfence: Ringfence, workspace: Path) -> None:
    settings = b'{"permissions": {"deny": ["Read(./.env)"]}}'
    done = ringfence("import", "claude-code", "-", stdin=settings)
    assert done.status == 0
    assert '"/.env": deny' in done.out
    assert "agree on every path" in done.err


def test_import_says_what_is_wrong_and_2(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "bad.json").write_text('{"permission": {"edit": "perhaps"}}')
    done = ringfence("import", "opencode", "bad.json")
    assert done.status == 2
    assert "bad.json: permission.edit: 'perhaps'" in done.err
    assert ringfence("import", "opencode", "nowhere.json").status == 2


def test_export_and_its_report(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "p.yaml").write_text('version: 1\nrules: {read: {"*": allow, k: deny}, write: {k: deny}}\n')
    done = ringfence("export", "claude-code", "p.yaml", "--json")
    assert done.status == 0
    assert json.loads(done.json["settings"])["permissions"]["deny"] == ["Read(k)", "Edit(k)"]
    limited = "version: 1\nrules: {read: allow}\nlimits: {delete: {max_files: 1}}\n"
    (workspace / "l.yaml").write_text(limited)
    done = ringfence("export", "claude-code", "l.yaml")
    assert "limits.delete" in done.err
    floor = "version: 1\nmandatory: [{deny: read, paths: [x], except: [x/y]}]\nrules: {read: allow}\n"
    (workspace / "f.yaml").write_text(floor)
    done = ringfence("export", "claude-code", "f.yaml")
    assert done.status == 1
    assert "disagree: read x/y: the policy says allow, the settings deny, which is stricter" in done.err


def test_an_anchored_line_alone_says_nothing_of_other_paths() -> None:
    from ringfence.toolkit.formats.model import Subject

    subject = FORMATS["clineignore"].read("/data/\n", ROOT).subjects[0]
    only = Subject("read", "read", subject.rules[:1], above=True, denies_only=True)
    assert disagree.judge(only, "x") is Effect.ASK
    assert disagree.judge(only, "data/x") is Effect.DENY


@pytest.mark.parametrize("name", ["claude-code", "clineignore"])
def test_hundreds_of_rules_have_an_answer(name: str) -> None:
    """Rule by rule: no walk through all pairs of states, of which these have more than the bound."""
    words = [f"{a}{b}" for a in "abcdefgh" for b in "ijklmnop"]
    lines = [f"{one}/**/*.{other}" for one, other in zip(words, reversed(words), strict=True)]
    lines += [f"{one}*" for one in words]
    text = "\n".join(lines)
    if name == "claude-code":
        text = json.dumps({"permissions": {"deny": [f"Read({line})" for line in lines]}})
    found = FORMATS[name].read(text, Setting())
    assert compare(found.subjects, Policy.loads(policy_text(found, "many"))).none


@pytest.mark.parametrize(
    ("value", "noted"),
    [("a[^/]*b", True), ("a.b", True), (r"a\.b", False), ('a[^/"]*b', False), ("[ab]", False)],
)
def test_an_expression_that_may_leave_the_path_is_noted(value: str, noted: bool) -> None:
    rule = 'toolName = "read_file"\ndecision = "deny"\npriority = 1\n'
    text = f'[[rule]]\n{rule}argsPattern = \'"file_path":"{value}"\'\n'
    found = FORMATS["gemini"].read(text, Setting())
    assert any("other arguments" in note for note in found.notes) is noted


def test_a_deny_beside_the_rules_of_the_fork_stays_a_deny(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "f.json").write_text('{"permission":{"edit":"deny","rules":{"delete":{"*":"ask"}}}}')
    done = ringfence("import", "opencode-fork", "f.json", "--out", "p.yaml")
    assert done.status == 1
    assert "left out: permission.edit: 'deny': the fork reads only permission.rules" in done.err
    assert "the two agree on every path, apart from 1 setting left out or made stricter" in done.err
    policy = Policy.load(workspace / "p.yaml")
    for tool, action in [("create_file", "write"), ("edit_file", "write"), ("delete", "delete")]:
        assert policy.effect("anybody", tool, action, "src/a.go") is Effect.DENY, tool


FORK = {
    "permission": {
        "rules": {
            "write": {"*": "ask", "*.go": "allow"},
            "edit": {"*": "deny", "src/**/*.go": "allow"},
            "read": {"*.env": "deny"},
            "bash": {"rm *": "deny"},
            "grep": {"secrets/*": "deny"},
        }
    },
    "agents": {"explorer": {"tools": {"write": False, "edit": False, "delete": False}}},
}


@pytest.mark.parametrize(
    ("agent", "tool", "action", "path", "want"),
    [
        ("coder", "create_file", "write", "main.go", Effect.ALLOW),
        ("coder", "create_file", "write", "cmd/main.go", Effect.ALLOW),
        ("coder", "create_file", "write", "README", Effect.ASK),
        ("coder", "edit_file", "write", "src/a/b/main.go", Effect.ALLOW),
        ("coder", "edit_file", "write", "main.go", Effect.DENY),
        ("coder", "read_file", "read", "prod.env", Effect.DENY),
        ("coder", "read_file", "read", "deploy/prod.env", Effect.DENY),
        ("coder", "read_file", "read", "README", Effect.ALLOW),
        ("coder", "read_file", "read", "secrets/key", Effect.DENY),  # their search of it is denied
        ("explorer", "create_file", "write", "main.go", Effect.DENY),
        ("explorer", "edit_file", "write", "src/a/main.go", Effect.DENY),
        ("explorer", "delete", "delete", "main.go", Effect.DENY),
        ("explorer", "read_file", "read", "main.go", Effect.ALLOW),
    ],
)
def test_the_patterns_of_the_fork(agent: str, tool: str, action: str, path: str, want: Effect) -> None:
    found = FORMATS["opencode-fork"].read(json.dumps(FORK), ROOT)
    assert Policy.loads(policy_text(found, "fork")).effect(agent, tool, action, path) is want
    assert [(left.where, left.harmless) for left in found.left] == [
        ("permission.rules.bash", True),
        ("permission.rules.grep", False),
    ]


ORDERED = '{"permissions": [{"action": "edit", "resource": "*", "effect": "deny"}]}'


@pytest.mark.parametrize(
    ("name", "text", "other"),
    [
        ("claude-code", '{"permission": {"edit": "deny"}}', "opencode"),
        ("claude-code", '{"permission": {"rules": {"delete": "deny"}}}', "opencode-fork"),
        (
            "claude-code",
            '{"permissions": [{"action": "edit", "resource": "*", "effect": "deny"}]}',
            "opencode",
        ),
        ("claude-code", '[[rule]]\ntoolName = "read_file"\ndecision = "deny"\npriority = 1\n', "gemini"),
        ("claude-code", '{"name": "a package", "scripts": {}}', ""),
        ("opencode", '{"permissions": {"deny": ["Edit"]}}', "claude-code"),
        ("opencode", '{"name": "a package"}', ""),
        ("opencode-fork", '{"permissions": {"deny": ["Edit"]}}', "claude-code"),
        (
            "opencode-fork",
            '{"permissions": [{"action": "edit", "resource": "*", "effect": "deny"}]}',
            "opencode",
        ),
        ("gemini", '{"permissions": {"deny": ["Edit"]}}', "claude-code"),
        ("gemini", '[project]\nname = "x"\n', ""),
        ("clineignore", '{"permissions": {"deny": ["Edit"]}}', "claude-code"),
        ("rooignore", '[[rule]]\ntoolName = "read_file"\ndecision = "deny"\npriority = 1\n', "gemini"),
    ],
)
def test_settings_of_another_tool_are_refused(name: str, text: str, other: str) -> None:
    with pytest.raises(FormatError) as caught:
        FORMATS[name].read(text, ROOT)
    assert caught.value.message
    assert caught.value.hint.endswith(f": ringfence import {other}") if other else caught.value.hint == ""


LEFT_OUT: list[tuple[str, dict[str, Any]]] = [
    ("claude-code", {"permissions": {"defaultMode": "acceptEdits"}}),
    ("claude-code", {"permissions": {"deny": ["Grep"]}}),
    ("claude-code", {"permissions": {"allow": ["NotebookEdit"]}}),
    ("claude-code", {"sandbox": {"filesystem": {"denyRead": ["secrets"]}}}),
    ("claude-code", {"hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": []}]}}),
    ("opencode", {"tools": {"write": True}}),
    ("opencode-fork", {"permission": {"rules": {"grep": "deny"}}}),
]


@pytest.mark.parametrize(("name", "settings"), LEFT_OUT)
def test_agreement_is_not_claimed_where_something_about_files_is_left_out(
    ringfence: Ringfence, workspace: Path, name: str, settings: dict[str, Any]
) -> None:
    done = ringfence("import", name, "-", stdin=json.dumps(settings).encode())
    assert done.status == 1
    assert "agree" in done.err
    assert ", apart from 1 setting left out or made stricter" in done.err


STRICTER: list[tuple[str, dict[str, Any], str, str, Effect]] = [
    ("claude-code", {"permissions": {"defaultMode": "dontAsk"}}, "write", "a", Effect.DENY),
    ("claude-code", {"denyInsteadOfPrompting": True, "permissions": {}}, "write", "a", Effect.DENY),
    ("claude-code", {"permissions": {"defaultMode": "plan", "allow": ["Edit"]}}, "write", "a", Effect.DENY),
    ("claude-code", {"permissions": {"deny": ["*"]}}, "read", "a", Effect.DENY),
    ("claude-code", {"permissions": {"allow": ["MultiEdit"]}}, "write", "a", Effect.ASK),
    ("claude-code", {"sandbox": {"filesystem": {"denyRead": ["./keys"]}}}, "read", "keys/a", Effect.DENY),
    (
        "claude-code",
        {"sandbox": {"filesystem": {"denyWrite": ["~/work/gen"]}}},
        "write",
        "gen/a",
        Effect.DENY,
    ),
    ("opencode", {"tools": {"write": False, "edit": False}}, "write", "a", Effect.DENY),
    ("opencode", {"tools": {"write": False}, "permission": {"edit": "allow"}}, "delete", "a", Effect.DENY),
    ("opencode", {"tools": {"*": False, "write": True}}, "write", "a", Effect.ALLOW),
    ("opencode", {"tools": {"*": False, "write": True}}, "read", "a", Effect.DENY),
]


@pytest.mark.parametrize(("name", "settings", "action", "path", "want"), STRICTER)
def test_what_is_off_or_denied_as_a_whole(
    name: str, settings: dict[str, Any], action: str, path: str, want: Effect
) -> None:
    policy = Policy.loads(policy_text(FORMATS[name].read(json.dumps(settings), ROOT), "stricter"))
    tool = "create_file" if action == "write" else action
    assert policy.effect("default", tool, action, path) is want


def test_an_agents_switches_count_for_it_alone() -> None:
    settings = {
        "agent": {"review": {"tools": {"write": False}}},
        "mode": {"plan": {"tools": {"edit": False}}},
    }
    policy = Policy.loads(policy_text(FORMATS["opencode"].read(json.dumps(settings), ROOT), "switches"))
    for agent, want in [("review", Effect.DENY), ("plan", Effect.DENY), ("coder", Effect.ALLOW)]:
        assert policy.effect(agent, "edit_file", "write", "a") is want, agent


@pytest.mark.parametrize(
    ("decision", "extra", "want"),
    [
        ("deny", "argsPattern = '\\.env'", Effect.DENY),
        ("ask_user", "argsPattern = '\\.env'", Effect.ASK),
        ("allow", "argsPattern = '\\.env'", Effect.ALLOW),  # what is done anyway
        ("deny", "interactive = true", Effect.DENY),
        ("deny", 'modes = ["default", "autoEdit"]', Effect.DENY),
        ("deny", 'modes = ["plan"]', Effect.ALLOW),  # for another mode
        ("deny", 'commandPrefix = "rm"', Effect.ALLOW),  # about commands
    ],
)
def test_what_gemini_says_with_a_condition_becomes_stricter(decision: str, extra: str, want: Effect) -> None:
    rule = f'[[rule]]\ntoolName = "read_file"\ndecision = "{decision}"\npriority = 9\n{extra}\n'
    lower = '[[rule]]\ntoolName = "read_file"\ndecision = "deny"\npriority = 1\n'
    lower += 'argsPattern = \'"file_path":"k/\'\n'
    found = FORMATS["gemini"].read(rule + lower, ROOT)
    policy = Policy.loads(policy_text(found, "gemini"))
    assert policy.effect("default", "read_file", "read", ".env") is want
    assert policy.effect("default", "read_file", "read", "k/x") is Effect.DENY
    assert compare(found.subjects, policy).none


@pytest.mark.parametrize("name", ["claude-code", "gemini", "opencode", "opencode-fork"])
def test_rules_for_task_folders_ask_about_no_file(name: str) -> None:
    policy = Policy.loads("version: 1\nrules: {'*': allow, list_tasks: ask, delete_tasks: deny}\n")
    writer = FORMATS[name].write
    assert writer is not None
    out = writer(flat(policy, "default"))
    assert "ask" not in out.text.replace('"ask": []', "")
    assert [left.what for left in out.left if not left.harmless] == []
    subjects = FORMATS[name].read(out.text, ROOT).subjects
    assert {disagree.judge(each, "a") for each in subjects if each.action != "delete"} == {Effect.ALLOW}


def test_a_file_is_written_only_where_nothing_is_looser(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / ".clineignore").write_text("*.pem\n")
    words = ("import", "clineignore", ".clineignore", "--out", "p.yaml")
    done = ringfence(*words, "--exact-case")
    assert done.status == 1
    assert not (workspace / "p.yaml").exists()
    assert "p.yaml was not written: it is looser; --allow-looser writes it" in done.err
    assert ringfence(*words, "--exact-case", "--allow-looser").status == 1
    assert '"*.pem": deny' in (workspace / "p.yaml").read_text()
    (workspace / "p.yaml").unlink()
    done = ringfence(*words, "--any-case")
    assert done.status == 0
    assert "note: --any-case changes nothing" in done.err
    assert '"*.[Pp][Ee][Mm]": deny' in (workspace / "p.yaml").read_text()


def test_a_comparison_that_was_not_finished_says_so(
    ringfence: Ringfence, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is there before the comparison begins; a file is not, since nobody knows what it opens."""
    (workspace / "p.yaml").write_text("version: 1\nrules: {read: {'*': allow, '*.pem': deny}}\n")
    monkeypatch.setattr("ringfence.toolkit.cli.commands.import_export.deadline", lambda _: lambda: True)
    done = ringfence("export", "claude-code", "p.yaml")
    assert done.status == 1
    assert json.loads(done.out)["permissions"]["deny"] == ["Read(*.pem)"]
    assert "undecided: default, read read: too complex: the time was over" in done.err
    assert done.err.rstrip().endswith("the comparison was not finished; --seconds gives it more time")
    done = ringfence("export", "claude-code", "p.yaml", "--out", "settings.json")
    assert "settings.json was not written: it may be looser" in done.err
    assert not (workspace / "settings.json").exists()
    assert ringfence("export", "claude-code", "p.yaml", "--json").json["finished"] is False


def test_the_result_is_printed_before_the_comparison(
    ringfence: Ringfence, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (workspace / "p.yaml").write_text("version: 1\nrules: {read: {'*': allow, '*.pem': deny}}\n")
    monkeypatch.setattr("ringfence.toolkit.cli.commands.import_export.compare", broken)
    done = ringfence("export", "claude-code", "p.yaml")
    assert done.status != 0
    assert json.loads(done.out)["permissions"]["deny"] == ["Read(*.pem)"]


def test_each_cause_of_a_difference_has_its_example(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / ".clineignore").write_text("*.pem\nsecret/\n!secret/ok\n")
    done = ringfence("import", "clineignore", ".clineignore", "--exact-case", "--json")
    assert {row["looser"] for row in done.json["disagree"]} == {True}
    done = ringfence("import", "clineignore", ".clineignore")
    assert done.status == 0
    settings = {"permission": {"edit": {"*": "ask", "*.md": "allow", "*.sql": "deny"}}}
    done = ringfence("import", "opencode", "-", "--json", stdin=json.dumps(settings).encode())
    causes = {(row["source"], row["result"]) for row in done.json["disagree"] if row["action"] == "write"}
    assert causes == {("ask", "deny"), ("allow", "deny"), ("allow", "ask")}
    assert not any(row["looser"] for row in done.json["disagree"])


@pytest.mark.parametrize(
    ("name", "text", "action", "path", "want"),
    [
        # Below a name that an allow matches, what stands before it still holds.
        ("opencode", '{"permission": {"edit": {"*": "deny", "*.md": "allow"}}}', "write", "a.md", "allow"),
        ("opencode", '{"permission": {"edit": {"*": "deny", "*.md": "allow"}}}', "write", "a.md/x", "deny"),
        (
            "opencode-fork",
            '{"permission": {"rules": {"read": {"*": "deny", "a": "ask"}}}}',
            "read",
            "a/b",
            "deny",
        ),
        # Below an ignored directory nothing is opened, and below what is opened the other lines hold.
        ("clineignore", "secret/\n!secret/ok\n", "read", "secret/ok", "deny"),
        ("clineignore", "*.pem\n!docs\n", "read", "docs/a.pem", "deny"),
        ("clineignore", "build/*\n!build/keep\n", "read", "build/keep/a", "ask"),
        ("clineignore", "*.Env\n", "read", "prod.ENV", "deny"),
    ],
)
def test_nothing_is_opened_on_the_way(name: str, text: str, action: str, path: str, want: str) -> None:
    found = FORMATS[name].read(text, ROOT)
    policy = Policy.loads(policy_text(found, "opened"))
    assert str(policy.effect("default", "create_file" if action == "write" else action, action, path)) == want


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('sandbox_mode = "all"', "sandbox_mode", "'all' is not one of"),
        ('approval_policy = "sometimes"', "approval_policy", "'sometimes' is not one of"),
        ('default_permissions = "dev"', "permissions.dev", "there is no profile 'dev'"),
        ('model = "x"\nprofile = 1', "profile", "1 is not text"),
        ('default_permissions = "a"\n[permissions.a]\nextends = "a"', "permissions.a", "'a' extends itself"),
        ('[package]\nname = "x"', "", "none of the keys of codex settings"),
        ("prefix_rule(", "", "neither TOML nor rules"),
    ],
)
def test_codex_settings_that_cannot_be_read(text: str, where: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        FORMATS["codex"].read(text, ROOT)
    assert caught.value.where == where


def test_codex_profiles_and_what_they_leave_out() -> None:
    text = """
profile = "careful"
sandbox_mode = "workspace-write"
[profiles.careful]
approval_policy = "untrusted"
[profiles.fast]
approval_policy = "never"
[hooks]
PreToolUse = []
"""
    found = FORMATS["codex"].read(text, ROOT)
    assert [left.where for left in found.left] == ["profiles.fast", "hooks"]
    policy = Policy.loads(policy_text(found, "codex"))
    assert policy.effect("default", "edit_file", "write", "a") is Effect.ASK
    rules = 'prefix_rule(pattern = ["rm", "-rf"], decision = "forbidden")\nhost_executable(name = "git")\n'
    found = FORMATS["codex"].read(rules, ROOT)
    assert [(left.where, left.harmless) for left in found.left] == [("line 2", True)]
    assert [(entry.pattern, entry.effect) for entry in found.everybody["run"]] == [("rm -rf *", Effect.DENY)]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("prefix_rule(pattern=WORDS)", "plain texts"),
        ("prefix_rule(pattern=[])", "no pattern"),
        ("prefix_rule(pattern=['a'], decision='maybe')", "no pattern, or another"),
        ("prefix_rule(pattern=['a', 1])", "a list of texts"),
        ("prefix_rule(pattern=[['a', 'b'], ['a', 'b'], ['a', 'b'], ['a', 'b'], ['a', 'b'], ['a', 'b'],"
         " ['a', 'b'], ['a', 'b'], ['a', 'b']])", "too many"),
        ("for x in y:\n  prefix_rule(pattern=[x])", "not called by itself"),
    ],
)  # fmt: skip
def test_codex_rules_that_cannot_be_read_may_forbid(rule: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        FORMATS["codex"].read(rule, ROOT)
    assert caught.value.where == "line 1"


def test_codeowners_of_gitlab() -> None:
    text = "* @all\n[Docs][2] @writers\ndocs/ # not theirs alone\n/my\\ file @a b@example.org\n!docs/free\n"
    found = FORMATS["codeowners"].read(text, ROOT)
    reasons = {entry.pattern: entry.reason for entry in found.everybody["write"]}
    assert reasons == {
        "*": "owned by @all",
        "docs": "owned by @writers",
        "/my file": "owned by @a b@example.org",
    }
    assert [left.where for left in found.left] == ["line 5"]
    found = FORMATS["codeowners"].read("a someone\n", ROOT)
    assert [left.why.partition(",")[0] for left in found.left] == ["'someone' is not an owner"]
    assert [entry.pattern for entry in found.everybody["write"]] == ["a"]


def test_a_name_in_brackets_is_no_section_of_owners() -> None:
    found = FORMATS["codeowners"].read("[id].tsx @a\nplain\n", ROOT)
    assert [entry.pattern for entry in found.everybody["write"]] == ["[id].tsx", "[[]id].tsx"]
    assert [left.where for left in found.left] == ["line 1", "line 2"]
    assert not any(left.harmless for left in found.left)


def test_what_is_only_stricter_may_count_as_done(ringfence: Ringfence, workspace: Path) -> None:
    for name, text in {
        "stricter": '{"permission": {"edit": "ask"}}',
        "same": '{"permission": "ask"}',
    }.items():
        (workspace / f"{name}.json").write_text(text, encoding="utf-8")
    (workspace / ".clineignore").write_text("*.pem\n", encoding="utf-8")
    words = {
        "stricter": ("opencode", "stricter.json"),
        "same": ("opencode", "same.json"),
        "looser": ("clineignore", ".clineignore", "--exact-case"),
        "not finished": ("opencode", "stricter.json", "--seconds", "0"),
    }
    assert {each: ringfence("import", *given).status for each, given in words.items()} == {
        "stricter": 1,
        "same": 0,
        "looser": 1,
        "not finished": 1,
    }
    done = {each: ringfence("import", *given, "--allow-stricter") for each, given in words.items()}
    assert {each: said.status for each, said in done.items()} == {
        "stricter": 0,
        "same": 0,
        "looser": 1,
        "not finished": 1,
    }
    assert "disagree: read .env/x" in done["stricter"].err

"""`ringfence explain`: the deciding examples of the policy language, and where a verdict comes from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ringfence

Write = Callable[[str], Path]

ROW = 'version: 1\nrules: {delete: {"*": ask, "tmp/*": allow, "*.go": deny}}\n'
AGENT = """\
version: 1
rules: {delete: {"*.go": deny}}
agents: {coder: {rules: {delete: {"internal/test/*": allow}}}}
"""
HELD = "mandatory: [{deny: [delete], paths: ['*.go']}]\n"

KINDS = """\
version: 1
rules:
  "*": allow
  write.replace: {"db/**": deny}
  write.edit: {"db/**": deny}
  delete: {"*": allow, old: {effect: deny, until: 2001-01-01}, "kept": {effect: deny, trial: true}}
"""


@pytest.mark.parametrize(
    ("what", "effect", "kind"),
    [
        ("create_file db/2.sql", "allow", "create"),
        ("create_file db/1.sql", "deny", "replace"),
        ("edit_file db/1.sql", "deny", "edit"),
        ("copy_file a db/1.sql", "deny", "replace"),
        ("copy_file a db/2.sql", "allow", "create"),
        ("move_file a db/1.sql", "deny", "replace"),
        ("create_directory db/sub", "allow", "create"),
        ("write.create db/1.sql", "allow", "create"),
        ("write.edit db/2.sql", "deny", "edit"),
        ("write db/2.sql", "deny", None),
        ("write a", "allow", None),
        ("delete old", "allow", None),
        ("delete kept", "allow", None),
    ],
)
def test_a_write_is_explained_by_its_kind(
    ringfence: Ringfence, policy: Write, workspace: Path, what: str, effect: str, kind: str | None
) -> None:
    policy(KINDS)
    (workspace / "db").mkdir()
    for name in ("db/1.sql", "a", "old", "kept"):
        (workspace / name).write_text("x", encoding="utf-8")
    found = ringfence("explain", *what.split(), "--json").json
    written = [need.get("kind") for need in found["needs"] if need["action"] == "write"]
    assert (found["decision"]["effect"], written[-1] if written else None) == (effect, kind)
    assert [each["effect"] for each in found["would"]] == (["deny"] if what == "delete kept" else [])
    shown = ringfence("explain", *what.split())
    assert ("if what is on trial counted: deny" in shown.out) is (what == "delete kept")
    if effect == "deny":
        assert found["decision"]["rule"]["pattern"] == "db/**"
        assert any(step["decided"] for step in found["steps"])


EXAMPLES = [
    (ROW, "delete tmp/a.txt", "allow"),
    (ROW, "delete tmp/x/y.txt", "allow"),
    (ROW, "delete tmp/x.go", "deny"),
    (ROW, "delete main.go", "deny"),
    (ROW, "delete README", "ask"),
    (ROW, "delete tmp", "ask"),
    ('version: 1\nrules: {delete: {"secrets/": deny, "secrets/public/": allow}}', "delete secrets/k", "deny"),
    (
        'version: 1\nrules: {delete: {"secrets/": deny, "secrets/public/": allow}}',
        "delete secrets/public/k",
        "allow",
    ),
    ('version: 1\nrules: {read: {"src/**/*.py": allow}}', "read src/a.py", "allow"),
    ('version: 1\nrules: {read: {"src/**/*.py": allow}}', "read src/x/y/a.py", "allow"),
    ('version: 1\nrules: {read: {"src/**/*.py": allow}}', "read a.py", "ask"),
    (AGENT, "--agent coder delete internal/test/a.go", "allow"),
    (AGENT, "--agent other delete internal/test/a.go", "deny"),
    (AGENT + HELD, "--agent coder delete internal/test/a.go", "deny"),
    (
        'version: 1\nrules: {delete: {"tmp/*": allow}}\nagents: {a: {rules: {"*": deny}}}',
        "--agent a delete tmp/a",
        "deny",
    ),
    (
        'version: 1\nrules: {read: allow, delete: {"src/**": deny}, move_file: allow}',
        "move_file src/a tmp/a",
        "deny",
    ),
    (
        'version: 1\nrules: {read: allow, write: ask, edit_file: {"docs/**": allow}}',
        "edit_file docs/a.md",
        "allow",
    ),
    (
        'version: 1\nrules: {read: allow, write: ask, edit_file: {"docs/**": allow}}',
        "create_file docs/b.md",
        "ask",
    ),
    ('version: 1\nrules: {write: {"tmp/*": allow}}', "create_file tmp/x", "allow"),
    ('version: 1\nrules: {write: {"tmp/*": allow, "tmp": deny}}', "create_file tmp/x", "deny"),
]


@pytest.mark.parametrize(("text", "words", "verdict"), EXAMPLES)
def test_deciding_examples(ringfence: Ringfence, policy: Write, text: str, words: str, verdict: str) -> None:
    policy(text)
    done = ringfence("explain", *words.split(), "--json")
    assert done.status == 0
    assert done.json["decision"]["effect"] == verdict
    shown = ringfence("explain", *words.split())
    assert shown.out.startswith(f"{verdict}: ")


def test_no_policy_at_all_asks(ringfence: Ringfence) -> None:
    done = ringfence("explain", "delete", "anything")
    assert done.out.startswith("ask: delete anything for agent default, since no rule decides\n")


def test_the_first_line_says_why(ringfence: Ringfence, policy: Write) -> None:
    delete = '{"*.go": {effect: deny, reason: the build owns these}}'
    policy(f"version: 1\nrules:\n  read: allow\n  delete: {delete}\n")
    first = ringfence("explain", "delete", "main.go").out.splitlines()[0]
    rule = 'ringfence.yaml:4, global rule: delete "*.go" (the build owns these)'
    assert first == f"deny: delete main.go for agent default, by {rule}"
    moved = ringfence("explain", "move_file", "main.go", "x").out.splitlines()[0]
    assert moved == f"deny: move_file (delete main.go) for agent default, by {rule}"


def test_deleting_a_directory_is_judged_on_what_is_in_it(
    ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    policy(ROW)
    (workspace / "tmp" / "deep").mkdir(parents=True)
    (workspace / "tmp" / "deep" / "x.go").touch()
    (workspace / "tmp" / "a").touch()
    done = ringfence("explain", "delete", "tmp/", "--json")
    assert (done.json["decision"]["effect"], done.json["decision"]["path"]) == ("deny", "tmp/deep/x.go")
    needs = {(need["path"], need["effect"]) for need in done.json["needs"]}
    assert needs == {("tmp", "ask"), ("tmp/a", "allow"), ("tmp/deep", "allow"), ("tmp/deep/x.go", "deny")}


def test_the_directories_that_are_missing_are_named(
    ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    policy('version: 1\nrules: {read: allow, write: {secrets: deny, "secrets/public/**": allow}}')
    asked = ("explain", "create_file", "secrets/public/x/k")
    done = ringfence(*asked)
    assert "deny: create_file (write secrets)" in done.out
    assert "made on the way, as they are not there: secrets, secrets/public, secrets/public/x\n" in done.out
    (workspace / "secrets" / "public").mkdir(parents=True)
    done = ringfence(*asked)
    assert "allow: create_file (write secrets/public/x/k)" in done.out
    assert "made on the way, as it is not there: secrets/public/x\n" in done.out
    assert ringfence(*asked, "--json").json["made_on_the_way"] == ["secrets/public/x"]
    (workspace / "secrets" / "public" / "x").mkdir()
    assert "made on the way" not in ringfence(*asked).out


def test_a_moved_directory_is_judged_at_both_ends(
    ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    policy('version: 1\nrules: {"*": allow, write: {"new/*.key": deny}}')
    (workspace / "old").mkdir()
    (workspace / "old" / "a.key").touch()
    done = ringfence("explain", "move_file", "old", "new", "--json")
    assert done.json["decision"]["effect"] == "deny"
    assert (done.json["decision"]["action"], done.json["decision"]["path"]) == ("write", "new/a.key")


def test_names_file_line_tier_key_and_pattern(ringfence: Ringfence, policy: Write) -> None:
    policy(AGENT)
    rule = ringfence("explain", "--agent", "coder", "delete", "internal/test/a.go", "--json").json[
        "decision"
    ]["rule"]
    assert rule == {
        "file": "ringfence.yaml",
        "line": 3,
        "tier": "agent",
        "agent": "coder",
        "key": "delete",
        "pattern": "internal/test/*",
        "reason": None,
    }
    shown = ringfence("explain", "--agent", "coder", "delete", "internal/test/a.go").out
    assert "ringfence.yaml:3, agent rule of agent coder" in shown
    assert "ringfence.yaml:2  global" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("deleet x", "did you mean delete?"),
        ("move_file a", "needs two paths"),
        ("delete a b", "has one path"),
        ("--policy nowhere.yaml delete a", "neither a policy file nor one of the ready-made"),
        ("--root nowhere delete a", "no such directory"),
    ],
)
def test_wrong_usage_is_2_with_a_reason(ringfence: Ringfence, words: str, message: str) -> None:
    done = ringfence("explain", *words.split())
    assert done.status == 2
    assert done.out == ""
    assert message in done.err
    assert done.err.startswith("ringfence: ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("delete ../x", "outside_root"),
        ("delete a\\b", "path_invalid"),
        ("delete ringfence.yaml", "protected_path"),
        ("create_file sub/.hg/x", "protected_path"),
        ("write sub/new/.git", "protected_path"),
        ("move_file a sub/ringfence.yaml", "protected_path"),
        ("delete .", "protected_path"),
        ("read link/passwd", "outside_root"),
    ],
)
def test_what_no_policy_can_permit_is_refused(
    ringfence: Ringfence, policy: Write, workspace: Path, words: str, code: str
) -> None:
    policy('version: 1\nrules: {"*": allow}')
    (workspace / "link").symlink_to("/etc")
    done = ringfence("explain", *words.split(), "--json")
    assert done.status == 0
    assert done.json["refused"]["code"] == code
    assert ringfence("explain", *words.split()).out.startswith("refused: ")


def test_a_link_is_judged_by_both_its_names(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy('version: 1\nrules: {"*": allow, read: {"secrets/": deny}}')
    (workspace / "secrets").mkdir()
    (workspace / "public").symlink_to("secrets")
    done = ringfence("explain", "read_file", "public/k", "--json")
    assert (done.json["decision"]["effect"], done.json["decision"]["path"]) == ("deny", "secrets/k")
    assert ringfence("explain", "delete", "public", "--json").json["decision"]["effect"] == "allow"


def test_an_absolute_path_inside_the_root_is_its_relative_form(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "tmp").mkdir()
    done = ringfence("explain", "delete", f"{workspace}/tmp/../a", "--json")
    assert done.json["decision"]["path"] == "a"


def test_hostile_names_are_shown_escaped(ringfence: Ringfence, policy: Write, workspace: Path) -> None:
    policy('version: 1\nrules: {delete: {"*": deny}}')
    (workspace / "d").mkdir()
    (workspace / "d" / "x\x1b[2K\u202e").touch()
    done = ringfence("explain", "delete", "d")
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert r"d/x\x1b[2K\u202e" in done.out


@pytest.mark.parametrize(
    ("words", "status"), [(["delete", "a.go"], 0), (["--json", "delete", "a.go"], 0), (["delte", "a"], 2)]
)
def test_a_process_of_its_own_says_the_same_to_the_end(
    ringfence: Ringfence, policy: Write, workspace: Path, words: list[str], status: int
) -> None:
    """It ends without tidying up: nothing that was said may be lost by that."""
    rules = "".join(f'    "*.{number}": ask\n' for number in range(2_000))
    policy(f"version: 1\nrules:\n  delete:\n{rules}")
    here = ringfence("explain", *words)
    program = "import sys; from ringfence.toolkit.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "explain", *words],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (here.status, here.out)
    assert done.returncode == status


WALKED = [
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': allow}", "read secrets", True),
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': allow}", "search_text secrets", True),
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': allow}", "read_file secrets", False),
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': allow}", "read secrets/k", False),
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': allow}", "read secrets/public", False),
    ("{'*': allow, 'secrets/': deny}", "read secrets", False),
    ("{'*': deny, 'src/**': allow}", "list_directory .", True),
]


@pytest.mark.parametrize(("read", "asked", "walked"), WALKED)
def test_a_denied_directory_that_is_walked_is_told(
    read: str, asked: str, walked: bool, ringfence: Ringfence, policy: Write, workspace: Path
) -> None:
    (workspace / "secrets/public").mkdir(parents=True)
    (workspace / "secrets/k").write_text("x")
    policy(f"version: 1\nrules: {{read: {read}}}\n")
    done = ringfence("explain", *asked.split())
    assert ("goes through this directory all the same" in done.out) is walked
    assert ringfence("explain", "--json", *asked.split()).json["walked"] is walked


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("read_file a", ["20 files", "hour"]),
        ("search_text .", ["20 files", "hour"]),
        ("read a", ["20 files", "hour"]),
        ("list_directory .", []),
        ("create_file b", ["30 files", "day"]),
    ],
)
def test_the_limits_that_count_something_of_the_call_are_shown(
    ringfence: Ringfence, workspace: Path, question: str, shown: list[str]
) -> None:
    (workspace / "ringfence.yaml").write_text(
        'version: 1\nrules: {"*": allow}\n'
        "limits: {read: {max_files: 20, per: hour}, write: {max_files: 30, per: day, over: deny}}\n"
    )
    (workspace / "a").write_text("x")
    out = ringfence("explain", *question.split()).out
    _, found, table = out.partition("Limits that apply:")
    assert bool(found) is bool(shown)
    assert all(word in table for word in shown)
    assert table.count("files") == len(shown[:1])

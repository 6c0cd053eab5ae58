"""`ringfence fmt`: files, folders and stdin; what it refuses; the ready-made policies are formatted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import READY_MADE
from ringfence.policy.formatting.formatter import formatted
from ringfence.policy.formatting.key_order import ANYTHING, POLICY, KeyOrder
from ringfence.toolkit.catalog.policy_schema import policy_schema
from tests.cli.conftest import Ringfence

ROOT = Path(__file__).parents[2]
ROUGH = """# Team policy.

rules:   # of everybody
    write: {'src/**': allow,   # sources
      b: ask}
    read: "allow"
version: 1
mandatory:
- paths: [.env]
  # never
  deny: [read]
"""
LAID = """# Team policy.

version: 1

mandatory:
  # never
  - deny: [read]
    paths: [".env"]

rules: # of everybody
  write:
    "src/**": allow # sources
    "b": ask
  read: allow
"""


def test_a_policy_is_laid_out_and_then_stays(ringfence: Ringfence, workspace: Path) -> None:
    file = workspace / "ringfence.yaml"
    file.write_text(ROUGH, encoding="utf-8")
    file.chmod(0o640)
    done = ringfence("fmt")
    assert (done.status, done.out, done.err) == (0, "", "changed: ringfence.yaml\n")
    assert file.read_text(encoding="utf-8") == LAID
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(workspace.iterdir()) == [file]
    done = ringfence("fmt")
    assert (done.status, done.out, done.err) == (0, "", "")


def test_check_and_diff_change_nothing(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "rough.yaml").write_text(ROUGH, encoding="utf-8")
    (workspace / "laid.yaml").write_text(LAID, encoding="utf-8")
    done = ringfence("fmt", "--check", "rough.yaml", "laid.yaml")
    assert (done.status, done.out) == (1, "would change: rough.yaml\n")
    assert ringfence("fmt", "--check", "laid.yaml").status == 0
    done = ringfence("fmt", "--diff", "rough.yaml", "laid.yaml")
    assert done.status == 0
    assert done.out.startswith("--- rough.yaml\n+++ rough.yaml\n@@ ")
    assert '+    "src/**": allow # sources\n' in done.out
    assert ringfence("fmt", "--diff", "--check", "rough.yaml").status == 1
    assert ringfence("fmt", "--check", "--json", ".").json == [
        {"policy": "laid.yaml", "differs": False},
        {"policy": "rough.yaml", "differs": True},
    ]
    assert (workspace / "rough.yaml").read_text(encoding="utf-8") == ROUGH


def test_stdin_goes_to_stdout(ringfence: Ringfence) -> None:
    assert ringfence("fmt", "-", stdin=ROUGH.encode()).out == LAID
    assert ringfence("fmt", "-", stdin=LAID.encode()).out == LAID
    done = ringfence("fmt", "-", "--check", stdin=ROUGH.encode())
    assert (done.status, done.out) == (1, "would change: -\n")
    crlf = b"\xef\xbb\xbf" + ROUGH.replace("\n", "\r\n").encode()
    assert ringfence("fmt", "-", stdin=crlf).out == LAID


def test_a_folder_is_its_policies_and_cases(ringfence: Ringfence, workspace: Path) -> None:
    texts = {
        "ringfence.yaml": ROUGH,
        "team/web.yml": ROUGH,
        "team/web.cases.yaml": "version: 1\ncases: [{want: deny, path: a, action: read}]\n",
        "team/compose.yaml": "services: {web: {image:   x}}\nversion: '1'\n",
        "team/other.yaml": "version:   1\nsteps: []\n",
        "team/notes.txt": ROUGH,
        ".hidden/p.yaml": ROUGH,
        "node_modules/p.yaml": ROUGH,
    }
    for name, text in texts.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text, encoding="utf-8")
    done = ringfence("fmt", ".")
    assert done.status == 0
    changed = {name for name, text in texts.items() if (workspace / name).read_text(encoding="utf-8") != text}
    assert changed == {"ringfence.yaml", "team/web.yml", "team/web.cases.yaml"}


def test_what_does_not_load_is_left_and_the_rest_is_done(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "rough.yaml").write_text(ROUGH, encoding="utf-8")
    bad = ROUGH.replace("deny:", "dny:")
    (workspace / "bad.yaml").write_text(bad, encoding="utf-8")
    done = ringfence("fmt", "bad.yaml", "rough.yaml")
    assert done.status == 2
    assert "bad.yaml:11:3: unknown key 'dny'" in done.err and "did you mean 'deny'?" in done.err
    assert (workspace / "bad.yaml").read_text(encoding="utf-8") == bad
    assert (workspace / "rough.yaml").read_text(encoding="utf-8") == LAID
    assert ringfence("fmt", "missing.yaml").status == 2
    assert ringfence("fmt", "-", stdin=b"").status == 2


def test_a_link_stays_a_link(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "shared.yaml").write_text(ROUGH, encoding="utf-8")
    (workspace / "ringfence.yaml").symlink_to("shared.yaml")
    assert ringfence("fmt", "ringfence.yaml").status == 0
    assert (workspace / "ringfence.yaml").is_symlink()
    assert (workspace / "shared.yaml").read_text(encoding="utf-8") == LAID


@pytest.mark.parametrize(
    "text",
    [
        "%YAML 1.1\n---\nversion: 1\n",  # a directive has no place in what is written
    ],
)
def test_what_cannot_be_laid_out_alike_is_left(ringfence: Ringfence, workspace: Path, text: str) -> None:
    (workspace / "p.yaml").write_text(text, encoding="utf-8")
    done = ringfence("fmt", "p.yaml")
    assert done.status == 2
    assert "left unchanged" in done.err
    assert (workspace / "p.yaml").read_text(encoding="utf-8") == text


def test_a_comment_that_ignores_a_finding_stays_on_its_line(ringfence: Ringfence, workspace: Path) -> None:
    long = "".join(f'"folder-{number}/**": deny, ' for number in range(9))
    text = f'version: 1\nrules:\n  write: {{{long}a: deny, "*": allow}} # ringfence: ignore dead-rule shown\n'
    (workspace / "p.yaml").write_text(text, encoding="utf-8")
    before = ringfence("check", "--notes", "p.yaml").out
    assert ringfence("fmt", "p.yaml").status == 0
    assert ringfence("check", "--notes", "p.yaml").out == before


@pytest.mark.parametrize("name", READY_MADE)
def test_the_ready_made_policies_are_laid_out(name: str) -> None:
    for file in (ROOT / "rules" / f"{name}.yaml", ROOT / "rules" / f"{name}.cases.yaml"):
        data = file.read_bytes()
        assert formatted(data, file.name) == data.decode(), f"run `ringfence fmt rules/{file.name}`"


def test_every_key_of_the_language_has_a_place_in_the_order() -> None:
    """The shape against the published schema: the same keys at the same places."""
    schema = policy_schema(json.loads((ROOT / "policy" / "schema.json").read_text(encoding="utf-8")))
    seen = set()

    def follow(part: dict[str, Any], shape: KeyOrder, trail: str) -> None:
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
        for each in (*part.get("anyOf", ()), *part.get("oneOf", ())):
            follow(each, shape, trail)
        for key, value in part.get("properties", {}).items():
            below = shape.keys.get(key) or shape.others
            assert below, f"{trail}.{key}"
            seen.add(f"{trail}.{key}")
            follow(value, below, f"{trail}.{key}")
        if isinstance(part.get("items"), dict):
            follow(part["items"], shape.items or ANYTHING, f"{trail}[]")
        if isinstance(part.get("additionalProperties"), dict):
            follow(part["additionalProperties"], shape.others or ANYTHING, f"{trail}.*")

    follow(schema, POLICY, "")
    assert {".version", ".mandatory[].except", ".limits.delete.per", ".cases[].want"} <= seen


def test_a_key_too_long_for_a_colon_keeps_its_question_mark(ringfence: Ringfence, workspace: Path) -> None:
    long = "a" * 1_020
    text = f'rules:\n  read:\n      # above\n      ? "{long}bcd"   # beside\n      :   deny\nversion: 1\n'
    text = text.replace(
        "version", f'  write:\n      ? "{long}"\n      : {{reason: x, effect: deny}}\nversion'
    )
    (workspace / "ringfence.yaml").write_text(text, encoding="utf-8")
    assert ringfence("fmt").status == 0
    lines = (workspace / "ringfence.yaml").read_text(encoding="utf-8").splitlines()
    at = lines.index("  read:") + 1
    assert lines[at : at + 3] == ["    # above", "    # beside", f'    ? "{long}bcd"']
    assert lines[at + 3 :] == [
        "    : deny",
        "  write:",
        f'    "{long}":',
        "      effect: deny",
        "      reason: x",
    ]
    assert ringfence("fmt", "--check").status == 0

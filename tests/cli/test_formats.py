"""What other programs read of `check`: SARIF, annotations, diagnostics; and `diff` with a real git."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.conftest import Ringfence

WRONG = """version: 1
rules:
  read: {a: deny, '*': allow}
  write: {'src/**.py': ask}
cases:
  - {action: read, path: a, want: deny}
"""


def test_sarif_keeps_the_rules_of_its_format(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(WRONG, encoding="utf-8")
    log: Any = json.loads(ringfence("check", "--format", "sarif").out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert {result["ruleId"] for result in run["results"]} == set(ids) >= {"dead-rule", "case-failed"}
    for result in run["results"]:
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert re.fullmatch(r"[A-Za-z0-9._~/-]+", place["artifactLocation"]["uri"])
        assert place["region"]["startLine"] >= 1 <= place["region"]["startColumn"]


def test_annotations_hold_no_line_ends(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(WRONG, encoding="utf-8")
    lines = ringfence("check", "--format", "github").out.splitlines()
    shape = r"::(error|warning|notice) file=[^,:]+,line=\d+,col=\d+,title=[^,:]+::.+"
    assert lines and all(re.fullmatch(shape, line) for line in lines)


def test_diagnostics_of_a_language_server(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(WRONG, encoding="utf-8")
    (published,) = json.loads(ringfence("check", "--format", "lsp-json").out)
    assert published["uri"] == (workspace / "ringfence.yaml").as_uri()
    found = {each["code"]: each for each in published["diagnostics"]}
    assert found["dead-rule"]["severity"] == 1
    assert found["dead-rule"]["range"]["start"] == {"line": 2, "character": 9}
    (workspace / "ringfence.yaml").write_text("version: 1\n", encoding="utf-8")
    (clean,) = json.loads(ringfence("check", "--format", "lsp-json").out)
    assert clean["diagnostics"] == []


def test_a_revision_is_compared_with_what_it_extended(ringfence: Ringfence, workspace: Path) -> None:
    def git(*words: str) -> None:
        named = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *named, *words], cwd=workspace, check=True, capture_output=True)

    git("init", "-q")
    (workspace / "base.yaml").write_text("version: 1\nrules: {read: ask}\n", encoding="utf-8")
    (workspace / "ringfence.yaml").write_text(
        "version: 1\nextends: [base.yaml]\nrules: {delete: deny}\n", encoding="utf-8"
    )
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (workspace / "base.yaml").write_text("version: 1\nrules: {read: allow}\n", encoding="utf-8")
    done = ringfence("diff", "HEAD:ringfence.yaml", "ringfence.yaml", "--fail-on", "widen", "--json")
    assert done.status == 1
    assert [(c["action"], c["before"], c["after"]) for c in done.json["changes"]] == [
        ("read", "ask", "allow")
    ]
    back = ringfence("diff", "ringfence.yaml", "HEAD:./ringfence.yaml", "--fail-on", "widen")
    assert back.status == 0
    assert ringfence("diff", "HEAD:missing.yaml", "ringfence.yaml").status == 2
    assert ringfence("diff", "nowhere:ringfence.yaml", "ringfence.yaml").status == 2

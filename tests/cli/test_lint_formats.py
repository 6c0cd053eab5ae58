"""What other programs read of `check`: SARIF, annotations, diagnostics; and `diff` with a real git."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from junitparser import Error, Failure, JUnitXml

from ringfence.policy.lint.codes import FINDINGS
from ringfence.toolkit.authoring.finding_pages import PAGES, VARIABLE
from tests.cli.conftest import Ringfence

DOCS = Path(__file__).parents[2] / "docs"
WRONG = """version: 1
rules:
  read: {a: deny, '*': allow}
  write: {'src/**.py': ask}
cases:
  - {action: read, path: a, want: deny}
"""


# Names that are no URI as they stand, or that another URI would be read from.
NAMES = [
    b"ringfence.yaml",
    b"a b%20c.yaml",
    b"x#y?z=1&w.yaml",
    b"http:x.yaml",
    b"new\nline\r.yaml",
    b'"q\\<>^`{|}.yaml',
    "\u00fc\u20ac\U0001f600\u202e.yaml".encode(),
    b"\xff\xfe.yaml",
    b"deep/er/p.yaml",
]
# A relative reference of RFC 3986, section 4.2, with no colon anywhere.
RELATIVE = (
    r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-F]{2})+(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})+)*"
)
LEVELS = {"error", "warning", "note"}


@pytest.mark.parametrize("text", [WRONG, "version: 1\nrules: {read: alow}\n", "version: 1\n", ""])
@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_sarif_keeps_the_rules_of_its_format(
    ringfence: Ringfence, workspace: Path, name: bytes, text: str
) -> None:
    file = Path(os.fsdecode(name))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    out = ringfence("check", "--format", "sarif", str(file)).out
    assert out.isascii()
    log: Any = json.loads(out)
    assert (log["version"], set(log)) == ("2.1.0", {"version", "$schema", "runs"})
    assert urlsplit(log["$schema"]).path.endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    driver = run["tool"]["driver"]
    assert driver["name"] and driver["version"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS
    assert {result["ruleId"] for result in run["results"]} == set(ids)
    assert (text == WRONG) is ({"dead-rule", "case-failed"} <= set(ids))
    assert bool(ids) is (text != "version: 1\n")
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in LEVELS
        assert result["message"]["text"].encode("utf-8")
        place = result["locations"][0]["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        assert re.fullmatch(RELATIVE, uri)
        assert unquote_to_bytes(uri) == name
        line, column = place["region"]["startLine"], place["region"]["startColumn"]
        assert 1 <= line <= max(1, text.count("\n")) and column >= 1


def test_sarif_of_several_files_names_each_and_counts_its_rules_once(
    ringfence: Ringfence, workspace: Path
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "base.yaml").write_text("version: 1\nrules: {read: alow}\n", encoding="utf-8")
    (workspace / "sub" / "p.yaml").write_text("version: 1\nextends: [../base.yaml]\n", encoding="utf-8")
    (workspace / "one.yaml").write_text(WRONG, encoding="utf-8")
    out = ringfence("check", "--format", "sarif", "one.yaml", "sub/p.yaml", str(workspace / "one.yaml")).out
    (run,) = json.loads(out)["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    uris = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]
    }
    assert uris == {"one.yaml", "base.yaml", (workspace / "one.yaml").as_uri()}


@pytest.mark.parametrize(
    ("named", "given", "prefix"),
    [
        (None, "", None),
        ("https://example.org/docs/", "", "https://example.org/docs/reference/checks/"),
        (None, "https://docs.example/d", "https://docs.example/d/reference/checks/"),
        ("https://example.org/docs/", "https://docs.example/d/", "https://docs.example/d/reference/checks/"),
        (None, "https://docs.example/{code}.md?v=1", "https://docs.example/"),
    ],
)
def test_sarif_leads_to_the_page_of_each_finding(
    ringfence: Ringfence, workspace: Path, monkeypatch: pytest.MonkeyPatch,
    named: str | None, given: str, prefix: str | None,
) -> None:  # fmt: skip
    """Below the address of docs/ that is given, or that the package's metadata names; else none is."""
    monkeypatch.setattr("ringfence.toolkit.version.documentation", lambda: named)
    monkeypatch.setenv(VARIABLE, given)
    (workspace / "ringfence.yaml").write_text(WRONG, encoding="utf-8")
    (run,) = json.loads(ringfence("check", "--format", "sarif").out)["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    found = {code: rule["helpUri"] for code, rule in rules.items() if "helpUri" in rule}
    assert set(found) == (set(rules) - {"case-failed"} if prefix else set())
    for code, address in found.items():
        assert address.removeprefix(str(prefix)).partition("?")[0] == f"{code}.md"


def test_sarif_carries_the_page_of_each_finding(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(WRONG, encoding="utf-8")
    (run,) = json.loads(ringfence("check", "--format", "sarif").out)["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules["dead-rule"]["help"] == {
        "text": FINDINGS["dead-rule"][2],
        "markdown": (DOCS / PAGES / "dead-rule.md").read_text(encoding="utf-8"),
    }
    assert "help" not in rules["case-failed"]


def test_an_address_of_the_documentation_that_is_none(
    ringfence: Ringfence, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "docs/")
    (workspace / "ringfence.yaml").write_text(WRONG, encoding="utf-8")
    done = ringfence("check", "--format", "sarif")
    assert (done.status, f"{VARIABLE} docs/: not an address" in done.err) == (2, True)


def test_the_metadata_of_the_package_names_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.version import documentation

    folder = tmp_path / "ringfence-9.dist-info"
    folder.mkdir()
    named = "Project-URL: Source, https://example.org\nProject-URL: Documentation, https://example.org/docs\n"
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ringfence\nVersion: 9\n{named}")
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    assert documentation() == "https://example.org/docs"


def test_each_finding_has_the_page_that_sarif_names() -> None:
    assert [code for code in FINDINGS if not (DOCS / PAGES / f"{code}.md").is_file()] == []


BROKEN_INVARIANT = """invariants:
  - never: {action: write, path: "src/**", verdict: ask}
  - never: {action: delete, path: "*", verdict: allow}
"""


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_junit_is_a_test_report(ringfence: Ringfence, workspace: Path, name: bytes) -> None:
    """Read by a parser that is not ours; every case, invariant and finding is a test of its policy."""
    file = Path(os.fsdecode(name))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(WRONG + BROKEN_INVARIANT, encoding="utf-8")
    done = ringfence("check", "--format", "junit", str(file))
    assert done.status == 1 and done.out.isascii()
    (suite,) = JUnitXml.fromstring(done.out.encode())
    tests = {str(test.name).partition(" (")[0]: test for test in suite}
    assert (suite.tests, suite.failures, suite.errors) == (len(list(suite)), 3, 0)
    wrong = {name for name, test in tests.items() if any(isinstance(each, Failure) for each in test.result)}
    assert wrong == {
        "error dead-rule",
        "case: default read a is deny",
        'invariant: never ask for any agent, write "src/**"',
    }
    assert tests['invariant: never allow for any agent, delete "*"'].result == []
    assert tests["warning pattern-glued-stars"].system_out


def test_junit_of_policies_that_do_not_load_and_that_are_right(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "bad.yaml").write_text("version: 1\nrules: {read: alow, wrte: ask}\n", encoding="utf-8")
    (workspace / "good.yaml").write_text("version: 1\n", encoding="utf-8")
    done = ringfence("check", "--format", "junit", "bad.yaml", "good.yaml")
    assert done.status == 2
    report = JUnitXml.fromstring(done.out.encode())
    bad, good = report
    assert (report.tests, report.failures, report.errors) == (3, 0, 2)
    assert [(test.name, type(test.result[0])) for test in bad] == [
        ("effect_unknown (bad.yaml:2:15)", Error),
        ("rule_key_unknown (bad.yaml:2:21)", Error),
    ]
    assert [(test.name, test.result) for test in good] == [("loads", [])]


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


# A policy's line with a fault in it, and where the fault begins and ends in units of UTF-16.
FAULTS = [
    ("  read: {source: alow}", 17, 18),
    ("  read: {'gr\u00fc\u00dfe': alow}", 18, 19),
    ("  read: {\u6c49\u5b57: alow}", 13, 14),
    ("  read: {\U0001f600: alow}", 13, 14),
    ("  read: {\U0001f1eb\U0001f1ee: alow}", 15, 16),
    ("  \U0001f600: ask", 2, 4),
]


@pytest.mark.parametrize(("line", "start", "end"), FAULTS)
@pytest.mark.parametrize("broken", ["\n", "\r\n", "\r"], ids=repr)
def test_diagnostics_count_as_the_protocol_does(
    ringfence: Ringfence, workspace: Path, line: str, start: int, end: int, broken: str
) -> None:
    text = broken.join(("version: 1", "rules:", line, ""))
    (workspace / "ringfence.yaml").write_bytes(text.encode())
    (published,) = json.loads(ringfence("check", "--format", "lsp-json").out)
    (found,) = [each["range"] for each in published["diagnostics"] if each["severity"] == 1]
    assert found == {"start": {"line": 2, "character": start}, "end": {"line": 2, "character": end}}


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


# ------------------------------------------------------------- git revisions


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q")

    def git(self, *words: str) -> None:
        named = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *named, *words], cwd=self.folder, check=True, capture_output=True)

    def write(self, path: str, rules: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(f"version: 1\n{rules}\n", encoding="utf-8")

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "one")


@pytest.fixture
def repository(workspace: Path) -> Repository:
    return Repository(workspace)


def test_a_revision_with_links_is_read(ringfence: Ringfence, repository: Repository) -> None:
    repository.write("shared/team.yaml", "rules: {read: deny}")
    folder = repository.folder
    (folder / "ringfence.yaml").symlink_to("policies/team.yaml")
    (folder / "policies").symlink_to("shared")
    (folder / "evil.yaml").symlink_to("/etc/passwd")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "out.yaml").symlink_to("../../../../etc/passwd")
    (folder / "shared" / "up").symlink_to("..")
    (folder / "through.yaml").symlink_to("shared/up/../../x.yaml")
    repository.commit()
    done = ringfence("diff", "HEAD:ringfence.yaml", "HEAD:shared/team.yaml", "--fail-on", "any")
    assert (done.status, done.out) == (0, "the same verdict for every agent, action and path\n")
    for name in ("evil.yaml", "loop.yaml", "out.yaml", "through.yaml", "../x.yaml"):
        gone = ringfence("diff", f"HEAD:{name}", "baseline")
        assert (gone.status, "has no policy" in gone.err) == (2, True)


def test_names_in_a_revision_are_no_patterns(ringfence: Ringfence, repository: Repository) -> None:
    repository.write("policies/base.yaml", "rules: {read: ask}")
    repository.write(":!policies/x.yaml", "rules: {read: deny}")
    repository.write("*.yaml", "extends: [policies/base.yaml]")
    repository.write("-a/with \n newline.yaml", "rules: {read: deny}")
    repository.commit()
    assert ringfence("diff", "HEAD:*.yaml", "HEAD:policies/base.yaml", "--fail-on", "any").status == 0
    assert ringfence("diff", "HEAD::!policies/x.yaml", "HEAD:-a/with \n newline.yaml").status == 0


def test_a_policy_in_a_folder_below_is_looked_at(ringfence: Ringfence, repository: Repository) -> None:
    repository.write("ringfence.yaml", "rules: {read: allow}")
    repository.write("sub/ringfence.yaml", 'rules: {"*": deny}')
    repository.write("policies/base.yaml", "rules: {write: deny}")
    repository.write("by/ringfence.yaml", "extends: [../policies/base.yaml]")
    repository.commit()
    assert ringfence("diff", "--all", "HEAD", "--fail-on", "any").status == 0
    assert ringfence("check", "--all").status == 0
    repository.write("sub/ringfence.yaml", 'rules: {"*": allow}')
    done = ringfence("diff", "--all", "HEAD", "--fail-on", "widen", "--json")
    assert done.status == 1
    assert [row["policy"] for row in done.json if row["widens"]] == ["sub/ringfence.yaml"]
    repository.git("checkout", "-q", "sub")
    # A base that is changed counts where it is extended; a new policy and one that goes count, too.
    repository.write("policies/base.yaml", "rules: {write: allow}")
    repository.write("new/ringfence.yaml", "rules: {read: allow}")
    (repository.folder / "sub" / "ringfence.yaml").unlink()
    done = ringfence("diff", "--all", "HEAD", "--fail-on", "widen", "--json")
    assert [row["policy"] for row in done.json if row["widens"]] == [
        "by/ringfence.yaml",
        "new/ringfence.yaml",
        "sub/ringfence.yaml",
    ]
    repository.write("policies/base.yaml", "rules: {write: {a: allow, 'a*': deny}}")
    done = ringfence("check", "--all")
    assert (done.status, "base.yaml:2" in done.out) == (1, True)


def test_a_policy_that_did_not_load_denied_everything(ringfence: Ringfence, repository: Repository) -> None:
    repository.write("ringfence.yaml", "rulez: {}")
    repository.commit()
    repository.write("ringfence.yaml", "rules: {read: ask}")
    done = ringfence("diff", "--all", "HEAD", "--fail-on", "widen")
    assert (done.status, "did not load" in done.err) == (1, True)
    repository.write("ringfence.yaml", "rulez: {}")
    assert ringfence("diff", "--all", "HEAD").status == 2


def test_all_needs_a_repository_and_one_revision(ringfence: Ringfence, repository: Repository) -> None:
    for words in (("--all", "HEAD", "x"), ("one",), ("--all", "nowhere"), ("--all", "--output=x")):
        assert ringfence("diff", *words).status == 2

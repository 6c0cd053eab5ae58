"""Diagnostics: the same as `check --format lsp-json` prints, at once while somebody types, in every file."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from lsprotocol import types as lsp

from ringfence.policy import READY_MADE
from ringfence.toolkit.language_server import remarks
from ringfence.toolkit.language_server.diagnostics import moved
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.remarks import Remark
from tests.language_server.client import Editor, environment
from tests.language_server.conftest import Live, underlined

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference" / "checks").glob("*.md"))
LOADING = yaml.safe_load((ROOT / "tests" / "loading" / "load_errors.yaml").read_text(encoding="utf-8"))
NAME = "ringfence.yaml"


def examples() -> list[str]:
    """The policies of the pages about findings, and those that do not load of the tests of loading."""
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    texts = [block if block.startswith("version") else f"version: 1\n{block}" for block in blocks]
    texts += [row["text"] for row in LOADING]
    assert len(texts) > 60
    return texts


def checked(names: list[str], folder: Path) -> dict[str, list[Any]]:
    """What the command line says of files, by their URIs."""
    command = [sys.executable, "-m", "ringfence", "check", "--format", "lsp-json", *names]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, timeout=120, check=False
    )
    return {each["uri"]: each["diagnostics"] for each in json.loads(done.stdout)}


def test_they_are_what_check_says(live: Live) -> None:
    texts = examples()
    names = [f"{live.place({NAME: text})}/{NAME}" for text in texts]
    expected = checked(names, live.folder)
    assert len(expected) >= len(names)
    count = 0
    for name, text in zip(names, texts, strict=True):
        wanted = sorted(
            (
                each["range"]["start"]["line"],
                each["range"]["start"]["character"],
                each["severity"],
                each["code"],
                each["message"],
            )
            for each in expected[live.editor.uri(name)]
        )
        live.open(name, text)
        found = live.run(live.editor.until(name, lambda found, wanted=wanted: rows(found) == wanted))
        count += len(found)
    assert count > 100


def rows(found: list[lsp.Diagnostic]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            each.range.start.line,
            each.range.start.character,
            int(each.severity or 0),
            each.code,
            each.message.partition("\nhint: ")[0],
        )
        for each in found
    )


@pytest.mark.parametrize("name", READY_MADE)
def test_ready_made_policies_have_what_check_says(name: str, live: Live) -> None:
    text = (ROOT / "rules" / f"{name}.yaml").read_text(encoding="utf-8")
    cases = (ROOT / "rules" / f"{name}.cases.yaml").read_text(encoding="utf-8")
    place = live.place({"p.yaml": text, "p.cases.yaml": cases})
    wanted = checked([f"{place}/p.yaml"], live.folder)[live.editor.uri(f"{place}/p.yaml")]
    live.open(f"{place}/p.yaml", text)
    live.run(live.editor.until(f"{place}/p.yaml", lambda found: len(found) == len(wanted)))


def test_a_diagnostic_has_its_range_hint_and_page(live: Live) -> None:
    name = f"{live.place()}/{NAME}"
    text = 'version: 1\nrules:\n  write: {"src/*.py": deny, "*.py": ask}\n'
    live.open(name, text)
    found = live.run(live.editor.until(name, lambda found: any(each.code == "dead-rule" for each in found)))
    dead = next(each for each in found if each.code == "dead-rule")
    assert underlined(text, dead.range) == '"src/*.py"'
    assert dead.source == "ringfence"
    assert "\nhint: move it below what covers it" in dead.message
    page = Path(dead.code_description.href.removeprefix("file://"))
    assert page.read_text(encoding="utf-8").startswith("# dead-rule")
    assert list(dead.tags) == [lsp.DiagnosticTag.Unnecessary]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-32"])
def test_positions(end: str, bom: str, encoding: str, tmp_path: Path) -> None:
    """Ranges in each encoding that a client can ask for, computed here from the encoded bytes."""
    text = f'{bom}version: 2{end}rules:{end}  read: {{"\U0001f600\u00e9": alow}} # x{end}'
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]

    def units(said: str) -> int:
        return (
            len(said.encode({"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, encoding))) // size
        )

    async def ask() -> list[lsp.Diagnostic]:
        async with Editor(tmp_path, [encoding]) as editor:
            assert editor.server.capabilities.position_encoding == encoding
            editor.open(NAME, text)
            return await editor.codes(NAME, "effect_unknown", "version_unknown")

    found = {each.code: each.range for each in asyncio.run(ask())}
    assert found["version_unknown"].start == lsp.Position(0, units(f"{bom}version: "))
    start = units('  read: {"\U0001f600\u00e9": ')
    assert found["effect_unknown"] == lsp.Range(lsp.Position(2, start), lsp.Position(2, start + 4))


def test_a_text_that_does_not_parse_has_one_clear_diagnostic(live: Live) -> None:
    name = f"{live.place()}/{NAME}"
    live.open(name, "version: 1\nrules:\n  read: [a, b\n  write: {\n")
    found = live.run(live.editor.until(name, lambda found: found))
    assert len(found) == 1
    assert found[0].code == "yaml_syntax"


def test_problems_of_an_extended_file_are_in_both(live: Live) -> None:
    place = live.place({"base.yaml": "version: 1\nrules: {read: alow}\n"})
    text = "version: 1\nextends: [baseline, base.yaml]\n"
    live.open(f"{place}/{NAME}", text)
    base = live.run(live.editor.codes(f"{place}/base.yaml", "effect_unknown"))
    assert base[0].range == lsp.Range(lsp.Position(1, 14), lsp.Position(1, 18))
    own = live.run(live.editor.codes(f"{place}/{NAME}", "effect_unknown"))[0]
    assert underlined(text, own.range) == "base.yaml"
    assert "base.yaml:2:15" in own.message
    assert own.related_information[0].location.uri == live.editor.uri(f"{place}/base.yaml")


def test_unsaved_text_of_an_extended_file_counts(live: Live) -> None:
    """An edit of a base shows in what extends it, without a save."""
    place = live.place(
        {"base.yaml": "version: 1\nrules: {read: allow}\n", NAME: "version: 1\nextends: base.yaml\n"}
    )
    live.open(f"{place}/{NAME}", "version: 1\nextends: base.yaml\n")
    live.run(live.editor.until(f"{place}/{NAME}", lambda found: found == []))

    async def change() -> None:
        live.editor.open(f"{place}/base.yaml", "version: 1\nrules: {read: alow}\n")
        await live.editor.codes(f"{place}/{NAME}", "effect_unknown")
        live.editor.change(f"{place}/base.yaml", "version: 1\nrules: {read: ask}\n")
        await live.editor.until(
            f"{place}/{NAME}", lambda found: "effect_unknown" not in {each.code for each in found}
        )

    live.run(change())


def test_cases_beside_a_policy(live: Live) -> None:
    """What fails is shown in the file of cases, and changes with either file."""
    policy = "version: 1\nrules: {read: allow}\n"
    cases = "version: 1\ncases: [{action: read, path: a, want: deny}]\n"
    place = live.place({"p.yaml": policy, "p.cases.yaml": cases})
    live.open(f"{place}/p.cases.yaml", cases)
    found = live.run(live.editor.codes(f"{place}/p.cases.yaml", "case-failed"))
    assert found[0].message.startswith("default read a: wanted deny, got allow")

    async def change() -> None:
        live.editor.change(f"{place}/p.cases.yaml", cases.replace("deny", "alow"))
        await live.editor.codes(f"{place}/p.cases.yaml", "effect_unknown")
        live.editor.change(f"{place}/p.cases.yaml", cases.replace("deny", "allow"))
        await live.editor.codes(f"{place}/p.cases.yaml")

    live.run(change())


def test_closing_a_file_takes_its_diagnostics_away(live: Live) -> None:
    name = f"{live.place()}/{NAME}"
    live.open(name, "version: 2\n")
    live.run(live.editor.codes(name, "version_unknown"))

    async def close() -> None:
        live.editor.close(name)
        await live.editor.codes(name)

    live.run(close())


def test_every_edit_is_answered_for_its_own_version(live: Live) -> None:
    """Many edits in a row: the last diagnostics are those of the last text."""
    name = f"{live.place()}/{NAME}"
    live.open(name, "version: 1\n")

    async def type_in() -> None:
        for number in range(50):
            last = live.editor.change(name, f"version: 1\nrules: {{read: alow{number}}}\n")
        found = await live.editor.until(name, lambda found: any("alow49" in each.message for each in found))
        assert len(found) == 1
        assert live.editor.published[live.editor.uri(name)][-1].version == last

    live.run(type_in())


def test_findings_that_are_under_way_are_cancelled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The next edit stops them; the function hears of it, and its result is not shown."""
    from ringfence.toolkit.language_server import analyses
    from ringfence.toolkit.language_server.open_files import OpenFiles

    started, seen = asyncio.Event(), []

    def slow(loading: Any, files: Any, expired: Any, memory: Any) -> tuple[Remark, ...]:
        loop.call_soon_threadsafe(started.set)
        while not expired():
            pass
        seen.append(files.documents[path].text)
        return (Remark(path, 0, 0, 1, "error", "dead-rule", "never shown"),)

    monkeypatch.setattr(analyses, "findings", slow)
    path = tmp_path / NAME
    shown: list[list[lsp.Diagnostic]] = []

    async def edit() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        files = OpenFiles()
        known = analyses.Analyses(files, lambda _, found: shown.append(found), lambda: None, lambda _: None)
        for text in ("version: 1\n", "version: 1\nrules: {read: ask}\n"):
            files.documents[path] = Document(path, text)
            started.clear()
            known.renew(path)
            await asyncio.wait_for(started.wait(), 30)
        known.stop()

    loop: Any = None
    asyncio.run(edit())
    assert seen == ["version: 1\n", "version: 1\nrules: {read: ask}\n"]
    assert all(found == [] for found in shown)


def test_findings_stay_at_the_lines_that_are_as_they_were() -> None:
    path = Path("/w/p.yaml")
    before = Document(path, "a\nb\nc\nd\n")
    found = [Remark(path, line, 0, 1, "note", "idle-rule", str(line)) for line in range(4)]
    after = Document(path, "a\nnew\nother\nc\nd\n")
    assert [(each.message, each.line) for each in moved(found, before, after)] == [
        ("0", 0),
        ("2", 3),
        ("3", 4),
    ]


def test_a_policy_is_known_by_its_name_or_its_content() -> None:
    known = {
        "ringfence.yaml": "",
        "team.cases.yaml": "",
        "team.yaml": "# ours\nversion: 1\nrules: {read: allow}\n",
    }
    others = {
        "compose.yaml": "version: 1\nservices: {}\n",
        "x.yaml": "version: 2\nrules: {}\n",
        "y.yaml": "rules: {}\n",
    }
    assert all(Document(Path("/w", name), text).is_policy for name, text in known.items())
    assert not any(Document(Path("/w", name), text).is_policy for name, text in others.items())
    assert remarks.policy_beside(Path("/none/p.cases.yaml")) == Path("/none/p.cases.yaml")

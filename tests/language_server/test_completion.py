"""Completion, by its table, and what it offers against what the loader says is known at each place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp

from ringfence.policy import PolicyError, loads
from ringfence.policy.loading.values import Reader
from ringfence.policy.model import DETECTORS
from ringfence.toolkit.language_server import completion
from ringfence.toolkit.language_server.completion import complete
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.open_files import OpenFiles
from tests.language_server.conftest import MARK, Live, edited, marked, table

Row = dict[str, Any]


@pytest.mark.parametrize("row", table("completions"), ids=lambda row: row["name"])
def test_completion(row: Row, live: Live) -> None:
    folder = live.place(row.get("files"))
    text, position = marked(row["policy"])
    document = live.open(f"{folder}/ringfence.yaml", text)
    found = live.run(live.client.text_document_completion_async(lsp.CompletionParams(document, position)))
    offered = {item.label: item for item in found.items}
    assert set(row["offers"]) <= set(offered), sorted(offered)
    assert not set(offered) & set(row.get("not", ()))
    if row.get("only"):
        assert set(offered) == set(row["offers"])
    if "takes" in row:
        assert edited(text, [offered[row["takes"]].text_edit]) == row["gives"]


# A text for each mapping of the language, with the mark where a key goes.
MAPPINGS = {
    "a policy": f"version: 1\n{MARK}",
    "a rule": f"version: 1\nrules:\n  read:\n    a:\n      {MARK}",
    "a mandatory item": f"version: 1\nmandatory:\n  - {MARK}",
    "a limit": f"version: 1\nlimits:\n  delete:\n    {MARK}",
    "an agent": f"version: 1\nagents:\n  a:\n    {MARK}",
    "a case": f"version: 1\ncases:\n  - {MARK}",
    "an invariant": f"version: 1\ninvariants:\n  - {MARK}",
    "the statement of an invariant": f"version: 1\ninvariants:\n  - never:\n      {MARK}",
    "commands": f"version: 1\ncommands:\n  {MARK}",
    "limits of commands": f"version: 1\ncommands:\n  limits:\n    {MARK}",
    "tasks": f"version: 1\ntasks:\n  {MARK}",
    "retention": f"version: 1\nretention:\n  {MARK}",
    "content": f"version: 1\nrules: {{read: {{a: {{effect: ask, content: {{{MARK}",
}


@pytest.mark.parametrize("what", MAPPINGS)
def test_keys_are_those_that_the_loader_knows(what: str, tmp_path: Path) -> None:
    """The loader names what it knows where it finds a key that it does not know."""
    text, position = marked(MAPPINGS[what])
    document = Document(tmp_path / "ringfence.yaml", text)
    items = complete(document, *document.place(position), OpenFiles()).items
    offered = {item.label for item in items if item.kind is lsp.CompletionItemKind.Property}
    with pytest.raises(PolicyError) as caught:
        loads(f"{text}zzqqzz: 1{'}' * text.count('{')}\n")
    known = next(each.hint for each in caught.value.problems if each.code == "key_unknown")
    assert known.startswith("known here: ")
    there = {"version"} if what == "a policy" else set()
    assert offered | there == set(known.removeprefix("known here: ").split(", "))


def test_keys_of_rules_are_those_that_the_loader_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    original = Reader.rule_key

    def rule_key(self: Reader, *arguments: Any) -> Any:
        seen.append(self.keys)
        return original(self, *arguments)

    monkeypatch.setattr(Reader, "rule_key", rule_key)
    loads("version: 1\nrules: {read: allow}\n")
    text, position = marked(f"version: 1\nrules:\n  {MARK}")
    document = Document(tmp_path / "ringfence.yaml", text)
    assert {item.label for item in complete(document, *document.place(position), OpenFiles()).items} == set(
        seen[0]
    )


def test_every_detector_is_offered(tmp_path: Path) -> None:
    text, position = marked(f"version: 1\nrules: {{read: {{a: {{effect: ask, content: [{MARK}]}}}}}}")
    document = Document(tmp_path / "ringfence.yaml", text)
    assert {item.label for item in complete(document, *document.place(position), OpenFiles()).items} == set(
        DETECTORS
    )


def test_paths_are_bounded_and_stay_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MOST_NAMES", 5)
    root = tmp_path / "w"
    root.mkdir()
    for number in range(20):
        (root / f"f{number:02}").write_text("")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("")
    (root / "link").symlink_to(tmp_path / "outside")
    for typed, expected in (("", [f"f{n:02}" for n in range(5)]), ("link/", []), ("a/../../outside/", [])):
        text, position = marked(f'version: 1\nrules: {{read: {{"{typed}{MARK}": deny}}}}\n')
        document = Document(root / "ringfence.yaml", text)
        found = complete(document, *document.place(position), OpenFiles())
        assert [item.label for item in found.items] == expected, typed
        assert found.is_incomplete


def test_no_cursor_fails(tmp_path: Path) -> None:
    """Every position of a policy, and of every beginning of it."""
    text = Path(__file__).with_name("completions.yaml").read_text(encoding="utf-8")
    policy = max(re.findall(r"policy: \|\n((?:    .*\n)+)", text), key=len).replace(MARK, "")
    policy = "\n".join(line[4:] for line in policy.split("\n"))
    for end in range(len(policy) + 1):
        document = Document(tmp_path / "ringfence.yaml", policy[:end])
        last = len(document.lines) - 1
        assert complete(document, last, len(document.lines[last]), OpenFiles()).items is not None
    document = Document(tmp_path / "ringfence.yaml", policy)
    for line, said in enumerate(document.lines):
        for column in range(len(said) + 1):
            complete(document, line, column, OpenFiles())

"""The behaviours of the MCP filesystem server from npm, side by side with ours: at least as safe an answer.

Where the two differ the case says so, and docs/reference/peer.md says why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.interop import npm
from tests.interop.conftest import ROOT, Wire, command

PEER = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
PAGE = ROOT / "docs/reference/peer.md"
CASES = yaml.safe_load((Path(__file__).parent / "peer.yaml").read_text(encoding="utf-8"))
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Wire, Path]]]:
    """Both servers, each in a workspace of its own."""
    if missing := npm.install():
        pytest.skip(missing)
    base = tmp_path_factory.mktemp("side by side")
    found = {}
    for name in ("peer", "ours"):
        root = base / name / "root"
        root.mkdir(parents=True)
        for folder in ("outside", "root-other"):
            (base / name / folder).mkdir()
            (base / name / folder / "secret").write_text("s3cret\n", encoding="utf-8")
        words = [str(npm.node()), str(npm.HERE / PEER), str(root)]
        if name == "ours":
            (base / name / "policy.yaml").write_text('version: 1\nrules: {"*": allow}\n', encoding="utf-8")
            words = [*command(root), "--policy", str(base / name / "policy.yaml")]
        wire = Wire(words)
        wire.greet()
        found[name] = wire, root
    yield found
    for wire, _ in found.values():
        wire.close()


def lay(files: dict[str, str], here: Path, outside: Path) -> None:
    here.mkdir()
    for name, text in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            (here / name).symlink_to(text[3:].replace("{outside}", str(outside)))
        else:
            (here / name).write_bytes(text.encode())


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    return [filled(item, names) for item in value] if isinstance(value, list) else value


def content(here: Path) -> dict[str, str]:
    found = {}
    for folder, _, names in os.walk(here):
        for name in names:
            path = Path(folder) / name
            if not path.is_symlink():
                found[path.relative_to(here).as_posix()] = path.read_bytes().decode()
    return found


def each(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda number: CASES[number]["case"].replace(" ", "-")
)
def test_side_by_side(servers: dict[str, tuple[Wire, Path]], number: int) -> None:
    case = CASES[number]
    outcomes = []
    for index, name in enumerate(("peer", "ours")):
        wire, root = servers[name]
        here, outside = root / f"case{number}", root.parent / "outside"
        lay(case["files"], here, outside)
        tool, arguments = case.get(name, case["peer"])
        names = {"{here}": str(here), "{outside}": str(outside), "{root}": str(root)}
        given = filled(arguments, names)
        told = wire.call(tool, **given)
        text = "\n".join(item.get("text", "") for item in told["content"])
        outcome = "error" if told.get("isError") else "ok"
        outcomes.append(outcome)
        assert outcome == each(case["want"], index), (name, text)
        if "after" in case:
            assert content(here) == each(case["after"], index), (name, text)
        if outcome == "ok":
            assert all(part in text for part in case.get("has", ())), (name, text)
        if "shows" in case:
            assert (case["shows"][0] in text) is case["shows"][index + 1], (name, text)
        secrets = [folder / "secret" for folder in (outside, root.parent / "root-other")]
        assert [path.read_text() for path in secrets] == ["s3cret\n"] * 2
        assert "s3cret" not in text and len(list(outside.iterdir())) == 1
        for said in map(str, given.values()):
            text = text.replace(said, "")  # what the caller named itself
        assert name == "peer" or str(root.parent) not in text, text
    if "differs" not in case:
        assert outcomes[0] == outcomes[1]


def test_every_difference_is_explained() -> None:
    declared = {case["differs"] for case in CASES if "differs" in case}
    explained = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), re.M))
    assert declared and explained == declared


def test_the_cases_cover_what_they_say() -> None:
    peers = {case["peer"][0] for case in CASES}
    wanted = "read_text_file write_file edit_file move_file list_directory search_files get_file_info"
    assert peers >= set(wanted.split())

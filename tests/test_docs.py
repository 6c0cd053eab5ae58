"""The documents against the program: what a page shows is run, what exists is documented, links lead on.

On a page, ```yaml NAME and ```python NAME write a file, ```console runs each `$ command` and compares what
it prints (… is anything, <name> a word that later lines repeat), ```python is run; all in one folder.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ringfence.toolkit.cli import reference_pages as reference
from ringfence.toolkit.cli.table import COMMANDS
from ringfence.toolkit.errors import CODES
from ringfence.toolkit.extras import EXTRAS
from ringfence.toolkit.tools import TOOLS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
# Made from tables or written as prose: nothing on them is meant to be run.
RUN = [page for page in PAGES if "reference" not in page.parts or page.name == "results.md"]

# Where the package is not installed anew, its plugin has to be named.
PLUGGED = any(point.name == "ringfence" for point in entry_points(group="pytest11"))
PYTEST = "pytest" if PLUGGED else "pytest -p ringfence.toolkit.testing.pytest_plugin"


@dataclass(frozen=True)
class Block:
    language: str
    name: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    found = []
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w+)?[ ]?([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match[1] or "", match[2].strip(), match[3], line))
    return found


def identify(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace, with the program on the path as a reader of the page would have it."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, module in (("ringfence", "ringfence"), ("pytest", PYTEST)):
        program = bin_folder / name
        start = f'exec {shlex.quote(sys.executable)} -m {module} "$@"'
        program.write_text(f"#!/bin/sh\n{start}\n", encoding="utf-8")
        program.chmod(0o755)
    work = tmp_path / "project"
    work.mkdir()
    return work


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_STATE_HOME": str(folder.parent / "state"),
        "HOME": str(folder.parent),
        "LC_ALL": "C.UTF-8",
    }


def run(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.stdout


def run_at_terminal(command: str, folder: Path) -> str:
    """The same where whoever reads the page types it, who would be asked there."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        # Opened by the first of a new session, it becomes that one's terminal.
        ["bash", "-c", 'exec <> "$TERMINAL" 1>&0 2>&0; stty -onlcr cols 200; eval "$COMMAND"'],
        cwd=folder,
        env=environment(folder) | {"TERMINAL": os.ttyname(follower), "COMMAND": command, "NO_COLOR": "1"},
        start_new_session=True,
    )
    shown = b""
    with open(leader, "rb", buffering=0) as terminal:
        while child.poll() is None or select.select([leader], [], [], 0)[0]:
            if select.select([leader], [], [], 0.05)[0]:
                shown += terminal.read(4096)
            assert not shown.endswith(b"> "), f"a question that the page does not show:\n{shown.decode()}"
        os.close(follower)
    return shown.decode()


@pytest.mark.parametrize("page", RUN, ids=identify)
def test_what_a_page_shows_is_what_happens(page: Path, folder: Path) -> None:
    follow(page, folder, run)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "tutorial" / "first-steps.md"], ids=identify)
def test_a_first_page_is_the_same_at_a_terminal(page: Path, folder: Path) -> None:
    follow(page, folder, run_at_terminal)


def follow(page: Path, folder: Path, run: Callable[[str, Path], str]) -> None:
    """Do what the page says, from its beginning to its end."""
    known: dict[str, str] = {}
    for block in blocks(page):
        where = f"{identify(page)}:{block.line}"
        if block.name:
            target = folder / block.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, expected in commands_of(block.text):
                shown = run(filled(command, known), folder)
                found = fits(filled(expected, known), shown)
                assert found is not None, f"{where}: `{command}` printed\n{shown}\ninstead of\n{expected}"
                known.update(found)
        elif block.language == "python":
            done = python(["-c", block.text], folder)
            assert done.returncode == 0, f"{where}: {done.stderr}"


def python(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
    )


def filled(text: str, known: dict[str, str]) -> str:
    """The text with each <name> that an earlier output gave a value."""
    return re.sub(r"<(\w+)>", lambda found: known.get(found[1], found[0]), text)


def commands_of(text: str) -> list[tuple[str, str]]:
    """Each `$ command` (with the `> ` lines that continue it) and what is printed under it."""
    found: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            assert found, f"output without a command: {line}"
            found[-1][1].append(line)
    return [("\n".join(command), "\n".join(output)) for command, output in found]


def fits(expected: str, shown: str) -> dict[str, str] | None:
    """The values of each <name> if the two are the same text, … standing for anything; else None."""
    pattern = ""
    for part in re.split(r"(…|<\w+>)", expected.strip()):
        named = re.fullmatch(r"<(\w+)>", part)
        if part == "…":
            pattern += ".*?"
        elif named and f"?P<{named[1]}>" not in pattern:
            pattern += f"(?P<{named[1]}>[\\w.:-]+)"
        elif named:
            pattern += f"(?P={named[1]})"
        else:
            pattern += re.escape(part)
    trimmed = "\n".join(line.rstrip() for line in shown.strip().splitlines())
    match = re.fullmatch(pattern, trimmed, re.S)
    return match.groupdict() if match else None


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        goal = (page.parent / name).resolve() if name else page
        assert goal.exists(), f"{identify(page)}: {target}"
        if anchor:
            assert anchor in anchors(goal), f"{identify(page)}: {target}"


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_extras_are_installed_from_a_checkout(page: Path) -> None:
    """The package is on no index: what a page says to install is the checkout, with an extra that it has."""
    import tomllib

    text = page.read_text(encoding="utf-8")
    assert not re.search(r"pip\s+install\s+(-\S+\s+)*['\"]?ringfence\b", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"pip\s+install\s+(?:-e\s+)?'\.\[(\w+)\]'", text)
    assert set(named) <= set(project["optional-dependencies"])


def test_each_page_of_an_extra_says_how_to_install_it() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "how-to").glob("*.md"))
    assert [extra for extra in EXTRAS if f"pip install '.[{extra}]'" not in text] == []


def test_promises_name_tests_that_there_are() -> None:
    text = (DOCS / "explanation" / "threat-model.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > 10
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"


def test_every_page_is_reached_from_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    missing = [
        page.relative_to(DOCS).as_posix()
        for page in DOCS.rglob("*.md")
        if page.name != "index.md"
        and page.parent.name != "checks"  # these are reached from an index of their own, which has its test
        and page.relative_to(DOCS).as_posix() not in index
    ]
    assert missing == []


@pytest.mark.parametrize("name", reference.PAGES)
def test_reference_pages_are_up_to_date(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == reference.PAGES[name](), "run `python -m ringfence.toolkit.cli.reference_pages`"


def test_one_command_writes_every_page_that_is_made(tmp_path: Path) -> None:
    assert reference.main(tmp_path / "new") == 0
    new = [page for page in (tmp_path / "new").rglob("*") if page.is_file()]
    made = {
        page.relative_to(DOCS).as_posix()
        for page in DOCS.rglob("*")
        if page.suffix in (".md", ".1") and "ade by `python -m" in page.read_text("utf-8")
    }
    assert {page.relative_to(tmp_path / "new").as_posix() for page in new} == made == set(reference.PAGES)
    assert {"reference/tools.md", "man/ringfence.1"} <= made


def test_every_command_option_and_code_is_documented() -> None:
    commands = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    for command in COMMANDS.values():
        assert f"## ringfence {command.name}\n" in commands
        for option in command.options:
            assert option.help
            assert all(f"`{flag}`" in commands for flag in option.flags if flag.startswith("-"))
        assert command.examples, f"{command.name} has no example"
    errors = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    assert all(f"| `{code}` |" in errors for code in CODES)


def test_every_tool_is_documented() -> None:
    tools = (DOCS / "reference" / "tools.md").read_text(encoding="utf-8")
    for tool in TOOLS.values():
        assert tool.name in tools
        assert all(parameter in tools for parameter in tool.parameters["properties"])


def test_every_ready_made_policy_is_documented() -> None:
    names = [path.stem for path in (ROOT / "rules").glob("*.yaml") if not path.name.endswith(".cases.yaml")]
    assert len(names) >= 5
    text = (DOCS / "how-to" / "write-a-policy.md").read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in text] == []


def readme() -> list[Block]:
    return blocks(ROOT / "README.md")


def test_the_first_screen_of_the_readme() -> None:
    """One sentence, two commands, a policy of six lines, a call and its answer."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shell = [block.text.strip() for block in readme() if block.language == "sh"]
    assert shell[0].endswith("/bin/ringfence demo")
    assert "pytest" in shell[1]
    policy = next(block for block in readme() if block.language == "yaml")
    assert len(policy.text.strip().splitlines()) == 6
    assert text.index("ringfence run") < text.index("\n## ")
    assert len(text[: text.index("\n## ")].splitlines()) < 60


def test_the_readmes_commands_are_what_packaging_offers() -> None:
    """The words of the two commands exist: the scripts, and the extra. `.ci/run` runs them for real."""
    import tomllib

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wheel = tomllib.loads(text)["tool"]["hatch"]["build"]["targets"]["wheel"]
    scripts = wheel["shared-scripts"]
    names = ("ringfence", "ringfence-shell", "ringfence-start")
    assert scripts == {f"bin/{name}": name for name in names}
    assert wheel["shared-data"] == {"docs/man/ringfence.1": "share/man/man1/ringfence.1"}
    assert "scripts" not in project  # what an installer makes of those imports from the caller's PYTHONPATH
    assert "dev" in project["optional-dependencies"]
    runner = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in runner
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_json_in_the_reference_of_results_is_json() -> None:
    found = [block for block in blocks(DOCS / "reference" / "results.md") if block.language == "json"]
    assert found
    for block in found:
        for line in block.text.strip().split("\n\n"):
            json.loads(line)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(example: Path, folder: Path) -> None:
    shutil.copy(example, folder)
    done = python([example.name], folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout

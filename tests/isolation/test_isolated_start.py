"""Every interface, started in a workspace whose modules want to run in place of ours and of Python's own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.isolation.conftest import MODULES, ROOT, Hostile, Installed

Make = Callable[..., Hostile]
READ_A = json.dumps({"id": "1", "tool": "read_file", "arguments": {"path": "src/a.txt"}})
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
# A host's event by its name and its tool, on a file that its agent may not read.
EVENTS = {
    "claude-code": ("PreToolUse", "Read"),
    "codex": ("PreToolUse", "read_file"),
    "gemini": ("BeforeTool", "read_file"),
    "cursor": ("preToolUse", "Read"),
    "copilot": ("preToolUse", "view"),
    "vscode": ("PreToolUse", "read_file"),
}


@pytest.fixture
def hostile(workspace: Make) -> Iterator[Hostile]:
    """The workspace with all of the modules; none may have been imported when the test is over."""
    found = workspace()
    yield found
    assert found.imported() == []


STARTS = {
    "sitecustomize": ["-c", ""],
    "encodings/__init__": ["-c", ""],
    "json": ["-c", "import json"],
    "ringfence/__init__": ["-m", "ringfence", "--version"],
}


@pytest.mark.parametrize("module", STARTS)
def test_the_modules_are_hostile(workspace: Make, module: str) -> None:
    """Without isolation each of them is run, some before any program is."""
    hostile = workspace((module,))
    hostile.run(str(hostile.installed.bin / "python"), *STARTS[module])
    assert hostile.imported() == [module.replace("/", ".")]


def test_run(hostile: Hostile) -> None:
    done = hostile.run("ringfence", "run", given=READ_A + "\n")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "ok"), done


def test_call(hostile: Hostile) -> None:
    done = hostile.run("ringfence", "call", "read_file", '{"path": "src/a.txt"}')
    assert (done.returncode, "alpha" in done.stdout) == (0, True), done
    done = hostile.run("ringfence", "call", "read_file", '{"path": "secret/key"}')
    assert (done.returncode, "denied" in done.stdout) == (1, True), done


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["explain", "edit_file", "src/a.txt"],
        ["schema", "tools"],
        ["--version"],
        ["--help"],
        ["matrix"],
    ],
)
def test_a_command(hostile: Hostile, words: list[str]) -> None:
    done = hostile.run("ringfence", *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout


def test_doctor(hostile: Hostile) -> None:
    told = json.loads(hostile.run("ringfence", "doctor", "--json").stdout)
    assert (told["isolated"], told["own_program_here"], told["extras"]["serve"]) == (True, [], True)


@pytest.mark.parametrize("host", EVENTS)
def test_a_hook_as_it_is_installed(hostile: Hostile, host: str) -> None:
    done = hostile.run("ringfence", "hook", "install", host, "--yes", "--json")
    assert done.returncode == 0, done
    name, tool = EVENTS[host]
    hooks = json.loads(Path(json.loads(done.stdout)["file"]).read_text("utf-8"))["hooks"]
    (entry,) = hooks[name]
    (entry,) = entry.get("hooks", [entry])
    command = entry.get("command", entry.get("bash"))
    path = str(hostile.root / "secret" / "key")
    event = {"hook_event_name": name, "cwd": str(hostile.root), "tool_name": tool}
    event |= {"tool_input": {"file_path": path}}
    if host == "copilot":
        event = {"cwd": str(hostile.root), "toolName": tool, "toolArgs": {"path": path}}
    projects = {"CLAUDE_PROJECT_DIR": str(hostile.root), "GEMINI_PROJECT_DIR": str(hostile.root)}
    projects |= dict.fromkeys(("CURSOR_PROJECT_DIR", "COPILOT_PROJECT_DIR"), str(hostile.root))
    for run in (command, f"ringfence hook {host}"):  # as it is written now, and as older ones wrote it
        done = hostile.run("sh", "-c", run, given=json.dumps(event), **projects)
        assert (done.returncode, '"deny"' in done.stdout) == (0, True), done
    told = json.loads(hostile.run("ringfence", "doctor", "--json").stdout)
    assert list(told["hooks"].values()) == [True]


def test_serve_mcp(hostile: Hostile) -> None:
    called = {"name": "read_file", "arguments": {"path": "src/a.txt"}}
    messages = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": called},
    ]
    done = hostile.run("ringfence", "serve", "mcp", given="".join(f"{json.dumps(m)}\n" for m in messages))
    assert (done.returncode, "alpha" in done.stdout) == (0, True), done


@pytest.mark.parametrize("what", ["http", "review"])
def test_serve(hostile: Hostile, what: str) -> None:
    words = hostile.command(["ringfence", "serve", what, "--port", "0"])
    process = subprocess.Popen(
        words, cwd=hostile.root, env=hostile.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        assert process.stderr
        line = process.stderr.readline().decode()
        assert "http://127.0.0.1:" in line, line + process.stderr.read().decode()
        address = "http://" + line.split("http://")[1].split()[0].partition("#")[0]
        with urllib.request.urlopen(address.partition("?")[0].rstrip("/") + "/nothing-here") as answer:
            assert answer
    except urllib.error.HTTPError as answer:
        assert answer.code in (401, 403, 404)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_the_bridge(hostile: Hostile) -> None:
    done = hostile.run("ringfence", "bridge", "emacs")
    assert Path(done.stdout.strip()).is_relative_to(hostile.installed.site)
    words = hostile.command(["ringfence", "bridge", "json", "--once"])
    with subprocess.Popen(
        words, cwd=hostile.root, env=hostile.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        first = process.stdout.readline()
        given = '{"path": "src/new.txt", "content": "x"}'
        assert hostile.run("ringfence", "call", "create_file", given).returncode == 0
        said = first + process.communicate(timeout=60)[0]
    assert "src/new.txt" in said


def test_the_harness_of_the_examples(hostile: Hostile) -> None:
    harness = hostile.folder / "harness.py"
    shutil.copyfile(ROOT / "examples" / "harness.py", harness)
    done = hostile.run(str(hostile.installed.bin / "python"), "-I", str(harness))
    assert done.returncode == 0, done
    assert [line.split()[1] for line in done.stdout.splitlines()] == [
        "ok",
        "ok",
        "approval_required",
        "error",
    ]


def test_the_launcher_by_a_link_and_by_its_name(hostile: Hostile) -> None:
    """As pipx and uv put it on the path."""
    folder = hostile.folder / "home"
    link, again = folder / "ringfence", folder / "again"
    link.symlink_to(hostile.installed.bin / "ringfence")
    again.symlink_to("ringfence")
    for words in (["ringfence"], [str(again)], ["sh", str(link)], ["../home/again"]):
        done = hostile.run(*words, "--version", PATH=f"{folder}:/usr/bin:/bin")
        assert (done.returncode, done.stdout.startswith("ringfence ")) == (0, True), done


def test_the_python_half_by_itself(workspace: Make) -> None:
    """Nobody is meant to start it; it starts itself again before it imports anything of ours."""
    hostile = workspace([module for module in MODULES if module.startswith(("policy", "toolkit", "json"))])
    done = hostile.run(str(hostile.installed.bin / "ringfence-start"), "--version")
    assert (done.returncode, done.stdout.startswith("ringfence ")) == (0, True), done
    assert hostile.imported() == []


def test_a_project_on_the_path_of_modules_is_not_imported_from(workspace: Make) -> None:
    """`pip install -e` puts a project there for good; what is wanted and is not there must not come of it."""
    hostile = workspace(("fqdn", "idna_ssl", "uvloop", "httptools", "wsproto", "textual"))
    link = hostile.installed.site / "__editable__.project.pth"
    link.write_text(f"{hostile.root}\n{hostile.root}/src\n", encoding="utf-8")
    link.chmod(0o644)
    python = str(hostile.installed.bin / "python")
    try:
        assert hostile.run(python, "-I", "-c", "import fqdn").returncode == 0
        assert hostile.imported() == ["fqdn"]
        (hostile.folder / "marks" / "fqdn").unlink()
        for words in (["check"], ["call", "read_file", '{"path": "src/a.txt"}']):
            assert hostile.run("ringfence", *words).returncode == 0
        probe = (
            "from ringfence.toolkit.cli import main; main(['call', 'get_project_root', '{}'])\n"
            "import importlib.util as u; print(u.find_spec('fqdn'), u.find_spec('yaml') is None)"
        )
        assert hostile.run(python, "-I", "-c", probe).stdout.splitlines()[-1] == "None False"
        write = '{"path": "%s", "content": "x"}'
        for path, code in (("src/sitecustomize.py", "protected_path"), ("src/site.py", None)):
            done = hostile.run("ringfence", "call", "create_file", write % path, "--json")
            assert (json.loads(done.stdout).get("error") or {}).get("code") == code, done
    finally:
        link.unlink()
    assert hostile.imported() == []


@pytest.mark.parametrize(
    "words", [["pytest"], ["python", "-m", "pytest"]], ids=["pytest", "python -m pytest"]
)
def test_a_project_with_a_toolkit_of_its_own_is_tested(workspace: Make, words: list[str]) -> None:
    hostile = workspace(())
    for name, text in {
        "toolkit/__init__.py": "",
        "toolkit/core.py": "VALUE = 1\n",
        "policy.py": "VALUE = 2\n",
        "conftest.py": "import policy\nfrom toolkit.core import VALUE\n",
        "test_own.py": (
            "import policy, toolkit.core\n"
            "def test_own(): assert (toolkit.core.VALUE, policy.VALUE) == (1, 2)\n"
            "def test_with_the_fixture(ringfence):\n"
            "    assert ringfence('ringfence.yaml', {'a': 'x'}).call('read_file', path='a').ok\n"
            "    assert (toolkit.core.VALUE, policy.VALUE) == (1, 2)\n"
        ),
    }.items():
        (hostile.root / name).parent.mkdir(exist_ok=True)
        (hostile.root / name).write_text(text, encoding="utf-8")
    hostile.hand_over()
    done = hostile.run(*words, "-p", "no:cacheprovider", PYTHONPATH="")
    assert "2 passed" in done.stdout, done


@pytest.mark.parametrize("start", [["-m", "ringfence"], ["{bin}/ringfence"]], ids=["-m", "script"])
def test_a_project_with_such_packages_runs_the_command(workspace: Make, start: list[str]) -> None:
    """`python -m` has the project's folder on its path; there is one name of ours to be hidden by."""
    hostile = workspace(())
    for name in ("toolkit/__init__.py", "policy/__init__.py", "rules/__init__.py"):
        (hostile.root / name).parent.mkdir(exist_ok=True)
        (hostile.root / name).write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    hostile.hand_over()
    words = [each.format(bin=hostile.installed.bin) for each in start]
    done = hostile.run(*(["python", *words] if words[0] == "-m" else words), "check", PYTHONPATH="")
    assert done.returncode == 0, done


def test_old_names_stand_behind_a_projects_own(workspace: Make) -> None:
    hostile = workspace(())
    (hostile.root / "toolkit.py").write_text("VALUE = 1\n", encoding="utf-8")
    hostile.hand_over()
    python = str(hostile.installed.bin / "python")
    own = "import ringfence, toolkit; assert toolkit.VALUE == 1; import policy; policy.Policy"
    done = hostile.run(python, "-W", "always", "-c", own, PYTHONPATH="")
    assert (done.returncode, "`policy` is `ringfence.policy` now" in done.stderr) == (0, True), done
    old = "import ringfence; from toolkit.session import Session; assert Session is ringfence.Session"
    done = hostile.run(python, "-I", "-W", "always", "-c", old)
    assert (done.returncode, "DeprecationWarning" in done.stderr) == (0, True), done
    assert hostile.run(python, "-I", "-c", "from toolkit.session import Session").returncode == 1


def test_a_folder_of_the_project_comes_before_an_old_name(workspace: Make) -> None:
    """Also one without `__init__.py`, which Python puts together with others of its name."""
    hostile = workspace(())
    (hostile.root / "toolkit").mkdir()
    (hostile.root / "toolkit" / "core.py").write_text("VALUE = 1\n", encoding="utf-8")
    hostile.hand_over()
    python = str(hostile.installed.bin / "python")
    done = hostile.run(python, "-W", "error", "-c", "import ringfence, toolkit.core", PYTHONPATH="")
    assert done.returncode == 0, done


def test_a_hook_of_the_last_release_still_judges(workspace: Make) -> None:
    hostile = workspace()
    python = str(hostile.installed.bin / "python")
    event = {"hook_event_name": "PreToolUse", "cwd": str(hostile.root), "tool_name": "Read"}
    event |= {"tool_input": {"file_path": str(hostile.root / "secret" / "key")}}
    done = hostile.run(python, "-I", "-m", "toolkit.cli", "hook", "claude-code", given=json.dumps(event))
    assert '"deny"' in done.stdout, done
    done = hostile.run(python, "-I", "-m", "toolkit.cli", "check")
    assert (done.returncode, "use `python -m ringfence`" in done.stderr) == (0, True), done
    assert hostile.imported() == []


def test_a_project_without_such_names_uses_the_fixture(workspace: Make) -> None:
    hostile = workspace(())
    (hostile.root / "test_policy.py").write_text(
        "def test_it(ringfence):\n"
        "    trial = ringfence('ringfence.yaml', {'a': 'x'})\n"
        "    assert trial.call('read_file', path='a').ok\n",
        encoding="utf-8",
    )
    hostile.hand_over()
    done = hostile.run("python", "-m", "pytest", "-p", "no:cacheprovider", PYTHONPATH="")
    assert "1 passed" in done.stdout, done


def test_installed_for_one_user(workspace: Make) -> None:
    """`pip install --user` puts the program where `-I` does not look."""
    hostile = workspace()
    base = hostile.folder / "home" / ".local"
    site = Path(sysconfig.get_path("purelib", "posix_user", {"userbase": str(base)}))
    shutil.copytree(hostile.installed.site, site, ignore=shutil.ignore_patterns("pip", "pip-*"))
    (base / "bin").mkdir()
    for name in ("ringfence", "ringfence-start"):
        text = (hostile.installed.bin / name).read_text("utf-8")
        (base / "bin" / name).write_text(
            re.sub(r"\A#!.*python.*", f"#!{sys._base_executable}", text), encoding="utf-8"
        )
        (base / "bin" / name).chmod(0o755)
    hostile.hand_over()
    more = {"PATH": f"{base / 'bin'}:/usr/bin:/bin"}
    done = hostile.run("ringfence", "call", "read_file", '{"path": "src/a.txt"}', **more)
    assert (done.returncode, "alpha" in done.stdout) == (0, True), done.stderr
    done = hostile.run("ringfence", "hook", "install", "codex", "--dry-run", **more)
    assert f"{sys._base_executable} -E -P -m ringfence hook codex" in done.stdout, done
    assert hostile.imported() == []


def test_what_a_checkout_links_to_is_in_the_wheel(installed: Installed) -> None:
    links = [path for path in (ROOT / "toolkit").rglob("*") if path.is_symlink()]
    assert len(links) >= 2
    for link in [*links, ROOT / "rules", ROOT / "policy" / "schema.json"]:
        place = installed.site / "ringfence" / link.relative_to(ROOT)
        names = {path.name for path in link.iterdir()} if link.is_dir() else {""}
        assert names <= ({path.name for path in place.iterdir()} if link.is_dir() else {""}), link
        assert place.exists()


def test_an_environment_in_the_workspace_is_not_the_agents_to_change(
    installed: Installed, tmp_path: Path
) -> None:
    """With it in reach, a file of one line would run at each start, before anything is judged."""
    open_to_all = tmp_path / "all.yaml"
    open_to_all.write_text('version: 1\nrules: {"*": {"*": allow}}\n', encoding="utf-8")
    ringfence, site = str(installed.bin / "ringfence"), installed.site.relative_to(installed.folder)
    where = ["--root", str(installed.folder), "--policy", str(open_to_all)]
    for tool, given in (
        ("create_file", {"path": f"{site}/aa.pth", "content": "import os; os._exit(0)"}),
        ("create_file", {"path": f"{site}/sitecustomize.py", "content": ""}),
        ("edit_file", {"path": "venv/bin/ringfence", "old_str": " -I", "new_str": ""}),
        ("delete", {"path": "venv"}),
        ("move_file", {"source": "venv", "destination": "old"}),
    ):
        words = [ringfence, "call", tool, json.dumps(given), *where, "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert json.loads(done.stdout)["error"]["code"] == "protected_path", done
    told = subprocess.run([ringfence, "doctor", "--json", *where[:2]], capture_output=True, text=True)
    assert json.loads(told.stdout)["own_program_here"] == ["venv"]
    words = [ringfence, "hook", "install", "codex", "--dry-run", *where[:2]]
    told = subprocess.run(words, capture_output=True, text=True)
    assert "is in this project, and no agent can change it: venv" in told.stdout

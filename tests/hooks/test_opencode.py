"""OpenCode's plugin: its text, its installation, and what it does with each answer, in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.toolkit.cli import main
from ringfence.toolkit.hooks.install import NotPlain, is_isolated
from ringfence.toolkit.hooks.opencode import FILES, check_ours, commands, plugin

PROGRAM = [sys.executable, "-I", "-m", "ringfence"]
# Loads the plugin, gives it one call, and prints the call's arguments or the error.
DRIVER = """
import { Ringfence } from "./.opencode/plugins/ringfence.js"
const [tool, args] = process.argv.slice(2)
const plugin = await Ringfence({ directory: process.cwd() })
const output = { args: JSON.parse(args) }
try {
  await plugin["tool.execute.before"]({ tool, sessionID: "s", callID: "c" }, output)
  await plugin["tool.execute.after"]?.({ tool, sessionID: "s", callID: "c", args: output.args }, {})
  console.log(JSON.stringify({ args: output.args }))
} catch (error) {
  console.log(JSON.stringify({ error: error.message }))
}
"""


def install(root: Path, *words: str) -> int:
    return main(["hook", "install", "opencode", "--root", str(root), "--yes", *words])


def test_the_way_there_and_back(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = workspace / FILES["project"]
    assert install(workspace) == 0
    text = file.read_text(encoding="utf-8")
    assert install(workspace) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert all(is_isolated(run) and run.endswith("ringfence hook opencode") for run in commands(text))
    assert install(workspace, "--ask", "host", "--agent", "coder") == 0
    assert '["--agent=coder", "--ask=host"]' in file.read_text(encoding="utf-8")
    assert install(workspace, "--undo") == 0
    assert not file.exists()
    assert install(workspace, "--undo") == 0


def test_another_plugin_stays(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = workspace / FILES["project"]
    file.parent.mkdir(parents=True)
    file.write_text("export const Other = async () => ({})\n", encoding="utf-8")
    assert install(workspace) == 2
    assert install(workspace, "--undo") == 2
    assert file.read_text(encoding="utf-8").startswith("export const Other")
    assert "not a file that" in capsys.readouterr().err


def test_doctor_names_the_plugin(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(workspace)
    capsys.readouterr()
    main(["doctor", "--root", str(workspace), "--json"])
    found = json.loads(capsys.readouterr().out)["hooks"]
    assert found[str(workspace / FILES["project"])] is True


@pytest.mark.parametrize("text", ["x", '// Another\nconst command = ["ringfence"]\n'])
def test_what_is_not_ours(text: str) -> None:
    with pytest.raises(NotPlain):
        check_ours(text)


def test_a_command_that_is_no_list() -> None:
    text = plugin(PROGRAM, {}, "project")
    start = next(line for line in text.splitlines() if line.startswith("const command"))
    with pytest.raises(NotPlain):
        commands(text.replace(start, "const command = 7"))


def call(root: Path, tool: str, args: dict[str, object]) -> dict[str, object]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    (root / "driver.mjs").write_text(DRIVER, encoding="utf-8")
    (root / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    done = subprocess.run(
        [node, "driver.mjs", tool, json.dumps(args)], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_in_node(workspace: Path) -> None:
    install(workspace)
    args: dict[str, object] = {"filePath": str(workspace / "src/app.py")}
    assert call(workspace, "read", args) == {"args": args}
    assert "secrets stay here" in str(call(workspace, "read", {"filePath": ".env"})["error"])
    changed = call(workspace, "grep", {"pattern": "x", "include": "!drafts"})
    assert changed == {"args": {"pattern": "x", "include": "!{.env,drafts,keys}"}}


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (["/nowhere/python"], "ENOENT"),
        ([sys.executable, "-c", "import sys; sys.exit(1)"], "exit status 1"),
        ([sys.executable, "-c", "import sys; sys.exit('broken')"], "broken"),
        ([sys.executable, "-c", "print('no JSON')"], "JSON"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], "exit status"),
    ],
)
def test_every_failure_blocks_the_call(workspace: Path, program: list[str], why: str) -> None:
    install(workspace)
    file = workspace / FILES["project"]
    file.write_text(plugin(program, {}, "project"), encoding="utf-8")
    error = str(call(workspace, "read", {"filePath": "src/app.py"})["error"])
    assert error.startswith("Ringfence gave no answer, so the call is blocked: ")
    assert why in error

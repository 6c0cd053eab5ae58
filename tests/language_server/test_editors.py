"""Real editors without a screen, each with its own client; skipped where an editor is not installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.language_server.client import COMMAND, environment

HERE = Path(__file__).parent
SECONDS = 110
TEXT = """version: 1
sets: {keys: ["*.key"]}
rules:
    read: {"docs/**": alow}
mode: enforce
mandatory: [{deny: read, paths: "@keys"}]
"""
AFTER = """version: 1
mode: enforce

sets: {keys: ["*.key"]}

mandatory: [{deny: read, paths: "@keys"}]

rules:
  read: {"docs/**": allow}
"""


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "ringfence.yaml").write_text(TEXT)
    settings = {
        **environment(),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "RINGFENCE_LSP": "\n".join(COMMAND),
        "RINGFENCE_FILE": str(folder / "ringfence.yaml"),
        "RINGFENCE_OUT": str(folder / "out.json"),
    }
    return subprocess.run(
        command, cwd=folder, env=settings, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def squeezed(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def test_emacs_with_eglot(tmp_path: Path) -> None:
    emacs = shutil.which("emacs")
    if emacs is None:
        pytest.skip("Emacs is not installed")
    probe = [emacs, "-Q", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"]
    if subprocess.run(probe, capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("Emacs has no Eglot here")
    done = run([emacs, "-Q", "--batch", "-l", str(HERE / "editor.el")], tmp_path)
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert len(found["first"]) == 1
    assert "**allow**" in found["hover"]
    assert "`docs/x`" in found["hover"]
    assert {each.strip() for each in found["offered"]} == {"enforce", "monitor"}
    assert found["place"] == 2
    assert squeezed(found["text"]) == squeezed(AFTER.replace("keys", "private"))


def test_neovim(tmp_path: Path) -> None:
    neovim = shutil.which("nvim")
    if neovim is None:
        pytest.skip("Neovim is not installed")
    done = run(
        [neovim, "--clean", "--headless", "-u", "NONE", "-c", f"luafile {HERE / 'editor.lua'}"], tmp_path
    )
    out = tmp_path / "out.json"
    assert out.exists(), done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert found["first"] == ["effect_unknown"]
    assert "`docs/x`" in found["hover"]
    assert found["lens"].startswith("docs/** – everybody: read allow or deny")
    assert squeezed(found["text"]) == squeezed(AFTER)
    assert os.path.samefile(tmp_path, out.parent)

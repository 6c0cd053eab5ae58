"""An extra that is not installed is named by the command that needs it, without a traceback."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ringfence.toolkit.extras import EXTRAS, SCHEMES, install

ROOT = Path(__file__).parents[2]
# Starts the command line where some modules cannot be found, as if they were not installed.
WITHOUT = """
import sys
gone = set(sys.argv[1].split(","))
def without(finder):
    class Without:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return None if name.partition(".")[0] in gone else finder.find_spec(name, path, target)
    return Without
sys.meta_path = [without(finder) for finder in sys.meta_path]
sys.stdout.isatty = lambda: True  # for what runs only at a terminal
from ringfence.toolkit.cli import main
sys.exit(main(sys.argv[2:]))
"""
# For each extra what needs it, and the status it ends with.
NEEDS = {
    "s3": [
        (("log", "--root", "s3://bucket/a"), 2),
        (("call", "read_file", "{}", "--root", "s3a://bucket"), 2),
    ],
    "sftp": [(("call", "read_file", '{"path": "a"}', "--root", "sftp://example.org/a"), 2)],
    "azure": [
        (("call", "read_file", '{"path": "a"}', "--root", "az://container/a"), 2),
        (("call", "read_file", '{"path": "a"}', "--root", "abfss://container/a"), 2),
    ],
    "postgres": [(("log", "--state", "postgresql://127.0.0.1:1/a"), 1)],
    "serve": [(("serve", "http", "--port", "0"), 2), (("serve", "mcp", "--http"), 2)],
    "review": [(("serve", "review", "--port", "0"), 2)],
    "watch": [(("watch",), 2)],
    "lsp": [(("lsp",), 2)],
}


@pytest.mark.parametrize(
    ("extra", "words", "status"),
    [(extra, words, status) for extra, rows in NEEDS.items() for words, status in rows],
)
@pytest.mark.parametrize("module", [None, 0])
def test_what_is_missing_is_named(
    extra: str, words: tuple[str, ...], status: int, module: int | None, tmp_path: Path
) -> None:
    """Without all modules of the extra, and without the last of them alone."""
    gone = EXTRAS[extra] if module is None else EXTRAS[extra][-1:]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(gone), *words],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert install(extra) in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (status, "")


def test_every_extra_for_users_is_known() -> None:
    """The table against the package's metadata: the same extras, and modules of what they install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = set(project["optional-dependencies"]) - {"test", "dev", "bench", "examples"}
    assert set(EXTRAS) == set(NEEDS) == offered
    assert set(SCHEMES.values()) <= offered

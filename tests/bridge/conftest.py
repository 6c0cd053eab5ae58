"""A workspace that agents work in as processes of their own, and an Emacs beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.cli.commands.bridge import LISP

HERE = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "ringfence")
POLICY = 'version: 1\nrules: {"*": {"*": allow}}\n'


def wait(until: Callable[[], Any], seconds: float = 30) -> Any:
    """What `until` gives as soon as it gives something."""
    end = time.monotonic() + seconds
    while not (found := until()):
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.05)
    return found


class Place:
    """A workspace and its state; `call` makes a call as an agent does, in another process."""

    def __init__(self, folder: Path) -> None:
        self.root, self.state = folder / "w", folder / "state"
        self.root.mkdir()
        (self.root / "ringfence.yaml").write_text(POLICY)
        self.options = ("--root", str(self.root), "--state", str(self.state))
        self.environment = {**os.environ, "PYTHONPATH": str(HERE)}

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*PROGRAM, *words, *self.options],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def call(self, tool: str, session: str = "night", agent: str = "coder", **arguments: Any) -> str:
        said = self.run("call", tool, json.dumps(arguments), "--session", session, "--agent", agent, "--json")
        return str(json.loads(said)["data"]["call_id"])

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Emacs:
    """A real Emacs without a screen; what it would have asked is kept, and answered as a test says."""

    def __init__(self, place: Place) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="rf", dir="/tmp"))  # a socket's name has to be short
        self._socket = str(self._folder / "emacs")
        self._log = (self._folder / "log").open("wb")
        quiet = "(setq native-comp-deferred-compilation nil native-comp-jit-compilation nil)"
        home = {**place.environment, "HOME": str(self._folder), "LC_ALL": "C.UTF-8"}
        self._process = subprocess.Popen(
            ["emacs", "-Q", f"--fg-daemon={self._socket}", "--eval", quiet, "-l", str(LISP)],
            env=home,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        # Its socket is there before anybody answers at it.
        wait(lambda: self._client("t").returncode == 0 or self._process.poll() is not None)
        program = " ".join(map(_lisp, PROGRAM))
        self.eval(
            "(progn (defvar asked nil) (defvar answer nil)"
            " (fset 'y-or-n-p (lambda (question) (setq asked (cons question asked))"
            " (if (eq answer 'quit) (signal 'quit nil) answer)))"
            f" (setq ringfence-program (list {program}) ringfence-root {_lisp(str(place.root))}"
            f" ringfence-state {_lisp(str(place.state))}) (ringfence-mode 1) t)"
        )
        wait(lambda: self.eval("(and ringfence-following t)") == "t")

    def eval(self, form: str) -> str:
        done = self._client(form)
        assert done.returncode == 0, done.stderr + (self._folder / "log").read_text()
        return done.stdout.strip()

    def _client(self, form: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["emacsclient", "-s", self._socket, "--eval", form],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def open(self, file: Path) -> None:
        self.eval(f"(progn (find-file-noselect {_lisp(str(file))}) t)")

    def type(self, file: Path, text: str) -> None:
        """Add unsaved text at the end of the file's buffer, and stay there."""
        self.eval(f"(with-current-buffer {self._of(file)} (goto-char (point-max)) (insert {_lisp(text)}) t)")

    def text(self, file: Path) -> str | None:
        """What the file's buffer holds; None when no buffer visits it."""
        found = f"(let ((b {self._of(file)})) (and b (with-current-buffer b (buffer-string))))"
        # As JSON, since a string of Lisp is not read by anything here.
        said = self.eval(f"(json-encode {found})")
        text: str | None = json.loads(json.loads(said))
        return text

    def is_modified(self, file: Path) -> bool:
        return self.eval(f"(and (buffer-modified-p {self._of(file)}) t)") == "t"

    @property
    def asked(self) -> list[str]:
        return list(json.loads(json.loads(self.eval("(json-encode (vconcat (reverse asked)))"))))

    def will_say(self, yes: bool) -> None:
        self.eval(f"(setq answer {'t' if yes else 'nil'})")

    def will_quit(self) -> None:
        """Answer the questions with C-g."""
        self.eval("(setq answer 'quit)")

    def _of(self, file: Path) -> str:
        return f"(find-buffer-visiting {_lisp(str(file))})"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder)


def _lisp(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@pytest.fixture
def emacs(place: Place) -> Iterator[Emacs]:
    if shutil.which("emacs") is None or shutil.which("emacsclient") is None:
        pytest.skip("no Emacs: apt-get install emacs-nox")
    editor = Emacs(place)
    yield editor
    editor.close()

"""Claim: a job's lean answers cost a host's model at most 1.2 times the tokens of their texts alone.

The job is the calls of the documents that the project started from, with the reading, searching and editing
around them. It runs in real Claude Code, Codex, Gemini CLI and OpenCode (`npm ci --prefix tests/hosts`), with
a model that is a script. Counted is what the model receives, in tokens of OpenAI's o200k_base: the
vocabularies of the other models are not public. `--also` measures another version of Ringfence, too.

    python benchmarks/host_tokens.py
    python benchmarks/host_tokens.py --also /path/to/another/python
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _size import not_measured, size

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.hosts.dialects.common import Call, text_of
from tests.hosts.hosts import RINGFENCE, TABLE
from tests.hosts.play import lay, play
from tests.hosts.programs import HOSTS, MODULES, Missing, program
from tests.hosts.vocabulary import tool_call

AT_MOST = 1.2
MODULE = "".join(f"def function_{n}(value):\n    return value * {n}\n\n" for n in range(20))
LISP = '(in-package :agent-q)\n\n(defun run (task)\n  "Run a task."\n  (log-info "Task: ~A" task))\n'
FILES = {
    **{f"src/{n % 5}/module_{n}.py": MODULE for n in range(size(40, 10))},
    **dict.fromkeys(
        ("src/agent.lisp", "src/temp-file.lisp", "tests/temp-test.lisp", "src/utils/list.lisp"), LISP
    ),
    **dict.fromkeys(
        ("src/deprecated/legacy-parser.lisp", "build/output.fasl", "old/a.lisp", "old/b.lisp"), LISP
    ),
    "VERSION": "1.9.0\n",
    "src/config.lisp": '(defparameter *version* "1.9")\n',
}
JOB: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_directory", {"path": "src"}),
    ("directory_tree", {"path": "src"}),
    ("search_text", {"query": "function_3"}),
    ("search_files", {"pattern": "*.lisp"}),
    ("read_file", {"path": "src/0/module_0.py"}),
    ("edit_file", {"path": "src/0/module_0.py", "old_str": "value * 3\n", "new_str": "value * 33\n"}),
    ("insert_at_line", {"path": "src/0/module_0.py", "content": "# new\n", "line": 0}),
    # The calls of the documents.
    ("create_file", {"path": "src/new.lisp", "content": "(in-package :myapp)\n"}),
    (
        "create_file",
        {"path": "src/config.lisp", "content": '(defparameter *version* "2.0")', "allow_overwrite": True},
    ),
    ("create_file", {"path": "src/tools/analyzer.lisp", "content": LISP}),
    ("create_file", {"path": "src/tools/analyzer.lisp", "content": LISP, "create_parents": False}),
    (
        "create_file",
        {"path": "config/settings.json", "content": '{\n  "timeout": 30\n}', "description": "Settings"},
    ),
    (
        "create_file",
        {"path": "VERSION", "content": "2.0.0", "allow_overwrite": True, "description": "Update"},
    ),
    ("delete_file", {"path": "src/temp-file.lisp", "description": "Remove temporary testing file"}),
    ("delete_file", {"path": "src/utils/"}),
    ("delete_file", {"path": "src/deprecated/legacy-parser.lisp", "description": "Remove deprecated parser"}),
    ("delete_file", {"path": "tests/temp-test.lisp", "description": "Remove temporary test file"}),
    ("delete_file", {"path": "build/output.fasl", "description": "Clean compiled output before rebuild"}),
    ("delete", {"path": "old", "description": "Remove the old sources"}),
    ("get_file_info", {"path": "src/agent.lisp"}),
    ("get_file_info", {"path": "tests/"}),
    ("get_file_info", {"path": "nonexistent.lisp"}),
    ("move_file", {"source": "src/new.lisp", "destination": "src/app/new.lisp"}),
)


class Figures(NamedTuple):
    """Tokens of a job in one host: our definitions in its first request with tools, and the answers."""

    definitions: int
    answers: int


def main() -> int:
    """Print the tokens for each host and form; the status is 1 if the claim does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--also", metavar="PYTHON", help="the interpreter of another version of Ringfence")
    also = parser.parse_args().also
    if not (MODULES / "gpt-tokenizer").exists():
        return not_measured("gpt-tokenizer: npm ci --prefix tests/hosts")
    versions = {"": RINGFENCE} | ({"other version": (also, "-I", "-m", "ringfence")} if also else {})
    worst = 0.0
    print(f"{'host':14}{'answers':24}{'definitions':>12}{'answers':>9}{'times the text':>16}")
    for host in size(HOSTS, HOSTS[:1]):
        try:
            program(host)
        except Missing as missing:
            return not_measured(str(missing))
        text = _measured(host, ("--answers", "text"), RINGFENCE)
        rows = {"text": text}
        rows |= {form: _measured(host, ("--answers", form), RINGFENCE) for form in ("structured", "both")}
        worst = max(worst, rows["both"].answers / text.answers)
        rows |= {name: _measured(host, (), start) for name, start in versions.items() if name}
        for name, found in rows.items():
            ratio = found.answers / text.answers
            print(f"{host:14}{name:24}{found.definitions:12,}{found.answers:9,}{ratio:16.2f}")
    print(f"both forms offered, as many tokens as the text: at most {worst:.2f}")
    return int(worst > AT_MOST)


def _measured(host: str, options: Sequence[str], start: tuple[str, ...]) -> Figures:
    with tempfile.TemporaryDirectory() as scratch:
        policy = 'version: 1\nrules: {"*": allow}\n'
        folders = lay(Path(scratch), {"ringfence.yaml": policy, **FILES})
        run = play(host, "mcp", folders, options, lambda found: _next(host, len(found)), start=start)
    if len(run.results) != len(JOB):
        raise SystemExit(f"{host}: the job ended early: {run.output[-2000:]}")
    first = max(run.requests, key=lambda body: len(TABLE[host].dialect.tools(body)))
    ours = [
        tool for tool in TABLE[host].dialect.tools(first) if "ringfence" in json.dumps(tool.get("name", ""))
    ]
    texts = [json.dumps(ours, ensure_ascii=False), *map(text_of, run.results)]
    definitions, *answers = _tokens(texts)
    return Figures(definitions if ours else 0, sum(answers))


def _next(host: str, at: int) -> Call | None:
    return tool_call(host, *JOB[at]) if at < len(JOB) else None


def _tokens(texts: list[str]) -> list[int]:
    counter = Path(__file__).parent.parent / "tests" / "hosts" / "tokens.mjs"
    done = subprocess.run(
        ["node", str(counter)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return list(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())

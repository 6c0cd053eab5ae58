"""`init`: writes a first policy for a folder, and never over a file that is there."""

from __future__ import annotations

import argparse
from pathlib import Path

from ringfence.toolkit.cli.create_file import write_new
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE
from ringfence.toolkit.project_root import POLICY_FILE

STARTER = """\
# What agents may do to the files of this folder. `ringfence check` tries the cases below,
# `ringfence explain ACTION PATH` says how a verdict comes about.
version: 1

# Reading is allowed, writing, deleting and running commands ask, tmp/ and the like are free; keys,
# secrets, .git/ and agents' own settings are held whatever is written below.
extends: [baseline]

rules:
  write:                    # in one map the last matching pattern wins, as in a .gitignore
    "docs/**": allow
  delete:
    "docs/**": allow
    "LICENSE": {effect: deny, reason: the lawyers own this}
  run:                      # commands, by their words: * is one word, and at the end any number
    "git add *": allow      # every file that a command changes is judged by the rules above all the same
    "git push *": deny

limits:
  delete: {max_files: 100, over: ask}

# More that a rule can say, as examples to take up:
#   write.edit: {"db/migrations/**": deny}                     # add files there, and change none
#   "old/**": {effect: allow, until: 2030-06-30}               # ends with that day
#   "lib/**": {effect: deny, trial: true}                      # only recorded: ringfence log --would deny
#   "src/**": {effect: deny, content: private-key}             # only where a key would be written

# agents:                   # what one agent may do beyond that: by name, pattern, or parent/child
#   coder:
#     rules:
#       write: {"src/**": allow}

cases:                      # what this policy has to say, as you mean it
  - {action: read, path: src/app.py, want: allow}
  - {action: write, path: src/app.py, want: ask}
  - {action: write, path: docs/guide.md, want: allow}
  - {action: delete, path: docs/old.md, want: allow}
  - {action: delete, path: LICENSE, want: deny}
  - {action: write, path: .git/config, want: deny}
  - {action: run, command: "git add -A && git push", want: deny}
"""


def init(arguments: argparse.Namespace, screen: Screen) -> int:
    """Write the starter policy into `--root`, else into the current folder."""
    folder = Path(arguments.root) if arguments.root else Path.cwd()
    target = folder / POLICY_FILE
    write_new(target, STARTER)
    if screen.as_json:
        screen.json({"written": str(target)})
        return DONE
    screen.line(f"wrote {target}")
    screen.line("next: `ringfence check` tries its cases, `ringfence explain write src/app.py` explains one")
    return DONE

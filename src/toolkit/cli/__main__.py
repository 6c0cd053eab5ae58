"""The command by its last release's name, for one release: hosts have it in their settings, as a hook.

A folder without `__init__.py`, so that any package `toolkit` of a project comes before it.
"""

import sys

from ringfence.toolkit.cli import main

if __name__ == "__main__":
    if sys.argv[1:2] != ["hook"]:
        told = "ringfence: use `python -m ringfence`; `-m toolkit.cli` goes with the next release"
        print(told, file=sys.stderr)
    sys.exit(main())

"""`python -m toolkit.cli` is the `ringfence` command."""

import sys

from toolkit.cli import main

sys.exit(main())

"""Sandbox for commands: runs a command where its changes land in a scratch directory; Linux only.

The mechanism alone: it knows no policy, no session and no plan, and never falls through to a lower level.
"""

from ringfence.toolkit.sandbox.errors import ERRORS, SandboxError
from ringfence.toolkit.sandbox.levels import levels
from ringfence.toolkit.sandbox.runner import run
from ringfence.toolkit.sandbox.spec import LEVELS, Ended, Level, LevelReport, Limits, Spec, Stop

__all__ = [
    "ERRORS",
    "LEVELS",
    "Ended",
    "Level",
    "LevelReport",
    "Limits",
    "SandboxError",
    "Spec",
    "Stop",
    "levels",
    "run",
]

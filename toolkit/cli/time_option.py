"""`--at`: the time that an answer about a policy is for, since entries of a policy can end."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

from ringfence.policy import Policy
from ringfence.policy.analysis.epochs import from_now_on
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.durations import instant


def time_of(arguments: argparse.Namespace) -> float:
    """The time of `--at`, else now, in seconds since 1970."""
    if arguments.at is None:
        return time.time()
    found = instant(arguments.at)
    if found is None:
        raise UsageError(f"--at {arguments.at}: neither a date nor an RFC 3339 time")
    return found


def times_of(arguments: argparse.Namespace, policies: Iterable[Policy]) -> tuple[float, ...]:
    """The time of `--at` alone; without it now, and each later time at which an entry of a policy ends."""
    now = time_of(arguments)
    return (now,) if arguments.at is not None else from_now_on(tuple(policies), now)

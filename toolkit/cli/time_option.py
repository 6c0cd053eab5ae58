"""Options that take a time: `--at`, which an answer about a policy is for, and `--since` and `--until`."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ringfence.policy import Policy
from ringfence.policy.analysis.epochs import from_now_on
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.durations import instant, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


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


def moment_of(arguments: argparse.Namespace, option: str) -> float | None:
    """POSIX seconds of a duration before now (`30m`, `2h`, `7d`) or an RFC 3339 time; None without one."""
    text = getattr(arguments, option)
    if text is None:
        return None
    found = before_now(text)
    if found is None:
        raise UsageError(f"--{option} {text}: neither a duration such as 2h nor an RFC 3339 time")
    return found


def before_now(text: str) -> float | None:
    """POSIX seconds of a duration before now, or of a time; None for anything else."""
    span = seconds(text)
    if span is not None:
        return time.time() - span
    # A call's id may be a number, which is no time.
    return instant(text) if "-" in text else None

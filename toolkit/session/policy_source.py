"""Source of the policy in force: loads it, and loads it again when its file changes.

Never replaces a policy by one that does not load.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ringfence.policy import Policy, PolicyError
from ringfence.toolkit.errors import CallError

_LOOKS = 3


class PolicySource:
    """A policy and the file that it came from.

    A policy given as a path is loaded again when the file changes. If it does not load at first, `check`
    refuses every call until it does.
    """

    def __init__(self, policy: Policy | str | Path | None, source: str | Path | None = None) -> None:
        self._source = source if isinstance(policy, Policy) else policy
        self._error: PolicyError | None = None
        self.policy = policy if isinstance(policy, Policy) else Policy.empty()
        self._stamps = _stamps(self.policy.files)
        if self._source is not None and not isinstance(policy, Policy):
            try:
                self._load(self._source)
            except PolicyError as error:
                self._error = error

    @property
    def error(self) -> PolicyError | None:
        """Why the policy file in its present state does not load; None if it loads."""
        return self._error

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose changes matter: those of the policy in force, and of one that does not load."""
        return tuple(self._stamps)

    def check(self) -> None:
        """Raise CallError `policy_invalid` if no policy is in force."""
        if self._error is not None:
            first = self._error.problems[0]
            raise CallError(
                "policy_invalid", f"The policy does not load: {first.message}", where=str(first.where or "")
            )

    def refresh(self) -> dict[str, Any] | None:
        """Load a changed file; return the audit event if the policy changed or failed to load.

        If the changed file does not load, the last good policy stays in force.
        """
        if self._source is None:
            return None
        for file, stamp in self._stamps.items():
            if _stamp(file) != stamp:
                break
        else:
            return None
        try:
            self._load(self._source)
        except PolicyError as error:
            first = error.problems[0]
            import logging  # slow to import, and seldom needed

            if self._error is not None:
                self._error, message = error, "the policy still does not load, everything is denied: %s"
            else:
                message = "the policy no longer loads, the last good one stays in force: %s"
            logging.getLogger("ringfence").warning(message, first)
            return {
                "event": "policy",
                "outcome": "not loaded",
                "reason": first.message,
                "where": str(first.where),
            }
        self._error = None
        return {"event": "policy", "outcome": "loaded"}

    def _load(self, source: str | Path) -> None:
        """Load the policy, or raise PolicyError; then the one in force stays.

        Each file's stamp is taken before the file is read, so that a write in between is noticed next time; a
        file that another one names needs a second stamp. The repair of a policy may be in a file that the
        policy in force does not include.
        """
        known = {str(Path(source).absolute()), *self._stamps}
        for _ in range(_LOOKS):
            self._stamps = _stamps(known)
            loaded, tried = _read(source)
            missed = set(tried) - known
            if not missed:
                break
            known |= missed
        # A file that was read without a stamp counts as changed.
        self._stamps = {**dict.fromkeys(known), **self._stamps}
        if isinstance(loaded, PolicyError):
            raise loaded
        self.policy = loaded
        self._stamps = {file: self._stamps[file] for file in loaded.files}


def _read(source: str | Path) -> tuple[Policy | PolicyError, tuple[str, ...]]:
    """Return a policy, or why it does not load, and the files that were read."""
    try:
        policy = Policy.load(source)
    except PolicyError as error:
        return error, error.files
    return policy, policy.files


def _stamps(files: Iterable[str]) -> dict[str, tuple[int, ...] | None]:
    return {file: _stamp(file) for file in files}


def _stamp(file: str) -> tuple[int, ...] | None:
    """Return a stamp that differs after a write to the file; None for a missing file."""
    try:
        info = os.stat(file)  # noqa: PTH116 - before every call, and a Path takes as long again
    except (OSError, ValueError):
        return None
    # A file that replaces another one may have the same size and time.
    return info.st_mtime_ns, info.st_size, info.st_ino, info.st_ctime_ns

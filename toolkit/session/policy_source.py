"""The policy in force: loaded once and followed when its file changes.

Never replaced by one that does not load.
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
    """A policy, and where it came from.

    `policy` given as a path is followed; one that does not load at first denies everything (`check`) until
    it is mended.
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
        """All that is looked at: the files of the policy in force, and of one that does not load."""
        return tuple(self._stamps)

    def check(self) -> None:
        """Raises CallError `policy_invalid` when there is no policy that loads."""
        if self._error is not None:
            first = self._error.problems[0]
            raise CallError(
                "policy_invalid", f"The policy does not load: {first.message}", where=str(first.where or "")
            )

    def refresh(self) -> dict[str, Any] | None:
        """Take up a changed file; gives the audit event when something happened.

        A file that stopped loading leaves the last good policy in force.
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
                self._error, said = error, "the policy still does not load, everything is denied: %s"
            else:
                said = "the policy no longer loads, the last good one stays in force: %s"
            logging.getLogger("ringfence").warning(said, first)
            return {
                "event": "policy",
                "outcome": "not loaded",
                "reason": first.message,
                "where": str(first.where),
            }
        self._error = None
        return {"event": "policy", "outcome": "loaded"}

    def _load(self, source: str | Path) -> None:
        """Take up the policy, or raise PolicyError and keep the one in force.

        Files are looked at before they are read, so that one written meanwhile is read again next time; one
        that is first heard of by reading another one needs a second look. What mends a policy may be in a
        file that the policy in force knows nothing of.
        """
        known = {str(Path(source).absolute()), *self._stamps}
        for _ in range(_LOOKS):
            self._stamps = _stamps(known)
            loaded, tried = _read(source)
            missed = set(tried) - known
            if not missed:
                break
            known |= missed
        # One that was read and never looked at counts as changed.
        self._stamps = {**dict.fromkeys(known), **self._stamps}
        if isinstance(loaded, PolicyError):
            raise loaded
        self.policy = loaded
        self._stamps = {file: self._stamps[file] for file in loaded.files}


def _read(source: str | Path) -> tuple[Policy | PolicyError, tuple[str, ...]]:
    """A policy or why it does not load, and the files that say so."""
    try:
        policy = Policy.load(source)
    except PolicyError as error:
        return error, error.files
    return policy, policy.files


def _stamps(files: Iterable[str]) -> dict[str, tuple[int, ...] | None]:
    return {file: _stamp(file) for file in files}


def _stamp(file: str) -> tuple[int, ...] | None:
    """What tells that a file was written since; None for one that is gone."""
    try:
        info = os.stat(file)  # noqa: PTH116 - before every call, and a Path takes as long again
    except (OSError, ValueError):
        return None
    # A file put in place of another one may have its size and its time.
    return info.st_mtime_ns, info.st_size, info.st_ino, info.st_ctime_ns

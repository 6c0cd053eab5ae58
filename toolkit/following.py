"""The policy in force: loaded once and followed when its file changes.

Never replaced by one that does not load.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from policy import Policy, PolicyError
from toolkit.errors import CallError

_log = logging.getLogger("ringfence")


class Following:
    """A policy, and where it came from.

    `policy` given as a path is followed; one that does not load at first denies everything (`check`).
    """

    def __init__(self, policy: Policy | str | Path | None, source: str | Path | None = None) -> None:
        self._source = source if isinstance(policy, Policy) else policy
        self._error: PolicyError | None = None
        self.policy = policy if isinstance(policy, Policy) else Policy.empty()
        if self._source is not None and not isinstance(policy, Policy):
            try:
                self.policy = Policy.load(self._source)
            except PolicyError as error:
                self._error = error
        self._stamp = _stamp(self.policy)

    @property
    def error(self) -> PolicyError | None:
        return self._error

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
        if self._source is None or self._error is not None:
            return None
        stamp = _stamp(self.policy)
        if stamp == self._stamp:
            return None
        try:
            self.policy = Policy.load(self._source)
        except PolicyError as error:
            self._stamp = stamp
            first = error.problems[0]
            _log.warning("the policy no longer loads, the last good one stays in force: %s", first)
            return {
                "event": "policy",
                "outcome": "not loaded",
                "reason": first.message,
                "where": str(first.where),
            }
        self._stamp = _stamp(self.policy)
        return {"event": "policy", "outcome": "loaded"}


def _stamp(policy: Policy) -> tuple[tuple[int, int] | None, ...]:
    """What tells that a policy's files were written since; None for one that is gone."""
    found: list[tuple[int, int] | None] = []
    for file in policy.files:
        try:
            info = Path(file).stat()
        except OSError:
            found.append(None)
        else:
            found.append((info.st_mtime_ns, info.st_size))
    return tuple(found)

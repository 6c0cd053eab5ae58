"""Testing: helpers for users' own tests of policies, sessions and backends.

Each name is imported on first use.
"""

from __future__ import annotations

from ringfence._lazy_names import lazy_names

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from ringfence.toolkit.testing.backend_contract import (
        Contract,
        Disk,
        FaultContract,
        Faulty,
        ReadOnlyContract,
        Remote,
    )
    from ringfence.toolkit.testing.trial import Script, Trial, assert_allowed, assert_asks, assert_denied

__all__ = [
    "Contract",
    "Disk",
    "FaultContract",
    "Faulty",
    "ReadOnlyContract",
    "Remote",
    "Script",
    "Trial",
    "assert_allowed",
    "assert_asks",
    "assert_denied",
]

_HOMES = {
    "Contract": "backend_contract",
    "Disk": "backend_contract",
    "FaultContract": "backend_contract",
    "Faulty": "backend_contract",
    "ReadOnlyContract": "backend_contract",
    "Remote": "backend_contract",
    "Script": "trial",
    "Trial": "trial",
    "assert_allowed": "trial",
    "assert_asks": "trial",
    "assert_denied": "trial",
}


__getattr__ = lazy_names(__name__, _HOMES)

"""Testing: helpers for users' own tests of policies, sessions and backends.

Each name is imported on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from typing import Any

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


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value

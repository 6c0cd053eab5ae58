"""Report on a policy in force: findings, cases and invariants of its own file, within a time.

Reads the policy's file and the cases beside it. Changes nothing.
"""

from __future__ import annotations

import time
from pathlib import Path

from ringfence.policy import Policy, PolicyError
from ringfence.policy.evaluation.cases import cases_beside
from ringfence.policy.loading.loader import load_cases
from ringfence.toolkit.authoring.policy_check import Examined, examine


def report(policy: Policy, seconds: float) -> Examined | None:
    """Return what there is to say about a policy's own file; None where it has no file that can be read.

    What is open after `seconds` is a finding `too-complex`.
    """
    if not policy.files:
        return None
    place = Path(policy.files[0])
    try:
        beside = cases_beside(place)
        cases = policy.cases + (load_cases(beside) if beside else ())
        texts = [(one.name, one.read_text(encoding="utf-8")) for one in (place, beside) if one is not None]
    except (OSError, UnicodeDecodeError, PolicyError):
        return None
    now, end = time.time(), time.monotonic() + seconds
    return examine(
        policy, place.name, cases, texts, workspace=None, expired=lambda: time.monotonic() > end, now=now
    )

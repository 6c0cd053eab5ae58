"""What `check` has to say of one policy, as the formats for other programs take it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringfence.policy.analysis.prove import Proof
from ringfence.policy.errors import PolicyError
from ringfence.policy.evaluation.cases import CaseResult
from ringfence.policy.lint.codes import Finding

# A policy's file, its findings, why it does not load, its cases, and its invariants.
CheckResult = tuple[Path, Sequence[Finding], PolicyError | None, Sequence[CaseResult], Sequence[Proof]]

"""Findings about invariants: a proof that failed, and one that found no end."""

from __future__ import annotations

from collections.abc import Iterable

from ringfence.policy.analysis.prove import Proof
from ringfence.policy.lint.codes import Finding


def broken(proofs: Iterable[Proof]) -> list[Finding]:
    """Proofs that failed, as findings."""
    found = []
    for proof in proofs:
        where = proof.statement.where
        if proof.holds is False:
            found.append(Finding("invariant-broken", str(proof), where, str(proof.witness)))
        elif proof.holds is None:
            found.append(Finding("too-complex", str(proof), where))
    return found

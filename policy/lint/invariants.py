"""Findings about invariants: a proof that failed, and a proof that reached its bound."""

from __future__ import annotations

from collections.abc import Iterable

from ringfence.policy.lint.codes import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ringfence.policy.analysis.prove import Proof


def broken(proofs: Iterable[Proof]) -> list[Finding]:
    """Yield a finding for each proof that failed or reached its bound."""
    found = []
    for proof in proofs:
        where = proof.statement.where
        if proof.holds is False:
            found.append(Finding("invariant-broken", str(proof), where, str(proof.witness)))
        elif proof.holds is None:
            found.append(Finding("too-complex", str(proof), where))
    return found

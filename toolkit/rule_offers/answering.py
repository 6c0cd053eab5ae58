"""Answers by a rule: writes an offered rule into the policy, and records that it settles its request.

For interfaces of people only: nothing that an agent sends reaches this module. The rule is written within the
transaction that records the answer. If the process dies in between, the rule is in force and names its
request, and `complete` records the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from ringfence.policy import Policy
from ringfence.policy.errors import PolicyError
from ringfence.policy.formatting import rule_lines
from ringfence.policy.formatting.formatter import LayoutError
from ringfence.policy.model import Rule
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.toolkit.approvals.requests import PENDING, RULE, Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.paths import ROOT
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.rule_offers import policy_file
from ringfence.toolkit.rule_offers.candidates import FOLDER, KIND, WIDTHS
from ringfence.toolkit.rule_offers.changed_rules import only_removes
from ringfence.toolkit.rule_offers.marks import AnsweredRule, answered_rules, in_force, rule_id
from ringfence.toolkit.rule_offers.offers import Names, Offer, Offers, PolicyText, answers, offers
from ringfence.toolkit.rule_offers.policy_file import PolicyFile
from ringfence.toolkit.rule_offers.proof import only_answers
from ringfence.toolkit.rule_offers.proposals import Proposal, proposals
from ringfence.toolkit.rule_offers.rule_ends import rule_end
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.workspace.workspace import Workspace

LOOKED_AT = 50_000  # paths of the workspace that are looked at


def names_in(workspace: Workspace, policy: Policy, most: int = LOOKED_AT) -> Names:
    """Return the workspace's paths that a tool may change, up to a bound. Raises CallError."""
    for file in policy.files:
        workspace.protect(file)
    found: list[tuple[str, bool]] = []
    with at(workspace.backend, ROOT) as spot:
        for looked, entry in enumerate(workspace.below(spot, ROOT)):
            if looked >= most:
                return Names(tuple(found), whole=False)
            with suppress(CallError):
                workspace.guard(entry.path)
                found.append((entry.path, entry.stat.kind == DIRECTORY))
    return Names(tuple(found))


def offers_for(  # noqa: PLR0913  a request, where its rule would be written, and times
    workspace: Workspace | None,
    policy: Policy,
    source: Path,
    request: Request,
    *,
    now: float,
    until: int | None,
    widths: Collection[str] = WIDTHS,
) -> tuple[Offers, PolicyFile]:
    """Return the offers for a request, and the file that each would be written to.

    Without the workspace (it is elsewhere) nobody knows which paths are there, nor how names are compared: a
    rule has to be proved for each way.

    Raises CallError `permission_denied` if there is no such file, and PolicyError if the policy has stopped
    loading.
    """
    file = policy_file.file_for_rules(source, policy)
    try:
        names = names_in(workspace, policy) if workspace is not None else Names((), whole=False)
    except CallError:
        names = Names((), whole=False)  # a person can decide although the store does not answer
    text = PolicyText(file.name, file.data)
    policy = file.reload(file.data)
    fold = workspace.fold if workspace is not None else Folding.NONE
    made = offers(request, policy, text, file.reload, names, now=now, until=until, fold=fold, widths=widths)
    return made if workspace is not None else _for_every_fold(made, request, policy, now), file


def proposed(  # noqa: PLR0913  the answers, where a rule would be written, and times
    workspace: Workspace,
    policy: Policy,
    source: Path,
    requests: Iterable[Request],
    fold: Fold,
    *,
    now: float,
    since: float,
) -> list[Proposal]:
    """Return rules for folders and kinds of files from the answers since `since`, each with its proof.

    The rules end when a rule ends for which nobody chooses an end. Raises as `offers_for` does.
    """
    until = rule_end(None, now)

    def offered(request: Request) -> Offers:
        return offers_for(workspace, policy, source, request, now=now, until=until, widths=(FOLDER, KIND))[0]

    return proposals(requests, offered, policy.at(now), now, fold, since=since)


def _for_every_fold(made: Offers, request: Request, policy: Policy, now: float) -> Offers:
    """Return the offers that are safe, and answer the request, however the workspace compares names."""
    kept, left = [], list(made.left_out)
    for offer in made.offers:
        others = (Folding.CASE, Folding.FORM)
        if all(
            answers(offer.after.at(now), request, fold)
            and only_answers(policy, offer.after, now, fold=fold).holds
            for fold in others
        ):
            kept.append(offer)
        else:
            left.append((offer.words, "it is not safe where letter case makes no difference in names"))
    return Offers(tuple(kept), tuple(left))


def write(  # noqa: PLR0913  an offer, its file, and who answers why
    approvals: Approvals, request: Request, offer: Offer, file: PolicyFile, *, by: str, reason: str = ""
) -> Request:
    """Write the rule of an offer, and settle the request by it.

    Raises CallError `approval_stale` if the request was answered or its change refused, or if the policy's
    file has changed since the offer; `io_error` if the file cannot be written. Then nothing is written.
    """
    return approvals.settle(
        request.id, offer.id, RULE, by=by, reason=reason, first=lambda: policy_file.replace(file, offer.data)
    )


def complete(approvals: Approvals, policy: Policy, approval: str, *, by: str) -> Request | None:
    """Settle a pending request whose rule was written when the writer died; None if there is no such rule."""
    if in_force(policy.whole, approval) is None or approvals.get(approval).state != PENDING:
        return None
    return approvals.settle(approval, rule_id(approval), RULE, by=by, reason="the rule was written before")


def settle_others(
    approvals: Approvals, others: Iterable[Request], settled_by: str, scope: str, *, by: str
) -> list[Request]:
    """Settle other requests by the same rule or grant; those that were answered meanwhile are left out."""
    found = []
    for one in others:
        with suppress(CallError):
            found.append(approvals.settle(one.id, settled_by, scope, by=by))
    return found


def find(policy: Policy, rule: str) -> AnsweredRule:
    """Return the rule of an answer by its id. Raises CallError `not_found`."""
    found = next((each for each in answered_rules(policy.whole) if each.id == rule), None)
    if found is None:
        raise CallError(
            "not_found", f"The policy has no rule '{rule}' from an answer", hint="`ringfence approvals rules`"
        )
    return found


def without(policy: Policy, source: Path, rule: str) -> tuple[PolicyFile, bytes]:
    """Return the file that has a rule of an answer, and its bytes without the rule; every comment stays.

    Raises CallError `not_found`, `permission_denied`, or `policy_invalid` if the rest would not be the same.
    """
    found = find(policy, rule)
    for place in dict.fromkeys((str(source.absolute()), *policy.files)):
        here = [each for each in found.rules if each.where and _is_at(place, source, each)]
        if not here:
            continue
        file = policy_file.read_file(source, Path(place))
        try:
            data = file.data
            for each in here:
                data = rule_lines.remove(data, ("agents", each.agent or "", "rules", each.key), each.pattern)
            after = file.reload(data)
        except (LayoutError, PolicyError) as error:
            raise _by_hand(rule, str(error)) from None
        if not only_removes(policy.whole, after.whole, here):
            raise _by_hand(rule, "another rule would change")
        return file, data
    raise _by_hand(rule, "its place is not known")


def _is_at(place: str, source: Path, rule: Rule) -> bool:
    import os

    folder = source.absolute().parent
    return rule.where is not None and os.path.normpath(folder / rule.where.file) == os.path.normpath(place)


def _by_hand(rule: str, why: str) -> CallError:
    return CallError(
        "policy_invalid",
        f"The rule '{rule}' cannot be taken out: {why}",
        hint="take it out of the policy by hand",
    )

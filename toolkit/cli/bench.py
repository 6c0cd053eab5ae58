"""`prove` and `diff`: what a policy can and cannot do, and what changes between two. Changes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from policy import ACTIONS, Policy
from policy.compare import Change, Comparison, compare
from policy.glob import PatternError, parse, parse_agent
from policy.model import EFFECTS, Invariant
from policy.prove import prove as prove_all
from policy.search import Budget
from toolkit.cli.perform import DONE, FELL_SHORT, UsageError, deadline
from toolkit.cli.place import policy_file, policy_of, root_of
from toolkit.cli.revisions import load_revision
from toolkit.cli.screen import STYLES, Screen


def prove(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prove the statement of the command line, or else the policy's own invariants."""
    expired = deadline(arguments.deadline)
    root, _ = root_of(arguments)
    policy = policy_of(arguments, root)
    statements = [_statement(arguments, policy)] if arguments.kind else list(policy.invariants)
    if not statements:
        raise UsageError("the policy has no invariants; give one: never allow delete 'secrets/**'")
    proofs = prove_all(policy, statements, expired=expired)
    if screen.as_json:
        screen.json([proof.to_json() for proof in proofs])
    else:
        for proof in proofs:
            screen.line(str(proof), "green" if proof.holds else "yellow" if proof.holds is None else "red")
    return DONE if all(proof.holds for proof in proofs) else FELL_SHORT


def _statement(arguments: argparse.Namespace, policy: Policy) -> Invariant:
    if not (arguments.verdict and arguments.what and arguments.pattern):
        raise UsageError("a statement is: never|always allow|ask|deny ACTION|TOOL PATTERN")
    if arguments.what not in ACTIONS and arguments.what not in policy.tools:
        raise UsageError(f"{arguments.what}: neither an action nor a tool")
    try:
        parse(arguments.pattern)
        if arguments.agent not in ("*", "**"):
            parse_agent(arguments.agent)
    except PatternError as error:
        raise UsageError(f"{error.message}; {error.hint}") from None
    verdict = EFFECTS[arguments.verdict]
    return Invariant(arguments.kind, arguments.agent, arguments.what, arguments.pattern, verdict)


def diff(arguments: argparse.Namespace, screen: Screen) -> int:
    """Compare two policies over every path."""
    budget = Budget(expired=deadline(arguments.deadline))
    found = compare(policy_or_revision(arguments.old), policy_or_revision(arguments.new), budget)
    if screen.as_json:
        screen.json(
            {
                "changes": [change.to_json() for change in found.changes],
                "settings": list(found.settings),
                "widens": found.widens,
                "undecided": list(found.undecided),
            }
        )
    else:
        _show(found, screen)
    if arguments.fail_on == "any":
        short = bool(found.changes or found.settings or found.undecided)
    else:
        short = arguments.fail_on == "widen" and (found.widens or bool(found.undecided))
    return FELL_SHORT if short else DONE


def policy_or_revision(named: str) -> Policy:
    """The policy of a file, a ready-made name, or REV:PATH of git."""
    revision, colon, path = named.partition(":")
    if colon and not Path(named).exists():
        return load_revision(revision, path)
    return Policy.load(policy_file(named))


def _show(found: Comparison, screen: Screen) -> None:
    order = sorted(found.changes, key=lambda change: (not change.widens, change.agent, change.action))
    if order:
        columns = ("agent", "what", "before", "now", "paths", "for example", "because")
        screen.table(columns, [_row(change) for change in order])
    for line in found.settings:
        screen.line(line)
    for line in found.undecided:
        screen.line(f"too complex: {line}", STYLES["ask"])
    if found.widens:
        screen.line("the new policy lets more through", "red")
    elif found.changes or found.settings:
        screen.line(
            "the new policy is stricter" + (" as far as it was compared" if found.undecided else ""), "green"
        )
    elif not found.undecided:
        screen.line("the same verdict for every agent, action and path", "green")


def _row(change: Change) -> tuple[str, ...]:
    what = change.action if change.tool == change.action else f"{change.tool} ({change.action})"
    why = str(change.rule) if change.rule else "no rule decides"
    return (
        change.agent,
        what,
        str(change.before),
        str(change.after),
        change.pattern,
        str(change.example),
        why,
    )

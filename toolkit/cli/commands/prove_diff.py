"""`prove` and `diff`: what a policy can and cannot do, and what changes between two. Changes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ringfence.policy import ACTIONS, Policy, PolicyError
from ringfence.policy.analysis.diff import Change, Comparison, compare
from ringfence.policy.analysis.epochs import period_of
from ringfence.policy.analysis.prove import prove as prove_all
from ringfence.policy.analysis.shortest_witness import MAX_WORK, Budget
from ringfence.policy.commands import patterns as word_patterns
from ringfence.policy.model import EFFECTS, RUN, WRITE_KINDS, Invariant
from ringfence.policy.patterns.syntax import Folding, PatternError, parse, parse_agent
from ringfence.policy.upstreams.rows import CALL
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.case_option import case_of, folding, mention_case
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.context import policy_file, policy_of, root_of
from ringfence.toolkit.cli.git_revisions import checkout, load_revision, policy_files, top_folder
from ringfence.toolkit.cli.output import STYLES, Screen
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError, deadline
from ringfence.toolkit.cli.time_option import times_of
from ringfence.toolkit.project_root import POLICY_FILE
from ringfence.toolkit.text import escape, plural

_WORK = MAX_WORK // 2  # of a comparison: about half a minute
_NAMED = 12  # questions without an answer
_NONE = "version: 1\n"  # where there is no policy everything asks
_BROKEN = 'version: 1\nrules: {"*": deny}\n'


def prove(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prove the statement of the command line, or else the policy's own invariants."""
    expired = deadline(arguments.deadline)
    root, _ = root_of(arguments)
    policy = policy_of(arguments, root)
    statements = [_statement(arguments, policy)] if arguments.kind else list(policy.invariants)
    if not statements:
        raise UsageError("the policy has no invariants; give one: never allow delete 'secrets/**'")
    mention_unknown(policy, dict.fromkeys(each.agent for each in statements), screen)
    fold = folding(arguments, root)
    times = times_of(arguments, [policy])
    proofs = prove_all(policy, statements, expired=expired, fold=fold or Folding.NONE, times=times)
    if screen.as_json:
        screen.json([{**proof.to_json(), "case": case_of(fold)} for proof in proofs])
    else:
        mention_case(fold, screen)
        for proof in proofs:
            screen.line(str(proof), "green" if proof.holds else "yellow" if proof.holds is None else "red")
    return DONE if all(proof.holds for proof in proofs) else FELL_SHORT


def _statement(arguments: argparse.Namespace, policy: Policy) -> Invariant:
    if not (arguments.verdict and arguments.what and arguments.pattern):
        raise UsageError("a statement is: never|always allow|ask|deny ACTION|TOOL PATTERN")
    if arguments.what not in (*ACTIONS, *WRITE_KINDS, RUN, CALL) and arguments.what not in policy.tools:
        raise UsageError(f"{arguments.what}: neither an action nor a tool")
    try:
        (word_patterns.parse if arguments.what == RUN else parse)(arguments.pattern)
        if arguments.agent not in ("*", "**"):
            parse_agent(arguments.agent)
    except PatternError as error:
        raise UsageError(f"{error.message}; {error.hint}") from None
    verdict = EFFECTS[arguments.verdict]
    return Invariant(arguments.kind, arguments.agent, arguments.what, arguments.pattern, verdict)


def diff(arguments: argparse.Namespace, screen: Screen) -> int:
    """Compare two policies over every path, or every policy of a repository with what it was."""
    budget = Budget(_WORK, expired=deadline(arguments.deadline))
    if arguments.all:
        return _diff_all(arguments, screen, budget)
    if arguments.new is None:
        raise UsageError("diff needs two policies: OLD NEW, or --all REV")
    fold = folding(arguments, None)
    old, new = (policy_or_revision(each) for each in (arguments.old, arguments.new))
    times = times_of(arguments, [old, new])
    found = compare(old, new, budget, fold=fold or Folding.NONE, times=times)
    if screen.as_json:
        screen.json(_fields(found, fold))
    else:
        mention_case(fold, screen)
        _show(found, screen)
    return _status(found, arguments.fail_on)


def _diff_all(arguments: argparse.Namespace, screen: Screen, budget: Budget) -> int:
    if arguments.new is not None:
        raise UsageError("diff --all takes one revision of git")
    found: dict[str, Comparison] = {}
    top = top_folder()
    fold = folding(arguments, str(top))
    with checkout(arguments.old) as folder:
        before = {path.relative_to(folder).as_posix() for path in folder.rglob(POLICY_FILE) if path.is_file()}
        now = set(policy_files())
        for name in sorted(before | now):
            old = _as_it_was(folder / name, screen) if name in before else Policy.loads(_NONE)
            new = Policy.load(top / name) if name in now else Policy.loads(_NONE)
            times = times_of(arguments, [old, new])
            found[name] = compare(old, new, budget, fold=fold or Folding.NONE, times=times)
    if screen.as_json:
        screen.json([{"policy": name, **_fields(each, fold)} for name, each in found.items()])
    else:
        mention_case(fold, screen)
    for name, each in found.items() if not screen.as_json else ():
        screen.line(f"{escape(name)}:")
        _show(each, screen)
    return max((_status(each, arguments.fail_on) for each in found.values()), default=DONE)


def _as_it_was(path: Path, screen: Screen) -> Policy:
    try:
        return Policy.load(path)
    except PolicyError:
        screen.note(f"{path.name} did not load in that revision, so it denied everything")
        return Policy.loads(_BROKEN)


def _fields(found: Comparison, fold: Folding | None) -> dict[str, Any]:
    return {
        "case": case_of(fold),
        "changes": [change.to_json() for change in found.changes],
        "settings": list(found.settings),
        "widens": found.widens,
        "undecided": list(found.undecided),
    }


def _status(found: Comparison, fail_on: str | None) -> int:
    if fail_on == "any":
        short = bool(found.changes or found.settings or found.undecided)
    else:
        short = fail_on == "widen" and (found.widens or bool(found.undecided))
    return FELL_SHORT if short else DONE


def policy_or_revision(named: str) -> Policy:
    """The policy of a file, a ready-made name, or REV:PATH of git."""
    revision, colon, path = named.partition(":")
    if colon and not Path(named).exists():
        return load_revision(revision, path)
    return Policy.load(policy_file(named))


_CHANGES = (
    *(Column("agent", folds_to=6), Column("what", folds_to=6), Column("before"), Column("now")),
    Column("paths", folds_to=8, leaves=1),
    Column("for example", folds_to=8),
    Column("because", folds_to=10, leaves=2),
)


def _show(found: Comparison, screen: Screen) -> None:
    order = sorted(found.changes, key=lambda change: (not change.widens, change.agent, change.action))
    if order:
        screen.table(_CHANGES, [_row(change) for change in order])
    for line in found.settings:
        screen.line(line)
    for line in found.undecided[:_NAMED]:
        screen.line(f"not decided: {line}", STYLES["ask"])
    if len(found.undecided) > _NAMED:
        left = plural(len(found.undecided) - _NAMED, "more question")
        screen.line(f"not decided: {left}, which --json lists", STYLES["ask"])
    if found.widens:
        screen.line("the new policy is more permissive", "red")
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
        f"{why}{_condition(change)}",
    )


def _condition(change: Change) -> str:
    """When a change is so, after its reason: for what content, and at what times."""
    content = f", where {change.content} is found" if change.content else ""
    return f"{content}{period_of(change.since, change.until)}"

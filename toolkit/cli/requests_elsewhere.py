"""Requests of a workspace that is not on this machine: its shared state alone, by the name of its schema.

Looks at no file of the workspace, and recovers nothing: what a change left open can be settled only where
the files are.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from ringfence.policy import Policy
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.cli.context import audit_key, open_record, open_to_answer
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.open import names_schema
from ringfence.toolkit.state.protocol import SHARED, State
from ringfence.toolkit.text import plural

NO_POLICY = (
    "the workspace is elsewhere, and its policy too: give a copy of the policy's file with --policy, and"
    " bring the rule to the workspace as you bring any change of its policy"
)
NOT_YET = (
    "the rule is in this copy of the policy alone: it counts once the workspace has it, and until then the"
    " agent is asked again"
)


@dataclass(frozen=True, slots=True)
class RequestsElsewhere:
    """The requests in a shared state, in place of a session: without a workspace, and without its policy."""

    state: State
    approvals: Approvals
    policy: Policy
    workspace: None = None
    fold: Fold = Folding.NONE  # not known here

    def __enter__(self) -> RequestsElsewhere:
        return self

    def __exit__(self, *_: object) -> None:
        self.state.close()


def open_to_see(arguments: argparse.Namespace) -> Session | RequestsElsewhere:
    """Open the requests of the options' workspace to read them. CallError `not_found` without a state."""
    return _opened(arguments, answer=False)


def open_for_answer(arguments: argparse.Namespace) -> Session | RequestsElsewhere:
    """Open them to answer one. CallError `not_found` without a state."""
    return _opened(arguments, answer=True)


def _opened(arguments: argparse.Namespace, *, answer: bool) -> Session | RequestsElsewhere:
    state = arguments.state or ""
    if not names_schema(state):
        try:
            return open_to_answer(arguments) if answer else open_record(arguments)
        except CallError as error:
            if error.code == "not_found" and state.startswith(SHARED):
                raise CallError("not_found", error.message, hint=_others(state)) from None
            raise
    if arguments.root is not None or arguments.place is not None:
        raise UsageError("--state names the workspace by its schema: leave --root and --place out")
    if getattr(arguments, "audit_log", None):
        raise UsageError("--audit-log: the copy of the audit log is written where the workspace is")
    from ringfence.toolkit.state.postgres import PostgresState

    named = audit_key(arguments)
    opened = PostgresState(state, audit.read_key(named) if named else None, make=False)
    return RequestsElsewhere(opened, Approvals(opened), Policy.empty())


def _others(url: str) -> str:
    """Return the hint for a workspace without a state in a database that others use."""
    from ringfence.toolkit.state.shared_states import waiting_in

    found = waiting_in(url)
    if not found:
        return "no workspace has its state in this database; is it the right one?"
    listed = "; ".join(f"{name} ({plural(number, 'pending request')})" for name, number in found.items())
    return (
        f"the database has the states of other workspaces: {listed}; to answer for one of them from here,"
        f" append its name to the URL: --state 'URL#{next(iter(found))}'"
    )

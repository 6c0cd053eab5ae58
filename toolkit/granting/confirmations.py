"""Confirmations of answers: what was answered, when it takes effect, and how to reverse it.

Pure. The words are the same on every interface; the command is for those without a key of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.toolkit.approvals import requests
from ringfence.toolkit.approvals.requests import ONCE, RULE, Request
from ringfence.toolkit.audit.command_records import CHANGES
from ringfence.toolkit.granting.command_requests import afterwards
from ringfence.toolkit.granting.scopes import granted_in_words
from ringfence.toolkit.text import escape


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`what` was answered, what happens `next`, and how to reverse it: `reversal` says what the `command`
    does. Both are "" where nothing is to be reversed.
    """

    what: str
    next: str
    reversal: str = ""
    command: str = ""

    def lines(self, options: str = "") -> list[tuple[str, str]]:
        """Return the lines for a person, each with its style; `options` are added to the command."""
        found = [
            (self.what, "yellow" if self.what.startswith("refused") else "green"),
            (f"  {self.next}", ""),
        ]
        return [*found, (f"  {self.reversal}: {self.command}{options}", "dim")] if self.command else found


def confirmation(request: Request) -> Confirmation:
    """Return the confirmation of the answer that a request has now."""
    title = escape(request.title)
    match request.state:
        case requests.GRANTED:
            return _granted(request, title)
        case requests.REFUSED:
            told_reason = f" The agent is told: {escape(request.reason)}" if request.reason else ""
            return Confirmation(
                f"refused: {title}",
                f"It stays refused whatever else is granted.{told_reason}",
                "to let it be answered again",
                f"ringfence approvals reopen {request.id}",
            )
        case requests.SETTLED:
            return _settled(request, title)
        case requests.REVOKED:
            return Confirmation(f"taken back: {title}", "The next such call asks again.")
        case requests.PENDING:
            return Confirmation(f"waits again: {title}", "It can be answered again.")
    return Confirmation(f"{request.state}: {title}", "It has no answer that could be reversed.")


def _granted(request: Request, title: str) -> Confirmation:
    if request.scope == ONCE:
        reversal = "to take it back, as long as the agent has not used it"
    else:
        reversal = "to take it back; what was done until then can be undone"
    return Confirmation(
        f"granted for {granted_in_words(request)}: {title}",
        _sentence(afterwards(request)),
        reversal,
        f"ringfence approvals revoke {request.id}",
    )


def _settled(request: Request, title: str) -> Confirmation:
    by_rule = request.scope == RULE
    runs_again = by_rule and request.of_command == CHANGES
    again = ": the command runs again, and the rule allows its changes" if runs_again else ""
    return Confirmation(
        f"answered by {'rule' if by_rule else 'the grant'} {request.settled_by}: {title}",
        _sentence(f"the agent may now send the same call again{again}"),
        "to take the rule out of the policy" if by_rule else "to take the grant back",
        f"ringfence approvals {'revoke-rule' if by_rule else 'revoke'} {request.settled_by}",
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."

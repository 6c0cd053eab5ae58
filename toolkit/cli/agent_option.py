"""`--agent`: says when no entry of the policy fits the name. A remark for people, never an error."""

from __future__ import annotations

from collections.abc import Iterable

from ringfence.policy import Policy
from ringfence.toolkit.cli.output import Screen


def mention_unknown(policy: Policy, names: Iterable[str], screen: Screen) -> None:
    """Say beside the answer which of these names no entry fits, with the nearest one."""
    for name in names:
        if policy.content.agents and all(entry is None for _, entry in policy.chain(name)):
            from ringfence.policy.lint.agent_names import unknown_agent  # slow to import, and seldom needed

            if message := unknown_agent(policy, name):
                screen.note(f"note: {message}", "yellow")

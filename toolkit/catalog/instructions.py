"""Short text for an agent's instructions, made from its policy: which tools to use, and when to stop and ask.

Pure. The text only informs; the policy is enforced whether or not the agent reads it.
"""

from __future__ import annotations

from ringfence.policy import Effect, Policy
from ringfence.policy.model import RUN_TOOL
from ringfence.toolkit.catalog.offers import Offer, offers
from ringfence.toolkit.catalog.tool_names import ToolNames

_MOST_REASONS = 8
_TRASH = ".trash"


def instructions(
    policy: Policy, agent: str, *, tasks: bool = False, exact: bool = False, prefix: str = ""
) -> str:
    """Return the text for one agent. `exact` proves where nothing asks, which takes longer; `prefix` is
    before the names of the tools.
    """
    tool_names = ToolNames(prefix)
    offered = offers(policy, agent, tasks=tasks, exact=exact)
    names = {offer.tool.name for offer in offered}
    parts = [
        _tools(offered, tool_names),
        _shell(offered, tool_names),
        _deleting(policy, agent, names, tool_names),
        _asking(offered, tool_names),
        _limits(policy, agent, names),
        _reasons(policy, agent),
        "A call that is denied stays denied: do not look for another way round; say what you could not do.",
    ]
    return "\n".join(f"- {part}" for part in parts if part)


def _tools(offered: tuple[Offer, ...], tool_names: ToolNames) -> str:
    names = [tool_names.of(offer.tool.name) for offer in offered if not offer.tool.runs]
    if not names:
        return "The policy lets you use no file tool."
    return f"Use these tools for files: {', '.join(names)}."


def _shell(offered: tuple[Offer, ...], tool_names: ToolNames) -> str:
    if any(offer.tool.name == RUN_TOOL for offer in offered):
        return (
            f"Run commands with {tool_names.of(RUN_TOOL)} and with no other shell: each file that a command"
            " changes is judged, kept and can be undone. Write what you run as simple commands joined by &&"
            " or |, so that a rule can allow it."
        )
    instead = dict.fromkeys(offer.tool.shell_command for offer in offered if offer.tool.shell_command)
    words = f" ({', '.join(f'`{word}`' for word in instead)} and the like)" if instead else ""
    return f"Do not use a shell{words} for what they do: what goes past them cannot be judged or undone."


def _deleting(policy: Policy, agent: str, names: set[str], tool_names: ToolNames) -> str:
    if not names & {"delete", "delete_file"}:
        return "You may delete nothing." if names & {"create_file", "edit_file", "move_file"} else ""
    trash = policy.effect(agent, "move_file", "write.create", f"{_TRASH}/x")
    aside = (
        f" Rather move a file to `{_TRASH}/` with {tool_names.of('move_file')}."
        if "move_file" in names and trash is not Effect.DENY
        else ""
    )
    return (
        f"Delete only what you were asked to delete.{aside} Before you delete or replace something that looks"
        " important (data, configuration, anything you did not make), ask, whatever the policy allows."
    )


def _asking(offered: tuple[Offer, ...], tool_names: ToolNames) -> str:
    always = [tool_names.of(offer.tool.name) for offer in offered if offer.asks == "always"]
    partly = [offer.tool for offer in offered if offer.asks == "sometimes"]
    sometimes = [tool_names.of(tool.name) for tool in partly if not tool.runs]
    commands = [tool_names.of(tool.name) for tool in partly if tool.runs]
    asks = [f"always for {', '.join(always)}"] if always else []
    asks += [f"for some paths with {', '.join(sometimes)}"] if sometimes else []
    asks += [f"for some commands with {', '.join(commands)}"] if commands else []
    if not asks:
        return ""
    return (
        f"A person is asked first {'; '.join(asks)}. If the answer is approval_required, say what you want to"
        " do and why, wait, and send the same call again once it is granted. Give a description with it."
    )


def _limits(policy: Policy, agent: str, names: set[str]) -> str:
    if "delete" not in names:
        return ""
    most = [limit for limit in policy.limits(agent, "delete") if limit.max_files is not None]
    ceilings = [
        f"{limit.max_files:,} files in one {limit.per}" for limit in most if limit.max_files is not None
    ]
    return f"Deleting has a ceiling: {', '.join(dict.fromkeys(ceilings))}." if ceilings else ""


def _reasons(policy: Policy, agent: str) -> str:
    """Return the reasons of denying mandatory and global rules, in the policy author's words."""
    denied = [rule for item in policy.content.mandatory for rule in item.rules]
    entry = next((entry for _, entry in policy.chain(agent) if entry is not None), None)
    for rules in (policy.content.rules, entry.rules if entry else {}):
        denied += [rule for listed in rules.values() for rule in listed]
    reasons = dict.fromkeys(rule.reason for rule in denied if rule.effect is Effect.DENY and rule.reason)
    return f"Denied, whatever you need it for: {'; '.join(list(reasons)[:_MOST_REASONS])}." if reasons else ""

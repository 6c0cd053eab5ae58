"""Verdict on a whole call: its paths, contents and command, and a denied search made narrower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ringfence.toolkit.hooks.tool_table import TOOLS

if TYPE_CHECKING:
    from ringfence.policy import Policy
    from ringfence.toolkit.hooks.judge import Verdict
    from ringfence.toolkit.hooks.shell_call import ShellCall
    from ringfence.toolkit.hooks.touch import Touch

_NARROWED = "what may not be read is left out of this search"


class CallContext(NamedTuple):
    """Where a call is judged, by which policy and for which agent."""

    root: str
    cwd: str
    policy: Policy
    agent: str
    own: tuple[str, ...]


def verdict_on(
    context: CallContext,
    touched: tuple[Touch, ...],
    shell: ShellCall | None,
    given: dict[str, Any],
) -> Verdict | None:
    """Return the verdict on a call with these arguments; None where the host decides."""
    from ringfence.toolkit.hooks.judge import Judge, stricter

    found = None
    if touched:
        judge = Judge(context.root, context.policy, context.agent, context.cwd, context.own)
        found = judge.judge(touched)
        if context.policy.detectors and found is not None and str(found.effect) != "deny":
            from ringfence.toolkit.hooks.content_judge import ContentJudge

            by_content = ContentJudge(judge, context.policy, context.agent, given).judge(touched)
            found = found if by_content is None else stricter(found, by_content)
    return found if shell is None else stricter(found, shell.verdict())


def narrowed_verdict(
    host: str, event: dict[str, Any], context: CallContext, touch: Touch, first: Verdict
) -> tuple[Verdict, dict[str, Any] | None]:
    """Return the verdict on a denied search without what is denied, and its new arguments.

    Any other call keeps its verdict, and has no new arguments.
    """
    tool, given = event["tool_name"], event["tool_input"]
    known = TOOLS[host].get(tool.lower())
    if known is None or not known.pattern or first.refused or str(first.effect) != "deny":
        return first, None
    from ringfence.toolkit.hooks.judge import Judge
    from ringfence.toolkit.hooks.narrow_search import narrowed
    from ringfence.toolkit.hooks.tool_arguments import touches

    judge = Judge(context.root, context.policy, context.agent, context.cwd, context.own)
    changed = narrowed(judge, touch, given, known.pattern)
    if changed is None:
        return first, None
    verdict = verdict_on(context, touches(host, tool, changed), None, changed)
    # Without a decision this event takes no arguments.
    settled = event["hook_event_name"] == "PreToolUse" or (
        verdict is not None and str(verdict.effect) == "allow" and event.get("permission_mode") != "plan"
    )
    if verdict is None or str(verdict.effect) == "deny" or not settled:
        return first, None
    return verdict._replace(reason=f"{verdict.reason}; {_NARROWED}"), changed

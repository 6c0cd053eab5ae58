"""View of decisions, requests and plans for an agent; every interface shows an agent this view only.

Never has a rule's pattern, file or line, a digest of content, or anything about paths that the agent may not
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.policy import Decision, Effect, Policy
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit.plan.changes import Plan
from ringfence.toolkit.plan.impact import describe, touched
from ringfence.toolkit.text import escape, plural, rfc3339

if TYPE_CHECKING:
    from ringfence.toolkit.approvals.requests import Request
    from ringfence.toolkit.session.attempt import Attempt

_NAMED = 100  # entries that are named, if the plan is not shown whole


def decision(attempt: Attempt, judged: Decision | None, *, asking: bool = False) -> dict[str, Any] | None:
    """Return the decision's fields for the agent; the hint mentions a grant only if `asking`."""
    if judged is None:
        return None
    hint = "" if judged.effect is Effect.ASK and not asking else judged.hint
    return decision_fields(judged, path_of(attempt, judged.path) or "", hint)


def decision_fields(judged: Decision, path: str, hint: str) -> dict[str, Any]:
    """Return the fields of a decision for an agent that may know `path`."""
    return {
        "effect": str(judged.effect),
        "action": judged.action,
        "path": path,
        "reason": reason(judged),
        "hint": hint,
    }


def reason(judged: Decision) -> str:
    """Return the policy author's reason if there is one; never the rule itself."""
    if judged.content:
        own = judged.rule.reason if judged.rule is not None else None
        found = f"the content has what the policy looks for: {', '.join(judged.content)}"
        return f"{own}: {found}" if own else found
    if judged.rule is not None and judged.rule.reason:
        return judged.rule.reason
    # A limit names what it counts, and a decision without a rule has no rule to name.
    return judged.reason if judged.limit or judged.rule is None else f"a rule says {judged.effect}"


def path_of(attempt: Attempt, path: str) -> str | None:
    """Return `path` if the agent named it or may read it, else the path that the agent named."""
    if path in attempt.named or path in attempt.commands or not path:
        return path or None
    if _may_read(attempt, path):
        return path
    given = [place.named for place, _ in attempt.places.values() if place.real == path]
    return next(iter((*given, *attempt.named)), None)


def not_kept(attempt: Attempt) -> list[str]:
    """Return the names of the metadata that was lost, for files that the agent may read."""
    if attempt.outcome is None:
        return []
    lost = attempt.outcome.not_kept
    rows = (names if _may_read(attempt, path) else ("metadata",) for path, names in lost.items())
    return sorted({name for names in rows for name in names})


def request(attempt: Attempt, plan: Plan, preview: str) -> dict[str, str]:
    """Return the agent's fields of a request: `title`, a `preview` of its own, and the `reason` to ask. The
    given `preview` is the person's.

    If the plan touches a path that the agent may not read, the title has no figures and the preview no
    content.
    """
    whole = _may_read_all(attempt, plan)
    hidden = attempt.content is not None and attempt.content.hidden
    return {
        "title": _title(attempt, plan, whole=whole),
        "preview": preview if whole and not hidden else _outline(attempt, plan),
        "reason": reason(attempt.decided),
    }


def title(attempt: Attempt, plan: Plan) -> str:
    """Return what the call would do, in one line for the agent."""
    return _title(attempt, plan, whole=_may_read_all(attempt, plan))


def _title(attempt: Attempt, plan: Plan, *, whole: bool) -> str:
    if whole:
        return attempt.title(plan)
    if attempt.known_tool.runs:
        return f"{attempt.known_tool.title}: {escape(attempt.arguments['command'])}"
    named = ", ".join(escape(name) for name in attempt.named)
    return f"{attempt.known_tool.title}: {named}" if named else attempt.known_tool.title


def _may_read_all(attempt: Attempt, plan: Plan) -> bool:
    """Whether the agent may read every path that a plan touches, under each of its names in the call."""
    paths = {path for change in plan.changes for path, *_ in touched(change)}
    if attempt.ran is not None:
        paths.update((*attempt.ran.denied, *(path for path, _ in attempt.ran.dropped)))
    if not attempt.known_tool.runs:
        paths |= {name for place, _ in attempt.places.values() for name in (place.named, place.real)}
    return all(_may_read(attempt, path) for path in paths)


def _outline(attempt: Attempt, plan: Plan) -> str:
    """Return the changes of a plan by their paths, as far as the agent may know them."""
    lines: list[str] = []
    for row in describe(plan):
        ends = [path_of(attempt, row[end]) or "" for end in ("path", "destination") if end in row]
        lines.append(f"{row['change'].replace('_', ' ')} {' → '.join(map(escape, ends))}")
        inside = row["entries"] if isinstance(row.get("entries"), list) else []
        known = [path for path in inside if _may_read(attempt, path)]
        lines += [f"  {escape(path)}" for path in known[:_NAMED]]
        if more := len(inside) - len(known[:_NAMED]):
            lines.append(f"  and {plural(more, 'entry', 'entries')} more")
    lines.append("What is in files that the agent may not read is not shown here.")
    return "\n".join(lines)


def request_fields(asked: Request) -> dict[str, Any]:
    """Return the fields of a stored request for the agent that made it."""
    return {
        "id": asked.id,
        "agent": asked.agent,
        "session": asked.session,
        "tool": asked.tool,
        "title": asked.shown.get("title", ""),
        "state": asked.state,
        "reason": asked.reason,
        "asked": rfc3339(asked.asked),
    }


def _may_read(attempt: Attempt, path: str) -> bool:
    """Whether the agent may read a path; not what a command made at a name that no path can have."""
    try:
        return may_read(attempt.policy, attempt.context.agent, path, attempt.fold)
    except ValueError:
        return False


def may_read_file(attempt: Attempt, path: str) -> bool:
    """Whether the agent may read a file without asking, whatever a key of the call's tool says."""
    effect = attempt.policy.effect(attempt.context.agent, "read", "read", path, False, fold=attempt.fold)
    return effect is Effect.ALLOW


def may_read(policy: Policy, agent: str, path: str, fold: Fold) -> bool:
    """Whether an agent may read a path without asking, as a file and as a directory: the kind may be secret,
    too.
    """
    effects = (
        policy.effect(agent, "read", "read", path, directory, fold=fold) for directory in (False, True)
    )
    return max(effects) == Effect.ALLOW

"""Permission requests: the policy's verdict on what an agent asks to do by itself, and its record.

Judges as a hook does: names and kinds, and contents where the policy has detectors. Allows only what the
policy allows by its paths; a command is never allowed here, as its effects are not seen.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from ringfence.policy import Decision, Effect, Need, Policy
from ringfence.policy.commands.needs import run_needs
from ringfence.policy.model import RUN_TOOL
from ringfence.toolkit.acp.messages import chosen
from ringfence.toolkit.acp.tool_calls import Wanted, changes_files
from ringfence.toolkit.approvals.asking_rules import asking
from ringfence.toolkit.approvals.grant_scope import is_broad
from ringfence.toolkit.approvals.requests import ONCE, SESSION, Answer, Request, new_id
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.scopes import in_words
from ringfence.toolkit.hooks.content_judge import ContentJudge
from ringfence.toolkit.hooks.judge import Judge, Verdict, stricter
from ringfence.toolkit.hooks.shell_call import reason_text
from ringfence.toolkit.hooks.touch import UNKNOWN
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import diff, escape

ALLOW, DENY, ASK, OTHER = "allow", "deny", "ask", "other"
BY = "the editor's user"
CLOSED = "the question was closed without an answer"
EVENT = "permission"
_UNSEEN = "the policy cannot judge what this would do; a person decides"
_NOBODY = "a person has to decide this, and nobody is asked here"
_BY_ITSELF = "by the agent itself, so it cannot be undone here"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of a permission request.

    `effect` is ALLOW, DENY, ASK (the policy asks about `request`) or OTHER (a person decides, and the policy
    has nothing to say). `reason` is for the agent, `code` an error code or "".
    """

    effect: str
    wanted: Wanted
    reason: str = ""
    code: str = ""
    request: Request | None = None
    decision: Decision | None = None
    needs: tuple[Need, ...] = ()


class Permissions:
    """Rules on the permission requests of one session of an agent."""

    def __init__(self, session: Session, root: str, cwd: str) -> None:
        self._session = session
        self._root = root
        self._cwd = cwd
        # A person's answers for the session, by command line and directory.
        self._standing: dict[tuple[str | None, str | None], bool] = {}

    def rule(self, wanted: Wanted) -> Ruling:
        """Return the ruling; raises nothing, and denies what cannot be judged."""
        try:
            return self._rule(wanted, self._session.policy_now())
        except CallError as error:
            hint = f". {error.hint}" if error.hint else ""
            return Ruling(DENY, wanted, f"{error.message}{hint}", error.code)

    def _rule(self, wanted: Wanted, policy: Policy) -> Ruling:
        agent = self._session.agent
        cwd = self._cwd if wanted.cwd is None else os.path.join(self._cwd, wanted.cwd)
        judge = Judge(self._root, policy, agent, cwd)
        verdict = judge.judge(wanted.touches)
        if verdict is not None and verdict.effect is not Effect.DENY:
            verdict = self._guarded(judge, wanted, verdict)
            verdict = _by_content(judge, policy, agent, wanted, verdict)
        found = _Found(judge, policy, agent, wanted)
        ruling = Ruling(OTHER, wanted, _UNSEEN, decision=found.decision, needs=found.needs)
        if wanted.command is not None:
            verdict = stricter(verdict, _of_command(found))
        if verdict is None or (policy.mode == "monitor" and not verdict.refused):
            return self._by_standing_answer(ruling)
        if verdict.effect is Effect.DENY:
            code = "protected_path" if verdict.refused else "denied_by_policy"
            return replace(ruling, effect=DENY, reason=verdict.reason, code=code)
        if wanted.command is not None or not wanted.complete or verdict.unsure:
            return self._by_standing_answer(ruling)
        if verdict.effect is Effect.ALLOW:
            return replace(ruling, effect=ALLOW, reason=verdict.reason)
        return self._asked(replace(ruling, effect=ASK, reason=verdict.reason), found)

    def _guarded(self, judge: Judge, wanted: Wanted, verdict: Verdict) -> Verdict:
        """Also refuse what this session protects, such as its state where that has a place of its own."""
        for touch in wanted.touches:
            with suppress(CallError):
                place = judge.place(touch.path)
                for path in (place.named, place.real):
                    try:
                        self._session.workspace.guard(path, reading=touch.actions == ("read",))
                    except CallError as error:
                        return Verdict(Effect.DENY, f"The path is protected. {error.hint}", refused=True)
        return verdict

    def _by_standing_answer(self, ruling: Ruling) -> Ruling:
        answer = self._standing.get((ruling.wanted.command, ruling.wanted.cwd))
        if answer is None or ruling.wanted.command is None:
            return ruling
        reason = "a person answered this command for the whole session"
        return replace(
            ruling, effect=ALLOW if answer else DENY, reason=reason, code="" if answer else "approval_refused"
        )

    def _asked(self, ruling: Ruling, found: _Found) -> Ruling:
        """Return the ruling on what the policy asks about: by a person's answer, else with the request."""
        approvals = self._session.approvals
        request = found.request(self._session, ruling.reason)
        granted = approvals.permits(request)
        if granted is not None:
            return replace(ruling, effect=ALLOW, reason="a person granted this", request=granted)
        if self._session.ask == "deny":
            raise CallError("no_approver", f"{request.title} needs approval and nobody is there to ask")
        request, _ = approvals.ask(request)
        if self._session.ask == "queue":
            hint = f"a person can run `ringfence approvals grant {request.id}`; then ask again"
            code = "approval_required"
            return replace(
                ruling,
                effect=DENY,
                reason=f"Approval needed: {request.title}. {hint}",
                code=code,
                request=request,
            )
        return replace(ruling, request=request)

    @property
    def asks_editor(self) -> bool:
        """Whether the editor's person may be asked."""
        return self._session.ask == "prompt"

    def unasked(self, ruling: Ruling) -> Ruling:
        """Return the denial of what only a person could decide, where nobody is asked."""
        return replace(ruling, effect=DENY, reason=f"{_NOBODY}: {ruling.reason}", code="no_approver")

    def options(self, ruling: Ruling, offered: list[Any]) -> list[Any]:
        """Return the options for the editor's person, who reads of each what it does here.

        An "always" is offered where it is a grant for the session, or stands for one command line.
        """
        if chosen(offered, "allow_once") is None:
            return offered
        words = None
        request = ruling.request
        if request is not None and request.rules and not is_broad(request, SESSION):
            words = f"Allow {in_words(request, SESSION)}"
        elif request is None and ruling.wanted.command is not None:
            words = "Allow this very command in this session"
        always = chosen(offered, "allow_always") if words else None
        return [
            {**each, "name": words} if _is_always(each) else each
            for each in offered
            if not _is_always(each) or each["optionId"] == always
        ]

    def answered(self, ruling: Ruling, kind: str | None) -> bool:
        """Record the answer of the editor's person, an option's kind or None; return whether it permits.

        An answer "always" never loosens the policy: of a request it is a grant for the session, of a command
        it stands for the very same line in this session.
        """
        allowed = kind in ("allow_once", "allow_always")
        if ruling.request is None:
            if kind in ("allow_always", "reject_always") and ruling.wanted.command is not None:
                self._standing[ruling.wanted.command, ruling.wanted.cwd] = allowed
            return allowed
        approvals, name = self._session.approvals, ruling.request.id
        try:
            if kind is None or kind not in ("allow_once", "allow_always", "reject_once", "reject_always"):
                approvals.note_declined(name, by=BY, reason=CLOSED)
                return False
            wide = kind == "allow_always" and ruling.request.rules and not is_broad(ruling.request, SESSION)
            with suppress(CallError):  # answered elsewhere meanwhile: what counts is what permits now
                approvals.answer(name, Answer(allowed, SESSION if wide else ONCE, by=BY))
            return allowed and approvals.permits(ruling.request) is not None
        except CallError:
            return False

    def observe(self, wanted: Wanted, outcome: str) -> None:
        """Append the record of a change that the agent made without asking. Raises CallError."""
        policy = self._session.policy_now()
        judge = Judge(self._root, policy, self._session.agent, self._cwd)
        found = _Found(judge, policy, self._session.agent, wanted)
        self.record(Ruling(OTHER, wanted, decision=found.decision, needs=found.needs), outcome)

    def record(self, ruling: Ruling, outcome: str, *, by: str | None = None) -> None:
        """Append the record of a permission request. Raises CallError if that is impossible."""
        wanted, session = ruling.wanted, self._session
        command = None if wanted.command is None else {"command": wanted.command, "host": "the agent"}
        session.history.note(
            {},
            {
                "time": time.time(),
                "event": EVENT,
                "session": session.session,
                "agent": session.agent,
                "tool": _tool(wanted),
                "paths": list(dict.fromkeys(need.path for need in ruling.needs if need.action != "run")),
                **({"command": command} if command else {}),
                "decision": ruling.decision.to_json() if ruling.decision else None,
                "reason": wanted.title or None,
                "policy": session.policy.revision,
                "mode": session.policy.mode,
                "approval": ruling.request.id if ruling.request else None,
                "outcome": outcome,
                **({"by": by} if by else {}),
            },
        )


def _is_always(option: Any) -> bool:
    """Whether an option permits more than the one call."""
    return isinstance(option, dict) and option.get("kind") == "allow_always"


class _Found:
    """The needs of what is wanted, and the policy's decision on them."""

    def __init__(self, judge: Judge, policy: Policy, agent: str, wanted: Wanted) -> None:
        self.wanted, self._policy, self._agent = wanted, policy, agent
        self._fold = judge.fold
        self._by_tool: dict[str, list[Need]] = {}
        for touch in wanted.touches:
            with suppress(CallError):  # what cannot be a path of the workspace has no need
                self._by_tool.setdefault(touch.tool or "edit_file", []).extend(
                    judge.needs(touch, judge.place(touch.path))
                )
        if wanted.command is not None:
            self._by_tool[RUN_TOOL] = run_needs(wanted.command)
        self.needs = tuple(need for needs in self._by_tool.values() for need in needs)
        decided = [
            (policy.decide(agent, tool, needs, fold=self._fold), tool)
            for tool, needs in self._by_tool.items()
            if needs
        ]
        worst = max(decided, key=lambda each: each[0].effect, default=None)
        self.decision = None if worst is None else worst[0]
        self._tool = _tool(wanted) if worst is None else worst[1]

    def of_command(self) -> Decision:
        """The decision on the words of the command."""
        return self._policy.decide(self._agent, RUN_TOOL, self._by_tool[RUN_TOOL])

    def request(self, session: Session, reason: str) -> Request:
        """The request for a person's approval."""
        asks: dict[Need, None] = {}
        rules: list[dict[str, object]] = []
        for tool, needs in self._by_tool.items():
            found, because = asking(self._policy, self._agent, tool, needs, self._fold)
            asks |= dict.fromkeys(found)
            rules += [rule for rule in because if rule not in rules]
        named = tuple(dict.fromkeys(need.path for need in self.needs))
        title = f"{_title(self.wanted)}: {', '.join(map(escape, named))} ({_BY_ITSELF})"
        preview = "\n".join(
            diff(each.path, None if each.old is None else each.old.encode(), each.new.encode())
            for each in self.wanted.diffs
        )
        digest = _digest(self.wanted)
        return Request(
            id=new_id(),
            agent=session.agent,
            session=session.session,
            tool=self._tool,
            arguments={"path": named[0]} if len(named) == 1 else {"paths": list(named)},
            same_as=digest,
            digest=digest,
            revision=self._policy.revision,
            title=title,
            preview=preview,
            decision=self.decision.to_json() if self.decision else {},
            paths=named,
            asked=time.time(),
            shown={"title": title, "preview": preview, "reason": reason},
            needs=_fields(self.needs, asks, has_kinds=self._policy.has_kinds),
            asking=tuple(dict.fromkeys(need.path for need in asks)),
            asks=tuple(rules),
            changes=changes_files(self.wanted.kind),
        )


def _fields(
    needs: Iterable[Need], asks: dict[Need, None], *, has_kinds: bool
) -> tuple[dict[str, object], ...]:
    return tuple(
        {
            "action": need.action,
            "path": need.path,
            "directory": need.directory,
            "on_the_way": need.incidental,
            "asks": need in asks,
            **({"kind": need.kind} if has_kinds and need.kind else {}),
        }
        for need in dict.fromkeys(needs)
    )


def _digest(wanted: Wanted) -> str:
    """Return the digest of what was asked: the kind, the paths with their actions, and the new contents."""
    touches = [touch._asdict() for touch in wanted.touches]
    body = {"kind": wanted.kind, "touches": touches, "diffs": [asdict(each) for each in wanted.diffs]}
    return sha256(json.dumps(["a permission request", body], sort_keys=True).encode())


def _of_command(found: _Found) -> Verdict:
    decision = found.of_command()
    return Verdict(decision.effect, reason_text(decision))


def _by_content(judge: Judge, policy: Policy, agent: str, wanted: Wanted, verdict: Verdict) -> Verdict:
    """Return the verdict with what the policy's detectors find in what would be read or written."""
    if not policy.detectors:
        return verdict
    worst: Verdict = verdict
    given = [{"old_string": each.old or "", "new_string": each.new} for each in wanted.diffs] or [{}]
    for each in given:
        by_content = ContentJudge(judge, policy, agent, each).judge(wanted.touches)
        worst = worst if by_content is None else stricter(worst, by_content)
    return worst


def _tool(wanted: Wanted) -> str:
    """Return our tool that does what is wanted; the kind where there is none."""
    first = next((touch.tool for touch in wanted.touches if touch.tool != UNKNOWN), "")
    return RUN_TOOL if wanted.command is not None else first or wanted.kind


_TITLES = {
    "read": "Read",
    "search": "Search",
    "edit": "Edit",
    "delete": "Delete",
    "move": "Move",
}


def _title(wanted: Wanted) -> str:
    return _TITLES.get(wanted.kind, "Use")

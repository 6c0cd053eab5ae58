"""One call on its way through the stages: validate, resolve, decide, plan, tighten, approve, apply.

Reads top to bottom in `run`. Whatever is not known to be permitted is refused.
"""

from __future__ import annotations

import difflib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ringfence.policy import Amount, Decision, Effect, Need, Policy
from ringfence.policy.model import GRAVITY
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit.approvals.asking_rules import asking
from ringfence.toolkit.approvals.store import Request, call_digest, new_id
from ringfence.toolkit.call import Result, ToolCall
from ringfence.toolkit.errors import CODES, CallError
from ringfence.toolkit.execution.apply import apply
from ringfence.toolkit.execution.outcome import Outcome
from ringfence.toolkit.history.records import DONE, GONE, Operation
from ringfence.toolkit.plan import checks as plan_checks
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Change, MakeDirectory, Move, Place, Plan, Write
from ringfence.toolkit.plan.impact import Step, new_paths, steps, touched, usage, without_files
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session import agent_view
from ringfence.toolkit.session import resolve as resolving
from ringfence.toolkit.session import responses as answers
from ringfence.toolkit.session.validation import arguments
from ringfence.toolkit.storage.backend import only_read, traits_at
from ringfence.toolkit.storage.guarantees import unkept
from ringfence.toolkit.text import escape, plural
from ringfence.toolkit.tools import TOOLS, Tool
from ringfence.toolkit.undo.overlay import Overlay
from ringfence.toolkit.workspace.view import View, aliased

if TYPE_CHECKING:
    from ringfence.toolkit.session.session import Session


@dataclass(slots=True)
class Attempt:
    """What is known so far of the call at hand. `name` is Ringfence's own id for it."""

    session: Session
    call: ToolCall
    name: str = field(default_factory=lambda: "c-" + secrets.token_hex(6))
    started: float = field(default_factory=time.time)
    tool: Tool | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)
    places: dict[str, tuple[Place, Any]] = field(default_factory=dict)
    decision: Decision | None = None
    needs: list[Need] = field(default_factory=list)  # all that was judged
    plan: Plan | None = None
    usage: dict[str, Amount] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None
    approval: str | None = None
    grant: Request | None = None  # what a person granted, which lets it run
    by: str | None = None  # whose own act it is
    lost: tuple[str, ...] = ()
    left_out: int = 0  # entries of a store that no path can name
    in_session: str | None = None  # where it is on record, if not in the one that makes it
    task_ids: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    # Looked up once: the policy that the call began under judges it to its end.
    policy: Policy = field(init=False)
    enforcing: bool = field(init=False)
    fold: Fold = field(init=False)

    def __post_init__(self) -> None:
        session = self.session
        self.policy, self.enforcing, self.fold = session.policy, session.enforcing, session.fold

    def run(self, progress: Progress) -> Result:
        """Answer the call. Raises CallError for everything but a plain success."""
        self.tool = find_tool(self.call.tool)
        self.arguments = _arguments(self.tool, self.call.arguments)
        resolving.resolve(self)
        self.decide(self._way_in(resolving.needs(self), progress))
        self._check_writable()
        resolving.check_slashes(self)
        view = View(
            self.session.workspace,
            self.effect,
            self._within,
            self.places,
            task_ids=self.task_ids,
            check=progress.check,
            opens_below=self.opens_below,
        )
        progress.check()
        self.plan = plan = self.tool.plan(self.arguments, view)
        self.left_out = len(view.left_out)
        progress.check()
        self._check(plan)
        self._note_reads(plan)
        if view.asked or plan.changes:
            self.decide([*view.asked, *self._needs(plan)])
        if plan.changes:
            self.usage = usage(steps(plan.changes))
            self._limit()
            self._mind_loss(plan)
            if self.session.dry_run or self.decided.effect is not Effect.ALLOW:
                self._check_known(plan)  # a person is not asked about what is stale,
                self._check_rights(plan)  # nor about what cannot be done
        # Nor is one asked where a call that changes something finds nothing to change.
        asks = bool(plan.changes or view.asked) or self.tool.safety == "safe"
        if self.session.dry_run:
            return answers.dry(self, plan, asks=asks)
        if asks:
            self._approve(plan)
        progress.check()
        if plan.changes:
            self._apply(plan, progress)
        if plan.tell is not None:
            return answers.told(self, plan, plan.tell)
        return answers.success(self, plan, {})

    def release(self) -> None:
        for _, spot in self.places.values():
            self.session.workspace.backend.release(spot)

    @property
    def known_tool(self) -> Tool:
        assert self.tool is not None, "the tool is found before anything else is asked"
        return self.tool

    @property
    def decided(self) -> Decision:
        assert self.decision is not None, "every call is judged before it gets here"
        return self.decision

    def judge(self, needs: list[Need]) -> Decision:
        return self.policy.decide(self.session.agent, self.known_tool.name, needs, fold=self.fold)

    def decide(self, needs: list[Need]) -> None:
        """Judge; keep the stricter of this and what was decided before. Raises CallError on a deny."""
        self.needs += needs
        decision = self.judge(needs)
        if self.decision is None or _weight(decision) > _weight(self.decision):
            self.decision = decision
        self.stop_if_denied()

    def _way_in(self, needs: list[Need], progress: Progress) -> list[Need]:
        """What is judged first: of a directory that may not be read, where a listing or search begins at it,
        the first thing below it that may."""
        if not self.known_tool.walks or self.judge(needs).effect is not Effect.DENY:
            return needs
        place, _ = self.places["path"]
        judged = View(
            self.session.workspace, self._judged_effect, self._judged_within, self.places,
            check=progress.check, opens_below=self.opens_below,
        )  # fmt: skip
        found = judged.first(place) if place.kind == DIRECTORY and judged.opens(place.real) else None
        if found is not None:
            return [found]
        named = self.named[0]
        return resolving.by_name("read", named) if resolving.is_denied(self, "read", named) else needs

    def stop_if_denied(self) -> None:
        if self.decided.effect == Effect.DENY and self.enforcing:
            raise answers.denied(self)

    def effect(self, action: str, path: str, directory: bool) -> Effect:
        return self._judged_effect(action, path, directory) if self.enforcing else Effect.ALLOW

    def opens_below(self, path: str) -> bool:
        """Whether the policy may let something below a directory be read, or have it ask."""
        return self.policy.opens_below(self.session.agent, self.known_tool.name, "read", path, fold=self.fold)

    def _within(self, path: str) -> Callable[[str, bool], Effect]:
        return self._judged_within(path) if self.enforcing else lambda *_: Effect.ALLOW

    def _judged_effect(self, action: str, path: str, directory: bool) -> Effect:
        return self.policy.effect(
            self.session.agent, self.known_tool.name, action, path, directory, fold=self.fold
        )

    def _judged_within(self, path: str) -> Callable[[str, bool], Effect]:
        return self.policy.within(self.session.agent, self.known_tool.name, "read", path, fold=self.fold)

    # -------------------------------------------------------------------- plans

    def _check_writable(self) -> None:
        """Refuse (`read_only_store`) what would change a store that is only read, before it is planned."""
        for need in self.needs:
            if need.action != "read" and traits_at(self.session.workspace.backend, need.path).read_only:
                raise only_read(need.path)

    def _check(self, plan: Plan) -> None:
        """The hard refusals on every path of the plan, and stale reads."""
        for change in plan.changes:
            plan_checks.check(change)
            for path, _, _ in touched(change):
                resolving.guard(self.session.workspace, path, "write", tasks=self.known_tool.tasks)
            if not self.known_tool.tasks:
                for path in new_paths(change):
                    self.session.workspace.guard_new(path)
            if isinstance(change, Write):
                self._check_write(change)
            if isinstance(change, Move) and change.over is not None and change.over.kind == FILE:
                self._check_seen(change.destination, lambda change=change: self._digest(change.destination))  # type: ignore[misc]

    def _check_known(self, plan: Plan) -> None:
        """Refuse a write over what the plan read, where that is not what this session knows."""
        for change in plan.changes:
            if isinstance(change, Write) and change.before_digest is not None:
                self._check_seen(change.path, lambda change=change: change.before_digest)  # type: ignore[misc]

    def _check_rights(self, plan: Plan) -> None:
        from ringfence.toolkit.workspace.permissions import refused

        error = refused(self.session.workspace.backend, plan.changes, self._spots())
        if error is not None:
            raise error

    def _spots(self) -> dict[str, Any]:
        """The places judged, by canonical path."""
        return {spot.path: spot for _, spot in self.places.values()}

    def _check_seen(self, path: str, digest: Callable[[], str]) -> None:
        """Refuse (`stale_read`) to write over what this session does not know by its content."""
        known = self.session.history.seen(self.session.session, path)
        if known is None or known == digest():
            return
        gone = "was deleted by this session and made again since"
        raise CallError(
            "stale_read", f"'{path}' {gone if known == GONE else 'changed since it was read'}", where=path
        )

    def _digest(self, path: str) -> str:
        overlay = Overlay(self.session.workspace.backend)
        node = overlay.disk(path)
        return GONE if node is None else overlay.digest(node)

    def _check_write(self, change: Write) -> None:
        if change.before is None and change.stat is not None:
            self._check_seen(change.path, lambda: self._digest(change.path))
        if change.stat is not None and change.stat.links > 1 and self.policy.hard_links == "refuse":
            raise CallError(
                "hard_linked", f"'{change.path}' has {change.stat.links} names", where=change.path
            )

    def _note_reads(self, plan: Plan) -> None:
        for change in plan.changes:
            if isinstance(change, Write) and change.before_digest is not None:
                self.seen[change.path] = change.before_digest
        if self.known_tool.name == "read_file" and "digest" in plan.data:
            self.seen[self.places["path"][0].real] = plan.data["digest"]

    def _needs(self, plan: Plan) -> list[Need]:
        if self.known_tool.tasks:
            return []  # judged already, each task as one
        return [need for change in plan.changes for need in self._needs_of(change)]

    def _needs_of(self, change: Change) -> list[Need]:
        incidental = isinstance(change, MakeDirectory) and change.incidental
        needs: list[Need] = []
        for path, action, directory in touched(change):
            aliases = (aliased(place, path) for place, _ in self.places.values())
            names = sorted({path, *(alias for alias in aliases if alias is not None)})
            needs += [Need(action, name, directory, incidental) for name in names]
        return needs

    # ------------------------------------------------------- limits and approval

    def _limit(self) -> None:
        self.decision = self.policy.tighten(
            self.decided, self.session.agent, self.known_tool.name, self._counted, self._totals
        )
        self.stop_if_denied()

    @property
    def _counted(self) -> dict[str, Amount]:
        """What the limits see: tasks are counted by `max_tasks`, so their files are not."""
        return self.usage if not self.known_tool.tasks else without_files(self.usage)

    def stands(self, *more: str) -> list[Step]:
        """What of the plan was done and not taken back by itself, and what is in one of the states `more`."""
        if self.plan is None or self.outcome is None:
            return []
        states = self.outcome.stands
        return [step for n, step in enumerate(steps(self.plan.changes)) if states.get(n) in (DONE, *more)]

    def _mind_loss(self, plan: Plan) -> None:
        """What could not be brought back is never done on a rule's word alone: a person is asked."""
        self.lost = unkept(plan.changes, self.session.workspace.backend.traits)
        if self.lost and self.decided.effect == Effect.ALLOW:
            self.decision = replace(
                self.decided,
                effect=Effect.ASK,
                reason=f"{plural(len(self.lost), 'file')} too large to be kept here could not be restored",
                hint="a person has to grant this; send the same call again then",
            )

    def _totals(self, agent: str, key: str) -> Amount:
        return self.session.history.totals(self.session.session, agent, key)

    def _approve(self, plan: Plan) -> None:
        if self.decided.effect != Effect.ASK or not self.enforcing:
            return
        request = self._request(plan)
        granted = self.session.approvals.permits(request)
        if granted is not None:
            self.approval, self.grant = granted.id, granted
            return
        if self.session.ask == "deny":
            raise CallError(
                "no_approver", f"{request.shown['title']} needs approval and nobody is there to ask"
            )
        request, stale = self.session.approvals.ask(request)
        self.approval = request.id
        raise answers.approval_needed(self, request, stale)

    def title(self, plan: Plan) -> str:
        """What the call would do, in one line for a person."""
        title = plan.title or f"{self.known_tool.title}: {', '.join(self.named)}"
        if not self.lost:
            return title
        return f"{title}; {plural(len(self.lost), 'file')} CANNOT BE RESTORED afterwards"

    def _request(self, plan: Plan) -> Request:
        session, tool = self.session, self.known_tool
        changed = dict.fromkeys(path for change in plan.changes for path, _, _ in touched(change))
        asks, rules = asking(self.policy, session.agent, tool.name, self.needs, self.fold)
        preview = plan.preview  # drawn once: it may be a long diff
        return Request(
            id=new_id(),
            agent=session.agent,
            session=session.session,
            tool=tool.name,
            arguments=self.call.arguments,
            same_as=call_digest(self._canonical()),
            digest=plan.digest(),
            revision=self.policy.revision,
            title=self.title(plan),
            preview=preview,
            decision=self.decided.to_json() | ({"not_recoverable": list(self.lost)} if self.lost else {}),
            paths=tuple(changed) or tuple(self.named),
            description=str(self.arguments.get("description") or ""),
            asked=time.time(),
            shown=agent_view.request(self, plan, preview),
            needs=self._told_needs(plan, asks),
            asking=tuple(dict.fromkeys(need.path for need in asks)),
            asks=rules,
            changes=bool(plan.changes),
        )

    def _told_needs(self, plan: Plan, asks: tuple[Need, ...]) -> tuple[dict[str, Any], ...]:
        """What the plan itself needs, what the call reads for it, and what else asks, each once."""
        reads = [need for need in self.needs if need.action == "read"]
        needs = dict.fromkeys([*(self._needs(plan) or self.needs), *reads, *asks])
        asking_now = frozenset(asks)
        return tuple(
            {
                "action": need.action,
                "path": need.path,
                "directory": need.directory,
                "on_the_way": need.incidental,
                "asks": need in asking_now,
            }
            for need in needs
        )

    def _canonical(self) -> dict[str, Any]:
        """The arguments in one spelling: no defaults, paths as they are judged, each task once."""
        properties = self.known_tool.parameters["properties"]
        found = {
            name: value
            for name, value in self.arguments.items()
            if "default" not in properties[name] or value != properties[name]["default"]
        }
        found |= {name: place.named for name, (place, _) in self.places.items() if name in found}
        return found | ({"task_ids": list(self.task_ids[0])} if "task_ids" in found else {})

    # -------------------------------------------------------------------- apply

    def _apply(self, plan: Plan, progress: Progress) -> None:
        session = self.session
        operation = Operation(
            call=self.name,
            given=self.call.id,
            session=session.session,
            agent=session.agent,
            tool=self.known_tool.name,
            reason=self.arguments.get("description"),
        )
        self.outcome = apply(
            plan,
            session.workspace,
            session.history,
            operation,
            self._counted,
            spots=self._spots(),
            guard=self._reserve,
            progress=progress,
        )
        if plan.tell is not None:
            if self.outcome.failures:
                from ringfence.toolkit.session.rollback import roll_back

                roll_back(self, plan, self.outcome)
            return
        answers.raise_failure(self.outcome, lambda path: agent_view.path_of(self, path) == path)

    def _reserve(self) -> None:
        """Inside the intent's transaction: racing calls cannot pass a session's limit together."""
        before = self.decided
        if before.effect is Effect.ALLOW and self.plan is not None:
            self._check_known(self.plan)
        self._limit()
        if self.decided.effect > before.effect and self.enforcing:
            raise CallError("limit_exceeded", self.decided.reason)


def _weight(decision: Decision) -> tuple[Effect, int]:
    """What represents a call: the strictest verdict, of equal ones that on what changes most."""
    return decision.effect, GRAVITY.get(decision.action, -1)


def find_tool(name: str) -> Tool:
    """The tool of this name. Raises CallError `unknown_tool` with the nearest."""
    if name in TOOLS:
        return TOOLS[name]
    if name == "write_file":
        hint = "use create_file (with allow_overwrite: true to replace)"
    else:
        near = difflib.get_close_matches(name, list(TOOLS), 1)
        hint = f"did you mean '{near[0]}'?" if near else CODES["unknown_tool"].hint
    raise CallError("unknown_tool", f"Unknown tool '{escape(name[:80])}'", where="tool", hint=hint)


def _arguments(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    if tool.tasks:
        from ringfence.toolkit.task_ids import unwrapped

        given = unwrapped(given)
    return arguments(tool.name, tool.parameters, given)

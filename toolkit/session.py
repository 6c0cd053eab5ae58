"""One agent's session in one workspace: every call is parsed, judged, planned, approved, applied, recorded.

Nothing else changes files, and nothing here is lifted by what a call says about itself.
"""

from __future__ import annotations

import difflib
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from policy import Amount, Decision, Effect, Need, Policy, PolicyError
from toolkit import paths
from toolkit.approvals import Answer, Approvals, Request, new_id
from toolkit.apply import Outcome, Progress, apply
from toolkit.call import Result, ToolCall, as_call, call_id_of, failed, parse_call
from toolkit.errors import CODES, CallError
from toolkit.changes import Changed, changed
from toolkit.history import GONE, History, Operation, Version
from toolkit.plan import (
    DIRECTORY,
    FILE,
    LINK,
    Change,
    Delete,
    MakeDirectory,
    MakeLink,
    Move,
    Place,
    Plan,
    Write,
    sha256,
)
from toolkit.state import State, default_place
from toolkit.text import escape
from toolkit.tools import TOOLS, Tool
from toolkit.undo import Way, pick, restore, undo
from toolkit.workspace import View, Workspace, aliased

Approver = Callable[[Request], Answer]


@dataclass(slots=True)
class _Run:
    """What is known so far of the call at hand, for the record at its end."""

    call: ToolCall
    name: str
    started: float
    tool: Tool | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    places: dict[str, tuple[Place, Any]] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)
    decision: Decision | None = None
    plan: Plan | None = None
    seen: dict[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None
    approval: str | None = None


class Session:
    """What an agent (through its harness) talks to.

    `root` is a directory, `memory://` or an fsspec URL, or a path on `fs`. `policy` is a Policy, the
    path of a file, or None (then everything asks). `state` is a directory, ":memory:", or None for the
    user's state directory. `ask` says what becomes of a call that needs a person: "queue" answers
    `approval_required` and keeps the request, "deny" refuses, "prompt" asks `approver` at once.
    A policy that does not load denies every call. Raises CallError for a root or a state that cannot be used.
    """

    def __init__(
        self,
        root: str | Path,
        policy: Policy | str | Path | None = None,
        *,
        agent: str = "default",
        session: str | None = None,
        state: str | Path | None = None,
        ask: str = "queue",
        approver: Approver | None = None,
        dry_run: bool = False,
        fs: Any = None,
        found_by: str = "given",
    ) -> None:
        self.agent = agent
        self.session = session or f"s-{time.strftime('%Y%m%d')}-{secrets.token_hex(4)}"
        self.policy_error: PolicyError | None = None
        self.policy = self._load(policy)
        self.ask = "prompt" if approver is not None and ask == "queue" else ask
        self._approver = approver
        self._dry_run = dry_run
        self._lock = threading.RLock()
        self.workspace = Workspace(os.fspath(root), fs=fs, durable=self.policy.durable, found_by=found_by)
        place = default_place(self.workspace.url, None if state is None else os.fspath(state))
        self.state = State(place)
        self.history = History(self.state, durable=self.policy.durable)
        self.approvals = Approvals(self.state)
        for file in (*self.policy.files, *([] if place == ":memory:" else [os.path.dirname(place)])):
            self.workspace.protect(file)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.state.close()
        self.workspace.close()

    # -------------------------------------------------------------------- calls

    def call(self, call: ToolCall | dict[str, Any] | str | bytes, progress: Progress | None = None) -> Result:
        """Answer one call; a bad one is answered too, never raised."""
        with self._lock:
            try:
                parsed = self._parse(call)
            except CallError as error:
                given = call_id_of(call) if isinstance(call, str | bytes) else None
                run = _Run(ToolCall("", {}, given), _call_name(), time.time())
                return self._recorded(run, failed(given, error))
            result = self._attempt(parsed, progress)
            if self._must_prompt(result):
                result = self._prompt(parsed, result, progress)
            return result

    def _parse(self, call: ToolCall | dict[str, Any] | str | bytes) -> ToolCall:
        if isinstance(call, ToolCall):
            return as_call({"tool": call.tool, "arguments": call.arguments, "id": call.id})
        return as_call(call) if isinstance(call, dict) else parse_call(call)

    def _attempt(self, call: ToolCall, progress: Progress | None) -> Result:
        run = _Run(call, _call_name(), time.time())
        try:
            result = self._stages(run, progress)
        except CallError as error:
            result = failed(call.id, error, self._shown(run, run.decision))
        except (
            Exception
        ) as error:  # the last line: whatever went wrong, nothing more is permitted and it is on record
            fault = CallError("internal_error", f"Internal error ({type(error).__name__})")
            result = failed(call.id, fault)
        finally:
            for _, spot in run.places.values():
                self.workspace.backend.release(spot)
        return self._recorded(run, result)

    def _stages(self, run: _Run, progress: Progress | None) -> Result:
        self._policy_loaded()
        run.tool = _tool(run.call.tool)
        run.arguments = _arguments(run.tool, run.call.arguments)
        self._resolve(run)
        self._decide(run, self._needs_of_arguments(run))
        view = View(self.workspace, self._effect(run))
        view.places = run.places
        run.plan = run.tool.plan(run.arguments, view)
        self._check_changes(run, run.plan)
        self._note_reads(run, run.plan)
        self._decide(run, [*view.asked, *self._needs_of_changes(run, run.plan)])
        usage = usage_of(run.plan.changes)
        run.decision = self.policy.tighten(self._decided(run), self.agent, run.tool.name, usage, self._totals)
        if run.decision.effect == Effect.DENY and self._enforcing:
            raise self._denied(run)
        if self._dry_run:
            return self._answer(run, {"dry_run": True, "plan": describe(run.plan)})
        self._approve(run)
        if run.plan.changes:
            self._apply(run, usage, progress)
        return self._answer(run, {})

    # ---------------------------------------------------------------- the way back

    def undo(
        self, call: str, *, force: bool = False, dry_run: bool = False, progress: Progress | None = None
    ) -> Result:
        """Take back what one call changed; conflicts are named and left alone unless `force`.

        `call` is a result's `call_id` (or the caller's id where only one call had it). `data` has
        `changes`, `conflicts`, `preview` and `call_id`, by which the undo itself can be undone.
        """
        return self._back(
            "undo",
            call,
            lambda: undo(self.history.call(call), self.workspace, self.history, force=force),
            dry_run,
            progress,
        )

    def restore(
        self,
        path: str,
        version: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Result:
        """Bring one file back to a version (`initial`, `v1`, or `SESSION:v1`). Answers as `undo` does."""

        def way() -> Way:
            known = self.history.versions(paths.normalise(path, self.workspace.url))
            wanted, last = pick(known, version)
            return restore(wanted, last, self.workspace, self.history, force=force)

        return self._back("restore", f"{path} {version}", way, dry_run, progress)

    def versions(self, path: str) -> list[Version]:
        """The versions of a file, session by session. Raises CallError for a path that is none."""
        return self.history.versions(_lexical(self.workspace.split(path)))

    def changes(self, session: str | None = None) -> list[Changed]:
        """The files this (or another) session changed, with additions and removals, by path."""
        return changed(self.history, session or self.session)

    def _back(
        self, tool: str, what: str, way_of: Callable[[], Way], dry_run: bool, progress: Progress | None
    ) -> Result:
        run = _Run(ToolCall(tool, {}), _call_name(), time.time())
        with self._lock:
            try:
                result = self._take_back(run, what, way_of(), dry_run or self._dry_run, progress)
            except CallError as error:
                result = failed(None, error)
            return self._recorded(run, result)

    def _take_back(self, run: _Run, what: str, way: Way, dry_run: bool, progress: Progress | None) -> Result:
        run.plan = way.plan(f"{run.call.tool} {what}")
        data: dict[str, Any] = {
            "changes": describe(run.plan),
            "conflicts": [{"path": conflict.path, "why": conflict.why} for conflict in way.conflicts],
            "preview": run.plan.preview,
        }
        if dry_run:
            return Result(None, "ok", _back_text(run.plan, way, "Would take back"), {**data, "dry_run": True})
        if run.plan.changes:
            operation = Operation(run.name, None, self.session, self.agent, run.call.tool, undoes=what)
            run.outcome = apply(
                run.plan, self.workspace, self.history, operation, {}, spots={}, progress=progress
            )
            raise_failure(run.outcome)
        if way.conflicts:
            raise CallError(
                "partial_failure" if run.plan.changes else "path_changed",
                _back_text(run.plan, way, "Taken back"),
                hint="look at the files named; --force takes them back too, and what is there now is kept",
                data=data,
            )
        return Result(None, "ok", _back_text(run.plan, way, "✓ Taken back"), data)

    # ------------------------------------------------------------------- stages

    def _policy_loaded(self) -> None:
        if self.policy_error is not None:
            first = self.policy_error.problems[0]
            raise CallError(
                "policy_invalid", f"The policy does not load: {first.message}", where=str(first.where)
            )

    def _resolve(self, run: _Run) -> None:
        """Turn each path argument into a place; a path denied by its name is denied before it is looked at."""
        assert run.tool is not None
        named = {}
        for action, parameter in run.tool.needs:
            text = run.arguments[parameter] if parameter else paths.ROOT
            named[parameter] = (text, self._split(run, text, parameter))
            path = _lexical(named[parameter][1])
            run.named.append(path)
            self._guard(path, action)
            self._deny_by_name(run, action, path)
        for parameter, (text, names) in named.items():
            run.places[parameter] = self._place(run, text, names)

    def _split(self, run: _Run, text: str, parameter: str) -> tuple[str, ...]:
        assert run.tool is not None
        try:
            return self.workspace.split(text, parameter or "path")
        except CallError as error:
            raise self._outside(run, error, text) from None

    def _outside(self, run: _Run, error: CallError, text: str) -> CallError:
        if error.code != "outside_root" or run.tool is None:
            return error
        message = _OUTSIDE.get(run.tool.name, error.message).format(path=escape(text))
        return CallError("outside_root", message, where=error.where)

    def _place(self, run: _Run, text: str, names: tuple[str, ...]) -> tuple[Place, Any]:
        assert run.tool is not None
        backend = self.workspace.backend
        try:
            spot = backend.resolve(names, follow=run.tool.follow)
        except CallError as error:
            raise self._unresolved(run, error, text) from None
        try:
            stat = backend.stat(spot)
            named = _lexical(names)
            link = stat is not None and stat.kind == LINK
            if run.tool.follow and not link and spot.path != named:
                link = backend.is_link(names)
        except BaseException:
            backend.release(spot)
            raise
        return Place(text, named, spot.path, stat, link), spot

    def _unresolved(self, run: _Run, error: CallError, text: str) -> CallError:
        """An error met on the way; what it says of a path the agent may not read is not passed on."""
        if error.where and error.where not in ("path", *run.named):
            for action, _ in run.tool.needs if run.tool else ():
                decision = self.policy.decide(
                    self.agent,
                    run.tool.name if run.tool else "",
                    [Need(action, error.where)],
                    fold=self._fold,
                )
                if decision.effect == Effect.DENY and self._enforcing:
                    run.decision = decision
                    return self._denied(run)
        return self._outside(run, error, text)

    def _guard(self, path: str, action: str) -> None:
        self.workspace.guard(path, reading=action == "read")
        if path == paths.ROOT and action != "read":
            raise CallError("root_protected", "The project root itself cannot be changed", where=path)

    def _deny_by_name(self, run: _Run, action: str, path: str) -> None:
        assert run.tool is not None
        both = [
            self.policy.decide(self.agent, run.tool.name, [Need(action, path, directory)], fold=self._fold)
            for directory in (False, True)
        ]
        mildest = min(both, key=lambda decision: decision.effect)
        if mildest.effect == Effect.DENY and self._enforcing:
            run.decision = mildest
            raise self._denied(run)

    def _needs_of_arguments(self, run: _Run) -> list[Need]:
        assert run.tool is not None
        needs: list[Need] = []
        for action, parameter in run.tool.needs:
            place = run.places[parameter][0]
            self._guard(place.real, action)
            for path in dict.fromkeys((place.named, place.real)):
                needs.extend(Need(action, path, directory) for directory in self._kinds(run, action, place))
        return needs

    def _kinds(self, run: _Run, action: str, place: Place) -> tuple[bool, ...]:
        """Whether to judge as a file, a directory, or (nothing there to tell) as both."""
        assert run.tool is not None
        if place.kind == DIRECTORY or (place.link and self._leads_to_directory(place)):
            return (True,)
        if place.stat is not None:
            return (False,)
        if action == "write":
            moved = run.places.get("source")
            made = run.tool.name == "create_directory" or (moved is not None and moved[0].kind == DIRECTORY)
            return (made,)
        return (False, True)

    def _leads_to_directory(self, place: Place) -> bool:
        backend = self.workspace.backend
        try:
            spot = backend.resolve(paths.parts(place.real), follow=True)
        except CallError:
            return False
        try:
            stat = backend.stat(spot)
        finally:
            backend.release(spot)
        return stat is not None and stat.kind == DIRECTORY

    def _decide(self, run: _Run, needs: list[Need]) -> None:
        """Judge; keep the stricter of this and what was decided before. Raises when it is a deny."""
        assert run.tool is not None
        decision = self.policy.decide(self.agent, run.tool.name, needs, fold=self._fold)
        if run.decision is None or decision.effect > run.decision.effect:
            run.decision = decision
        if run.decision.effect == Effect.DENY and self._enforcing:
            raise self._denied(run)

    def _check_changes(self, run: _Run, plan: Plan) -> None:
        """The hard refusals on every path of the plan, and stale reads."""
        for change in plan.changes:
            for path, _, _ in touched(change):
                self._guard(path, "write")
            if isinstance(change, Write):
                self._check_write(change)

    def _check_write(self, change: Write) -> None:
        known = self.history.seen(self.session, change.path)
        if known is not None and change.before is not None and known != sha256(change.before):
            what = (
                "was deleted by this session and made again since"
                if known == GONE
                else "changed since it was read"
            )
            raise CallError("stale_read", f"'{change.path}' {what}", where=change.path)
        if change.stat is not None and change.stat.links > 1 and self.policy.hard_links == "refuse":
            raise CallError(
                "hard_linked", f"'{change.path}' has {change.stat.links} names", where=change.path
            )

    def _note_reads(self, run: _Run, plan: Plan) -> None:
        for change in plan.changes:
            if isinstance(change, Write) and change.before is not None:
                run.seen[change.path] = sha256(change.before)
        if run.tool is not None and run.tool.name == "read_file" and "digest" in plan.data:
            run.seen[run.places["path"][0].real] = plan.data["digest"]

    def _needs_of_changes(self, run: _Run, plan: Plan) -> list[Need]:
        places = [place for place, _ in run.places.values()]
        needs: list[Need] = []
        for change in plan.changes:
            incidental = isinstance(change, MakeDirectory) and change.incidental
            for path, action, directory in touched(change):
                names = {path, *(alias for place in places if (alias := aliased(place, path)) is not None)}
                needs.extend(Need(action, name, directory, incidental) for name in sorted(names))
        return needs

    def _approve(self, run: _Run) -> None:
        decision = self._decided(run)
        if decision.effect != Effect.ASK or not self._enforcing:
            return
        request = self._request(run)
        if self.approvals.permits(request):
            return
        if self.ask == "deny":
            raise CallError("no_approver", f"{request.title} needs approval and nobody is there to ask")
        request, stale = self.approvals.ask(request)
        run.approval = request.id
        code = "approval_stale" if stale else "limit_exceeded" if decision.limit else "approval_required"
        why = "What was approved is not what would happen now. " if stale else ""
        over = f" ({decision.reason})" if decision.limit else ""
        raise CallError(
            code,
            f"{why}Approval needed: {request.title}{over}",
            where=self._shown_path(run, decision.path),
            hint=f"a person can run `ringfence approvals grant {request.id}`; then send the same call again",
            data={"approval": {"id": request.id, "title": request.title, "digest": request.digest}},
            status="approval_required",
        )

    def _request(self, run: _Run) -> Request:
        assert run.plan is not None
        assert run.tool is not None
        title = run.plan.title or f"{run.tool.title}: {', '.join(run.named)}"
        return Request(
            id=new_id(),
            agent=self.agent,
            session=self.session,
            tool=run.tool.name,
            arguments=run.call.arguments,
            digest=run.plan.digest(),
            revision=self.policy.revision,
            title=title,
            preview=run.plan.preview,
            decision=self._decided(run).to_json(),
            paths=tuple(dict.fromkeys(path for change in run.plan.changes for path, _, _ in touched(change)))
            or tuple(run.named),
            description=str(run.arguments.get("description") or ""),
            asked=time.time(),
        )

    def _apply(self, run: _Run, usage: dict[str, Amount], progress: Progress | None) -> None:
        assert run.plan is not None
        assert run.tool is not None
        spots = {spot.path: spot for _, spot in run.places.values()}
        reason = run.arguments.get("description")
        operation = Operation(run.name, run.call.id, self.session, self.agent, run.tool.name, reason)
        run.outcome = apply(
            run.plan,
            self.workspace,
            self.history,
            operation,
            usage,
            spots=spots,
            guard=lambda: self._reserve(run, usage),
            progress=progress,
        )
        raise_failure(run.outcome, lambda path: self._shown_path(run, path) == path)

    def _reserve(self, run: _Run, usage: dict[str, Amount]) -> None:
        """Inside the intent's transaction: racing calls cannot pass a session's limit together."""
        before = self._decided(run)
        after = self.policy.tighten(before, self.agent, before.tool, usage, self._totals)
        if after.effect > before.effect and self._enforcing:
            run.decision = after
            raise (
                self._denied(run)
                if after.effect == Effect.DENY
                else CallError("limit_exceeded", after.reason)
            )

    # ------------------------------------------------------------------ prompts

    def _must_prompt(self, result: Result) -> bool:
        return result.status == "approval_required" and self.ask == "prompt" and self._approver is not None

    def _prompt(self, call: ToolCall, result: Result, progress: Progress | None) -> Result:
        """Ask the person at once; the call then runs again from the start and must still be the same."""
        assert self._approver is not None
        request = self.approvals.get(result.data["approval"]["id"])
        try:
            answer = self._approver(request)
        except Exception:
            # Whatever keeps the person from answering is a no.
            answer = Answer(False, reason="the question could not be asked")
        self.approvals.answer(request.id, answer)
        return self._attempt(call, progress)

    # ------------------------------------------------------------------ answers

    def _answer(self, run: _Run, more: dict[str, Any]) -> Result:
        assert run.plan is not None
        content, data = run.plan.content, {**run.plan.data, **more, "call_id": run.name}
        parted = [
            c.path
            for c in run.plan.changes
            if isinstance(c, Write) and c.stat is not None and c.stat.links > 1
        ]
        if parted:
            data["hard_links_parted"] = parted
            content += (
                f"\n\nNote: {', '.join(map(escape, parted))} had other names, which keep the old content"
            )
        return Result(run.call.id, "ok", content, data, self._shown(run, self._decided(run)))

    def _denied(self, run: _Run) -> CallError:
        decision = self._decided(run)
        shown = self._shown_path(run, decision.path)
        code = "limit_exceeded" if decision.limit else "denied_by_policy"
        named = f" of '{escape(shown)}'" if shown else ""
        what = decision.reason if decision.limit else f"{decision.action}{named} is denied by the policy"
        reason = (
            f": {decision.rule.reason}"
            if decision.rule and decision.rule.reason and not decision.limit
            else ""
        )
        return CallError(code, f"{what}{reason}", where=shown, hint=decision.hint or None)

    def _shown(self, run: _Run, decision: Decision | None) -> dict[str, Any] | None:
        """The decision as the agent may see it: no path that it did not name and may not read."""
        if decision is None:
            return None
        return replace(decision, path=self._shown_path(run, decision.path) or "").to_json()

    def _shown_path(self, run: _Run, path: str) -> str | None:
        if path in run.named or not path:
            return path or None
        readable = (
            self.policy.effect(self.agent, "read", "read", path, False, fold=self._fold) == Effect.ALLOW
        )
        return path if readable else (run.named[0] if run.named else None)

    def _recorded(self, run: _Run, result: Result) -> Result:
        result = replace(result, data={**result.data, "call_id": run.name})
        seen = run.seen if result.ok else {}
        record = self._record(run, result)
        try:
            if run.outcome is None:
                self.history.note(self._keyed(seen), record)
            else:
                self.history.finish(
                    run.outcome.op, run.outcome.states, self._keyed(seen | run.outcome.seen), record
                )
        except CallError as error:
            if run.outcome is None:
                # A call that cannot be recorded is not answered.
                return replace(failed(run.call.id, error), data={"call_id": run.name})
        return result

    def _keyed(self, seen: dict[str, str]) -> dict[tuple[str, str], str]:
        return {(self.session, path): digest for path, digest in seen.items()}

    def _record(self, run: _Run, result: Result) -> dict[str, Any]:
        usage = usage_of(run.plan.changes) if run.plan and run.outcome else {}
        return {
            "time": run.started,
            "event": "call",
            "call": run.name,
            "id": run.call.id,
            "session": self.session,
            "agent": self.agent,
            "tool": run.call.tool,
            "paths": list(dict.fromkeys((*run.named, *(place.real for place, _ in run.places.values())))),
            "reason": run.arguments.get("description"),
            "decision": run.decision.to_json() if run.decision else None,
            "policy": self.policy.revision,
            "mode": self.policy.mode,
            "digest": run.plan.digest() if run.plan and run.plan.changes else None,
            "approval": run.approval,
            "status": result.status,
            "outcome": _outcome(run, result),
            "files": sum(amount.files for amount in usage.values()),
            "written": usage.get("write", Amount()).bytes,
            "freed": usage.get("delete", Amount()).bytes,
            "durable": self.policy.durable,
            "seconds": round(time.time() - run.started, 6),
        }

    # ------------------------------------------------------------------- inside

    @property
    def _fold(self) -> bool:
        return self.workspace.fold

    @property
    def _enforcing(self) -> bool:
        return self.policy.mode != "monitor"

    def _decided(self, run: _Run) -> Decision:
        assert run.decision is not None
        return run.decision

    def _totals(self, agent: str, key: str) -> Amount:
        return self.history.totals(self.session, agent, key)

    def _effect(self, run: _Run) -> Callable[[str, str, bool], Effect]:
        assert run.tool is not None
        name = run.tool.name
        if not self._enforcing:
            return lambda action, path, directory: Effect.ALLOW
        return lambda action, path, directory: self.policy.effect(
            self.agent, name, action, path, directory, fold=self._fold
        )

    def _load(self, policy: Policy | str | Path | None) -> Policy:
        if isinstance(policy, Policy):
            return policy
        try:
            return Policy.empty() if policy is None else Policy.load(policy)
        except PolicyError as error:
            self.policy_error = error
            return Policy.empty()


_OUTSIDE = {
    "get_file_info": "Path '{path}' is outside project root",
    "delete": "Cannot delete files outside the working directory",
}


def touched(change: Change) -> list[tuple[str, str, bool]]:
    """Every path a change needs something on, as (path, action, is it a directory)."""
    match change:
        case Write() | MakeLink():
            return [(change.path, "write", False)]
        case MakeDirectory():
            return [(change.path, "write", True)]
        case Delete():
            rows = [(change.path, change.stat.kind), *((e.path, e.stat.kind) for e in change.entries)]
            return [(path, "delete", kind == DIRECTORY) for path, kind in rows]
        case Move():
            found = []
            for path, kind in (
                (change.source, change.stat.kind),
                *((e.path, e.stat.kind) for e in change.entries),
            ):
                target = change.destination + path[len(change.source) :]
                for action, end in (("read", path), ("delete", path), ("write", target)):
                    found.append((end, action, kind == DIRECTORY))
            return found


def usage_of(changes: tuple[Change, ...]) -> dict[str, Amount]:
    """How many files and bytes each action of a plan changes, for the limits."""
    found: dict[str, Amount] = {}

    def count(action: str, files: int, size: int) -> None:
        found[action] = found.get(action, Amount()) + Amount(files, size)

    for change in changes:
        match change:
            case Write():
                count("write", 1, len(change.data))
            case MakeLink():
                count("write", 1, 0)
            case Delete() | Move():
                rows = [change.stat, *(entry.stat for entry in change.entries)]
                files = [stat for stat in rows if stat.kind != DIRECTORY]
                size = sum(stat.size or 0 for stat in files if stat.kind == FILE)
                count("delete", len(files), size)
                if isinstance(change, Move):
                    count("write", len(files), size)
            case MakeDirectory():
                pass
    return found


def describe(plan: Plan) -> list[dict[str, Any]]:
    """The changes of a plan as fields, for a dry run and for the person who is asked."""
    rows: list[dict[str, Any]] = []
    for change in plan.changes:
        kind = {
            Write: "write",
            Delete: "delete",
            Move: "move",
            MakeDirectory: "make_directory",
            MakeLink: "make_link",
        }
        row: dict[str, Any] = {"change": kind[type(change)]}
        if isinstance(change, Move):
            row |= {"path": change.source, "destination": change.destination, "entries": len(change.entries)}
        else:
            row |= {"path": change.path}
        if isinstance(change, Write):
            row |= {"bytes": len(change.data), "replaces": change.stat is not None}
        if isinstance(change, Delete):
            row |= {"kind": change.stat.kind, "entries": [entry.path for entry in change.entries]}
        rows.append(row)
    return rows


def raise_failure(outcome: Outcome, may_name: Callable[[str], bool] = lambda path: True) -> None:
    """Turn what went wrong into an error: as it is when nothing was done, else `partial_failure`.

    Paths that `may_name` refuses are counted and not named.
    """
    if outcome.error is None and not outcome.failures:
        return
    failed_at = [missed for missed in outcome.failures if may_name(missed.path)]
    if not outcome.partial:
        if outcome.error is not None:
            raise outcome.error
        what = f": {failed_at[0].why}" if failed_at else ""
        raise CallError("path_changed", f"Nothing was done{what}")
    done = sorted(outcome.seen)
    named = "; ".join(f"'{escape(missed.path)}' ({missed.why})" for missed in failed_at[:3])
    raise CallError(
        "partial_failure",
        f"{len(done)} done, {len(outcome.failures)} failed{': ' if named else ''}{named}",
        hint="`ringfence undo` with the call_id takes back what was done",
        data={
            "done": [path for path in done if may_name(path)],
            "failed": [{"path": missed.path, "why": missed.why} for missed in failed_at],
            "counts": {"done": len(done), "failed": len(outcome.failures)},
        },
    )


def _back_text(plan: Plan, way: Way, verb: str) -> str:
    lines = [f"{verb}: {len(plan.changes)} change{'' if len(plan.changes) == 1 else 's'}"]
    lines += [f"  {escape(row['path'])}" for row in describe(plan)]
    lines += [f"Left alone: {escape(conflict.path)} ({conflict.why})" for conflict in way.conflicts]
    return "\n".join(lines)


def _outcome(run: _Run, result: Result) -> str:
    if result.error is None:
        return "done" if run.outcome else "answered"
    return "partial" if result.error["code"] == "partial_failure" else str(result.error["code"])


def _tool(name: str) -> Tool:
    if name in TOOLS:
        return TOOLS[name]
    if name == "write_file":
        hint = "use create_file (with allow_overwrite: true to replace)"
    else:
        near = difflib.get_close_matches(name, list(TOOLS), 1)
        hint = f"did you mean '{near[0]}'?" if near else CODES["unknown_tool"].hint
    raise CallError("unknown_tool", f"Unknown tool '{escape(name[:80])}'", where="tool", hint=hint)


def _arguments(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    from toolkit.validate import arguments

    return arguments(tool.name, tool.parameters, given)


def _lexical(names: tuple[str, ...]) -> str:
    kept: list[str] = []
    for name in names:
        if name == "..":
            kept.pop()
        else:
            kept.append(name)
    return paths.join(kept)


def _call_name() -> str:
    return "c-" + secrets.token_hex(6)

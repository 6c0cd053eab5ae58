"""Session of one agent in one workspace: every call is parsed, judged, planned, approved, applied, recorded.

Nothing else changes files, and no check depends on what a call states about itself.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringfence.policy import Policy, PolicyError
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit import paths
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.call import Result, ToolCall, failed
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.fake_fs import import_past_the_fake
from ringfence.toolkit.history.store import History
from ringfence.toolkit.progress import Progress, ReportStep
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.session.call_handler import Approver, CallHandler
from ringfence.toolkit.session.crash_recovery import recover_left_open, recover_orphans
from ringfence.toolkit.session.left_scratches import end_scratches
from ringfence.toolkit.session.open import Places, open_context
from ringfence.toolkit.session.policy_source import PolicySource
from ringfence.toolkit.session.recorder import Recorder
from ringfence.toolkit.session.retention_schedule import RetentionSchedule
from ringfence.toolkit.state.protocol import State
from ringfence.toolkit.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ringfence.toolkit.execution.recovery import Recovered
    from ringfence.toolkit.history.session_diff import Changed
    from ringfence.toolkit.history.subscriptions import Subscriber, Subscription
    from ringfence.toolkit.history.versions import Version
    from ringfence.toolkit.undo.planner import UndoPlan
    from ringfence.toolkit.upstream.servers import Servers


class Session:
    """The interface for an agent's program: answers its calls in one workspace.

    - `root`: a directory, `memory://` or an fsspec URL (opened with `options`), or a path on `fs`. `place`
      names its machine, server or account and replaces the name that the store reports; the state belongs to
      it.
    - `policy`: a Policy, the path of a file, or None (then everything asks). A changed file is loaded again;
      for a Policy, `policy_file` is its file. A policy that does not load denies every call.
    - `state`: a directory, ":memory:", a postgresql:// URL that several machines share, or None for the
      user's state directory.
    - `ask`, for calls that need approval: "queue" answers `approval_required` and stores the request, "deny"
      refuses, "prompt" asks `approver` at once; if the approver returns None, a pending request stays
      stored.
    - `tasks`: where the task folders are (as `root`, or from the policy); `task`: the id of the task that
      the agent runs in.
    - `audit_log`: a file that gets every audit record as a line of JSON; `audit_log_rotate`: when it rotates
      ("100MiB:10": its size, and the number of rotated copies); `audit_key`: the key that seals records, or
      its file, which must not be in the workspace.
    - `read_only`: the session only reads an existing state; it answers no calls, recovers and records
      nothing.
    - `clock`: returns the time in POSIX seconds, at which the policy judges: entries with `until` end.

    Raises CallError for a root or a state that cannot be used.
    """

    def __init__(  # noqa: PLR0913  the public settings of a session, by keyword
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
        policy_file: str | Path | None = None,
        options: dict[str, Any] | None = None,
        tasks: str | Path | None = None,
        task: str | None = None,
        audit_log: str | Path | None = None,
        audit_log_rotate: str | None = None,
        audit_key: bytes | str | Path | None = None,
        place: str | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._lock = threading.RLock()
        import_past_the_fake()
        self._policy_source = PolicySource(policy, policy_file)
        self.context = open_context(
            Places(root, fs, options or {}, tasks, task, place, state, audit_key),
            self._policy_source.policy,
            agent=agent,
            session=session or f"s-{time.strftime('%Y%m%d')}-{secrets.token_hex(4)}",
            ask="prompt" if approver is not None and ask == "queue" else ask,
            dry_run=dry_run,
            found_by=found_by,
            read_only=read_only,
            clock=clock,
        )
        self._retention = RetentionSchedule(
            self.context, lambda: None if self.policy_error else self.policy, read_only=read_only
        )
        self._recorder = Recorder(self.context)
        self._handler = CallHandler(self.context, self._policy_source, self._recorder, approver)
        self._handler.protect_policy()
        if self.state.folder is not None:
            self.workspace.protect(str(Path(self.state.folder).parent))
        self.workspace.protect_tasks()
        self.audit_log = None if audit_log is None else str(Path(audit_log).absolute())
        self.settled: list[Recovered] = []  # what was made again, or not, after a power cut
        if read_only:
            return
        try:
            self.settled = recover_orphans(self.context)
            if self.audit_log is not None:
                self.workspace.protect(self.audit_log, aside=True)
                self._recorder.copy_audit_to(self.audit_log, audit_log_rotate)
        except CallError:
            self.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop retention and subscriptions, update the audit's copy, and close state and workspace."""
        self._retention.close()
        self._recorder.close()
        end_scratches(self.context)
        self.history.redo.close()
        self.state.close()
        self.workspace.close()

    @property
    def agent(self) -> str:
        """The name of the agent whose calls these are."""
        return self.context.agent

    @property
    def session(self) -> str:
        """The session's name, as records and grants have it."""
        return self.context.session

    @property
    def ask(self) -> str:
        """What an ask does: "queue" keeps a request, "prompt" asks the approver first, "deny" refuses."""
        return self.context.ask

    @property
    def dry_run(self) -> bool:
        """Whether calls are only planned, and change nothing."""
        return self.context.dry_run

    @property
    def workspace(self) -> Workspace:
        """The workspace: its root, and the backend that reads and changes it."""
        return self.context.workspace

    @property
    def state(self) -> State:
        """The state directory or database with the history, the approvals and the audit."""
        return self.context.state

    @property
    def history(self) -> History:
        """The history of changes in this session's state."""
        return self.context.history

    @property
    def approvals(self) -> Approvals:
        """The requests and grants in this session's state."""
        return self.context.approvals

    @property
    def policy(self) -> Policy:
        """The policy in force now, without what has ended; a changed file takes effect at the next call."""
        return self._policy_source.policy.at(self.context.clock())

    @property
    def policy_error(self) -> PolicyError | None:
        """Why the policy does not load; None if it loads."""
        return self._policy_source.error

    @property
    def fold(self) -> Fold:
        """Which differences between names the workspace ignores, such as case."""
        return self.workspace.fold

    @property
    def enforcing(self) -> bool:
        """Whether verdicts stop calls; in the policy's `mode: monitor` they are only recorded."""
        return self.policy.mode != "monitor"

    # -------------------------------------------------------------------- calls

    def call(
        self, call: ToolCall | dict[str, Any] | str | bytes, progress: Progress | ReportStep | None = None
    ) -> Result:
        """Answer one call. An invalid call gets a result with an error; nothing is raised.

        `progress` is called for each step; a `Progress` can also cancel the call before its first change.
        """
        progress = Progress.of(progress)
        with self._lock:
            self._retention.call_began()
            try:
                return self._handler.answer(call, progress)
            finally:
                self._retention.call_ended()

    def forward_to(self, servers: Servers) -> None:
        """Answer calls of these servers' tools, by their keys: judged, asked about, recorded, and sent on."""
        self._handler.servers = servers

    def subscribe(self, subscriber: Subscriber) -> Subscription:
        """Call `subscriber`, in a thread of its own, for every path that this session changes from now on."""
        return self._recorder.subscribe(subscriber)

    # -------------------------------------------------------------- what was done

    def prune(
        self,
        older_than: float | None = None,
        keep: int | None = None,
        *,
        max_bytes: int | None = None,
        dry_run: bool = False,
        by: str | None = None,
    ) -> Result:
        """Delete the stored contents of calls older than `older_than` seconds, and of the oldest beyond
        `max_bytes`.

        The `keep` newest calls stay. Without any of these arguments the policy's retention decides. A
        person's act, recorded as done `by` them. `data` has `calls`, `contents`, `trees`, `bytes` (freed),
        `left` (bytes that stay) and `changes` (how many of the oldest changes were removed because of
        `max_bytes`). Contents stay if an open intent, a change that is not synced yet or a later undo needs
        them, and for the last change at each path of a pending request.
        """
        from ringfence.toolkit.history.retention import Rule
        from ringfence.toolkit.session.automatic_retention import rule_of
        from ringfence.toolkit.session.undo import prune_history

        with self._lock:
            try:
                rule = None if self.policy_error else rule_of(self.policy)
                if (older_than, keep, max_bytes) != (None, None, None):
                    before = None if older_than is None else time.time() - older_than
                    rule = Rule(before, max_bytes, keep or 0)
                if rule is None:
                    message = "No age, number or size was given, and no policy's retention says one"
                    raise CallError("invalid_arguments", message)
                return prune_history(self.context, rule, dry_run=dry_run or self.dry_run, by=by)
            except CallError as error:
                return failed(None, error)

    def undo(  # noqa: PLR0913  public options, by keyword
        self,
        call: str,
        *,
        session: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        digest: str | None = None,
        by: str | None = None,
        progress: Progress | ReportStep | None = None,
    ) -> Result:
        """Undo one call. Paths in conflict are reported and not changed, unless `force` is given.

        `call` is a result's `call_id`, or the caller's id if only one call had it (in `session`, if given).
        `data` has `changes`, `conflicts` and the `call_id` by which the undo itself can be undone. A dry run
        adds `preview`, a diff, and `digest`: if it is passed to the real undo, nothing is done if the plan
        has changed since. `by` is the person who undoes, for the record.
        """
        from ringfence.toolkit.session.undo import plan_of_call

        steps = Progress.of(progress)
        make_plan = partial(plan_of_call, self.context, call, session, force=force, progress=steps)
        return self._carry_out("undo", call, make_plan, dry_run, digest, by, steps)

    def undo_to(  # noqa: PLR0913  public options, by keyword
        self,
        point: str | float,
        *,
        session: str | None = None,
        tree: str = paths.ROOT,
        everyone: bool = False,
        force: bool = False,
        dry_run: bool = False,
        digest: str | None = None,
        by: str | None = None,
        progress: Progress | ReportStep | None = None,
    ) -> Result:
        """Undo the changes of this or another session and its sub-sessions since a point.

        `point` is "initial", a call's id (the state right after it), a file's version ("PATH:v2"), or a time
        in POSIX seconds. `tree` limits the undo to a path and everything below it; `everyone` includes all
        sessions. Returns a result like that of `undo`.
        """
        from ringfence.toolkit.session.undo import plan_to_point

        chosen = None if everyone else session or self.session
        what = f"{'everyone' if chosen is None else chosen} to {point}"
        what += f" in {tree}" if tree != "." else ""
        steps = Progress.of(progress)
        make_plan = partial(plan_to_point, self.context, point, chosen, tree, force=force, progress=steps)
        return self._carry_out("undo", what, make_plan, dry_run, digest, by, steps)

    def restore(  # noqa: PLR0913  public options, by keyword
        self,
        path: str,
        version: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        digest: str | None = None,
        by: str | None = None,
        progress: Progress | ReportStep | None = None,
    ) -> Result:
        """Restore one file to a version (`initial`, `v1`, or `SESSION:v1`). Returns a result like that of
        `undo`.
        """
        from ringfence.toolkit.session.undo import plan_to_version

        what = f"{path} {version}"
        make_plan = partial(plan_to_version, self.context, path, version, force=force)
        return self._carry_out("restore", what, make_plan, dry_run, digest, by, Progress.of(progress))

    def _carry_out(  # noqa: PLR0913  the options that three public methods share
        self,
        tool: str,
        what: str,
        make_plan: Callable[[], UndoPlan],
        dry_run: bool,
        digest: str | None,
        by: str | None,
        progress: Progress,
    ) -> Result:
        from ringfence.toolkit.session.undo import carry_out

        dry_run = dry_run or self.dry_run
        return self._by_a_person(
            tool,
            lambda attempt: carry_out(
                attempt, what, make_plan, dry_run=dry_run, digest=digest, progress=progress
            ),
            by,
        )

    def versions(self, path: str) -> list[Version]:
        """Return the versions of a file, session by session. Raises CallError for an invalid path."""
        from ringfence.toolkit.history.versions import versions

        return versions(self.history, paths.lexical(self.workspace.split(path)))

    def changes(self, session: str | None = None, agent: str | None = None) -> list[Changed]:
        """Return the files that this or another session and its sub-sessions changed, by path, with the lines
        added and removed.
        """
        from ringfence.toolkit.history.session_diff import changed

        return changed(self.history, session or self.session, agent)

    def purge_tasks(
        self,
        older_than: float,
        *,
        dry_run: bool = False,
        by: str | None = None,
        progress: Progress | ReportStep | None = None,
    ) -> Result:
        """Delete tasks for good: those in the trash for `older_than` seconds, and those whose deletion is
        due.

        A person's act, recorded as done `by` them; `data` has `purged`, `kept` and `due`.
        """
        from ringfence.toolkit.session.purge_tasks import purge

        dry_run, steps = dry_run or self.dry_run, Progress.of(progress)
        return self._by_a_person(
            "purge_tasks", lambda attempt: purge(attempt, older_than, dry_run=dry_run, progress=steps), by
        )

    def _by_a_person(self, tool: str, act: Callable[[Attempt], Result], by: str | None) -> Result:
        attempt = Attempt(self.context, self.policy, ToolCall(tool), by=by)
        with self._lock:
            with suppress(CallError):  # a step that needs the task folders reports it
                self.workspace.open_tasks()
            try:
                recover_left_open(self.context)
                result = act(attempt)
            except CallError as error:
                result = failed(None, error)
            return self._recorder.record(attempt, result)

    # ------------------------------------------------------------------- policy

    def policy_now(self) -> Policy:
        """Return the policy in force, after loading a changed file. Raises CallError `policy_invalid` if
        there is none.
        """
        with self._lock:
            self._handler.refresh_policy()
            self._policy_source.check()
            return self.policy

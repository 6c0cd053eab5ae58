"""Handler of a session's calls: parses a call, attempts it, asks the approver and attempts it again.

Refuses and records whatever goes wrong; raises nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringfence.policy.loading import cache
from ringfence.toolkit.approvals.requests import PENDING, Answer, Request
from ringfence.toolkit.call import Result, ToolCall, again, as_call, call_id_of, failed, parse_call
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session import agent_view, pipeline, responses
from ringfence.toolkit.session.attempt import Attempt, Context
from ringfence.toolkit.session.crash_recovery import recover_left_open
from ringfence.toolkit.session.policy_source import PolicySource
from ringfence.toolkit.session.recorder import Recorder
from ringfence.toolkit.tools import TOOLS

if TYPE_CHECKING:
    from ringfence.toolkit.upstream.definitions import UpstreamTool
    from ringfence.toolkit.upstream.servers import Servers

# None: the approver has no answer, or has stored it. If a stored answer does not fit, a new request is made.
Approver = Callable[[Request], Answer | None]
_ROUNDS = 3  # how often a person is asked about one call whose plan keeps changing


class CallHandler:
    """Answers the calls of one session, one at a time: the caller serializes them."""

    def __init__(
        self, context: Context, source: PolicySource, recorder: Recorder, approver: Approver | None
    ) -> None:
        self._context = context
        self._policy_source = source
        self._recorder = recorder
        self._approver = approver
        self.servers: Servers | None = None

    def answer(self, call: object, progress: Progress) -> Result:
        """Answer one call, as `Session.call` does."""
        try:
            self.refresh_policy()
            parsed = _parse(call)
        except CallError as error:
            given = call_id_of(call) if isinstance(call, str | bytes) else None
            return self._recorder.record(self._new_attempt(ToolCall("", {}, given)), failed(given, error))
        result = self._attempt(parsed, progress)
        for _ in range(_ROUNDS):
            asked = result.status == "approval_required" and self._context.ask == "prompt"
            if not asked or self._approver is None:
                break
            approval = result.data["approval"]["id"]
            answer = self._ask(self._approver, approval)
            if answer is None and self._is_pending(approval):
                break
            # From the start again: the change has to be the one that was approved, or a rule answers it now.
            self.refresh_policy()
            result = self._attempt(parsed, progress)
            if answer is not None and not _asks_about_changes(parsed, result, approval):
                break
        return result

    def _new_attempt(self, call: ToolCall) -> Attempt:
        return Attempt(self._context, self._policy_source.policy, call)

    def _attempt(self, call: ToolCall, progress: Progress) -> Result:
        attempt = self._new_attempt(call)
        try:
            self._policy_source.check()
            recover_left_open(self._context)
            tool = None if self.servers is None else self.servers.find(call.tool)
            result = self._forward(attempt, tool, progress) if tool else pipeline.run(attempt, progress)
        except CallError as error:
            error = responses.unable(attempt, responses.redacted(attempt, error))
            asking = error.status == "approval_required"
            result = failed(call.id, error, agent_view.decision(attempt, attempt.decision, asking=asking))
        except Exception as error:  # noqa: BLE001  the last line of defence
            # Whatever went wrong, the call is refused and recorded.
            result = failed(call.id, CallError("internal_error", f"Internal error ({type(error).__name__})"))
        finally:
            attempt.release()
        if attempt.scratch is not None or (attempt.ran is not None and not result.ok):
            from ringfence.toolkit.session import commands

            result = commands.concluded(attempt, result)
        return self._recorder.record(attempt, result)

    def _forward(self, attempt: Attempt, tool: UpstreamTool, progress: Progress) -> Result:
        from ringfence.toolkit.session import upstream_calls  # only behind a gateway

        assert self.servers is not None, "a tool of a server was found"
        return upstream_calls.run(attempt, self.servers, tool, progress)

    def _ask(self, approver: Approver, approval: str) -> Answer | None:
        """Ask the approver about a request and record the answer; None if the approver gave none."""
        approvals = self._context.approvals
        try:
            answer = approver(approvals.get(approval))
        except Exception:  # noqa: BLE001  an approver is the host's code
            # If the question cannot be asked, the request is refused.
            answer = Answer(False, reason="the question could not be asked")
        if answer is not None:
            try:
                approvals.answer(approval, answer)
            except CallError as error:
                if error.code == "invalid_arguments":
                    raise  # the approver's own mistake
                # Answered elsewhere, or the state failed: the next attempt of the call shows which.
        return answer

    def _is_pending(self, approval: str) -> bool:
        try:
            return self._context.approvals.get(approval).state == PENDING
        except CallError:
            return False  # the next attempt of the call reports the error

    def refresh_policy(self) -> None:
        """Load a changed policy file, protect the files that the policy now has, and record the change."""
        event = self._policy_source.refresh()
        self._context.workspace.look_again_at_links()
        if event is None:
            return
        self.protect_policy()
        now = {"time": time.time(), "session": self._context.session}
        self._context.history.note({}, {**now, "policy": self._policy_source.policy.revision, **event})

    def protect_policy(self) -> None:
        """Keep tools away from the policy's files and from the cache of loaded policies."""
        for file in (*self._policy_source.files, *filter(None, [cache.folder()])):
            self._context.workspace.protect(file)


def _asks_about_changes(call: ToolCall, result: Result, approval: str) -> bool:
    """Whether a command that a person has just granted has run, and its changes need another answer."""
    asks = result.status == "approval_required" and call.tool in TOOLS and TOOLS[call.tool].runs
    return asks and result.data["approval"]["id"] != approval


def _parse(call: object) -> ToolCall:
    if isinstance(call, ToolCall):
        return again(call)
    if isinstance(call, dict):
        return as_call(call)
    if isinstance(call, str | bytes):
        return parse_call(call)
    raise CallError("invalid_json", f"A call is JSON text or an object, not {type(call).__name__}")

"""Stage of a call that runs a command: asks a person before it runs, runs it once, plans its changes.

What waits for a person's answer stays in its scratch; the same call takes it from there and runs nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringfence.policy import Effect
from ringfence.policy.loading import cache
from ringfence.policy.model import Commands
from ringfence.toolkit.approvals.requests import GRANTED, PENDING
from ringfence.toolkit.call import Result
from ringfence.toolkit.commands import running
from ringfence.toolkit.commands.folder_names import FOLDER
from ringfence.toolkit.commands.permitted import permitted
from ringfence.toolkit.commands.planning import counts_of
from ringfence.toolkit.commands.scratches import Scratch, Scratches
from ringfence.toolkit.commands.temporary_folder import remove_folder, temporary_folder
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan import checks as plan_checks
from ringfence.toolkit.plan.changes import Change, Plan
from ringfence.toolkit.plan.command_run import CommandRun
from ringfence.toolkit.plan.impact import new_paths, touched
from ringfence.toolkit.private_files import private_directory, private_file
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session import agent_view
from ringfence.toolkit.session.attempt import Attempt, Context
from ringfence.toolkit.storage.local_roots import local_path
from ringfence.toolkit.text import escape
from ringfence.toolkit.tools.run_command import fields

_ELSEWHERE = "elsewhere"
_NOT_SHOWN = b"(not shown, because of its content)"
_PENDING = 4  # all pending scratches together may have so many times the limit of one
# By state in memory: its folder, and what removes it, at the latest when the state is gone.
_IN_MEMORY: weakref.WeakKeyDictionary[Any, tuple[str, Callable[[], object]]] = weakref.WeakKeyDictionary()


def scratches_of(context: Context) -> Scratches:
    """Return the scratches of a session's workspace: beside its state, or in memory where the state is."""
    folder = context.state.folder
    if folder is None:
        if context.state not in _IN_MEMORY:
            made, lock = temporary_folder()
            _IN_MEMORY[context.state] = made, weakref.finalize(context.state, remove_folder, made, lock)
        folder, _ = _IN_MEMORY[context.state]
    beside = str(Path(folder, FOLDER))
    used = running.usable_folder(beside)
    if used != beside:
        # Tells the sweep of later sessions, which looks here, that there are scratches elsewhere.
        private_directory(beside)
        private_file(str(Path(beside, _ELSEWHERE)))
    return Scratches(used)


def remove_scratches(context: Context) -> None:
    """Remove the folder of a state in memory, if there is one."""
    found = _IN_MEMORY.pop(context.state, None)
    if found is not None:
        found[1]()


def sweep(context: Context) -> int:
    """Remove the scratches that no process and no open approval request owns; return their number."""

    def is_open(approval: str) -> bool:
        try:
            return context.approvals.get(approval).state in (PENDING, GRANTED)
        except CallError as error:
            return error.code != "not_found"  # a state that cannot be asked loses nothing

    return scratches_of(context).sweep(is_open)


def run(attempt: Attempt, progress: Progress, key: str, permit: Callable[[Plan], None]) -> CommandRun:
    """Run the call's command, or take what it changed from the scratch that waits for this call.

    `key` is the digest of the call; `permit` asks a person about a plan, and raises unless it is granted.
    Raises CallError `command_failed`, `level_unavailable`, `stale_read` or what `permit` raises.
    """
    policy, context = attempt.policy.commands, attempt.context
    root = local_path(context.workspace.roots[0])
    if root is None or not Path(root).is_dir():
        message = "Commands run only in a workspace on this machine's disk"
        raise CallError("level_unavailable", message, hint="use the file tools")
    sweep(context)
    scratches = scratches_of(context)
    scratch = scratches.waiting(call=key, session=context.session, agent=context.agent)
    if scratch is None:
        _refuse_second_run(attempt, key)
        _ask_before(attempt, permit)
        scratch = _run(attempt, progress, policy, scratches, root)
        scratch.manifest |= {"call": key, "session": context.session, "agent": context.agent}
    else:
        attempt.scratch = scratch
    _forget_question(attempt)
    return _planned(attempt, progress, policy, scratch)


def keep(attempt: Attempt, approval: str) -> None:
    """Keep the call's scratch for an approval request."""
    if attempt.scratch is not None:
        attempt.scratch.note(approval=approval, bytes=attempt.scratch.size())


def concluded(attempt: Attempt, result: Result) -> Result:
    """Let go of what the command changed, which stays if the call waits for an answer, and return the result.

    Where the changes were not applied, the result has how the command ended.
    """
    scratch, attempt.scratch = attempt.scratch, None
    if scratch is not None and result.status == "approval_required" and scratch.approval is not None:
        scratch.release()
    elif scratch is not None:
        scratch.remove()
    return result if result.ok or attempt.ran is None else _with_run(attempt, attempt.ran, result)


def _with_run(attempt: Attempt, ran: CommandRun, result: Result) -> Result:
    if attempt.content is not None and attempt.content.withholds_output and attempt.enforcing:
        ran = replace(ran, output=_NOT_SHOWN, output_bytes=len(_NOT_SHOWN))
    data = fields(ran, lambda path: agent_view.path_of(attempt, path) == path)
    applied = "nothing was applied" if attempt.outcome is None else "not all of its changes were applied"
    content = f"{result.content}\n\nThe command ended with exit status {ran.status}; {applied}. Its output:\n"
    return replace(result, content=f"{content}{data['output'] or '(none)'}", data={**data, **result.data})


def _run(attempt: Attempt, progress: Progress, policy: Commands, scratches: Scratches, root: str) -> Scratch:
    if scratches.pending_bytes() > _PENDING * policy.limits.scratch:
        message = "Too many changes of commands wait for answers"
        raise CallError("command_failed", message, hint="a person has to answer some first")
    given = attempt.arguments
    order = running.Order(
        command=given["command"],
        cwd=attempt.cwd,
        stdin=given.get("stdin", "").encode(),
        seconds=min(given.get("timeout") or policy.limits.seconds, policy.limits.seconds),
    )
    with scratches.turn(progress.check, policy.limits.seconds):
        scratch = attempt.scratch = scratches.new()
        ended = running.run(
            order,
            policy,
            attempt.context.workspace,
            root,
            scratch.changes,
            hidden_places=own_places(attempt.context),
            within=attempt.within,
            opens_below=attempt.opens_below,
            progress=_without_output(attempt, progress),
        )
    scratch.manifest["ended"] = ended
    return scratch


def _without_output(attempt: Attempt, progress: Progress) -> Progress:
    """Return the progress without the command's output, if that is examined before any of it is given."""
    if not attempt.policy.detectors or progress.output is None:
        return progress
    from ringfence.toolkit.session import content_verdicts

    return progress.silent() if content_verdicts.examines_output(attempt) else progress


def _examined(attempt: Attempt, output: bytes, *, complete: bool) -> bytes:
    if not attempt.policy.detectors:
        return output
    from ringfence.toolkit.session import content_verdicts

    return content_verdicts.command_output(attempt, output, complete=complete)


def _refuses_content(attempt: Attempt, change: Change) -> bool:
    from ringfence.toolkit.session import content_verdicts

    return content_verdicts.refuses(attempt, change)


def own_places(context: Context) -> tuple[str, ...]:
    """Return the directories with histories and caches, which are nobody's to read but Ringfence's."""
    import platformdirs

    states = platformdirs.user_state_dir("ringfence")
    found = [Path(each).resolve() for each in (context.state.folder, states, cache.folder()) if each]
    root = Path(context.workspace.roots[0]).resolve()
    apart = (each for each in found if not root.is_relative_to(each) and not each.is_relative_to(root))
    return tuple(dict.fromkeys(map(str, apart)))


def _ask_before(attempt: Attempt, permit: Callable[[Plan], None]) -> None:
    """Ask a person whether the command may run, where the policy asks about the command itself."""
    command, cwd = attempt.arguments["command"], attempt.cwd
    where = "" if cwd == "." else f" in {escape(cwd)}"
    text = f"$ {escape(command, newlines=True)}\n"
    permit(Plan(title=f"Run: {escape(command)}{where}", draw=lambda: text))


def _forget_question(attempt: Attempt) -> None:
    """Let the changes be judged by themselves: whether the command may run was decided before."""
    if attempt.decided.effect is Effect.ASK and attempt.enforcing:
        attempt.needs = [need for need in attempt.needs if need.action != "run"]
        attempt.decision = replace(
            attempt.decided, effect=Effect.ALLOW, reason="a person granted the command", hint=""
        )


def _refuse_second_run(attempt: Attempt, key: str) -> None:
    """Refuse to run a command anew whose changes were granted, and whose scratch is not here any more."""
    context = attempt.context
    granted = context.approvals.granted_changes(context.session, context.agent, attempt.call.tool, key)
    if granted is not None:
        context.approvals.withdraw(granted.id)
        raise CallError(
            "approval_stale",
            "The changes that a person granted are not here any more, and the command was not run again",
            hint="send the call again to run the command anew",
        )


def _planned(attempt: Attempt, progress: Progress, policy: Commands, scratch: Scratch) -> CommandRun:
    ended = scratch.manifest["ended"]
    attempt.planned = attempt.context.history.position()  # the plan is made now, not when the command began
    found = running.plan(scratch.changes, ended, policy, attempt.context.workspace, progress)
    if found.conflicts:
        path = found.conflicts[0]
        _withdraw(attempt, scratch)
        message = f"'{path}' was changed by somebody else while the command ran or its changes waited"
        hint = "send the call again to run the command on what is there now"
        raise CallError("stale_read", message, where=path, hint=hint)
    changes, denied = found.changes, tuple[str, ...]()
    if attempt.arguments["on_denied"] == "drop":
        changes, denied = permitted(found.changes, lambda change: _refusal(attempt, change))
    if not changes:
        _withdraw(attempt, scratch)  # somebody else has made the same changes meanwhile
    given, output = attempt.arguments, bytes.fromhex(ended["output"])
    shown = _examined(attempt, output, complete=ended["output_bytes"] <= len(output))
    attempt.ran = CommandRun(
        command=given["command"],
        cwd=attempt.cwd,
        status=ended["status"],
        signal=ended["signal"],
        stopped=ended["stopped"],
        seconds=ended["seconds"],
        level=ended["level"],
        network=ended["network"],
        output=shown,
        output_bytes=ended["output_bytes"] - len(output) + len(shown),
        hidden=len(ended["hidden"]),
        changes=changes,
        counts=counts_of(changes) if denied else found.counts,
        discarded=found.discarded,
        dropped=found.dropped,
        denied=denied,
        through=tuple(ended["through"]),
        notes=tuple(ended["notes"]),
    )
    return attempt.ran


def _withdraw(attempt: Attempt, scratch: Scratch) -> None:
    if scratch.approval is not None:
        attempt.context.approvals.withdraw(scratch.approval)
        scratch.manifest.pop("approval")


def _refusal(attempt: Attempt, change: Change) -> bool:
    """Whether the policy or a check that no policy lifts refuses a change."""
    workspace = attempt.context.workspace
    try:
        plan_checks.check(change)
        for path, *_ in touched(change):
            workspace.guard(path)
        for path in new_paths(change):
            workspace.guard_new(path)
    except CallError:
        return True
    if attempt.policy.detectors and _refuses_content(attempt, change):
        return True
    return any(
        attempt.refuses(action, path, directory, kind) for path, action, directory, kind in touched(change)
    )

"""Response to an event of a host: event on stdin, answer on stdout, for `ringfence hook HOST`.

Exit status 0 with an answer, or without one if the event is not ours; 2, which blocks the call, for any
failure. Never 1: a host treats that as "continue".
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from ringfence.toolkit.file_ownership import Untrusted
from ringfence.toolkit.hooks.answer_forms import ASKS_NOBODY, SAYS, SILENCE
from ringfence.toolkit.hooks.call_verdict import CallContext, narrowed_verdict, verdict_on
from ringfence.toolkit.hooks.hosts import (
    AFTER,
    EVENTS,
    FOREIGN_KEYS,
    OTHER_FORMS,
    SECOND_LOOK,
    UNANSWERED,
    own_places,
)

if TYPE_CHECKING:
    from ringfence.policy import Policy
    from ringfence.toolkit.hooks.hook_options import Options
    from ringfence.toolkit.hooks.judge import Verdict
    from ringfence.toolkit.hooks.same_call import Consent
    from ringfence.toolkit.hooks.shell_call import ShellCall
    from ringfence.toolkit.hooks.touch import Touch

ANSWERED, BLOCKED = 0, 2
MAX_EVENT = 64 << 20
MAX_REASON = 9_000  # characters; a host truncates longer answers, which are then invalid JSON
# The answer for an ask: the host's own question, if all its versions have one, else a deny.
ASKS = {
    "claude-code": "host",
    "codex": "deny",
    "gemini": "deny",
    "opencode": "deny",
    "cursor": "deny",
    "copilot": "host",
    "vscode": "host",
}
_UNKNOWN = "The policy allows the path, but not what else this tool may do with it"
_NOBODY = "A person has to decide this, and this program's hooks cannot ask one"


class Refused(Exception):
    """An event, a policy or options that cannot be used; the message says why."""


def respond(  # noqa: PLR0913  the streams of a process, and who takes what ran
    host: str,
    options: Options,
    source: BinaryIO,
    sink: TextIO,
    log: TextIO,
    record: Callable[[ShellCall], None] | None = None,
    consent: Consent | None = None,
) -> int:
    """Answer the event on `source`; returns the exit status and raises nothing.

    `record` gets each command that a host ran without Ringfence, after it ran. `consent` is asked about a
    call that needs a person, where the host cannot ask one.
    """
    try:
        event = _parsed(source.read(MAX_EVENT + 1))
        host, event = _in_common_form(host, event)
        if event.get("hook_event_name") in AFTER[host]:
            ran = _ran_outside(host, event, options) if record else None
            if ran is not None and record is not None:
                record(ran)
        elif (response := answer(host, options, event, consent)) is not None:
            _write(sink, json.dumps(response) + "\n")
        return ANSWERED
    except BaseException as error:  # noqa: BLE001  fails closed: any failure blocks the call
        # Nothing was judged, and with any other status the host allows the call.
        log.write(f"ringfence: blocked, as it could not be judged: {_error_text(error)}\n")
        return BLOCKED


def _in_common_form(host: str, event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the event with the keys of all hosts, and the host that sent it."""
    if host not in OTHER_FORMS and ("timestamp" not in event or host == "gemini"):
        return host, event
    from ringfence.toolkit.hooks.host_events import plain

    return plain(host, event)


def _not_ours(event: dict[str, Any]) -> Refused:
    from ringfence.toolkit.hooks.host_events import of_another

    return Refused(of_another(event))


def _write(sink: TextIO, text: str) -> None:
    try:
        sink.write(text)
        sink.flush()
    except OSError:
        # The interpreter flushes again at its end; another failure would change the exit status.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sink.fileno())
        raise


def answer(
    host: str, options: Options, event: dict[str, Any], consent: Consent | None = None
) -> dict[str, Any] | None:
    """Return the answer to an event in the common form; None where the host needs none."""
    if FOREIGN_KEYS & event.keys():
        raise _not_ours(event)
    name = _text(event, "hook_event_name")
    if name in UNANSWERED[host]:
        return None
    if name not in EVENTS[host]:
        raise _not_ours(event)
    found = _answer(host, options, _with_server(host, event), consent)
    return SILENCE.get(host) if found is None else found


def _answer(
    host: str, options: Options, event: dict[str, Any], consent: Consent | None
) -> dict[str, Any] | None:
    name = event["hook_event_name"]
    tool, given = _text(event, "tool_name"), event.get("tool_input")
    if not isinstance(given, dict):
        raise Refused("tool_input is not an object")
    from ringfence.toolkit.hooks.tool_arguments import touches

    try:
        touched = touches(host, tool, given)
    except ValueError as error:
        raise Refused(f"the arguments of {tool[:80]}: {error}") from None
    if not touched and not _may_run(host, tool, options):
        return None
    context = _context(host, event, options)
    monitor = context.policy.mode == "monitor"
    shell = None if monitor else _shell_call(host, event, options, context)
    verdict, changed = verdict_on(context, touched, shell, given), None
    if not monitor and verdict is not None and len(touched) == 1:
        verdict, changed = narrowed_verdict(host, event, context, touched[0], verdict)
    if verdict is None or (monitor and not verdict.refused):
        return None
    if shell is not None and shell.mode == "rewrite":
        return _through_shell(name, event, options, shell, verdict)
    # A person has to decide whom the host cannot ask, and nobody chose to deny such calls.
    if (
        consent is not None
        and len({touch.path for touch in touched}) == 1
        and options.ask is None
        and ASKS[host] == "deny"
        and str(verdict.effect) == "ask"
    ):
        from ringfence.toolkit.hooks.same_call import after_consent, host_call

        verdict = after_consent(host_call(host, event, context, options.state), verdict, consent)
    return _plain(host, options, event, touched, verdict, changed)


def _with_server(host: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with the name of an MCP server's tool as all hosts but one have it."""
    if host != "opencode":
        return event
    from ringfence.toolkit.hooks.opencode import with_server

    return with_server(event)


def _plain(  # noqa: PLR0913  all that an answer depends on
    host: str,
    options: Options,
    event: dict[str, Any],
    touched: tuple[Touch, ...],
    verdict: Verdict,
    changed: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """Return the answer for a verdict, with the new arguments of the call, if there are any."""
    name = event["hook_event_name"]
    asks = options.ask or ASKS[host]
    effect = _effect(host, event["tool_name"], verdict, touched)
    reason = _UNKNOWN if effect == "ask" and verdict.effect == 0 else verdict.reason
    if effect == "ask" and (host, name) in ASKS_NOBODY:
        later = event["tool_name"].lower().startswith(ASKS_NOBODY[host, name])
        effect, asks = (None, asks) if later else (effect, "deny")
    if effect == "ask" and asks == "deny" and name != "PermissionRequest":
        effect, reason = "deny", f"{_NOBODY}: {reason}"
    if effect == "allow" and event.get("permission_mode") == "plan":
        effect = None  # a plan changes nothing
    if effect is None and changed is None:
        return None
    return SAYS[host, name](
        effect, f"Ringfence: {reason}"[:MAX_REASON], changed if effect != "deny" else None
    )


def _through_shell(
    name: str, event: dict[str, Any], options: Options, shell: ShellCall, verdict: Verdict
) -> dict[str, Any] | None:
    """Return the answer that has `ringfence shell` run a command.

    An ask of the policy is asked there: only an answer given there is bound to the command and its changes.
    """
    reason = f"Ringfence: {verdict.reason}"[:MAX_REASON]
    if str(verdict.effect) == "deny":
        return SAYS[shell.host, name]("deny", reason, None)
    if str(verdict.effect) == "ask" and options.ask == "deny":
        return SAYS[shell.host, name]("deny", f"Ringfence: {_NOBODY}: {verdict.reason}"[:MAX_REASON], None)
    effect: str | None = "ask" if str(verdict.effect) == "ask" and options.ask == "host" else "allow"
    if event.get("permission_mode") == "plan":
        if name == "PermissionRequest":
            return None
        effect = None  # what a plan may run is the host's affair
    given = shell.rewritten()
    return SAYS[shell.host, name](effect, reason, given if given != event["tool_input"] else None)


def _effect(host: str, tool: str, verdict: Verdict, touched: tuple[Touch, ...]) -> str | None:
    """Return the effect to report for a verdict; None where the host decides by itself."""
    from ringfence.toolkit.hooks.tool_arguments import is_shell
    from ringfence.toolkit.hooks.tool_table import TOOLS
    from ringfence.toolkit.hooks.touch import UNKNOWN

    if tool.lower() not in TOOLS[host]:
        from ringfence.toolkit.hooks.other_tools import is_ours

        if is_ours(tool):
            return None if verdict.effect == 1 else str(verdict.effect)  # the host asks by itself
        if verdict.effect == 0 and (verdict.unsure or any(touch.tool == UNKNOWN for touch in touched)):
            # An allow would go further than the policy does; the other hosts never get one.
            return "ask" if ASKS[host] == "host" else None
    if verdict.unsure or (verdict.effect == 0 and is_shell(host, tool)):
        return None
    return str(verdict.effect)


def _context(host: str, event: dict[str, Any], options: Options) -> CallContext:
    from ringfence.toolkit.program_files import leave
    from ringfence.toolkit.project_root import find_root

    cwd = _text(event, "cwd") if "cwd" in event else os.getcwd()
    if not os.path.isabs(cwd):
        raise Refused("cwd is not an absolute path")
    root = find_root(cwd)[0] if options.root is None else os.path.abspath(_path(options.root))
    if options.root == "" or not os.path.isdir(root):
        raise Refused("the root is not a folder")
    leave(root)
    helper = event.get("agent_type")
    agent = f"{options.agent}/{helper}" if isinstance(helper, str) and helper else options.agent
    own = own_places(host) if options.outside == "host" else ()
    return CallContext(root, cwd, _policy(options, root).at(time.time()), agent, own)


def _may_run(host: str, tool: str, options: Options) -> bool:
    """Whether a call may run a command that has to be judged."""
    from ringfence.toolkit.hooks.tool_table import TOOLS

    known = TOOLS[host].get(tool.lower())
    return known is not None and bool(known.command) and options.shell != "off"


def _shell_call(host: str, event: dict[str, Any], options: Options, context: CallContext) -> ShellCall | None:
    """Return the command of a call; None where it runs none, or the policy has no rule for commands."""
    tool, given = _text(event, "tool_name"), event["tool_input"]
    if not _may_run(host, tool, options):
        return None
    from ringfence.toolkit.hooks.shell_call import ShellCall, can_rewrite, session_of
    from ringfence.toolkit.hooks.shells import line_of

    if not context.policy.content.rules_commands:
        return None
    try:
        line = line_of(host, tool, given)
    except ValueError as error:
        raise Refused(f"the arguments of {tool[:80]}: {error}") from None
    if line is None:
        return None
    mode = "rewrite" if can_rewrite(host, tool, given, options.shell) else "words"
    session = session_of(event)
    call = ShellCall(
        host,
        line,
        given,
        context.cwd,
        context.root,
        context.policy,
        context.agent,
        session,
        options.policy,
        options.state,
        mode,
    )
    if event["hook_event_name"] not in SECOND_LOOK:
        return call
    from dataclasses import replace

    # The arguments were replaced before this event, or never are.
    return None if call.ran_inside() else replace(call, mode="words")


def _ran_outside(host: str, event: dict[str, Any], options: Options) -> ShellCall | None:
    """Return the command that a host ran without Ringfence; None for every other event."""
    tool, given = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not isinstance(given, dict) or not _may_run(host, tool, options):
        return None
    shell = _shell_call(host, event, options, _context(host, event, options))
    return None if shell is None or shell.ran_inside() else shell


def _path(root: str) -> str:
    """Return the directory that `--root` names, by its path or its URL."""
    if ":" not in root:
        return root
    from ringfence.toolkit.errors import CallError
    from ringfence.toolkit.storage.local_roots import local_path

    try:
        return local_path(root) or root
    except CallError as error:
        raise Refused(error.message) from None


def _policy(options: Options, root: str) -> Policy:
    from ringfence.policy import READY_MADE, Policy, ready_made
    from ringfence.toolkit.project_root import policy_in

    if options.policy in READY_MADE:
        return Policy.load(ready_made(options.policy))
    if options.policy is not None:
        return Policy.load(options.policy)
    own = policy_in(root, found=options.root is None)
    return Policy.empty() if own is None else Policy.load(own)


def _parsed(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_EVENT:
        raise Refused(f"the event is larger than {MAX_EVENT >> 20} MiB")
    try:
        # Cursor on Windows writes one or two byte order marks first.
        event = json.loads(data.lstrip(b"\xef\xbb\xbf"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Refused("the event is not JSON") from None
    if not isinstance(event, dict):
        raise Refused("the event is not an object")
    return event


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _text(event: dict[str, Any], key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str) or not value:
        raise Refused(f"the event has no {key}")
    return value


def _error_text(error: BaseException) -> str:
    """Return a failure in one line that the agent may see: no text of the policy, nor of a defect of ours."""
    if hasattr(error, "problems"):
        return "the policy does not load; run `ringfence check` for details"
    if isinstance(error, Untrusted):
        return (
            f"'{error.name}' was found above this folder and {error.why}; run `ringfence check` for details"
        )
    return str(error) if isinstance(error, Refused) else f"internal error ({type(error).__name__})"

"""Stages of a call that goes to another MCP server: resolve, decide, tighten, approve, send.

The server does what it does: nothing of it is planned, kept or undone, and every text says so. It gets the
canonical paths that were judged.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ringfence.policy import Amount, Effect, Need
from ringfence.policy.model import kind_at
from ringfence.policy.upstreams.rows import CALL, Row
from ringfence.toolkit import paths
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Entry, Place, Plan
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session import agent_view, resolve, responses
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.session.pipeline import _approve, _decide, _limit
from ringfence.toolkit.storage.local_roots import local_path
from ringfence.toolkit.text import escape, plural
from ringfence.toolkit.tools import Tool
from ringfence.toolkit.upstream.definitions import UpstreamTool
from ringfence.toolkit.upstream.path_arguments import GivenPath, given_paths, missing, path_like, replaced
from ringfence.toolkit.upstream.servers import Servers

MOST_BELOW = 20_000  # entries of a tree that are judged; of a larger one a person decides
_RECORDED = 4_000  # characters of the arguments in the record
_SHOWN = 20_000  # characters of the arguments in the preview
NOT_KEPT = "Another server does this: it is recorded, not kept in the history, and cannot be undone."
_PLAN_ASKS = "a person has to grant this; send the same call again then"


def run(attempt: Attempt, servers: Servers, tool: UpstreamTool, progress: Progress) -> Result:
    """Answer the call. Raises CallError for everything but an answer of the server."""
    row = servers.row(tool, attempt.policy.content.upstreams)
    given = given_paths(row, attempt.call.arguments)
    attempt.tool = _as_tool(tool, row, given, attempt.call.arguments)
    attempt.arguments = {each.name: each.text for each in given}
    resolve.resolve(attempt)
    places = {each: attempt.places[each.name][0] for each in given}
    below, whole = _below(attempt, places, progress)
    _decide(attempt, [*resolve.needs(attempt), *_calls(tool, row)])
    _decide_below(attempt, below)
    attempt.arguments = dict(attempt.call.arguments)
    sent = replaced(attempt.call.arguments, _absolute(attempt, places))
    attempt.plan = plan = _plan(attempt, tool, sent)
    attempt.upstream = _record(tool, sent)
    _count(attempt)
    if attempt.enforcing:
        _ask_in_doubt(attempt, _doubt(attempt, tool, row, given, whole=whole))
    if attempt.context.dry_run:
        return responses.dry(attempt, plan, asks=True)
    _approve(attempt, plan)
    progress.check()
    return _answered(attempt, servers, tool, sent, progress)


def _as_tool(tool: UpstreamTool, row: Row, given: list[GivenPath], arguments: Mapping[str, Any]) -> Tool:
    """Return the tool as the stages know it: each path of this call is an argument of its own."""
    return Tool(
        name=tool.key,
        needs=tuple((action, each.name) for each in given for action in each.argument.actions),
        title=tool.key,
        description="",
        parameters={"properties": {name: {} for name in arguments}},
        output={},
        categories=(),
        # What is deleted or moved is the link itself.
        follow=not any("delete" in each.actions for each in row.arguments),
    )


def _calls(tool: UpstreamTool, row: Row) -> list[Need]:
    return [Need(CALL, tool.key)] if row.calls or not row.paths else []


# ------------------------------------------------------------------------ paths


def _below(
    attempt: Attempt, places: Mapping[GivenPath, Place], progress: Progress
) -> tuple[list[Need], bool]:
    """Return the needs on what is below the directories of the call, and whether these are all of it."""
    found: list[Need] = []
    whole = True
    for given, place in places.items():
        if not given.argument.below or place.kind != DIRECTORY:
            continue
        targets = [(place.real, given.argument.actions)]
        for other, destination in places.items():
            if other.argument.mirrors == given.argument.selector:
                targets.append((destination.real, other.argument.actions))
        for count, entry in enumerate(_entries(attempt, given, place)):
            progress.check()
            if count >= MOST_BELOW:
                whole = False
                break
            for path, actions in targets:
                found += _needs_at(attempt, _moved(entry.path, place.real, path), entry, actions)
    return found, whole


def _moved(path: str, source: str, target: str) -> str:
    """Return a path below `source` as it is below `target`."""
    names = paths.parts(path)[len(paths.parts(source)) :]
    return "/".join((*paths.parts(target), *names))


def _entries(attempt: Attempt, given: GivenPath, place: Place) -> Iterator[Entry]:
    workspace, spot = attempt.context.workspace, attempt.places[given.name][1]
    if given.argument.below != "entries":
        yield from workspace.below(spot, place.real)
        return
    with workspace.backend.folder(spot) as folder:
        for name, stat in folder.scan():
            if not workspace.hides(place.real, name):
                yield Entry(paths.child(place.real, name), stat)


def _needs_at(attempt: Attempt, path: str, entry: Entry, actions: tuple[str, ...]) -> Iterator[Need]:
    for action in actions:
        if action != "read":
            resolve.guard(attempt.context.workspace, path, action)
        kind = kind_at(attempt.known_tool.name, path == entry.path) if action == "write" else ""
        yield Need(action, path, entry.stat.kind == DIRECTORY, kind=kind)


def _decide_below(attempt: Attempt, needs: list[Need]) -> None:
    """Judge what is below the directories: another server cannot leave out what is denied."""
    try:
        _decide(attempt, needs)
    except CallError as error:
        if agent_view.path_of(attempt, attempt.decided.path) == attempt.decided.path:
            raise
        message = f"{attempt.decided.action} of something below is denied by the policy"
        hint = "name less, or use Ringfence's own tools, which leave out what you may not see"
        raise CallError(error.code, message, where=error.where, hint=hint) from None


def _absolute(attempt: Attempt, places: Mapping[GivenPath, Place]) -> dict[GivenPath, str]:
    """Return the path that the server gets in the place of each path of the call."""
    root = local_path(attempt.context.workspace.roots[0])
    if root is None:
        raise CallError("invalid_arguments", "Paths reach another server only in a workspace on this machine")
    base = root.rstrip("/") or "/"
    return {
        each: base if place.real == paths.ROOT else f"{base}/{place.real}" for each, place in places.items()
    }


# --------------------------------------------------------------------- tighten


def _count(attempt: Attempt) -> None:
    """Count the files that the call names against the limits for one call; their bytes are not known."""
    counts = {"read": attempt.counting.reads, CALL: False}
    named = {
        (need.action, need.path)
        for need in attempt.needs
        if counts.get(need.action, True) and not need.directory
    }
    for action, _ in named:
        attempt.usage[action] = attempt.usage.get(action, Amount()) + Amount(files=1)
    if attempt.usage:
        _limit(attempt)


def _doubt(attempt: Attempt, tool: UpstreamTool, row: Row, given: list[GivenPath], *, whole: bool) -> str:
    """Return why a person has to decide although every rule allows the call; "" if nothing is in doubt."""
    if name := path_like(row, attempt.call.arguments):
        return f"'{escape(name)}' looks like a path, and no table says what {tool.key} does to it"
    if name := missing(row, given):
        return f"the call leaves out '{escape(name)}', so the server would choose the path"
    if not whole:
        return f"more than {MOST_BELOW:,} files are concerned"
    if row.paths and row.reads_only and not row.calls and tool.says_it_changes:
        return f"the table says that {tool.key} only reads, and the server says that it does more"
    if tool.says_it_destroys and not row.paths and not _named_by_rule(attempt):
        return f"the server says that {tool.key} may take something away, and no rule names it"
    limits = attempt.policy.counted_limits(attempt.context.agent, tool.key)
    if any(each.limit.per != "call" and set(each.actions) & attempt.usage.keys() for each in limits):
        return "a limit counts several calls, and those of other servers are not counted"
    return ""


def _named_by_rule(attempt: Attempt) -> bool:
    rule = attempt.decided.rule
    return rule is not None and rule.key == attempt.known_tool.name


def _ask_in_doubt(attempt: Attempt, why: str) -> None:
    if why:  # also where a rule asks: no grant that is wider than this call covers a doubt
        attempt.decision = replace(attempt.decided, effect=Effect.ASK, reason=why, rule=None, hint=_PLAN_ASKS)
        attempt.once = why


# --------------------------------------------------------------- approve and send


def _plan(attempt: Attempt, tool: UpstreamTool, sent: Mapping[str, Any]) -> Plan:
    """Return the plan that a person is asked about: the call itself, since its changes are not known."""
    body = json.dumps([tool.digest, sent], sort_keys=True, separators=(",", ":"))
    where = ", ".join(map(escape, dict.fromkeys(attempt.named)))
    title = f"{tool.server}: {escape(tool.name)}{f' {where}' if where else ''}"
    return Plan(
        content=f"(an answer of the server {tool.server})",
        title=title,
        draw=partial(_preview, tool, attempt.call.arguments),
        forwards=hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest(),
    )


def _preview(tool: UpstreamTool, arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    if left := len(text) - _SHOWN:
        text = f"{text[:_SHOWN]}\n… {left:,} more characters" if left > 0 else text
    return f"Calls {escape(tool.name)} of the server {tool.server} with\n{text}\n{NOT_KEPT}\n"


def _record(tool: UpstreamTool, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the audit record before the call is sent; long texts are counted, not kept."""
    text = json.dumps(_bounded(sent), ensure_ascii=True, separators=(",", ":"))
    return {
        "server": tool.server,
        "tool": tool.name,
        "arguments": text if len(text) <= _RECORDED else f"{text[:_RECORDED]}…",
        "definition": tool.digest,
        "sent": False,
        "kept": False,
    }


def _bounded(value: Any) -> Any:
    """Return arguments with long texts as their length: they may be the content of files."""
    if isinstance(value, Mapping):
        return {name: _bounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    if isinstance(value, str) and ("\n" in value or len(value) > 200):
        return f"({plural(len(value), 'character')})"
    return value


def _answered(
    attempt: Attempt, servers: Servers, tool: UpstreamTool, sent: dict[str, Any], progress: Progress
) -> Result:
    """Send the call, and return the server's answer; a record has its size and digest, not its content."""
    record = attempt.upstream
    assert record is not None, "the record is begun before anything is sent"
    record["sent"] = True
    began = time.perf_counter()
    try:
        answer = servers.call(tool, sent, progress)
    finally:
        record["seconds"] = round(time.perf_counter() - began, 6)
    body = json.dumps(answer, sort_keys=True, separators=(",", ":")).encode()
    failed = answer.get("isError") is True
    record |= {"bytes": len(body), "digest": hashlib.sha256(body).hexdigest(), "failed": failed}
    text = _text(answer)
    decision = agent_view.decision(attempt, attempt.decided)
    data = {"answer": {name: value for name, value in answer.items() if name != "_meta"}}
    if not failed:
        return Result(attempt.call.id, "ok", text, data, decision)
    error = CallError("upstream_error", f"The MCP server '{tool.server}' could not do it")
    return Result(attempt.call.id, "error", text, data, decision, error.to_json())


def _text(answer: Mapping[str, Any]) -> str:
    blocks = answer.get("content")
    listed = blocks if isinstance(blocks, list) else []
    return "\n".join(
        str(each.get("text", "")) for each in listed if isinstance(each, dict) and "text" in each
    )

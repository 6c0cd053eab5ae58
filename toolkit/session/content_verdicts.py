"""Verdicts by content: what a policy's detectors find in a call's contents makes its verdict stricter.

An answer is examined before it is cut (`screen`), a plan's new contents once the plan is made (`judge`). The
strictest of the verdict without finds and of those for each detector that found something counts. Only for
policies that have detectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ringfence.policy import Decision, Effect, Need
from ringfence.policy.detection.encodings import encoding
from ringfence.policy.detection.find import MAX_BYTES, Found, added, apart, find, mask
from ringfence.policy.model import Detector, Rule
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_text import file_text
from ringfence.toolkit.plan.changes import FILE, Change, Move, Plan, Stat, Write
from ringfence.toolkit.plan.content import StreamedContent, length, whole
from ringfence.toolkit.plan.impact import touched
from ringfence.toolkit.session import responses
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.session.content_finds import ContentFind, ContentFinds
from ringfence.toolkit.session.secret_marks import MarkedPlace, SecretMarks
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.text import escape
from ringfence.toolkit.workspace.readable_paths import aliased
from ringfence.toolkit.workspace.screened import Screen, Screened

Rules = Mapping[Detector, Decision]
_OUTPUT = "output"  # stands for any file that a command may show
_ROUNDS = 4  # how often masked content is masked again before all of it is


class _Written(NamedTuple):
    """What a change puts at a path: the old and the new content, None where it cannot be examined."""

    path: str
    kind: str
    new: bytes | None
    old: bytes | None
    source: str | None = None  # where it is copied or moved from


def screen_of(attempt: Attempt) -> Screen:
    """Return the function that hides what the policy's detectors find."""
    attempt.content = attempt.content or ContentFinds()
    return lambda names, data, how: screen(attempt, names, data, how)


def screen(attempt: Attempt, names: tuple[str, ...], data: bytes, how: str) -> Screened:
    """Return content of a file, named by its real path first, as the agent may have it.

    Raises CallError `denied_by_policy` if the policy refuses it and `how` is not "hide".
    """
    rules = _stricter(attempt, [Need("read", name, name == paths.ROOT) for name in names])
    return _screened(attempt, names[0], data, find(data, rules), rules, how)


def _screened(  # noqa: PLR0913  one content with all that decides about it
    attempt: Attempt, path: str, data: bytes, found: tuple[Found, ...], rules: Rules, how: str
) -> Screened:
    if not found:
        return Screened(data)
    finds = attempt.content = attempt.content or ContentFinds()
    marks = _marks(attempt)
    masked = tuple(one for one in found if _masks(rules[one.detector]))
    worst = max((rules[one.detector].effect for one in found if one not in masked), default=Effect.ALLOW)
    hides, left_out = how == "hide", how == "leave out" and worst is Effect.DENY
    noted = [_find(marks, path, data, one, rules[one.detector]) for one in found]
    finds.note([replace(one, masked=hides or _masks(one.decision), left_out=left_out) for one in noted])
    if not attempt.enforcing:
        return Screened(data)
    spans = tuple((one.start, one.end) for one in apart(found))
    if worst is Effect.DENY and not hides:
        raise _refused(attempt, noted, path)
    finds.hidden = finds.hidden or bool(masked) or hides
    if worst is not Effect.ALLOW and hides:
        return Screened(None, spans)
    return Screened(_masked(marks, path, data, masked), spans)


def judge(attempt: Attempt, plan: Plan) -> Plan:
    """Tighten the call's decision by what its plan writes and its answer would give; return the plan with no
    digest of content that the agent does not see.

    Raises CallError `denied_by_policy`, or `masked_content` for a write of a mark.
    """
    finds = attempt.content = attempt.content or ContentFinds()
    marks = _marks(attempt)
    for change in plan.changes:
        for written in _writes(attempt, change):
            finds.note(list(_written_finds(attempt, marks, written)))
            _refuse_marks(attempt, marks, written)
    attempt.decision = finds.tightened(attempt.decided)
    if attempt.decided.effect is Effect.DENY and attempt.enforcing:
        raise responses.denied(attempt)
    if attempt.decided.effect is Effect.ASK:
        finds.hidden = finds.hidden or _replaces_hidden(attempt, plan)
    return replace(plan, data=_without_digests(plan.data, marks)) if finds.hidden else plan


def _without_digests(data: dict[str, Any], marks: SecretMarks) -> dict[str, Any]:
    # The rest of the content is known, so a plain digest would let a short secret be guessed.
    found = dict(data)
    if isinstance(data.get("digest"), str):
        found["digest"] = marks.digest(data["digest"].encode())
    if isinstance(data.get("files"), list):
        found["files"] = [
            _without_digests(each, marks) if isinstance(each, dict) else each for each in data["files"]
        ]
    return found


def command_output(attempt: Attempt, output: bytes, *, complete: bool) -> bytes:
    """Return a command's output as its answer may have it; what is not complete cannot be examined."""
    rules = _rules_for_output(attempt)
    found = find(output, rules) if complete else _unexamined(rules, len(output))
    shown = _screened(attempt, paths.ROOT, output, found, rules, "refuse").data
    assert shown is not None, "what is refused is raised"
    return shown


def examines_output(attempt: Attempt) -> bool:
    """Whether a command's output is examined before any of it is given."""
    return attempt.enforcing and bool(_rules_for_output(attempt))


def _rules_for_output(attempt: Attempt) -> dict[Detector, Decision]:
    """Return the decisions on a command's output: as on reading the root, and a file directly in it.

    A command runs also where reading the root asks or is denied without any find. Then what is found is
    masked.
    """
    rules: dict[Detector, Decision] = {}
    for need in (Need("read", paths.ROOT, True), Need("read", _OUTPUT)):
        found = _stricter(attempt, [need])
        plain = attempt.judge([need])
        if plain.effect is not Effect.ALLOW:
            found = {each: _as_mask(plain) for each in attempt.policy.detectors} | found
        for detector, decision in found.items():
            if _strictness(decision) > _strictness(rules.get(detector)):
                rules[detector] = decision
    return rules


def _as_mask(decision: Decision) -> Decision:
    rule = decision.rule or Rule("global", None, "read", "*", Effect.ASK)
    return replace(decision, effect=Effect.ASK, rule=replace(rule, effect=Effect.ASK, mask=True))


def refuses(attempt: Attempt, change: Change) -> bool:
    """Whether the policy denies what a change writes because of its content, in a mode that enforces it."""
    if not attempt.enforcing:
        return False
    marks = _marks(attempt)
    return any(
        find.decision.effect is Effect.DENY
        for written in _writes(attempt, change)
        for find in _written_finds(attempt, marks, written)
    )


def _stricter(attempt: Attempt, wanted: Sequence[Need]) -> dict[Detector, Decision]:
    """Return, by detector, the decision on needs where it finds something, if that is stricter than without:
    also if another rule asks.
    """
    policy, agent, tool = attempt.policy, attempt.context.agent, attempt.known_tool.name
    base = policy.decide(agent, tool, wanted, fold=attempt.fold)
    found = {}
    for detector in policy.detectors:
        decision = policy.where_content(detector).decide(agent, tool, wanted, fold=attempt.fold)
        same = (decision.effect, decision.rule) == (base.effect, base.rule)
        if decision.effect is not Effect.ALLOW and not same:
            found[detector] = decision
    return found


def _masks(decision: Decision) -> bool:
    return decision.effect is Effect.ASK and decision.rule is not None and decision.rule.mask


def _refused(attempt: Attempt, noted: Iterable[ContentFind], path: str) -> CallError:
    if attempt.content is not None:
        attempt.decision = attempt.content.tightened(attempt.decided)
    if attempt.decided.effect is Effect.DENY:
        return responses.denied(attempt)
    names = ", ".join(dict.fromkeys(one.detector.name for one in noted))
    return CallError("denied_by_policy", f"'{escape(path)}' contains {names}", where=path)


# ------------------------------------------------------------------------ masks


def _marks(attempt: Attempt) -> SecretMarks:
    """Return the marks of the call's state: one for the call, as each reads the key once."""
    if attempt.marks is None:
        attempt.marks = SecretMarks(attempt.context.state)
    return attempt.marks


def _masked(marks: SecretMarks, path: str, data: bytes, masked: tuple[Found, ...]) -> bytes:
    """Return content with a mark in the place of each find; the number of its lines stays."""
    detectors = tuple(dict.fromkeys(one.detector for one in masked))
    for _ in range(_ROUNDS):
        if not masked:
            return data
        now = data

        def mark(one: Found, now: bytes = now) -> bytes:
            token = marks.token(one.detector, one.secret if one.examined else now)
            place = MarkedPlace(
                one.detector.name, one.detector.expression, path, _line(now, one.start), path == paths.ROOT
            )
            return marks.mark(token, place) + _line_ends(now, one)

        data = mask(now, masked, mark)
        masked = find(data, detectors)
    whole_of = Found(detectors[0], 0, len(data), data, examined=False)
    return mask(data, (whole_of,), lambda one: f"[hidden {one.detector.name}]".encode())


def _line_ends(data: bytes, one: Found) -> bytes:
    how = encoding(data)
    text = data[one.start : one.end].decode(how.codec, how.errors)
    return b"\n" * text.count("\n")


def _line(data: bytes, start: int) -> int:
    how = encoding(data)
    if how.unit == 1:
        return data.count(b"\n", 0, start) + 1
    return data[how.mark : start].decode(how.codec, how.errors).count("\n") + 1


def _find(marks: SecretMarks, path: str, data: bytes, one: Found, decision: Decision) -> ContentFind:
    return ContentFind(
        one.detector,
        path,
        _line(data, one.start),
        decision,
        marks.token(one.detector, one.secret if one.examined else data),
        examined=one.examined,
    )


def _unexamined(detectors: Iterable[Detector], size: int) -> tuple[Found, ...]:
    return tuple(Found(detector, 0, size, examined=False) for detector in detectors)


# ----------------------------------------------------------------------- writes


def _writes(attempt: Attempt, change: Change) -> Iterator[_Written]:
    """Yield what a change puts into files."""
    if isinstance(change, Write):
        ((path, _, _, kind),) = touched(change, edits=attempt.edits)
        old = b"" if change.stat is None else None if change.before is None else _bytes(change.before)
        source = attempt.places.get("source")
        yield _Written(path, kind, _bytes(change.data), old, None if source is None else source[0].real)
    elif isinstance(change, Move):
        stats = {change.destination: (change.source, change.stat)}
        for entry in change.entries:
            stats[change.destination + entry.path[len(change.source) :]] = entry.path, entry.stat
        for path, action, _, kind in touched(change):
            if action != "write" or stats[path][1].kind != FILE:
                continue
            origin, stat = stats[path]
            over = change.over if path == change.destination else None
            old = b"" if over is None else _stored(attempt, path, over)
            yield _Written(path, kind, _stored(attempt, origin, stat), old, origin)


def _bytes(content: bytes | StreamedContent) -> bytes | None:
    return None if length(content) > MAX_BYTES else whole(content)


def _stored(attempt: Attempt, path: str, stat: Stat) -> bytes | None:
    """Return the content of a file; None if it cannot be examined."""
    if stat.kind != FILE or stat.size is None or stat.size > MAX_BYTES:
        return None
    backend = attempt.context.workspace.backend
    with at(backend, path) as spot:
        return backend.read(spot, MAX_BYTES, stat)


def _written_finds(attempt: Attempt, marks: SecretMarks, written: _Written) -> Iterator[ContentFind]:
    """Yield what a write adds to a path, with the verdict on it."""
    rules = _rules_for(attempt, written)
    if not rules:
        return
    if written.new is None:
        found, data = _unexamined(rules, 0), b""
    else:
        found, data = added(written.old, written.new, rules), written.new
    for one in found:
        yield _find(marks, written.path, data, one, rules[one.detector])


def _rules_for(attempt: Attempt, written: _Written) -> Rules:
    if attempt.known_tool.tasks:
        return _stricter(attempt, [need for need in attempt.needs if need.action == "write"])
    names = _names(attempt, written.path)
    rules = _stricter(attempt, [Need("write", name, kind=written.kind) for name in names])
    if written.source is not None:
        rules |= _lost_by_copying(attempt, written, rules)
    return rules


def _lost_by_copying(attempt: Attempt, written: _Written, rules: Rules) -> dict[Detector, Decision]:
    """Return the decisions on reading the source that the copy's path would not have: a copy does not make
    content readable that is not.
    """
    assert written.source is not None, "only what is copied has a source"
    here = _stricter(attempt, [Need("read", name) for name in _names(attempt, written.source)])
    if not here:
        return {}
    there = _stricter(attempt, [Need("read", name) for name in _names(attempt, written.path)])
    return {
        detector: decision
        for detector, decision in here.items()
        if _strictness(decision) > _strictness(there.get(detector))
        and (detector not in rules or decision.effect > rules[detector].effect)
    }


def _strictness(decision: Decision | None) -> tuple[Effect, bool]:
    return (Effect.ALLOW, False) if decision is None else (decision.effect, not _masks(decision))


def _names(attempt: Attempt, path: str) -> tuple[str, ...]:
    others = (aliased(place, path) for place, _ in attempt.places.values())
    return (path, *sorted({other for other in others if other is not None} - {path}))


def _refuse_marks(attempt: Attempt, marks: SecretMarks, written: _Written) -> None:
    """Refuse to write a mark: it would stand in the place of the secret."""
    if written.new is None or written.source is not None or not attempt.enforcing:
        return
    old = file_text(written.old or b"").data
    for mark in marks.given_in(file_text(written.new).data):
        if mark not in old:
            message = f"The new content has '{mark.decode()}', which stands for a secret in an answer"
            raise CallError("masked_content", message, where=written.path)


def _replaces_hidden(attempt: Attempt, plan: Plan) -> bool:
    """Whether a plan's preview, for a person, would show old content that the agent does not see."""
    for change in plan.changes:
        if isinstance(change, Write):
            contents = [content for content in (change.before, change.data) if content is not None]
        elif isinstance(change, Move):
            continue  # no content is shown
        else:
            contents = []
        rules = _stricter(attempt, [Need("read", path) for path, *_ in touched(change)][:1])
        if rules and (not contents or any(_shows(content, rules) for content in contents)):
            return True
    return False


def _shows(content: bytes | StreamedContent, rules: Rules) -> bool:
    data = _bytes(content)
    return data is None or bool(find(data, rules))

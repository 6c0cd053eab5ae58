"""Reader of what narrows a rule or a mandatory item: until when, on trial, for which content and agents.

Values are fields of `Rule` and `Mandatory`; problems go into the report.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ringfence.policy.loading.values import Reader
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.model import DETECTORS, RUN, RUN_TOOL, Detector, Effect, path_needs
from ringfence.policy.patterns.syntax import PatternError, parse_agent

ENTRY_FIELDS = ("until", "trial", "content", "mask")
_MATCH = DETECTORS[-1]
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?(?:Z|([+-])(\d\d):(\d\d)))?\Z", re.ASCII
)
_DAY = 86_400
_UNTIL_HINT = "write a date (2026-12-31: to the end of that day in UTC), or 2026-12-31T18:00:00+01:00"


def entry_fields(
    reader: Reader, found: Mapping[str, Node], keys: Sequence[str], effect: Effect | None
) -> dict[str, Any]:
    """Return the fields of ENTRY_FIELDS that an entry states, given what it is about and its effect."""
    out: dict[str, Any] = {}
    if "until" in found:
        out["until"] = read_until(reader, found["until"])
    if "trial" in found:
        out["trial"] = bool(reader.flag(found["trial"], "trial"))
    if "content" in found:
        out["content"] = _content(reader, found["content"], keys, effect)
    if "mask" in found:
        out["mask"] = _mask(reader, found, keys, effect)
    return {name: value for name, value in out.items() if value not in (None, False, ())}


def read_until(reader: Reader, node: Node) -> int | None:
    """Return the end of an entry in seconds since 1970; a date alone lasts to its end in UTC."""
    found = _TIME.match(node.text) if node.kind == "scalar" else None
    time = _seconds(found) if found else None
    if time is None:
        what = f"until is a date, or a time with its zone, not {node.describe()}"
        reader.report.add("value_invalid", what, node, _UNTIL_HINT)
    return time


def _seconds(found: re.Match[str]) -> int | None:
    from calendar import monthrange, timegm  # only entries that end need them

    year, month, day = (int(found[n]) for n in (1, 2, 3))
    hour, minute, second = (int(found[n] or 0) for n in (4, 5, 6))
    away_hours, away_minutes = (int(found[n] or 0) for n in (8, 9))
    if not (year >= 1970 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]):
        return None
    if hour > 23 or minute > 59 or second > 59 or away_hours > 23 or away_minutes > 59:
        return None
    time = timegm((year, month, day, hour, minute, second))
    if found[4] is None:
        return time + _DAY
    offset = 3600 * away_hours + 60 * away_minutes
    return time + offset if found[7] == "-" else time - offset


def _content(reader: Reader, node: Node, keys: Sequence[str], effect: Effect | None) -> tuple[Detector, ...]:
    if keys and not _touched(reader, keys) & {"read", "write"}:
        hint = "leave content out; it is about what is read or written"
        reader.report.add("value_invalid", f"{', '.join(keys)} neither reads nor writes content", node, hint)
    elif effect is Effect.ALLOW:
        hint = "a condition on content can only make a verdict stricter: write effect: ask or effect: deny"
        reader.report.add("value_invalid", "a rule with content cannot allow", node, hint)
    items = [node] if node.kind == "mapping" else reader.several(node, "content")
    found = (_detector(reader, item) for item in items)
    return tuple(dict.fromkeys(detector for detector in found if detector))


def _detector(reader: Reader, node: Node) -> Detector | None:
    if node.kind != "mapping":
        name = reader.word(node, DETECTORS, "content")
        if name == _MATCH:
            hint = "write {match: 'the expression'}"
            reader.report.add("key_missing", "match needs an expression", node, hint)
            return None
        return Detector(name) if name else None
    pairs = reader.mapping(node, (_MATCH,), "content")
    if _MATCH not in pairs:
        if not node.pairs:
            reader.report.add("key_missing", "content has nothing to find", node, "add match: 'expression'")
        return None
    text = reader.text(pairs[_MATCH], "an expression")
    if text is None or not _compiles(reader, pairs[_MATCH], text):
        return None
    return Detector(_MATCH, text)


def _compiles(reader: Reader, node: Node, text: str) -> bool:
    from ringfence.policy.detection.expressions import compiled
    from ringfence.policy.detection.linear_regex import PatternError as ExpressionError

    try:
        compiled(text)
    except ExpressionError as error:
        hint = error.hint or "write a regular expression without back references"
        reader.report.add("value_invalid", f"the expression does not compile: {error}", node, hint)
        return False
    return True


def _mask(reader: Reader, found: Mapping[str, Node], keys: Sequence[str], effect: Effect | None) -> bool:
    mask = bool(reader.flag(found["mask"], "mask"))
    node = found["mask"]
    if mask and "content" not in found:
        reader.report.add("key_missing", "mask needs content", node, "say what is masked: content: [jwt]")
    elif mask and keys and "read" not in _touched(reader, keys):
        hint = "leave mask out; it is about what is read"
        reader.report.add("value_invalid", f"{', '.join(keys)} reads no content", node, hint)
    elif mask and effect is Effect.DENY:
        hint = "write effect: ask; who may see what is masked is asked about"
        reader.report.add("value_invalid", "what is denied is not shown, masked or not", node, hint)
    return mask


def _touched(reader: Reader, keys: Collection[str]) -> set[str]:
    """Return the actions on paths that the keys of an entry are about."""
    out: set[str] = set()
    for key in keys:
        if key == "*":
            out |= {"read", "write", "delete"}
        elif key in reader.tools and key != RUN_TOOL:
            out |= {action for action, _ in path_needs(key, reader.tools)}
        elif key == RUN_TOOL:
            out |= {"read", "write", "delete"}  # its output is read by the agent
        elif key != RUN:
            out.add(key.partition(".")[0])
    return out


def except_agents(reader: Reader, node: Node | None) -> tuple[str, ...]:
    """Return the patterns of agents that a mandatory item leaves out."""
    if node is None:
        return ()
    found: list[str] = []
    for item in reader.several(node, "except_agents"):
        text = reader.text(item, "an agent's name")
        if text is None:
            continue
        try:
            parse_agent(text)
        except PatternError as error:
            reader.pattern_problem(item, error)
            continue
        found.append(text)
    return tuple(found)

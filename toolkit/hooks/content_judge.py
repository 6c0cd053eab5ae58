"""Judge of contents in a host's call: what a Write or Edit adds, and what a Read or search would show.

Reads the files that are touched, and only under a policy with detectors. A hook cannot change an answer, so
content that would be masked asks. Of content that is too large or cannot be read nothing is known, so it
counts as found.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ringfence.policy import Decision, Need, Policy
from ringfence.policy.byte_names import to_disk
from ringfence.policy.detection.find import MAX_BYTES, added, find
from ringfence.policy.model import Detector
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.hooks.directory_listing import TooMany
from ringfence.toolkit.hooks.judge import BY_POLICY, Judge, Place, Verdict, stricter
from ringfence.toolkit.hooks.patches import BEGINS
from ringfence.toolkit.hooks.touch import UNKNOWN, Touch

_MOST = 32 << 20  # bytes that are read for one search
# Tools whose answer has content of the file that they read.
_GIVES = ("read_file", "read_files", "search_text", UNKNOWN)
_TAKES = ("move_file", "copy_file")  # tools that write what they read
_OLD, _NEW = ("old_string", "old_str", "oldString"), ("new_string", "new_str", "newString")


class ContentJudge:
    """Judges the contents of one call. `given` are its arguments."""

    def __init__(self, judge: Judge, policy: Policy, agent: str, given: Mapping[str, Any]) -> None:
        self._judge = judge
        self._policy = policy
        self._agent = agent
        self._given = given
        self._left = _MOST

    def judge(self, touches: Sequence[Touch]) -> Verdict | None:
        """Return the strictest verdict that follows from finds; None if there are none."""
        worst: Verdict | None = None
        sources = [touch for touch in touches if "read" in touch.actions]
        for touch in touches:
            if self._judge.is_own(touch):
                continue
            try:
                place = self._judge.place(touch.path)
                found = [*self._read(touch, place), *self._written(touch, place, sources)]
            except CallError:
                continue  # refused without any look at contents
            for verdict in found:
                worst = stricter(worst, verdict)
        return worst

    def _read(self, touch: Touch, place: Place) -> Iterator[Verdict]:
        if "read" not in touch.actions or touch.tool not in _GIVES or touch.names:
            return
        if not place.directory:
            yield from self._file(touch, place.named, dict.fromkeys((place.named, place.real)), place.real)
        elif touch.within is not None:
            try:
                for name in self._judge.names_below(touch, place):
                    if not name.directory:
                        yield from self._file(touch, name.path, (name.path,), name.path)
            except TooMany:
                return  # asks already

    def _file(self, touch: Touch, shown: str, names: Iterable[str], path: str) -> Iterator[Verdict]:
        """Yield the verdict on showing one file."""
        tool = touch.tool or "read_file"
        rules = self._rules(tool, [Need("read", name) for name in names])
        if not rules:
            return
        data = self._content(path)
        found = rules if data is None else {one.detector for one in find(data, rules)}
        yield from self._verdicts("read", shown, {each: rules[each] for each in found})

    def _written(self, touch: Touch, place: Place, sources: Sequence[Touch]) -> Iterator[Verdict]:
        if "write" not in touch.actions or place.directory:
            return
        wanted = [need for need in self._judge.needs(touch, place) if need.action == "write"]
        rules = self._rules(touch.tool, [need for need in wanted if not need.directory])
        if not rules:
            return
        old = self._content(place.real) if place.exists else b""
        contents: list[bytes | None] = list(_new_contents(self._given, old or b""))
        if touch.tool in _TAKES:
            contents += [self._content(self._judge.place(each.path).real) for each in sources]
        found: dict[Detector, Decision] = {}
        for content in contents:
            finds = rules if content is None else {one.detector for one in added(old, content, rules)}
            found |= {each: rules[each] for each in finds}
        yield from self._verdicts("write", place.named, found)

    def _rules(self, tool: str, wanted: Sequence[Need]) -> dict[Detector, Decision]:
        """Return the decision for each detector whose finds make it stricter."""
        base = self._policy.decide(self._agent, tool, wanted, fold=self._judge.fold)
        found = {}
        for detector in self._policy.detectors:
            policy = self._policy.where_content(detector)
            decision = policy.decide(self._agent, tool, wanted, fold=self._judge.fold)
            if decision.effect > base.effect:
                found[detector] = decision
        return found

    def _verdicts(self, action: str, path: str, found: Mapping[Detector, Decision]) -> Iterator[Verdict]:
        for detector, decision in found.items():
            rule = decision.rule
            reason = rule.reason if rule and rule.reason else BY_POLICY[decision.effect]
            yield Verdict(decision.effect, f"{action} {path}: {reason} (the content has: {detector.name})")

    def _content(self, path: str) -> bytes | None:
        """Return a file's content; None if it cannot be read here, or has too much."""
        try:
            with open(
                os.path.join(self._judge.real_root, to_disk(path)), "rb", opener=_without_waiting
            ) as file:
                data = file.read(min(MAX_BYTES, self._left) + 1)
        except FileNotFoundError:
            return b""
        except OSError:
            return None
        self._left -= len(data)
        return None if self._left < 0 or len(data) > MAX_BYTES else data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _new_contents(given: Mapping[str, Any], old: bytes) -> Iterator[bytes]:
    """Yield each text that a call would write: every argument, and the file with each replacement made."""
    edited = old
    for node in _nodes(given):
        texts = {key: value for key, value in node.items() if isinstance(value, str)}
        for key, text in texts.items():
            if key.endswith("path"):
                continue
            yield _bytes(text)
            if BEGINS in text:
                # The lines of a patch as they are in the file: those that it adds, and those beside them.
                yield _bytes("\n".join(line[1:] for line in text.split("\n") if line[:1] in ("+", " ")))
        before = next((texts[key] for key in _OLD if texts.get(key)), None)
        after = next((texts[key] for key in _NEW if key in texts), None)
        if before and after is not None:
            edited = edited.replace(_bytes(before), _bytes(after))
    yield edited


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield {key: " ".join(map(str, each)) if _is_words(each) else each for key, each in value.items()}
        for each in value.values():
            yield from _nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from _nodes(each)


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

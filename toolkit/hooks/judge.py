"""The verdict on what a host's tool would touch: where each path really leads, and what the policy says.

Looks at names and kinds only; opens no file but the policy. The host opens the path by its name later, so
a swap in between is not noticed: only Ringfence's own tools hold what they judged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from policy import Decision, Effect, Need, Policy, Rule, kept
from policy.model import Content
from toolkit import paths
from toolkit.errors import CallError
from toolkit.hooks.touched import Touch
from toolkit.name_folding import folding_of
from toolkit.protection import Protection

MAX_SEARCHED = 20_000  # names looked at below a folder that is searched; with more a person decides


class Verdict(NamedTuple):
    """What the policy says of a whole call. `refused` is a refusal that no policy can lift."""

    effect: Effect
    reason: str
    refused: bool = False


class Place(NamedTuple):
    """A path as it was named and as it really is, relative to the root."""

    named: str
    real: str
    exists: bool
    directory: bool


class Judge:
    """One agent in one workspace. `cwd` is where relative paths begin."""

    def __init__(self, root: str, policy: Policy, agent: str, cwd: str) -> None:
        self.real_root = os.path.realpath(root)
        self._roots = tuple(dict.fromkeys((self.real_root, os.path.abspath(root))))
        self._policy = policy
        self._narrowed: dict[frozenset[str], Policy] = {}
        self._agent = agent
        self._cwd = cwd
        folder = os.open(self.real_root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._fold = folding_of(folder, self.real_root)
        finally:
            os.close(folder)
        self._protection = Protection(self._roots, self._fold)
        for file in policy.files:
            self._protection.protect(file)
        self._protect_state()

    def judge(self, touches: tuple[Touch, ...]) -> Verdict:
        """The strictest verdict over everything that is touched."""
        worst = Verdict(Effect.ALLOW, "")
        for touch in touches:
            verdict = self._judge(touch)
            if verdict.effect > worst.effect or not worst.reason:
                worst = verdict
            if worst.effect is Effect.DENY:
                break
        return worst

    def _judge(self, touch: Touch) -> Verdict:
        try:
            place = self.place(touch.path)
            needs = list(self.needs(touch, place))
        except CallError as error:
            # What a link leads to is not told.
            said = "The path is protected" if error.code == "protected_path" else error.message
            return Verdict(Effect.DENY, f"{said} ({error.code}). {error.hint}", refused=True)
        verdict = self._say(self._rules(touch).decide(self._agent, touch.tool, needs, fold=self._fold), place)
        if touch.within is not None and place.directory and verdict.effect is not Effect.DENY:
            below = self._below(touch, place)
            verdict = below if below.effect > verdict.effect else verdict
        return verdict

    def place(self, text: str) -> Place:
        """Where a path leads. Raises CallError for what can never be a path of the workspace."""
        paths.check(text)
        names = self._split(text if text.startswith("/") else f"{self._cwd}/{text}")
        named = paths.lexical(names)
        at = os.path.join(self.real_root, *names)
        real = os.path.realpath(at)
        if ".." in names and real != os.path.realpath(os.path.join(self.real_root, named)):
            raise CallError("path_invalid", "The path goes up ('..') and through a link, which is ambiguous")
        relative = os.path.relpath(real, self.real_root)
        if relative == ".." or relative.startswith("../"):
            raise paths.outside()
        return Place(named, relative, os.path.lexists(real), os.path.isdir(real))

    def needs(self, touch: Touch, place: Place) -> Iterator[Need]:
        """What a touch needs, by its name and by where it really leads. Raises CallError for a refusal."""
        reading = touch.actions == ("read",)
        for path in dict.fromkeys((place.named, place.real)):
            if path == paths.ROOT and not reading:
                raise CallError("root_protected", "The project root itself cannot be changed", where=path)
            self._protection.guard(path, reading=reading)
        for action in touch.actions:
            for path in dict.fromkeys((place.named, place.real)):
                for directory in _kinds(action, place):
                    yield Need(action, path, directory)
        if "write" in touch.actions:
            parent = paths.parent(place.real)
            while parent != paths.ROOT and not os.path.lexists(os.path.join(self.real_root, parent)):
                yield Need("write", parent, True, True)
                parent = paths.parent(parent)

    def _below(self, touch: Touch, place: Place) -> Verdict:
        """The verdict on the content that a search would show; names of what is denied are not told."""
        searched = Searched(touch.within or ())
        worst = Verdict(Effect.ALLOW, "")
        for count, (path, link) in enumerate(_files(self.real_root, place.real)):
            if count >= MAX_SEARCHED:
                return Verdict(Effect.ASK, f"more than {MAX_SEARCHED:,} files to search; a person decides")
            if not searched.may_show(path if place.real == paths.ROOT else path[len(place.real) + 1 :]):
                continue
            # A search by content does not follow links; what reads whole files does.
            effect, why = self._shown(touch, path, follow=link and touch.tool == "read_file")
            if effect > worst.effect:
                worst = Verdict(effect, f"{_BELOW[effect]}{why}. {_NARROW}")
            if effect is Effect.DENY:
                break
        return worst

    def _shown(self, touch: Touch, path: str, *, follow: bool) -> tuple[Effect, str]:
        """The verdict on showing one file of many, and why."""
        try:
            needs = {path, self.place(f"{self.real_root}/{path}").real} if follow else {path}
            for each in needs:
                self._protection.guard(each, reading=True)
            wanted = [Need("read", each) for each in needs]
            decision = self._rules(touch).decide(self._agent, touch.tool, wanted, fold=self._fold)
        except CallError as error:
            # Ringfence's own files hold no secret of the workspace; a link out of it may lead anywhere.
            return (Effect.ALLOW, "") if error.code == "protected_path" else (Effect.DENY, "")
        except ValueError:
            return Effect.ASK, " (it has a name that no policy can tell)"
        rule = decision.rule
        return decision.effect, f" ({rule.reason})" if rule and rule.reason else ""

    def _rules(self, touch: Touch) -> Policy:
        """The policy without the rules that cannot speak of such a touch: one verdict waits for fewer."""
        keys = frozenset((touch.tool, *touch.actions, "*"))
        if keys not in self._narrowed:
            self._narrowed[keys] = narrowed(self._policy, keys)
        return self._narrowed[keys]

    def _say(self, decision: Decision, place: Place) -> Verdict:
        rule = decision.rule
        where = f" [{rule.where.file}:{rule.where.line}]" if rule and rule.reason and rule.where else ""
        hint = f". {decision.hint}" if decision.effect is Effect.DENY else ""
        # Where a link leads is not told to who may not read it.
        path = place.named if decision.path == place.real else decision.path
        action = f"{decision.action} {path}: " if decision.action else ""
        return Verdict(decision.effect, f"{action}{decision.reason}{where}{hint}")

    def _split(self, absolute: str) -> tuple[str, ...]:
        for root in self._roots[1:]:
            try:
                return paths.split(absolute, root)
            except CallError as error:
                if error.code != "outside_root":
                    raise
        return paths.split(absolute, self._roots[0])

    def _protect_state(self) -> None:
        """Ringfence's own files, in the rare case that they lie in the workspace."""
        # As the commands of this environment, which keep the log; no option tells a hook of them.
        if log := os.environ.get("RINGFENCE_AUDIT_LOG"):
            self._protection.protect(os.path.abspath(log), aside=True)
        if key := os.environ.get("RINGFENCE_AUDIT_KEY"):
            self._protection.protect(os.path.abspath(key))
        if (forms := kept.folder()) is not None:
            self._protection.protect(forms)
        home = os.path.realpath(os.path.expanduser("~"))
        state = os.path.realpath(os.environ.get("XDG_STATE_HOME") or home)
        if any(os.path.commonpath((place, self.real_root)) == self.real_root for place in (home, state)):
            import platformdirs

            self._protection.protect(platformdirs.user_state_dir("ringfence"))


_BELOW = {
    Effect.ASK: "reading something below this folder asks",
    Effect.DENY: "something below this folder may not be read",
}
_NARROW = "Search a folder or name a file pattern that leaves it out"


class Searched:
    """Which files a search shows, by its file patterns; in doubt it shows them."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        wanted: list[str] = []
        left_out: list[str] = []
        self._all = not patterns
        for pattern in patterns:
            known = _plain(pattern.removeprefix("!"))
            if pattern.startswith("!"):
                self._all = True
                left_out += [known] if known and "/" not in known else []
            elif known is None:
                self._all = True
            else:
                wanted.append(known)
        self._wanted = _policy_of(wanted)
        self._left_out = _policy_of(left_out)

    def may_show(self, path: str) -> bool:
        try:
            if self._left_out.effect("", "read", "read", path) is Effect.ALLOW:
                return False
            return self._all or self._wanted.effect("", "read", "read", path, fold=True) is Effect.ALLOW
        except ValueError:
            return True


def _plain(pattern: str) -> str | None:
    """A file pattern as one of a policy; None for what may mean something else to a host."""
    from policy.glob import PatternError, parse

    if re.search(r"[\s\\]|^[^{}]*,", pattern):
        return None
    # What a pattern with a slash is relative to differs from host to host.
    text = f"**/{pattern.lstrip('./')}" if "/" in pattern else pattern
    try:
        parse(text)
    except PatternError:
        return None
    return text


def _policy_of(patterns: list[str]) -> Policy:
    """A policy that allows what one of the patterns matches, and asks for all else."""
    rules = tuple(Rule("global", None, "read", pattern, Effect.ALLOW) for pattern in patterns)
    return Policy(Content(rules={"read": rules} if rules else {}), revision="")


def narrowed(policy: Policy, keys: frozenset[str]) -> Policy:
    """A policy with the rules under these keys alone: the same verdicts where only they are asked."""
    content = policy.content
    if sum(map(len, content.rules.values())) < _MANY:
        return policy
    agents = {
        name: replace(agent, rules={key: agent.rules[key] for key in keys & agent.rules.keys()})
        for name, agent in content.agents.items()
    }
    fewer = replace(
        content,
        rules={key: content.rules[key] for key in keys & content.rules.keys()},
        mandatory=tuple(item for item in content.mandatory if keys & set(item.keys)),
        agents=agents,
    )
    return Policy(fewer, revision=policy.revision, files=policy.files, tools=policy.tools)


_MANY = 50  # rules; with fewer it is not worth it


def _kinds(action: str, place: Place) -> tuple[bool, ...]:
    """Whether to judge as a file, a directory, or (nothing there to tell) as both."""
    if place.exists:
        return (place.directory,)
    return (False,) if action == "write" else (False, True)


def _files(root: str, folder: str) -> Iterator[tuple[str, bool]]:
    """Every file below a folder, and whether it is a link; links to folders are not followed."""
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            found = list(entries)
    except (FileNotFoundError, PermissionError):
        return  # what cannot be looked at, no search of this user shows
    for entry in found:
        path = paths.child(folder, entry.name)
        if entry.is_dir(follow_symlinks=False):
            yield from _files(root, path)
        else:
            yield path, entry.is_symlink()

"""Judge of a host's call: where each path really leads, and the policy's verdict.

Reads names and kinds only; opens no file but the policy (`content_judge` reads contents). The host opens the
path by its name later, so a swap in between is not noticed: only Ringfence's own tools keep the judged file
open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ringfence.policy import Decision, Effect, Need, Policy
from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.policy.loading import cache
from ringfence.policy.model import WRITE_KINDS, kind_at
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.hooks.hosts import holds_hooks, runs_as_code, settings_files
from ringfence.toolkit.hooks.touch import READ, UNKNOWN, Touch
from ringfence.toolkit.protected_paths import Protection
from ringfence.toolkit.storage.local.name_folding import folding_of

if TYPE_CHECKING:
    from ringfence.toolkit.hooks.directory_listing import Name, Walk


class Verdict(NamedTuple):
    """The policy's verdict on a whole call.

    `refused` is a refusal that no policy can lift. `unsure`: an allow must not be reported, because names
    that may not be read could be listed.
    """

    effect: Effect
    reason: str
    refused: bool = False
    unsure: bool = False


class Place(NamedTuple):
    """A path as it was named and as it really is, relative to the root."""

    named: str
    real: str
    exists: bool
    directory: bool


class Judge:
    """Judges for one agent in one workspace.

    `cwd` is where relative paths begin; `own` are the absolute paths of folders that are left to the host.
    """

    def __init__(self, root: str, policy: Policy, agent: str, cwd: str, own: tuple[str, ...] = ()) -> None:
        self.real_root = os.path.realpath(root)
        self._roots = tuple(dict.fromkeys((self.real_root, os.path.abspath(root))))
        self._policy = policy
        self._narrowed: dict[frozenset[str], Policy] = {}
        self._agent = agent
        self._cwd = cwd
        self._own = own
        folder = os.open(self.real_root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._fold = folding_of(folder, self.real_root)
        finally:
            os.close(folder)
        self._protection = Protection(self._roots, self._fold)
        for file in (*policy.files, *settings_files(self.real_root)):
            self._protection.protect(file)
        self._protect_state()
        self._protection.protect_program()
        self._walk: Walk | None = None

    def judge(self, touches: Iterable[Touch]) -> Verdict | None:
        """Return the strictest verdict over all touched paths; None if all of them belong to the host."""
        worst: Verdict | None = None
        for touch in touches:
            if self.is_own(touch):
                continue
            worst = stricter(worst, self._judge(touch))
            if worst.effect is Effect.DENY:
                break
        return worst

    @property
    def fold(self) -> Fold:
        """Which differences between names the workspace ignores, such as case."""
        return self._fold

    def is_own(self, touch: Touch) -> bool:
        """Whether a touch is the host's affair: in its own folders outside the root, by name and after links.

        A change of what the host runs from there (plugins and hooks) is not.
        """
        text = touch.path
        named = os.path.normpath(os.path.join(self._cwd, text))
        by_name = next((own for own in self._own if within(named, own)), None)
        if "\0" in text or by_name is None:
            return False
        real = os.path.realpath(os.path.join(self._cwd, text))
        if any(within(path, root) for path in (named, real) for root in self._roots):
            return False
        really = next((own for own in map(os.path.realpath, self._own) if within(real, own)), None)
        if really is None:
            return False
        places = ((named, by_name), (real, really))
        # The name of the own folder itself counts, too.
        return touch.actions == READ or not any(
            runs_as_code(os.path.relpath(path, os.path.dirname(own))) for path, own in places
        )

    def _judge(self, touch: Touch) -> Verdict:
        try:
            place = self.place(touch.path)
            needs = list(self.needs(touch, place))
        except CallError as error:
            if touch.tool == UNKNOWN and error.code != "protected_path":
                return Verdict(Effect.ASK, _ELSEWHERE)  # it may or may not be a path of this machine
            # A link's target is not reported.
            message = "The path is protected" if error.code == "protected_path" else error.message
            return Verdict(Effect.DENY, f"{message} ({error.code}). {error.hint}", refused=True)
        decision = self._rules(touch).decide(self._agent, touch.tool, needs, fold=self._fold)
        verdict = self._verdict_of(decision, place)
        if verdict.effect is Effect.DENY and self._is_passable(touch, place, needs):
            return self._through(touch, place) or verdict
        if verdict.effect is Effect.DENY or not place.directory:
            return verdict
        if touch.tool in _WHOLE:
            return stricter(verdict, Verdict(Effect.ASK, _TREE))
        return verdict if touch.within is None else stricter(verdict, self._below(touch, place))

    def _is_passable(self, touch: Touch, place: Place, needs: list[Need]) -> bool:
        """Whether a search begins at a denied directory below which something may not be denied."""
        if touch.within is None or not place.directory:
            return False
        rules = self._rules(touch)
        return all(
            rules.opens_below(self._agent, touch.tool, need.action, need.path, fold=self._fold)
            for need in needs
        )

    def _through(self, touch: Touch, place: Place) -> Verdict | None:
        """Return the verdict on a search from a denied directory.

        A host omits no names, so every name that it would show has to be allowed: None where one is not, or
        where nothing would be shown.
        """
        from ringfence.toolkit.hooks.directory_listing import TooMany

        try:
            shown = list(self._each_below(touch, place))
        except TooMany:
            return None
        if not shown or max(effect for effect, _ in shown) is Effect.DENY:
            return None
        return Verdict(*max(shown, key=lambda each: each[0]))

    def place(self, text: str) -> Place:
        """Return where a path leads. CallError for text that can never be a path of the workspace."""
        # A host reads a backslash literally, so only a name with exactly this text is meant.
        paths.check(from_disk(text))
        names = self._split(from_disk(text if text.startswith("/") else f"{self._cwd}/{text}"))
        named = paths.lexical(names)
        real = os.path.realpath(self._on_disk("/".join(names)))
        if ".." in names and real != os.path.realpath(self._on_disk(named)):
            raise CallError("path_invalid", "The path goes up ('..') and through a link, which is ambiguous")
        relative = os.path.relpath(real, self.real_root)
        if relative == ".." or relative.startswith("../"):
            raise paths.outside()
        return Place(named, from_disk(relative), os.path.lexists(real), os.path.isdir(real))

    def _on_disk(self, path: str) -> str:
        return os.path.join(self.real_root, to_disk(path))

    def needs(self, touch: Touch, place: Place) -> Iterator[Need]:
        """Return the needs of a touch, by its name and after links. CallError for a refusal."""
        reading = touch.actions == READ
        for path in dict.fromkeys((place.named, place.real)):
            if path == paths.ROOT and not reading:
                raise CallError("root_protected", "The project root itself cannot be changed", where=path)
            if not reading and holds_hooks(path):
                raise CallError("protected_path", f"'{path}' is protected", where=path, hint=_SETTINGS)
            self._protection.guard(path, reading=reading)
        for action in touch.actions:
            for path in dict.fromkeys((place.named, place.real)):
                kind = self._kind_of_write(touch, path, place) if action == "write" else ""
                for directory in _kinds(action, place):
                    yield Need(action, path, directory, kind=kind)
        if "write" in touch.actions:
            if not place.exists:
                self._protection.guard_new(place.real)
            parent = paths.parent(place.real)
            while parent != paths.ROOT and not os.path.lexists(self._on_disk(parent)):
                self._protection.guard_new(parent)
                yield Need("write", parent, True, True, "create")
                parent = paths.parent(parent)

    def _kind_of_write(self, touch: Touch, path: str, place: Place) -> str:
        """Return the kind of a write, by what is there.

        "" if it can be several, and if each kind is denied: the answer is the same whatever is there.
        """
        if touch.tool == UNKNOWN:
            return ""
        replaces, rules = kind_at(touch.tool, True), self._rules(touch)
        every = rules.has_kinds and all(
            rules.effect(self._agent, touch.tool, f"write.{kind}", path, directory, fold=self._fold)
            is Effect.DENY
            for kind in (replaces, "create")  # a host's edit can make a file, too
            for directory in (False, True)
        )
        return "" if every else replaces if place.exists else "create"

    def _below(self, touch: Touch, place: Place) -> Verdict:
        """Return the verdict on the names that a search would show; denied names are not mentioned."""
        from ringfence.toolkit.hooks.directory_listing import TooMany

        worst = Verdict(Effect.ALLOW, "")
        try:
            for effect, why in self._each_below(touch, place):
                if effect > worst.effect:
                    worst = Verdict(effect, why)
                if effect is Effect.DENY or (touch.names and effect is Effect.ASK):
                    break
        except TooMany as many:
            narrower = self._leaves_out(touch, many.folders)
            worst = stricter(worst, Verdict(Effect.ASK, f"{many}; a person decides{narrower}"))
        if touch.names and worst.effect is not Effect.ALLOW:
            return Verdict(Effect.ALLOW, worst.reason, unsure=True)
        return worst

    def _leaves_out(self, touch: Touch, folders: tuple[str, ...]) -> str:
        """Return how to narrow a search: the folder that holds most, if the agent may know of it."""
        from ringfence.toolkit.hooks.directory_listing import Name

        shown = (
            each for each in folders if self._judge_name(touch, Name(each, True, False))[0] is not Effect.DENY
        )
        most = next(shown, None)
        if most is None:
            return f". {_SMALLER}"
        return f". Most are in '{most}': {_NARROW[0].lower()}{_NARROW[1:]}"

    def _each_below(self, touch: Touch, place: Place) -> Iterator[tuple[Effect, str]]:
        """Yield the verdict on each name that a search would show, with its reason. TooMany."""
        for name in self.names_below(touch, place):
            effect, why = self._judge_name(touch, name)
            yield effect, f"{_BELOW[effect]}{why}. {_NARROW}" if effect in _BELOW else ""

    def shown_below(self, touch: Touch) -> Iterator[tuple[str, bool]]:
        """Yield each name that a search would show, by its path from there, and False if it is denied.

        TooMany; CallError for a path that is refused.
        """
        place = self.place(touch.path)
        skip = 0 if place.real == paths.ROOT else len(place.real) + 1
        for name in self.names_below(touch, place) if place.directory else ():
            yield name.path[skip:], self._judge_name(touch, name)[0] is not Effect.DENY

    def names_below(self, touch: Touch, place: Place) -> Iterator[Name]:
        """Yield each name that a search from a directory would show. TooMany."""
        from ringfence.toolkit.hooks.directory_listing import Walk
        from ringfence.toolkit.hooks.ignored_folders import ignored_in
        from ringfence.toolkit.hooks.search_filter import Searched

        self._walk = self._walk or Walk(self.real_root)
        searched = Searched(touch.within or (), self.real_root, place.real)
        ignored = ignored_in(self.real_root, place.real) if touch.ignores else None
        for name in self._walk.below(place.real, deep=touch.tool != "list_directory", ignored=ignored):
            if (touch.names or not name.directory) and searched.may_show(name.path, name.directory):
                yield name

    def _judge_name(self, touch: Touch, name: Name) -> tuple[Effect, str]:
        """Return the verdict on showing one of many names, with its reason."""
        try:
            needs = {name.path}
            # A content search does not follow links; a tool that reads whole files does.
            if name.link and touch.tool in _FOLLOWS:
                needs.add(self.place(self._on_disk(name.path)).real)
            for each in needs:
                self._protection.guard(each, reading=True)
            wanted = [Need("read", each, name.directory) for each in needs]
            decision = self._rules(touch).decide(self._agent, touch.tool, wanted, fold=self._fold)
        except CallError as error:
            # Ringfence's own files hold no secret of the workspace; a link out of it may lead anywhere.
            return (Effect.ALLOW, "") if error.code == "protected_path" else (Effect.DENY, "")
        except ValueError:
            return Effect.ASK, " (it has a name that no policy can express)"
        rule = decision.rule
        return decision.effect, f" ({rule.reason})" if rule and rule.reason else ""

    def _rules(self, touch: Touch) -> Policy:
        """Return the policy without rules that cannot apply to such a touch; fewer rules load faster."""
        from ringfence.toolkit.hooks.policy_subset import narrowed

        kinds = WRITE_KINDS if "write" in touch.actions else ()
        keys = frozenset((touch.tool, *touch.actions, *kinds, "*"))
        if keys not in self._narrowed:
            self._narrowed[keys] = narrowed(self._policy, keys)
        return self._narrowed[keys]

    def _verdict_of(self, decision: Decision, place: Place) -> Verdict:
        """Return a decision as the agent may see it: without pattern, file or line of a rule."""
        rule = decision.rule
        hint = f". {decision.hint}" if decision.effect is Effect.DENY else ""
        # A link's target is not reported to an agent that may not read it.
        path = place.named if decision.path == place.real else decision.path
        action = f"{decision.action} {path}: " if decision.action else ""
        reason = decision.reason if rule is None else rule.reason or BY_POLICY[decision.effect]
        return Verdict(decision.effect, f"{action}{reason}{hint}")

    def _split(self, absolute: str) -> tuple[str, ...]:
        for root in self._roots[1:]:
            try:
                return paths.split(absolute, root)
            except CallError as error:
                if error.code != "outside_root":
                    raise
        return paths.split(absolute, self._roots[0])

    def _protect_state(self) -> None:
        """Protect Ringfence's own files, in the rare case that they are in the workspace."""
        # The same places as for commands in this environment; a hook has no option for them.
        if log := os.environ.get("RINGFENCE_AUDIT_LOG"):
            self._protection.protect(os.path.abspath(log), aside=True)
        if key := os.environ.get("RINGFENCE_AUDIT_KEY"):
            self._protection.protect(os.path.abspath(key))
        if (forms := cache.folder()) is not None:
            self._protection.protect(forms)
        home = os.path.realpath(os.path.expanduser("~"))
        state = os.path.realpath(os.environ.get("XDG_STATE_HOME") or home)
        if any(os.path.commonpath((place, self.real_root)) == self.real_root for place in (home, state)):
            import platformdirs

            self._protection.protect(platformdirs.user_state_dir("ringfence"))


_FOLLOWS = ("read_file", "read_files", "copy_file")
_WHOLE = ("delete", "move_file", UNKNOWN)  # these actions on a directory include everything in it
_SETTINGS = "a person changes the settings that hold a hook"
_TREE = "a hook does not judge what is below this folder; a person decides"
_ELSEWHERE = "the argument is not a path in the workspace that the policy could judge; a person decides"
BY_POLICY = {
    Effect.ALLOW: "the policy allows this",
    Effect.ASK: "the policy asks a person",
    Effect.DENY: "the policy denies this",
}
_BELOW = {
    Effect.ASK: "reading something below this folder asks",
    Effect.DENY: "something below this folder may not be read",
}
_SMALLER = "Search a folder below this one"
_NARROW = "Search a folder or name a file pattern that leaves it out"


def stricter(one: Verdict | None, other: Verdict) -> Verdict:
    """Return the stricter of two verdicts, the first of two equal ones."""
    if one is None or (other.effect, other.unsure) > (one.effect, one.unsure):
        return other
    return one


def within(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or lies below it; compares text only."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _kinds(action: str, place: Place) -> tuple[bool, ...]:
    """Yield the kinds to judge: file, directory, or both if nothing exists."""
    if place.exists:
        return (place.directory,)
    return (False,) if action == "write" else (False, True)

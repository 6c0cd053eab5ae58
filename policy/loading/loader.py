"""Loader: reads a policy file with everything it extends and merges them, the base first.

The only module of this package that reads files, and it reads only policies. All problems of all files are
raised at once; a policy with a problem does not load.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ringfence.policy.errors import PolicyError, Problem, nearest
from ringfence.policy.evaluation.limits import LIMITS
from ringfence.policy.loading.command_section import merged
from ringfence.policy.loading.loaded import Loaded
from ringfence.policy.loading.pattern_sets import Sets
from ringfence.policy.loading.ready_made import READY_MADE, ready_made
from ringfence.policy.loading.sections import Read, read_cases, read_extends, read_policy
from ringfence.policy.loading.values import Budget, Draft, Drafts, Reader, Tiered
from ringfence.policy.loading.yaml_tree import MAX_BYTES, Node, Report, compose, decode
from ringfence.policy.model import LANGUAGE_TOOLS, RUN, Agent, Case, Content, Limit, LimitMap, Retention
from ringfence.policy.rule_list import RuleList
from ringfence.policy.upstreams.rows import Row, Upstreams

Unsaved = Mapping[str, bytes]
_MAX_FILES = 64
_NONE: Unsaved = MappingProxyType({})


def load(path: str | Path, *, tools: Mapping[str, Any] | None = None, unsaved: Unsaved = _NONE) -> Loaded:
    """Return the policy of a file; PolicyError holds every problem of all its files.

    `unsaved` has the bytes of files that are other than on disk, as in an editor, by their real paths.
    """
    place = Path(path)
    loading = _Loading(tools, place.absolute().parent, unsaved)
    report = Report(str(path), place.name)
    loading.add_file(place, report, (), keep=True)
    return loading.loaded()


def loads(
    text: str | bytes,
    *,
    file: str = "<string>",
    base: str | Path | None = None,
    tools: Mapping[str, Any] | None = None,
) -> Loaded:
    """Return the policy of a text; relative files it extends are resolved from base.

    PolicyError holds every problem of all its files.
    """
    folder = Path(base).absolute() if base is not None else None
    loading = _Loading(tools, folder)
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    loading.add(data, Report(file, file), folder, (), own=True)
    return loading.loaded()


def load_cases(
    path: str | Path, *, tools: Mapping[str, Any] | None = None, unsaved: Unsaved = _NONE
) -> tuple[Case, ...]:
    """Return the cases of a file that contains only cases. PolicyError holds every problem."""
    report = Report(str(path), Path(path).name)
    data = unsaved.get(os.path.realpath(path))
    if data is None:
        data = _bytes(Path(path), report, None)
    text = decode(data, report) if data is not None else None
    root = compose(text, report) if text is not None else None
    reader = Reader(report, {**LANGUAGE_TOOLS, **(tools or {})}, Budget())
    cases = read_cases(reader, root) if root else ()
    if report.problems:
        raise PolicyError(report.sorted())
    return cases


class _Loading:
    """One load: the files read so far, their bytes and their problems."""

    def __init__(
        self, tools: Mapping[str, Any] | None, folder: Path | None, unsaved: Unsaved = _NONE
    ) -> None:
        self.tools = tools
        self.unsaved = unsaved
        self.known = {**LANGUAGE_TOOLS, **(tools or {})}
        self.folder = folder
        self.problems: list[Problem] = []
        self.reads: list[Read] = []
        self.seen: set[str] = set()
        self.tried: list[str] = []
        self.files: list[str] = []
        self.sources: list[str] = []
        self.digest = hashlib.sha256()
        self.budget = Budget()
        self.upstreams: dict[str, dict[str, Row]] = {}
        self.cases: tuple[Case, ...] = ()
        self.sets: dict[
            str, Sets
        ] = {}  # by the identity of a file: the sets that it gives to what extends it

    def add_file(
        self,
        path: Path,
        report: Report,
        trail: tuple[str, ...],
        *,
        keep: bool,
        at: tuple[Report, Node] | None = None,
    ) -> Sets:
        """Read one file, unless it was read before, and return its sets; `at` is the node that names it."""
        identity = str(path) if "\0" in str(path) else os.path.realpath(path)
        if identity in trail:
            asker, node = at or (report, None)
            asker.add("extends_cycle", f"'{node.text if node else path}' extends itself", node)
            return {}
        if identity in self.seen:
            return self.sets.get(
                identity, {}
            )  # a base that is extended twice counts once, at its first place
        self.seen.add(identity)
        if len(self.seen) > _MAX_FILES and at:
            at[0].add("policy_too_large", f"more than {_MAX_FILES} files", at[1], "put some of them together")
            return {}
        if keep:
            self.tried.append(str(path.absolute()))
        data = self.unsaved.get(identity)
        if data is None:
            data = _bytes(path, report, at)
        if data is None:
            if at is None:
                self.problems += report.problems
            return {}
        if keep:
            self.files.append(str(path.absolute()))
        sets = self.add(data, report, path.absolute().parent, (*trail, identity), own=at is None, keep=keep)
        self.sets[identity] = sets
        self.sources.append(str(path.absolute()))
        return sets

    def add(  # noqa: PLR0913  one file and its place among the files that extend it
        self,
        data: bytes,
        report: Report,
        folder: Path | None,
        trail: tuple[str, ...],
        *,
        own: bool,
        keep: bool = True,
    ) -> Sets:
        """Read the bytes of one file, the files that it extends first, and return the sets it knows."""
        text = decode(data, report)
        root = compose(text, report) if text is not None else None
        read = Read()
        sets: dict[str, Any] = {}
        if root:
            for node in read_extends(Reader(report, self.known, self.budget), root):
                sets |= self._extend(node, report, folder, trail, keep)
            reader = Reader(report, self.known, self.budget, self.upstreams)
            reader.sets = sets or None
            read = read_policy(reader, root)
        self.digest.update(len(data).to_bytes(8, "big") + data)
        self.problems += report.sorted()
        self.reads.append(read)
        if own:
            self.cases = read.cases
        return {**sets, **read.sets}

    def _extend(
        self, node: Node, report: Report, folder: Path | None, trail: tuple[str, ...], keep: bool
    ) -> Sets:
        name = node.text
        if name in READY_MADE:
            shown = f"rules/{name}.yaml"
            self.add_file(ready_made(name), Report(shown, shown), trail, keep=False, at=(report, node))
            return {}  # a ready-made policy keeps its sets to itself: "@x" means what it meant without it
        if not name.endswith((".yaml", ".yml")):
            close = nearest(name, READY_MADE)
            known = f"ready-made are {', '.join(READY_MADE)}; a file ends in .yaml"
            hint = f"did you mean '{close}'?" if close else known
            report.add("extends_unknown", f"'{name[:80]}' is not a ready-made policy", node, hint)
        elif Path(name).is_absolute() or "\0" in name:
            report.add(
                "extends_unknown",
                f"'{name[:80]}' is not a relative path",
                node,
                "write it from this file's folder",
            )
        elif folder is None:
            report.add(
                "extends_unknown",
                f"'{name[:80]}' cannot be found from a text alone",
                node,
                "load the policy as a file",
            )
        else:
            display = os.path.normpath(Path(report.display).parent / name)
            short = os.path.relpath(folder / name, self.folder) if self.folder else name
            return self.add_file(folder / name, Report(display, short), trail, keep=keep, at=(report, node))
        return {}

    def loaded(self) -> Loaded:
        if self.problems:
            raise PolicyError(self.problems, self.tried)
        content, problems = _together(self.reads, self.cases, self.budget, self.upstreams)
        if problems:
            raise PolicyError(problems, self.tried)
        return Loaded(content, self.digest.hexdigest(), tuple(self.files), tuple(self.sources))


def _bytes(path: Path, report: Report, at: tuple[Report, Node] | None) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a path"
        if at:
            at[0].add("file_unreadable", f"'{at[1].text[:80]}' cannot be read: {reason.lower()}", at[1])
        else:
            report.problems.append(
                Problem(
                    "file_unreadable",
                    f"'{report.display}' cannot be read: {reason.lower()}",
                    None,
                    "",
                    "check the name and the permissions",
                )
            )
        return None


# Merging files: tier by tier and key by key, the base's entries first.


def _together(
    reads: list[Read], cases: tuple[Case, ...], shared: Budget, upstreams: Upstreams
) -> tuple[Content, list[Problem]]:
    everybody = Tiered()
    agents: dict[str, Tiered] = {}
    settings: dict[str, Any] = {}
    retention: dict[str, Any] = {}
    for read in reads:
        _append(everybody, read.everybody)
        for name, tiered in read.agents.items():
            _append(agents.setdefault(name, Tiered()), tiered)
        settings.update(read.settings)
        retention |= read.retention
    problems = [
        draft.problem
        for tiered in (everybody, *agents.values())
        for drafts in tiered.limits.values()
        for draft in drafts.drafts
        if not LIMITS.keys() & draft.fields.keys()
    ]
    content = Content(
        mandatory=tuple(item for read in reads for item in read.mandatory),
        rules=_on_paths(everybody),
        run=everybody.rules.get(RUN, ()),
        run_floor=tuple(item for read in reads for item in read.run_floor),
        commands=merged([read.commands for read in reads]),
        limits=_limits(everybody.limits, None),
        agents={
            name: Agent(name, _on_paths(tiered), _limits(tiered.limits, name), tiered.rules.get(RUN, ()))
            for name, tiered in agents.items()
        },
        cases=cases,
        invariants=tuple(item for read in reads for item in read.invariants),
        unused_sets=tuple(
            (name, each.where)
            for read in reads
            for name, each in read.sets.items()
            if each.where not in shared.used_sets
        ),
        retention=Retention(**retention),
        upstreams=upstreams,
        **settings,
    )
    return content, problems


def _on_paths(tiered: Tiered) -> dict[str, RuleList]:
    return {key: rules for key, rules in tiered.rules.items() if key != RUN}


def _append(base: Tiered, own: Tiered) -> None:
    for key, rules in own.rules.items():
        base.rules[key] = rules.after(base.rules[key]) if key in base.rules else rules
    for key, drafts in own.limits.items():
        before = base.limits.get(key)
        if before and before.single and drafts.single:
            merged = {**before.drafts[0].fields, **drafts.drafts[0].fields}
            drafts = Drafts((Draft(merged, drafts.drafts[0].where, drafts.drafts[0].problem),), True)
        base.limits[key] = drafts


def _limits(drafts: Mapping[str, Drafts], agent: str | None) -> LimitMap:
    return {
        key: tuple(Limit(key=key, agent=agent, where=draft.where, **draft.fields) for draft in each.drafts)
        for key, each in drafts.items()
    }

"""Analyses: what is known of each open policy, renewed after every edit.

Problems of loading come at once; findings may take longer, so they are computed in another thread, and the
next edit cancels them. Until they are there, the last ones stay at the lines that are as they were. What an
edit left as it was is not analysed again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types as lsp

from ringfence.policy.lint.earlier_answers import LintMemory
from ringfence.toolkit.language_server.diagnostics import diagnostic, elsewhere, moved
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.open_files import OpenFiles
from ringfence.toolkit.language_server.remarks import Loading, Remark, findings, fold_at, load, policy_beside
from ringfence.toolkit.language_server.rule_questions import RuleQuestions

_PATIENCE = 10.0  # seconds that a question waits for its policy
DEBOUNCE = 0.02  # seconds without an edit before a policy is loaded
_TOGETHER = 0.15  # seconds that new findings may take before the last ones are moved to their new lines
Publish = Callable[[Document, list[lsp.Diagnostic]], None]


@dataclass(slots=True)
class Analysis:
    """What is known of one policy. `of` has the texts that the findings are about."""

    loading: Loading | None = None
    findings: tuple[Remark, ...] = ()
    of: dict[Path, Document] = field(default_factory=dict)
    questions: RuleQuestions | None = None
    memory: LintMemory = field(default_factory=LintMemory)
    cancelled: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[None] | None = None
    loaded: asyncio.Event = field(default_factory=asyncio.Event)


class Analyses:
    """The analyses of the open policies; `publish` shows the diagnostics of one file."""

    def __init__(
        self,
        files: OpenFiles,
        publish: Publish,
        refreshed: Callable[[], None],
        ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._files = files
        self._publish = publish
        self._refreshed = refreshed
        self._ended = ended  # receives each task, also one with an exception
        self._known: dict[Path, Analysis] = {}
        self._shown: dict[Path, list[lsp.Diagnostic]] = {}

    def renew(self, path: Path) -> None:
        """Analyse again every open policy that a file belongs to."""
        root = policy_beside(path)
        document = self._files.documents.get(path)
        if document is not None and document.is_policy:
            self._known.setdefault(root, Analysis())
        for other, analysis in self._known.items():
            files = analysis.loading.files if analysis.loading else frozenset()
            if other == root or path in files:
                self._start(other, analysis)

    def renew_all(self) -> None:
        """Analyse every open policy again, because files may have changed."""
        for root, analysis in self._known.items():
            self._start(root, analysis)

    def close(self, path: Path) -> None:
        """Forget the policies of which no file is open any more."""
        roots = {policy_beside(each) for each in self._files.documents}
        for root in [each for each in self._known if each not in roots]:
            analysis = self._known.pop(root)
            self._cancel(analysis)
        self._show()
        self.renew(path)

    def stop(self) -> None:
        """Cancel everything."""
        for analysis in self._known.values():
            self._cancel(analysis)

    def remarks(self, path: Path) -> list[Remark]:
        """Return the remarks about a file as it is now, each once."""
        found = [remark for analysis in self._known.values() for remark in self._current(analysis)]
        return list(dict.fromkeys(remark for remark in found if remark.path == path))

    async def questions(self, path: Path) -> RuleQuestions | None:
        """Return the questions about the rules of a file as it is now; None if its policy does not load."""
        analysis = self._known.get(path)
        if analysis is None:
            return None
        with suppress(TimeoutError):
            await asyncio.wait_for(analysis.loaded.wait(), _PATIENCE)
        return analysis.questions

    def _cancel(self, analysis: Analysis) -> None:
        analysis.cancelled.set()
        if analysis.task is not None:
            analysis.task.cancel()

    def _start(self, root: Path, analysis: Analysis) -> None:
        self._cancel(analysis)
        analysis.cancelled = threading.Event()
        analysis.questions = None
        analysis.loaded.clear()
        analysis.task = asyncio.get_running_loop().create_task(self._run(root, analysis, analysis.cancelled))
        analysis.task.add_done_callback(self._ended)

    async def _run(self, root: Path, analysis: Analysis, cancelled: threading.Event) -> None:
        try:
            await asyncio.sleep(DEBOUNCE)
            files = self._files.copy()
            loading = await asyncio.to_thread(load, root, files)
            analysis.loading = loading
            if loading.policy is not None:
                analysis.questions = RuleQuestions(loading.policy.at(time.time()), root.name, fold_at(root))
            analysis.loaded.set()
            self._refreshed()
            if loading.policy is None:
                self._show()
                return
            later = asyncio.get_running_loop().call_later(_TOGETHER, self._show)
            try:
                found = await asyncio.to_thread(findings, loading, files, cancelled.is_set, analysis.memory)
            finally:
                later.cancel()
            if not cancelled.is_set():
                analysis.findings = found
                analysis.of = {path: each for path in loading.files if (each := files.get(path))}
                self._show()
        finally:
            if not cancelled.is_set():
                analysis.loaded.set()
            cancelled.set()

    def _current(self, analysis: Analysis) -> Iterable[Remark]:
        """Return problems, and the findings that are still about their lines."""
        if analysis.loading is not None:
            yield from analysis.loading.problems
        by_file: dict[Path, list[Remark]] = {}
        for remark in analysis.findings:
            by_file.setdefault(remark.path, []).append(remark)
        for path, remarks in by_file.items():
            before, after = analysis.of.get(path), self._files.get(path)
            if before is not None and after is not None:
                yield from remarks if before.text == after.text else moved(remarks, before, after)

    def _show(self) -> None:
        """Publish the diagnostics of every file for which they changed."""
        by_file: dict[Path, list[Remark]] = {}
        for analysis in self._known.values():
            for remark in self._current(analysis):
                by_file.setdefault(remark.path, []).append(remark)
        documents = {path: self._files.get(path) or Document(path, "") for path in by_file}
        shown = {
            path: [diagnostic(documents[path], remark) for remark in dict.fromkeys(remarks)]
            for path, remarks in by_file.items()
        }
        for root, analysis in self._known.items():
            at = self._files.get(root)
            for path, remarks in by_file.items():
                problems = [
                    each for each in remarks if analysis.loading and each in analysis.loading.problems
                ]
                if at is not None and path != root and problems:
                    shown.setdefault(root, []).extend(elsewhere(documents[path], problems, at))
        opened = {path for path, document in self._files.documents.items() if document.is_policy}
        for path in {*shown, *self._shown, *opened}:
            found = shown.get(path, [])
            if self._shown.get(path) != found:
                self._publish(self._files.get(path) or Document(path, ""), found)
        self._shown = {path: found for path, found in shown.items() if found} | {
            path: [] for path in opened if not shown.get(path)
        }

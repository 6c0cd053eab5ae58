"""A policy: loads it from a file or a text, judges by it and explains its verdicts.

Loading and explaining import their modules on first use, because a verdict needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import RUN, Content, Explanation
from ringfence.policy.patterns.syntax import Fold

if TYPE_CHECKING:
    from pathlib import Path

    from ringfence.policy.loading.loaded import Loaded

_EMPTY_REVISION = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # sha256 of nothing


class Policy(Engine):
    """A policy in force. `load` or `loads` makes it; it never changes afterwards."""

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        tools: Mapping[str, Any] | None = None,
        kept: bool = True,
        unsaved: Mapping[str, bytes] | None = None,
    ) -> Self:
        """Load a policy file and everything it extends; PolicyError holds every problem.

        With `kept`, a policy that was read before and has not changed comes from the cache. `unsaved` has
        the bytes of files that are other than on disk, as in an editor, by their real paths.
        """
        if kept and tools is None and not unsaved:
            from ringfence.policy.loading.cache import load as load_cached

            return cls._of(load_cached(path))
        from ringfence.policy.loading.loader import load

        return cls._of(load(path, tools=tools, unsaved=unsaved or {}), tools)

    @classmethod
    def loads(
        cls,
        text: str | bytes,
        *,
        file: str = "<string>",
        base: str | Path | None = None,
        tools: Mapping[str, Any] | None = None,
    ) -> Self:
        """Load a policy from text; relative `extends` are resolved from base.

        PolicyError holds every problem.
        """
        from ringfence.policy.loading.loader import loads

        return cls._of(loads(text, file=file, base=base, tools=tools), tools)

    @classmethod
    def empty(cls) -> Self:
        """Return a policy without rules: every verdict is ask."""
        return cls(Content(), revision=_EMPTY_REVISION)

    @classmethod
    def _of(cls, loaded: Loaded, tools: Mapping[str, Any] | None = None) -> Self:
        return cls(loaded.content, revision=loaded.revision, files=loaded.files, tools=tools)

    def explain(
        self, agent: str, tool_or_action: str, path: str, directory: bool = False, *, fold: Fold = False
    ) -> Explanation:
        """Return the decision with every rule that was compared, and why each one decided or did not.

        For the action `run` the path is the text of a command line.
        """
        if tool_or_action == RUN:
            from ringfence.policy.evaluation.explain_commands import explain_command

            return explain_command(self, agent, path)
        from ringfence.policy.evaluation.explain import explain

        return explain(self, agent, tool_or_action, path, directory, fold=fold)

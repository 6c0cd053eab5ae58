"""Search filter: which names a host's search shows, by its file patterns. Pure; in doubt a name is shown."""

from __future__ import annotations

import re

from ringfence.policy import Effect, Policy, Rule
from ringfence.policy.model import Content

# Syntax that hosts read differently: blanks and commas between patterns, `\\`, groups, ranges.
_OTHERWISE = r"[\s\\]|[?*+@!]\(|\.\."


class Searched:
    """The patterns of one search below the directory `base` (an absolute path)."""

    def __init__(self, patterns: tuple[str, ...], base: str, folder: str) -> None:
        self._base = base.strip("/")
        self._skip = 0 if folder == "." else len(folder) + 1
        # With a second pattern, an exclusion in one host may be a selection in another.
        out = patterns[0][1:] if len(patterns) == 1 and patterns[0].startswith("!") else None
        left_out = _plain(out) if out and "/" not in out else None
        known = [_plain(pattern) for pattern in patterns if not pattern.startswith("!")]
        wanted = [pattern for pattern in known if pattern is not None]
        self._all = len(wanted) < len(patterns) or not patterns
        self._wanted = _policy_of(wanted)
        self._left_out = _policy_of([left_out] if left_out else [])

    def may_show(self, path: str, directory: bool = False) -> bool:
        """Whether the search may show a name, given by its path from the root."""
        try:
            if self._left_out.effect("", "read", "read", path[self._skip :], directory) is Effect.ALLOW:
                return False
            if self._all:
                return True
            # Hosts resolve patterns against different directories, so a pattern may begin anywhere.
            whole = f"{self._base}/{path}".lstrip("/")
            return self._wanted.effect("", "read", "read", whole, directory, fold=True) is Effect.ALLOW
        except ValueError:
            return True


def _plain(pattern: str) -> str | None:
    """Return a file pattern as a policy's pattern; None if a host may read it differently."""
    from ringfence.policy.patterns.syntax import PatternError, parse

    if re.search(_OTHERWISE, pattern) or "," in re.sub(r"\{[^{}]*\}", "", pattern):
        return None
    text = re.sub(r"^(\./+)+|^/+", "", pattern)
    text = f"**/{text}" if "/" in text or text != pattern else text
    try:
        parse(text)
    except PatternError:
        return None
    return text


def _policy_of(patterns: list[str]) -> Policy:
    """Return a policy that allows what one of the patterns matches, and asks for everything else."""
    rules = tuple(Rule("global", None, "read", pattern, Effect.ALLOW) for pattern in patterns)
    return Policy(Content(rules={"read": rules} if rules else {}), revision="")

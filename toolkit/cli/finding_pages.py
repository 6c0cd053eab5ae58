"""Pages of what `check` finds: the text of each, and the address at which somebody serves it.

No address is made up: without one that is given or is in the package's metadata there is none.
"""

from __future__ import annotations

import os
from pathlib import Path

from ringfence.toolkit.cli.runner import UsageError

PAGES = "reference/checks"  # in docs/, one for each code
VARIABLE = "RINGFENCE_DOCS_URL"
_CODE = "{code}"
_PACKAGE = Path(__file__).resolve().parents[1]
# The wheel's copy first: beside an installed package `docs` can be somebody else's.
_PLACES = (_PACKAGE / "pages" / "checks", _PACKAGE.parent / "docs" / PAGES)


def text_of(code: str) -> str | None:
    """The page of a code, as Markdown; None where it was not installed."""
    for place in _PLACES:
        try:
            return (place / f"{code}.md").read_text(encoding="utf-8")
        except OSError:
            continue
    return None


def address() -> str | None:
    """Where the pages are served, with `{code}` in it; None where nobody says.

    $RINGFENCE_DOCS_URL is the address of docs/, or has `{code}` itself. Raises UsageError for what is none.
    """
    from ringfence.toolkit.version import documentation

    given = os.environ.get(VARIABLE)
    if given and not given.startswith(("https://", "http://")):
        raise UsageError(f"{VARIABLE} {given}: not an address that begins with https://")
    base = given or documentation()
    if not base or _CODE in base:
        return base or None
    return f"{base.rstrip('/')}/{PAGES}/{_CODE}.md"


def address_of(code: str, pages: str) -> str:
    """The address of one page among those at `pages`."""
    return pages.replace(_CODE, code)

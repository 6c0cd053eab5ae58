"""Pages of what `check` finds: the text of each, and the address at which somebody serves it.

No address is made up: without one that is given or is in the package's metadata there is none.
"""

from __future__ import annotations

import os
from pathlib import Path

PAGES = "reference/checks"  # in docs/, one for each code
VARIABLE = "RINGFENCE_DOCS_URL"
_CODE = "{code}"
_PLACE = Path(__file__).parents[1] / "pages" / "checks"  # a link to docs/ in a checkout


def file_of(code: str) -> Path | None:
    """The file with the page of a code, as Markdown; None where it was not installed."""
    file = (_PLACE / f"{code}.md").resolve()
    return file if file.is_file() else None


def text_of(code: str) -> str | None:
    """The page of a code, as Markdown; None where it was not installed."""
    try:
        return (_PLACE / f"{code}.md").read_text(encoding="utf-8")
    except OSError:
        return None


def address() -> str | None:
    """Where the pages are served, with `{code}` in it; None where nobody says.

    $RINGFENCE_DOCS_URL is the address of docs/, or has `{code}` itself. Raises ValueError for what is none.
    """
    from ringfence.toolkit.version import documentation

    given = os.environ.get(VARIABLE)
    if given and not given.startswith(("https://", "http://")):
        raise ValueError(f"{VARIABLE} {given}: not an address that begins with https://")
    base = given or documentation()
    if not base or _CODE in base:
        return base or None
    return f"{base.rstrip('/')}/{PAGES}/{_CODE}.md"


def address_of(code: str, pages: str) -> str:
    """The address of one page among those at `pages`."""
    return pages.replace(_CODE, code)

"""Self-contained web page with its data, style and program: needs no server and no network.

Values are data to the page, never markup; its content security policy permits only its own program.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from typing import Any

_TOOLKIT = Path(__file__).parents[1]
_FOLDER = _TOOLKIT / "pages"
_LOOK = _TOOLKIT / "review" / "static" / "style.css"  # of the review pages, which look the same


def page(name: str, title: str, data: Any) -> str:
    """Return a page of `pages/` with its data embedded."""
    style, program, body = (
        (_FOLDER / f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("css", "js", "html")
    )
    style = f"{_LOOK.read_text(encoding='utf-8')}\n{style}"
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(program)}; base-uri 'none';"
        " form-action 'none'"
    )
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{style}</style>",
            body.strip(),
            f'<script type="application/json" id="data">{_embedded(data)}</script>',
            f"<script>{program}</script>",
            "</html>\n",
        )
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(data: Any) -> str:
    """Return JSON that cannot end the HTML element around it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

"""The glossary against the pages: every entry is used, and a page links a term where it uses it first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "reference" / "glossary.md"
PAGES = [
    ROOT / "README.md",
    *sorted((DOCS / "tutorial").glob("*.md")),
    *sorted((DOCS / "how-to").glob("*.md")),
]

# The words by which an entry is recognised. A term whose word also has an everyday meaning (such as change)
# has words that mean nothing else, or none: then any page may link it, and no page has to.
WORDS = {
    "action": "",
    "agent": r"agents?",
    "anchor": r"anchors?",
    "approval": r"approvals?",
    "approver": r"approvers?",
    "audit-log": r"audit\s+logs?",
    "backend": r"backends?",
    "budget": "",
    "call": r"tool\s+calls?",
    "case": r"own\s+cases",
    "change": "",
    "confinement": r"confine[sd]?|confinement",
    "decision": "",
    "detector": "",
    "digest": r"digests?",
    "door": "",
    "effect": "",
    "grant": r"grants?",
    "grant-scope": "",
    "harness": r"harness(?:es)?",
    "hash-chain": r"hash\s+chains?",
    "history": r"history|histories",
    "hook": r"hooks?",
    "host": "",
    "intent": r"intents?",
    "invariant": r"invariants?",
    "kind-of-writing": "",
    "limit": r"limits",
    "lock-file": r"lock\s+files?",
    "mandatory-rule": r"mandatory\s+rules?",
    "mask": "",
    "monitor-mode": r"monitor\s+mode",
    "need": r"needs\s+of",
    "pattern": r"patterns?",
    "place": "",
    "plan": "",
    "policy": r"policy|policies",
    "quarantine": r"quarantined?",
    "record": r"audit\s+records?",
    "recovery": r"recovery",
    "refusal": r"refusals?",
    "request": r"approval\s+requests?",
    "restore-point": r"restore\s+points?",
    "result": "",
    "retention": r"retention",
    "root": "",
    "rule": r"rules?",
    "seal": r"seals?",
    "session": r"sessions?",
    "set": "",
    "stale-read": r"stale\s+reads?",
    "state": r"state\s+directory",
    "sub-agent": r"sub-agents?",
    "sub-session": r"sub-sessions?",
    "task-folder": r"task\s+folders?",
    "tier": r"(?<!access\s)tiers?",
    "tombstone": r"tombstones?",
    "tool": "",
    "trash": r"trash",
    "trial": "",
    "undo": r"undo|undoes|undoing|undone",
    "upstream-server": "",
    "verdict": r"verdicts?",
    "version": "",
    "workspace": r"workspaces?",
}


def entries() -> dict[str, str]:
    """Each entry's anchor, and its text."""
    parts = re.split(r"^## (.+)$", GLOSSARY.read_text(encoding="utf-8"), flags=re.M)[1:]
    titles = [title.lower().replace(" ", "-") for title in parts[::2]]
    return dict(zip(titles, parts[1::2], strict=True))


def prose(page: Path) -> str:
    """The page's paragraphs and lists: no blocks, headings, tables, code or other links."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"^(?:#|\||!).*$", "", text, flags=re.M)
    text = re.sub(r"\[[^\]]*\]\([^)]*glossary\.md#([\w-]+)\)", r"«\1»", text)
    text = re.sub(r"!?\[[^\]]*\]\([^)]*\)", "", text)
    return re.sub(r"`[^`]*`", "", text)


def test_the_glossary_is_in_order_and_complete() -> None:
    names = list(entries())
    assert names == sorted(names) == list(WORDS)


@pytest.mark.parametrize("name", WORDS)
def test_an_entry_says_what_it_means_and_where_the_details_are(name: str) -> None:
    text = entries()[name]
    sentences = re.findall(r"[.:](?=\s|$)", re.sub(r"`[^`]*`|\([^)]*\)", "", text.split("Details:")[0]))
    assert 2 <= len(sentences) <= 7
    assert re.search(r"Details:\s+\[[^\]]+\]\((?!glossary)[^)]+\)\.\n", text)


def test_every_entry_is_linked_from_another_page() -> None:
    pages = [page for page in (*DOCS.rglob("*.md"), *ROOT.glob("*.md")) if page != GLOSSARY]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    linked = set(re.findall(r"glossary\.md#([\w-]+)", text))
    assert linked == set(entries())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_use_of_a_term_links_to_its_entry(page: Path) -> None:
    text = prose(page)
    for name, words in WORDS.items():
        first = words and re.search(rf"«{name}»|(?<![\w«-])(?:{words})(?![\w»-])", text, re.I)
        if first:
            assert first[0] == f"«{name}»", f"{page.name}: link {first[0]!r} to glossary.md#{name}"

"""Completion: keys, words, agents, sets and paths that may stand at the cursor.

Keys and words come from the schema of policies. Paths come from the file system beside the policy: one
directory at a time, up to a bound, and nothing outside the workspace.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lsprotocol import types as lsp

from ringfence.policy.errors import visible
from ringfence.policy.invisible_characters import INVISIBLE
from ringfence.policy.model import DEFAULT_AGENT
from ringfence.toolkit.language_server.completion_context import Context, context_at
from ringfence.toolkit.language_server.documents import Document
from ringfence.toolkit.language_server.key_reference import Allowed, allowed
from ringfence.toolkit.language_server.open_files import OpenFiles
from ringfence.toolkit.language_server.policy_tree import ITEM, section
from ringfence.toolkit.language_server.set_names import SetNames

MOST_NAMES = 500  # of one directory
MOST_READ = 5_000  # entries of it that are looked at
_AGENT_PATTERNS = "agent_patterns"
_SPECIAL = frozenset("*?[]{}\\!@#")  # in a file's name, a pattern would read them as something else

Kind = lsp.CompletionItemKind


def complete(document: Document, line: int, column: int, files: OpenFiles) -> lsp.CompletionList:
    """Return what may stand at a place, in characters from 0."""
    context = context_at(document, line, column)
    if context is None:
        return lsp.CompletionList(is_incomplete=False, items=[])
    known = document if document.tree is not None else replace(document, text=context.parsed)
    found = {item.label: item for item in _items(known, context, files)}
    span = lsp.Range(
        document.position(line, column - len(_raw(document, context, line, column))),
        document.position(line, column),
    )
    items = [_placed(item, context, span, at) for at, item in enumerate(found.values())]
    return lsp.CompletionList(is_incomplete=_has_paths(context), items=items)


def _raw(document: Document, context: Context, line: int, column: int) -> str:
    """Return what is replaced: the word so far, within its line."""
    before = document.lines[line][:column]
    return context.word if before.endswith(context.word) else ""


def _items(document: Document, context: Context, files: OpenFiles) -> Iterator[lsp.CompletionItem]:
    trail = context.trail
    here = allowed(trail)
    if not context.is_key:
        yield from (
            _item(word, Kind.EnumMember, detail)
            for word, detail in here.words.items()
            if word not in context.siblings
        )
        yield from _values(document, context, here, files)
    if here.keys and (context.is_key or not context.in_list or trail[-1] == ITEM):
        yield from _keys(context, here)
    if context.is_key and "pattern" in here.key_kinds:
        yield from _patterns(document, context, files, keys=True)
    if context.is_key and trail == ("agents",):
        yield from (
            _item(name, Kind.Constant)
            for name in (*_agents(document), DEFAULT_AGENT)
            if name not in context.siblings
        )


def _keys(context: Context, here: Allowed) -> Iterator[lsp.CompletionItem]:
    for key, detail in here.keys.items():
        if key not in context.siblings:
            yield _item(key, Kind.Property, detail, "" if context.has_colon else ": ")


def _values(
    document: Document, context: Context, here: Allowed, files: OpenFiles
) -> Iterator[lsp.CompletionItem]:
    if "pattern" in here.kinds:
        yield from _patterns(document, context, files, keys=False)
    if "path" in here.kinds or "paths" in here.kinds:
        yield from _paths(document, context, files, patterns=False)
    if "base" in here.kinds:
        yield from _bases(document, context)
    if _AGENT_PATTERNS in here.kinds or context.trail[-1:] == ("agent",):
        yield from (_item(name, Kind.Constant) for name in dict.fromkeys((*_agents(document), DEFAULT_AGENT)))


def _patterns(
    document: Document, context: Context, files: OpenFiles, *, keys: bool
) -> Iterator[lsp.CompletionItem]:
    colon = ": " if keys and not context.has_colon and not context.quote else ""
    names = SetNames(files)
    for name, definition in names.known(document).items():
        if f"@{name}" not in context.siblings and context.trail[:2] != ("sets", name):
            yield _item(f"@{name}", Kind.Variable, ", ".join(definition.patterns[:20]), colon)
    if not context.word.startswith("@"):
        yield from _paths(document, context, files, patterns=True, end=colon)


def _paths(
    document: Document, context: Context, files: OpenFiles, *, patterns: bool, end: str = ""
) -> Iterator[lsp.CompletionItem]:
    """Yield the names in the directory that the word so far names."""
    folder = context.word.rpartition("/")[0]
    root = files.workspace_of(document.path)
    place = _inside(root, folder.lstrip("/"))
    if place is None:
        return
    front = folder + "/" if "/" in context.word else ""
    for name, is_directory in _names(place):
        if patterns and _SPECIAL & set(name):
            continue
        path = front + name
        if is_directory:
            yield _item(f"{path}/", Kind.Folder, "", end)
            if patterns:
                yield _item(f"{path}/**", Kind.Folder, "everything below", end)
        else:
            yield _item(path, Kind.File, "", end)


def _inside(root: Path, folder: str) -> Path | None:
    """Return a directory below the root; None for one that is elsewhere, also by a link."""
    if "\0" in folder or ".." in folder.split("/"):
        return None
    place = Path(os.path.realpath(root / folder))
    return place if place.is_relative_to(os.path.realpath(root)) else None


def _names(place: Path) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(place) as entries:
            for entry, _ in zip(entries, range(MOST_READ), strict=False):
                if entry.name.isprintable() and not re.search(INVISIBLE, entry.name) and entry.name != ".git":
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
    except OSError:
        return []
    return sorted(found)[:MOST_NAMES]


def _bases(document: Document, context: Context) -> Iterator[lsp.CompletionItem]:
    folder = context.word.rpartition("/")[0]
    if folder.startswith("/") or "\0" in folder:
        return
    front = f"{folder}/" if folder else ""
    for name, is_directory in _names(document.path.parent / folder):
        if is_directory:
            yield _item(f"{front}{name}/", Kind.Folder)
        elif name.endswith((".yaml", ".yml")) and name != document.path.name and ".cases." not in name:
            yield _item(front + name, Kind.File)


def _agents(document: Document) -> list[str]:
    """Return the agents that a policy names, as text, in their order."""
    entries = section(document.tree, "agents")
    found = [key.text for key, _ in entries.pairs] if entries else []
    found += [
        spot.node.text
        for spot in document.spots
        if spot.value is None and (spot.trail[-1:] == ("agent",) or "except_agents" in spot.trail)
    ]
    return [name for name in dict.fromkeys(found) if name and name.isprintable()]


def _item(label: str, kind: lsp.CompletionItemKind, detail: str = "", end: str = "") -> lsp.CompletionItem:
    return lsp.CompletionItem(
        label=label, kind=kind, documentation=visible(detail) or None, insert_text=f"{label}{end}"
    )


def _placed(item: lsp.CompletionItem, context: Context, span: lsp.Range, at: int) -> lsp.CompletionItem:
    """Return an item with the text that replaces the word so far, in quotes where it needs them."""
    label = item.label
    end = (item.insert_text or label)[len(label) :]
    quotes_it = item.kind in (Kind.Variable, Kind.File, Kind.Folder, Kind.Constant) or label == "*"
    if context.quote == "'":
        text = label.replace("'", "''")
    elif context.quote == '"':
        text = label.replace("\\", r"\\").replace('"', r"\"")
    elif quotes_it:
        text = "'" + label.replace("'", "''") + "'" if '"' in label or "\\" in label else f'"{label}"'
    else:
        text = label
    item.text_edit = lsp.TextEdit(span, text + ("" if context.quote else end))
    item.insert_text = None
    item.filter_text = label
    item.sort_text = f"{at:05}"
    return item


def _has_paths(context: Context) -> bool:
    here = allowed(context.trail)
    return bool({"pattern", "path", "paths", "base"} & (here.kinds | here.key_kinds))

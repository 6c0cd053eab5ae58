"""State check: problems of its files, database, audit chain, contents, quarantine and open intents.

Only reads, also beside running processes. A content without a digest never counts as intact.
"""

from __future__ import annotations

import os
import stat as S
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import UNCHANGED, CallError
from ringfence.toolkit.file_ownership import doubt
from ringfence.toolkit.history.content_files import FILED
from ringfence.toolkit.history.redo_log import RedoLog
from ringfence.toolkit.plan.content import hashed, sha256
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.state.files import Owning, read_owning
from ringfence.toolkit.state.moved_workspaces import quarantined, quarantined_in
from ringfence.toolkit.state.protocol import SHARED, State
from ringfence.toolkit.state.read_only import open_to_read
from ringfence.toolkit.storage.local.quarantine import QUARANTINE
from ringfence.toolkit.text import plural

_OTHERS = 0o077
_PIECE = 1 << 20
_PART = "part-"
_SALVAGE = "ringfence state salvage"
_FEW = 20  # problems of one kind that are listed singly


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, with what helps; a `note` does not prevent the state from being used."""

    what: str
    detail: str
    hint: str = ""
    note: bool = False


@dataclass(frozen=True, slots=True)
class StateReport:
    """The contents of a state (names as in `--json`), and its problems."""

    facts: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether there are no problems other than notes."""
        return all(problem.note for problem in self.problems)


@dataclass(frozen=True, slots=True)
class _Checked:
    """The state under examination, its directory if it has one, and its workspace if it names one."""

    state: State
    folder: str | None
    workspace: Owning | None
    facts: dict[str, Any]
    key: bytes | None


def check_state(place: str, key: bytes | None = None) -> StateReport:
    """Check the state at a place, as from `default_place`, or in its own directory.

    CallError `not_found` where there is none.
    """
    folder = None if place.startswith(SHARED) else place
    workspace = None if folder is None else read_owning(folder)
    report = StateReport({"state": folder or "a shared one", **_about(workspace)})
    if folder is not None and os.path.isdir(folder):
        report.problems.extend(_private(folder))
    try:
        state = open_to_read(place, key)
    except CallError as error:
        if error.code == "not_found":
            raise
        report.problems.append(_of(error))
        return report
    try:
        checked = _Checked(state, folder, workspace, report.facts, key)
        for check in _CHECKS.values():
            try:
                report.problems.extend(check(checked))
            except CallError as error:
                if not any(problem.what == "damaged" for problem in report.problems):
                    report.problems.append(_of(error))
    finally:
        state.close()
    return report


def _about(workspace: Owning | None) -> dict[str, Any]:
    if workspace is None:
        return {"workspace": None, "workspace_is_there": None}
    there = os.path.isdir(workspace.root) if workspace.is_local else None
    return {"workspace": workspace.root, "workspace_is_there": there}


def _of(error: CallError) -> Problem:
    return Problem("damaged", error.message.removesuffix(UNCHANGED), error.hint or "")


def _private(folder: str) -> Iterator[Problem]:
    """Yield problems with file modes: others may read or change the files of the state."""
    mine = frozenset((os.geteuid(),))
    for path in (folder, *(os.path.join(folder, name) for name in sorted(os.listdir(folder)))):
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            continue  # another process has just removed it
        if path == folder:
            info = os.stat(path)
        name = os.path.basename(path)
        why = "is a link" if S.S_ISLNK(info.st_mode) else doubt(path, info, mine)
        if why is not None:
            yield Problem("not private", f"'{name}' {why}", "chown and `chmod -R go-rwx`, or another --state")
        elif info.st_mode & _OTHERS:
            yield Problem("not private", f"'{name}' can be read by others", "chmod -R go-rwx", note=True)


def _database(checked: _Checked) -> Iterator[Problem]:
    if checked.folder is None:
        return
    for (found,) in checked.state.rows(f"PRAGMA integrity_check({_FEW})"):
        if found != "ok":
            yield Problem("damaged", f"database: {found}", _SALVAGE)


def _counts(checked: _Checked) -> Iterator[Problem]:
    rows, facts = checked.state.rows, checked.facts
    found = dict(rows("SELECT name, value FROM meta"))
    facts["id"] = found.get("id")
    for name, table in (("changes", "op"), ("records", "audit"), ("contents", "blob"), ("catches", "caught")):
        ((facts[name],),) = rows(f"SELECT count(*) FROM {table}")
    if checked.workspace is not None and facts["workspace_is_there"] is False:
        where = f"its workspace {checked.workspace.root} is not there"
        yield Problem("moved", where, "if it was moved: `ringfence state adopt` in its new place", note=True)


def _chain(checked: _Checked) -> Iterator[Problem]:
    found = audit.checked(checked.state, checked.key)
    for fault in found.faults[:_FEW]:
        yield Problem("audit", f"record {fault.seq}: {fault.what}", "ringfence audit verify")
    if len(found.faults) > _FEW or found.more:
        yield Problem("audit", f"and {len(found.faults) - _FEW + found.more} more", "ringfence audit verify")
    if found.unrecorded:
        yield Problem("audit", f"calls without a record: {found.unrecorded}", "ringfence audit verify")
    if found.unchecked:
        detail = f"records that were not checked, as their key was not given: {found.unchecked}"
        yield Problem("audit", detail, "--audit-key FILE", note=True)


def _contents(checked: _Checked) -> Iterator[Problem]:
    """Yield problems with contents that are missing or do not match their digest."""
    for digest, packed in checked.state.rows("SELECT hash, packed FROM blob ORDER BY hash"):
        if packed == FILED:
            why = "no directory" if checked.folder is None else filed_fault(checked.folder, str(digest))
        else:
            why = _row_fault(checked.state, str(digest))
        if why:
            yield Problem("content", f"{digest}: {why}", "put it back from a backup, or: " + _SALVAGE)


def _row_fault(state: State, digest: str) -> str:
    rows = state.rows("SELECT packed, data FROM blob WHERE hash = ?", (digest,))
    return row_fault(digest, *rows[0]) if rows else ""  # forgotten meanwhile


def row_fault(digest: str, packed: int, data: bytes) -> str:
    """Return the fault of a content stored in the database; "" for none."""
    try:
        content = zlib.decompress(data) if packed else bytes(data)
    except zlib.error:
        return "damaged"
    return "" if sha256(content) == digest else "damaged"


def filed_fault(folder: str, digest: str) -> str:
    """Return the fault of a content stored in a file; "" for none."""
    try:
        with open(os.path.join(folder, "content", digest), "rb") as file:
            found, _ = hashed(iter(lambda: file.read(_PIECE), b""))
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "" if found == digest else "damaged"


def _files(checked: _Checked) -> Iterator[Problem]:
    """Yield problems with files beside the database that belong to no row."""
    if checked.folder is None or _alive(checked):
        return  # a running process may be writing them
    try:
        names = set(os.listdir(os.path.join(checked.folder, "content")))
    except FileNotFoundError:
        return
    known = {str(row[0]) for row in checked.state.rows("SELECT hash FROM blob WHERE packed = ?", (FILED,))}
    parts = {name for name in names if name.startswith(_PART)}
    for what, found in (("never finished", parts), ("of no change", names - known - parts)):
        if found:
            detail = f"files in content/ that are {what}: {len(found)}"
            yield Problem("leftover", detail, "`ringfence prune` removes them", note=True)


def _alive(checked: _Checked) -> bool:
    from ringfence.toolkit.state.process_locks import living

    return checked.folder is not None and bool(living(os.path.join(checked.folder, "owners")))


def _catches(checked: _Checked) -> Iterator[Problem]:
    """Yield differences between the quarantine and the history."""
    if checked.workspace is None or not checked.facts.get("workspace_is_there"):
        return
    inside = quarantined_in(checked.workspace.root)
    there = inside | _beside(checked.folder)
    known = {str(row[0]) for row in checked.state.rows("SELECT name FROM caught")}
    # Part of a deletion in progress, which is no fault.
    under_way = {
        str(row[0])
        for row in checked.state.rows(
            "SELECT item.temporary FROM item JOIN op ON op.id = item.op WHERE op.state = 'pending'"
        )
    }
    for name in sorted(known - there - under_way):
        yield Problem("catch", f"{name}: missing, so its deletion cannot be undone")
    for name in sorted(there - known - under_way):
        where = OWN_DIRECTORY if name in inside else QUARANTINE
        hint = "`ringfence state adopt`, if the workspace was moved; else look at it"
        yield Problem("catch", f"{where}/{name}: belongs to no change of this state", hint)


def _beside(folder: str | None) -> set[str]:
    """Return the quarantined entries beside the state."""
    try:
        names = os.listdir(os.path.join(folder, QUARANTINE)) if folder is not None else []
    except FileNotFoundError:
        return set()
    return quarantined(names)


def _intents(checked: _Checked) -> Iterator[Problem]:
    open_ones = checked.state.rows("SELECT call, tool, owner FROM op WHERE state = 'pending' ORDER BY id")
    found = [(str(call), str(tool), checked.state.dead(str(owner))) for call, tool, owner in open_ones]
    checked.facts["open"] = [{"call_id": c, "tool": t, "process_lives": not dead} for c, t, dead in found]
    for call, tool, dead in found:
        if dead:
            detail = f"{tool} ({call}): its process ended before it recorded the outcome"
            yield Problem("open", detail, "the next session recovers it", note=True)


def _unsynced(checked: _Checked) -> Iterator[Problem]:
    left = RedoLog(checked.state, None).to_settle() if checked.folder is not None else []
    if left:
        detail = f"{plural(len(left), 'change')} from before a power cut may not be in the workspace"
        yield Problem("not settled", detail, "`ringfence state settle` makes them again", note=True)


_CHECKS: dict[str, Callable[[_Checked], Iterator[Problem]]] = {
    "database": _database,
    "counts": _counts,
    "chain": _chain,
    "contents": _contents,
    "files": _files,
    "catches": _catches,
    "intents": _intents,
    "unsynced": _unsynced,
}

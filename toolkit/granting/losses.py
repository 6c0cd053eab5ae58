"""Losses of a request: what it deletes or replaces, what cannot be restored, and the order that follows.

Pure. The words are the same wherever a person reads a request, and they come before everything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN
from ringfence.toolkit.grant_patterns import outermost
from ringfence.toolkit.text import escape, plural

LOSS, NO_LOSS = "✕", "·"  # the signs beside the words, as a colour never stands alone
RANKS = (
    "cannot be restored",
    "deletes a directory",
    "deletes",
    "replaces",
    "loses nothing",
)  # the order in every list
_NAMED = 5  # paths that are named
_MOVES, _COPIES = ("move_file", "restore_tasks"), ("copy_file", "create_file", "create_directory")


@dataclass(frozen=True, slots=True)
class Loss:
    """What a request would take away: files (and links) that it deletes or replaces, directories with all
    that is below them, and the files among these that cannot be restored. `server`: another MCP server does
    it, and what it changes besides is not known.
    """

    deleted: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    for_good: tuple[str, ...] = ()
    server: str = ""

    @property
    def any(self) -> bool:
        """Whether anything is lost."""
        return bool(self.deleted or self.trees or self.replaced or self.for_good or self.server)

    @property
    def rank(self) -> int:
        """The place in a list, as an index of RANKS."""
        found = (self.for_good or self.server, self.trees, self.deleted, self.replaced)
        return next((rank for rank, lost in enumerate(found) if lost), len(found))

    def in_words(self) -> str:
        """Return what is lost: `deletes 3 files below old; undo can restore them`."""
        if not self.any:
            return "nothing is deleted or replaced as a whole"
        if self.server and not self.for_good:
            return f"the server {escape(self.server)} does this; what it changes CANNOT BE RESTORED"
        parts = [self._deleted()] if self.deleted or self.trees else []
        parts += [f"replaces {_some(self.replaced)}"] if self.replaced else []
        if not self.for_good:
            return f"{' and '.join(parts)}; undo can restore what is lost"
        return "; ".join([" and ".join(parts), *self._for_good()])

    def _deleted(self) -> str:
        if not self.trees:
            return f"deletes {_some(self.deleted)}"
        return f"deletes the whole directory {_names(self.trees)} ({plural(len(self.deleted), 'file')})"

    def _for_good(self) -> list[str]:
        return [f"CANNOT BE RESTORED: {_names(self.for_good)}"]


def loss(request: Request) -> Loss:
    """Return what a request would take away."""
    if request.server:
        return _of_server(request)
    lost = [(need, _how(request, need)) for need in request.needs]
    gone = [need for need, how in lost if how == "deleted"]
    folders = [need["path"] for need in gone if need["directory"]]
    return Loss(
        deleted=tuple(dict.fromkeys(need["path"] for need in gone if not need["directory"])),
        trees=tuple(outermost(folders)),
        replaced=tuple(dict.fromkeys(need["path"] for need, how in lost if how == "replaced")),
        for_good=tuple(request.decision.get("not_recoverable") or ()),
    )


def _of_server(request: Request) -> Loss:
    """Return what another server would take away: of what it deletes or writes over, nothing is kept."""
    if all(need["action"] == "read" for need in request.needs):
        return Loss()
    gone = [need for need in request.needs if need["action"] == "delete"]
    written = [need for need in request.needs if need["action"] == "write" and need.get("kind") != "create"]
    deleted = tuple(dict.fromkeys(need["path"] for need in gone if not need["directory"]))
    trees = tuple(outermost(need["path"] for need in gone if need["directory"]))
    replaced = tuple(dict.fromkeys(need["path"] for need in written if need["path"] not in deleted))
    return Loss(deleted, trees, replaced, (*trees, *deleted, *replaced), request.server)


def _how(request: Request, need: dict[str, object]) -> str:
    if "loses" in need:
        return str(need["loses"])
    # A request from an older version names no losses. A command may move what it deletes.
    deletes = need["action"] == "delete" and request.tool not in _MOVES and not request.of_command
    return "deleted" if deletes else ""


def needs_second_look(request: Request) -> bool:
    """Whether an approval takes a confirmation: for a tree, deletions of a command, and losses for good."""
    found = loss(request)
    return bool(found.trees or found.for_good or (found.deleted and request.of_command))


def kind(request: Request) -> str:
    """Return in a word or two what a request does: `deletes`, `replaces`, `moves`, `creates`, `edits`."""
    if request.of_command == TO_RUN:
        return "runs"
    found = loss(request)
    words = [
        word
        for word, there in (("deletes", found.deleted or found.trees), ("replaces", found.replaced))
        if there
    ]
    if request.of_command == CHANGES:
        return " and ".join(["ran", *words]) if words else "ran"
    if request.tool in _MOVES:
        words.insert(0, "moves")
    if words:
        return " and ".join(words)
    if all(need["action"] == "read" for need in request.needs) and request.needs:
        return "reads"
    if request.server:
        return "calls"
    return "creates" if request.tool in _COPIES else "edits"


def loss_line(request: Request) -> tuple[str, str]:
    """Return the line that opens every request, and its style: what is lost, also where that is nothing."""
    if request.of_command == TO_RUN:
        return f"{NO_LOSS} nothing is lost yet: what the command changes is judged once it ran", "dim"
    found = loss(request)
    sign, style = (LOSS, "bold red") if found.any else (NO_LOSS, "dim")
    return f"{sign} {found.in_words()}", style


def losses_first(requests: Iterable[Request]) -> list[Request]:
    """Return requests in the order to decide them: those that lose most first, then the oldest."""
    return sorted(requests, key=lambda one: (loss(one).rank, one.asked))


def by_session(requests: Iterable[Request]) -> list[tuple[str, list[Request]]]:
    """Return requests by session, each in the order to decide them; sessions in the order of their first."""
    found: dict[str, list[Request]] = {}
    for one in losses_first(requests):
        found.setdefault(one.session, []).append(one)
    return list(found.items())


def _some(paths: tuple[str, ...]) -> str:
    return f"{plural(len(paths), 'file')}: {_names(paths)}"


def _names(paths: tuple[str, ...]) -> str:
    named = ", ".join(map(escape, paths[:_NAMED]))
    return f"{named}, and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else named

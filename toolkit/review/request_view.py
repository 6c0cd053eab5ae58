"""A request as the pages show it: what kind of change, what it destroys, its heading, figures and buttons.

Pure over a stored request. Text of agents stays text: paths, commands and titles become markup by
`shown_text` only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from markupsafe import Markup

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN
from ringfence.toolkit.granting.losses import Loss, loss, needs_second_look
from ringfence.toolkit.review import diff_view
from ringfence.toolkit.review.diff_view import Line
from ringfence.toolkit.review.shown_text import boxed, command, path
from ringfence.toolkit.text import escape, plural

TASKS = "delete_tasks"
DELETE, MOVE, EDIT, RUN, EFFECTS, OTHER = "delete", "move", "edit", "run", "effects", "other"
_SORTS = {
    **dict.fromkeys(("delete", "delete_file", TASKS), DELETE),
    "move_file": MOVE,
    **dict.fromkeys(("edit_file", "insert_at_line", "create_file", "copy_file", "create_directory"), EDIT),
}
_WORDS = {
    DELETE: "Deletes", MOVE: "Moves", RUN: "Runs", EFFECTS: "Runs", OTHER: "Calls",
    "edit_file": "Edits", "insert_at_line": "Edits", "restore_tasks": "Restores",
}  # fmt: skip
_FIGURES = re.compile(r" \([0-9.,]+ (?:B|KB|MB|GB|TB|PB|EB|files?|lines?|total lines?)(?:, [^()]*)?\)$")
_EXECUTABLE = re.compile(r"mode ([0-7]{3}) to ([0-7]{3}): (.*)", re.DOTALL)


@dataclass(frozen=True)
class RequestView:
    """A request with what a page says of it."""

    request: Request
    lines: list[Line] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", diff_view.lines(self.preview))

    @property
    def preview(self) -> str:
        """The preview without a command's own line, which could look like anything."""
        given = str(self.request.arguments.get("command", ""))
        head = f"$ {escape(given, newlines=True)}\n"
        return self.request.preview.removeprefix(head) if self.request.of_command else self.request.preview

    @property
    def diff(self) -> str:
        """The diff alone: of a command without how it ended and what it printed, which are shown apart."""
        text = self.preview
        if self.sort != EFFECTS:
            return text
        return text.partition("\n\n")[2].partition("\n\noutput (")[0]

    @cached_property
    def sort(self) -> str:
        """Which kind of page shows the request: delete, move, edit, run, effects or other."""
        asked = {"": "", TO_RUN: RUN, CHANGES: EFFECTS}[self.request.of_command]
        return asked or _SORTS.get(self.request.tool, OTHER)

    @cached_property
    def loss(self) -> Loss:
        """What it takes away, as it is defined for every interface."""
        return loss(self.request)

    @property
    def deleted(self) -> tuple[str, ...]:
        """The files that are deleted; what a move takes away is not lost."""
        return self.loss.deleted

    @property
    def replaces(self) -> bool:
        """Whether content that is there is replaced as a whole."""
        return bool(self.loss.replaced)

    @property
    def tree(self) -> bool:
        """Whether a directory is deleted."""
        return bool(self.loss.trees)

    @property
    def lost(self) -> tuple[str, ...]:
        """The files that could not be restored."""
        return self.loss.for_good

    @cached_property
    def executable(self) -> tuple[str, ...]:
        """The files that a command made executable."""
        modes = (_EXECUTABLE.fullmatch(line.text) for line in self.lines if line.kind == "note")
        return tuple(each[3] for each in modes if each and int(each[2], 8) & 0o111 & ~int(each[1], 8))

    @property
    def destroys(self) -> bool:
        """Whether something is deleted, replaced as a whole, or lost; what a command rewrites is an edit."""
        found = self.loss
        rewrites = found.replaced and self.sort != EFFECTS
        return bool(found.deleted or found.trees or found.for_good or rewrites) or self.request.tool == TASKS

    @cached_property
    def kind(self) -> str:
        """What it does, in a word or two: `Deletes`, `Runs, deletes`."""
        if self.sort == EDIT and self.request.tool not in _WORDS:
            return "Overwrites" if self.replaces else "Creates"
        word = _WORDS.get(self.request.tool) or _WORDS[self.sort]
        if self.sort == MOVE and self.replaces:
            return "Moves, overwrites"
        return f"{word}, deletes" if self.sort in (EFFECTS, OTHER) and self.deleted else word

    @cached_property
    def heading(self) -> Markup:
        """The title, its paths marked, without its figures."""
        one = self.request
        if one.of_command:
            text, cwd = str(one.arguments.get("command", "")), str(one.arguments.get("cwd") or ".")
            where = Markup(" in {}").format(path(cwd, True)) if cwd != "." else ""
            return Markup("Run {}{}").format(command(text), where)
        rest, found = one.title or one.tool, Markup("")
        directories = {need["path"] for need in one.needs if need["directory"]}
        for name in one.paths[:2]:
            here = re.search(rf"(?<= ){re.escape(escape(name))}(?= |$)", rest)
            if here is not None:
                found += boxed(rest[: here.start()]) + path(name, name in directories)
                rest = rest[here.end() :]
        return found + boxed(_FIGURES.sub("", rest))

    @cached_property
    def changed_lines(self) -> tuple[int, int]:
        """How many lines are added and removed."""
        return diff_view.counts(self.lines)

    @cached_property
    def files(self) -> int:
        """How many files it touches; each end of a move counts once."""
        asked = [n for n in self.request.needs if n["action"] != "read" and not n["on_the_way"]]
        if self.sort == MOVE:
            asked = [need for need in asked if need["action"] == "delete"]
        return len({need["path"] for need in asked if not need["directory"]})

    @property
    def effects(self) -> int:
        """How many changes a command would make."""
        return len({n["path"] for n in self.request.needs if n["action"] != "read"})

    @cached_property
    def tick(self) -> bool:
        """Whether approving needs a tick that repeats the loss: for trees, deletions of commands, losses."""
        deletes = self.sort in (EFFECTS, OTHER) and self.loss.deleted
        return bool(needs_second_look(self.request) or deletes)

    @cached_property
    def button(self) -> str:
        """What approving does, for its button."""
        if self.sort == DELETE and self.request.tool != TASKS:
            return f"Delete {plural(len(self.deleted), 'file')}" if self.deleted else "Delete the directory"
        if self.sort == EFFECTS:
            return f"Apply the {plural(self.effects, 'effect')}"
        return {MOVE: "Approve this move", RUN: "Run this once"}.get(self.sort, "Approve this change")

    @cached_property
    def exactly(self) -> str:
        """What exactly the button permits."""
        if self.sort == DELETE:
            what = "exactly the listed files" if self.tree else "only this file"
            return f"{what}, one time. If the content changes first, you are asked again."
        if self.sort == MOVE:
            return f"exactly {plural(self.files, 'file')} to exactly these places, one time."
        if self.sort == RUN:
            return "this command, once, in the sandbox. Its changes are judged when it has run."
        if self.sort == EFFECTS:
            return "all of these or none. A path that somebody changed meanwhile stops it."
        return (
            "only this change, only in this session, one time. If the file or the policy changes first, you"
            " are asked again."
        )

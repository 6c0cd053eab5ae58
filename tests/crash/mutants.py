"""Ways to keep a history that look right and are not; the harness has to find each of them out."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ringfence.toolkit.execution import apply
from ringfence.toolkit.execution.item_recovery import ItemRecovery
from ringfence.toolkit.history import pruning
from ringfence.toolkit.history.records import ABORTED, DONE
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.session import pipeline, undo
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import migrations
from ringfence.toolkit.state.sqlite import SqliteState
from ringfence.toolkit.storage.local.backend import Local
from ringfence.toolkit.storage.local.early_write import EarlyFile


def record_after() -> None:
    """Change first, then write it down: what happens between the two is in no history."""

    def applied(plan: Any, workspace: Any, history: Any, operation: Any, usage: Any, **options: Any) -> Any:
        kept: list[Any] = []

        class Later:
            redo = history.redo

            def begin(self, operation: Any, items: Any, usage: Any, guard: Any, logged: bool) -> int:
                guard()
                kept.extend(items)
                return 0

            def abandon(self, op: int) -> None:
                pass

            def check(self) -> None:
                pass

        outcome = real(plan, workspace, Later(), operation, usage, **options)
        outcome.op = history.begin(operation, kept, usage, lambda: None)
        return outcome

    real = apply.apply
    pipeline.apply = undo.apply = applied


def record_before() -> None:
    """Write it down as done, then change: what did not happen is in the history."""

    def applied(plan: Any, workspace: Any, history: Any, operation: Any, usage: Any, **options: Any) -> Any:
        class Sure:
            redo = history.redo

            def begin(self, operation: Any, items: Any, usage: Any, guard: Any, logged: bool) -> int:
                kept = list(items)
                op: int = history.begin(operation, kept, usage, guard, logged)
                with history._state.transaction() as db:
                    db.execute("UPDATE op SET state = 'done' WHERE id = ?", (op,))
                    db.execute("UPDATE item SET state = 'done' WHERE op = ?", (op,))
                return op

            def abandon(self, op: int) -> None:
                pass

            def check(self) -> None:
                pass

        return real(plan, workspace, Sure(), operation, usage, **options)

    real = apply.apply
    pipeline.apply = undo.apply = applied


def _verdict(state: str) -> Callable[[], None]:
    def mutate() -> None:
        ItemRecovery.run = lambda self: {item.n: state for item in self._items}  # type: ignore

    return mutate


def never_sweep() -> None:
    ItemRecovery._sweep = lambda self, item: None  # type: ignore


def never_finish() -> None:
    ItemRecovery._discard_or_restore = lambda self, group, caught, other: set()  # type: ignore


def adopt_the_living() -> None:
    """Settle what another process is in the middle of."""
    SqliteState.dead = lambda self, owner: owner != self.owner  # type: ignore


def let_go_unseen() -> None:
    """Remove what was caught, whatever has come into it since."""

    def remove(self: Any, group: list[Any], caught: str, other: str) -> set[str]:
        self._files.remove(f"{OWN_DIRECTORY}/{caught}", group[0].path, other)
        return set()

    ItemRecovery._discard_or_restore = remove  # type: ignore


def prune_too_much() -> None:
    real = Session.prune

    def prune(self: Session, older_than: Any = None, keep: int | None = None, **more: Any) -> Any:
        return real(self, older_than, (keep or 0) // 2, **more)

    Session.prune = prune  # type: ignore


def never_let_go() -> None:
    """Forget a deleted tree, and leave it in the quarantine."""
    Local.discard = lambda self, name: None  # type: ignore


def never_tidy() -> None:
    pruning.sweep = lambda state, content_files: None


def upgrade_piecemeal() -> None:
    """Each statement of an upgrade by itself, and the number of the schema at the end."""

    def steps(db: Any, file: str | None, version: int) -> None:
        found = migrations.version_of(db)
        if file is not None and found < version:
            migrations._copy(file, found)
        for step in range(found, version):
            for statement in (*migrations.STEPS[step], *migrations.SQLITE.get(step, ())):
                db.execute(statement)
        db.execute(f"PRAGMA user_version={version}")

    migrations.upgrade = steps


def copy_unfinished() -> None:
    """A copy has its name from the beginning, and is whole only at the end."""

    def copy(file: str, version: int) -> None:
        data = Path(file).read_bytes()
        with open(f"{file}.v{version}", "wb") as to:
            for at in range(0, len(data), 4096):
                to.write(data[at : at + 4096])
                to.flush()
                os.fsync(to.fileno())

    migrations._copy = copy


def name_early() -> None:
    """Give a new file its temporary name before the intent is committed: a killed process leaves it."""
    wrote, linked, closed = EarlyFile._write, EarlyFile.link, EarlyFile.close
    names: dict[EarlyFile, tuple[int, str]] = {}
    one_by_one = threading.Lock()

    def write(self: EarlyFile) -> None:
        wrote(self)
        with one_by_one:
            if self._fd >= 0 and self not in names:
                names[self] = self._folder, f".ringfence-{len(names)}"
                file, folder = f"/proc/self/fd/{self._fd}", self._folder
                os.link(file, names[self][1], dst_dir_fd=folder, follow_symlinks=True)

    def link(self: EarlyFile, *values: Any) -> Any:
        write(self)
        self._wait()
        write(self)  # named by now, in whichever thread
        folder, name = names[self]
        os.unlink(name, dir_fd=folder)
        return linked(self, *values)

    def close(self: EarlyFile) -> None:
        closed(self)
        if self in names:
            folder, name = names.pop(self)
            with suppress(FileNotFoundError):  # removed when it got its own name
                os.unlink(name, dir_fd=folder)

    EarlyFile._write, EarlyFile.link, EarlyFile.close = write, link, close  # type: ignore[method-assign]


MUTANTS: dict[str, Callable[[], None]] = {
    "record-after": record_after,
    "record-before": record_before,
    "always-done": _verdict(DONE),
    "always-aborted": _verdict(ABORTED),
    "never-sweep": never_sweep,
    "never-finish": never_finish,
}
# What only shows where the disk is waited for.
DURABLE: dict[str, Callable[[], None]] = {"name-early": name_early}
SETTLING = {"always-done", "always-aborted", "never-sweep", "never-finish"}
# What only several processes, another program, a prune or an upgrade show, with the modes that do.
CHAINED: dict[str, tuple[Callable[[], None], str]] = {
    "adopt-the-living": (adopt_the_living, "several"),
    "let-go-unseen": (let_go_unseen, "beside"),
    "prune-too-much": (prune_too_much, "prune"),
    "never-let-go": (never_let_go, "prune"),
    "never-tidy": (never_tidy, "several"),
    "upgrade-piecemeal": (upgrade_piecemeal, "upgrade"),
    "copy-unfinished": (copy_unfinished, "upgrade"),
}

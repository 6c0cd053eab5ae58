"""Ways to keep a history that look right and are not; the harness has to find each of them out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit import apply, attempt, back, settle
from toolkit.history import ABORTED, DONE


def record_after() -> None:
    """Change first, then write it down: what happens between the two is in no history."""

    def applied(plan: Any, workspace: Any, history: Any, operation: Any, usage: Any, **options: Any) -> Any:
        kept: list[Any] = []

        class Later:
            def begin(self, operation: Any, items: Any, usage: Any, guard: Any) -> int:
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
    attempt.apply = back.apply = applied


def record_before() -> None:
    """Write it down as done, then change: what did not happen is in the history."""

    def applied(plan: Any, workspace: Any, history: Any, operation: Any, usage: Any, **options: Any) -> Any:
        class Sure:
            def begin(self, operation: Any, items: Any, usage: Any, guard: Any) -> int:
                kept = list(items)
                op: int = history.begin(operation, kept, usage, guard)
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
    attempt.apply = back.apply = applied


def _verdict(state: str) -> Callable[[], None]:
    def mutate() -> None:
        settle._Settling.run = lambda self: {item.n: state for item in self._items}  # type: ignore

    return mutate


def never_sweep() -> None:
    settle._Settling._sweep = lambda self, item: None  # type: ignore


def never_finish() -> None:
    settle._Settling._let_go_or_put_back = lambda self, group, caught, other: set()  # type: ignore


MUTANTS: dict[str, Callable[[], None]] = {
    "record-after": record_after,
    "record-before": record_before,
    "always-done": _verdict(DONE),
    "always-aborted": _verdict(ABORTED),
    "never-sweep": never_sweep,
    "never-finish": never_finish,
}
SETTLING = {"always-done", "always-aborted", "never-sweep", "never-finish"}

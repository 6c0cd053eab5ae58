"""Claim: the end of the log, its filters, the board of `watch` and the review's audit page cost at most 3
times as much with 100,000 records (or RECORDS) as with 1,000. Run with `python benchmarks/log.py [RECORDS]`.

Records are written as calls write them, and the histories beside them. Each figure is processor time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _size import size

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.monitoring.dashboard import Board
from ringfence.toolkit.session.session import Session

FEW, MANY = size((1_000, 100_000), (20, 60))
AT_MOST = 3.0
LEAST = 0.010  # seconds: what is below costs nothing that anybody would notice
RULE = {"tier": "global", "agent": None, "key": "*", "pattern": "*"}


def record(number: int) -> dict[str, Any]:
    """A call of one of 1,000 sessions at one of very many paths; each thousandth is denied."""
    denied = number % 1_000 == 7
    return {
        "event": "call",
        "time": 1_700_000_000.0 + number,
        "session": f"s-{number % 1_000}",
        "agent": f"coder/{number % 7}",
        "tool": "edit_file" if number % 3 else "read_file",
        "paths": [f"d{number % 97}/f{number}.py"],
        "decision": {"effect": "deny" if denied else "allow", "rule": RULE},
        "outcome": "denied_by_policy" if denied else "done",
        "call": f"c-{number:012}",
    }


def fill(session: Session, count: int) -> None:
    with session.state.transaction() as db:
        for number in range(count):
            audit.append(db, record(number), None)
            if number % 4 == 0:
                db.execute(
                    "INSERT INTO op VALUES(?,?,NULL,?,'','coder','edit_file',0.0,'done',1,NULL,NULL)",
                    (number + 1, f"c-{number:012}", f"s-{number % 1_000}"),
                )


def questions(session: Session, count: int) -> dict[str, Callable[[], object]]:
    def last(**wanted: Any) -> Callable[[], object]:
        return lambda: audit.newest(session.state, audit.RecordFilter(**wanted), 50)

    return {
        "the last 50 records": last(),
        "of a session": last(session="s-7"),
        "of an agent": last(agent="coder/3"),
        "that were denied": last(effect="deny"),
        "about one path": last(path=f"d{7 % 97}/f7.py"),
        "about a directory": last(path="d3/*"),
        "in the last minutes": last(since=1_700_000_000.0 + count - 300),
        "of nobody": last(agent="nobody"),
        "the board of watch": lambda: Board(session).refresh(),
    }


def measured(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "root").mkdir()
        state = Path(place) / "state"
        with Session(Path(place) / "root", Policy.loads("version: 1\n"), state=state) as session:
            fill(session, count)
            found = {}
            for name, ask in questions(session, count).items():
                ask()
                began = time.process_time()
                ask()
                found[name] = time.process_time() - began
            return found


def main() -> int:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
    few, more = measured(FEW), measured(many)
    print(f"{'milliseconds of processor time':32}{FEW:>12,}{many:>12,} records")
    missed = 0
    for name, first in few.items():
        times = more[name] / max(first, LEAST)
        missed += times > AT_MOST
        print(f"{name:32}{first * 1e3:>12.2f}{more[name] * 1e3:>12.2f}  {times:.1f} times")
    print(f"at most {AT_MOST:.0f} times")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

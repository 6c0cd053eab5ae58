"""Claim: none is held. What 1,000 agents and 10^9 audit records would need, from calls measured here.

Measures what a call keeps and what checking the record costs, then plays agents that call at random (to read
or to change) at one state that commits one at a time, and says how busy it is and how long a call waits.

    python benchmarks/scale.py [--agents 1000] [--commit-ms 3.0]
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from _size import size as least

from ringfence.policy import Policy
from ringfence.toolkit import Session
from ringfence.toolkit.audit import log as audit

RECORDS = 1_000_000_000
CALLS = least(600, 5)
EVERY = 20.0  # seconds between the calls of one agent, on average: a model thinks in between
CHANGES = 0.3  # of the calls
HOURS = least(1.0, 0.05)
POLICY = 'version: 1\nrules: {"*": allow}\n'
TEXT = "line of text {}\n" * 80


def measured() -> dict[str, float]:
    """Return bytes of a record and of all that a change keeps, seconds to change and to check."""
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "state")
        os.mkdir(os.path.join(folder, "root"))
        with Session(os.path.join(folder, "root"), Policy.loads(POLICY), state=state) as session:
            session.call({"tool": "create_file", "arguments": {"path": "first", "content": "x"}})
            began = time.perf_counter()
            for number in range(CALLS):
                text = TEXT.replace("{}", str(number))
                session.call({"tool": "create_file", "arguments": {"path": f"f{number}", "content": text}})
            changed = (time.perf_counter() - began) / CALLS
            began = time.process_time()
            faults = audit.verify(session.state)
            checked = (time.process_time() - began) / (CALLS + 1)
            assert not faults
            record = session.state.rows("SELECT avg(length(body) + 128) FROM audit")[0][0]
        kept = sum(path.stat().st_size for path in Path(state).rglob("*") if path.is_file())
    return {"record": record, "state": kept / CALLS, "change": changed, "check": checked}


def waits(agents: int, commit: float, chance: random.Random) -> tuple[float, list[float]]:
    """Play an hour: return how busy the one that commits is, and how long each call waited, ascending."""
    rate = agents / EVERY
    now = free = busy = 0.0
    found = []
    while now < HOURS * 3600:
        now += chance.expovariate(rate)
        begin = max(now, free)
        commits = 2 if chance.random() < CHANGES else 1  # a change notes its intent before it acts
        took = commits * commit * chance.uniform(0.7, 2.0)  # a sync is sometimes slow
        free = begin + took
        busy += took
        found.append(free - now)
    return busy / now, sorted(found)


def size(count: float) -> str:
    units = ["B", "kB", "MB", "GB", "TB"]
    while count >= 1_000 and len(units) > 1:
        count /= 1_000
        del units[0]
    return f"{count:.1f} {units[0]}"


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--agents", type=int, default=1_000)
    options.add_argument("--commit-ms", type=float, default=3.0)
    given = options.parse_args()
    each = measured()
    daily = given.agents / EVERY * 86_400
    print(f"one change here: {each['change'] * 1e3:.2f} ms, {size(each['state'])} kept with its content")
    print(f"one audit record: {size(each['record'])}; checked in {each['check'] * 1e6:.0f} us")
    print(f"{given.agents:,} agents: {daily / 1e6:.1f} million calls, {size(daily * each['record'])} a day")
    print(f"10^9 records: {RECORDS / daily:.0f} days, {size(RECORDS * each['record'])}")
    print(f"and {RECORDS * each['check'] / 3600:.1f} hours of one processor to check them all")
    print(f"{'states':>7} {'busy':>6} {'median ms':>10} {'99% ms':>8} {'worst ms':>9}")
    for parts in (1, 4, 16):
        busy, found = waits(given.agents // parts, given.commit_ms / 1e3, random.Random(1))
        picked = (found[len(found) // 2], found[int(len(found) * 0.99)], found[-1])
        print(f"{parts:7} {busy:6.1%} " + " ".join(f"{wait * 1e3:9.1f}" for wait in picked))
    most = EVERY / ((1 + CHANGES) * given.commit_ms / 1e3 * 1.35)
    print(f"one state has no time left at {most:,.0f} agents")
    return 0


if __name__ == "__main__":
    sys.exit(main())

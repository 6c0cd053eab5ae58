"""Claim: a million recorded decisions are judged again in under 200 MiB, however many there are.

python benchmarks/replay.py [RECORDS]
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections import deque
from collections.abc import Iterator

from _size import size

from ringfence.policy import Policy
from ringfence.toolkit.authoring.replay import records_of, replay

MAX_MIB = 200
OLD = "version: 1\nextends: [baseline]\n"
NEW = OLD + 'rules:\n  write: {"docs/**": allow, "src/**/*.py": allow, "*.sql": deny}\n'
TOOLS = {"read_file": "read", "create_file": "write", "edit_file": "write", "delete_file": "delete"}


def lines(count: int, old: Policy) -> Iterator[str]:
    """A log as agents make it: many paths, some of them again and again."""
    rng = random.Random(1)
    folders = ["src/app", "src/web", "docs", "tests", "db", "tmp", "deploy"]
    ends = ["py", "md", "sql", "ts", "json", "env"]
    for number in range(count):
        tool = rng.choice(list(TOOLS))
        path = f"{rng.choice(folders)}/m{rng.randrange(200)}/f{rng.randrange(500)}.{rng.choice(ends)}"
        agent = rng.choice(["default", "coder", "coder/helper", "review-1"])
        effect, rule = old.verdict(agent, tool, TOOLS[tool], path)
        decision = {
            "effect": str(effect),
            "action": TOOLS[tool],
            "path": path,
            "rule": rule.to_json() if rule else None,
        }
        yield json.dumps(
            {
                "seq": number,
                "event": "call",
                "agent": agent,
                "tool": tool,
                "paths": [path],
                "decision": decision,
            }
        )


def main(count: int) -> int:
    old, new = Policy.loads(OLD), Policy.loads(NEW)
    start = time.process_time()
    making = 0.0

    def timed() -> Iterator[str]:
        nonlocal making
        source = lines(count, old)
        while True:
            begin = time.process_time()
            line = next(source, None)
            making += time.process_time() - begin
            if line is None:
                return
            yield line

    out = deque(replay(records_of(timed()), new), maxlen=1).pop()
    seconds = time.process_time() - start - making
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{out.records:,} records: {seconds:.0f} s of the processor, {seconds / count * 1e6:.0f} us each;",
        end=" ",
    )
    print(f"{out.changed:,} differ, {out.widened:,} wider, {len(out.groups)} kinds; peak memory {peak} MiB")
    return int(peak > MAX_MIB)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else size(1_000_000, 500)))

"""What has to be true after the scale run, by what the agents were answered and by the bucket's own content.

Reads the bucket by plain requests, and the record by `ringfence audit verify` and the history's rows.
"""

from __future__ import annotations

import importlib
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from _child import PYTHON, environment
from _scale_agents import SHARED, Agent, Answered

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.session.session import Session

# What a call may be answered when others work at the same files, or when a rule or a limit says so.
FITTING = {
    "ok", "stale_read", "path_changed", "approval_required", "denied_by_policy", "limit_exceeded",
    "approval_stale",
}  # fmt: skip


def contents(fs: Any, bucket: str, prefix: str) -> dict[str, bytes]:
    """Return what is in the bucket below a prefix, without markers and Ringfence's own keys."""
    keys: list[str] = []
    more: dict[str, str] = {}
    while True:
        answer = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, **more)
        keys += [row["Key"] for row in answer.get("Contents", ())]
        if not answer.get("IsTruncated"):
            break
        more = {"ContinuationToken": answer["NextContinuationToken"]}
    own = [key for key in keys if not key.endswith("/") and not key.startswith(f"{prefix}.ringfence")]
    return {key[len(prefix) :]: fs.cat_file(f"{bucket}/{key}") for key in own}


def verified(words: Sequence[str]) -> list[str]:
    """Run `ringfence audit verify`; gives what it says if the record is not whole."""
    done = subprocess.run(
        [PYTHON, "-m", "ringfence", "audit", "verify", *words],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    return [] if done.returncode == 0 else [f"audit verify: {done.stdout}{done.stderr}"]


def record(session: Session, answers: Sequence[Answered]) -> list[str]:
    """Each answered call is on record once, and no change is left open."""
    recorded = Counter(str(r["call"]) for r in audit.records(session.state) if r.get("event") == "call")
    given = Counter(str(answer.call) for answer in answers)
    found = []
    if recorded != given:
        missing, more = given - recorded, recorded - given
        found.append(f"{missing.total()} calls are not on record, and {more.total()} were never answered")
    left = session.state.rows(
        "SELECT op.tool, item.path, item.state FROM op LEFT JOIN item ON item.op = op.id"
        " WHERE op.state = 'pending' OR item.state IN ('pending', 'unknown')"
    )
    return found + [f"a {tool} of {path} is left {state}" for tool, path, state in left[:5]]


def history(session: Session, start: dict[str, str], now: dict[str, str]) -> list[str]:
    """The history, replayed from the start with each step checked, gives the bucket's content, as digests."""
    # By name, because the types of all tests would be checked with the benchmarks.
    told, wrong = importlib.import_module("tests.together.harness").replayed(session, start)
    differ = sorted(path for path in told.keys() | now.keys() if told.get(path) != now.get(path))
    found: list[str] = wrong[:5]
    return found + [f"history and bucket differ at {path}" for path in differ[:5]]


def updates(agents: Iterable[Agent], bucket: dict[str, bytes]) -> list[str]:
    """Each agent's files are as it was told, and each acknowledged mark is in its shared file, once."""
    found = []
    own = {path: text.encode() for agent in agents for path, text in agent.files.items()}
    there = {path: data for path, data in bucket.items() if path.startswith(("work/", "kept/"))}
    differ = sorted(path for path in own.keys() | there.keys() if own.get(path) != there.get(path))
    found += [f"an agent's own file {path} is not as it was told" for path in differ[:5]]
    for path in SHARED:
        told = {mark for agent in agents for mark, file in agent.marks.items() if file == path}
        lines = [line for line in bucket[path].decode().splitlines() if line.startswith("s-")]
        if lost := told - set(lines):
            found.append(f"{len(lost)} acknowledged inserts are not in {path}")
        if len(lines) != len(told):
            found.append(f"{path} has {len(lines)} inserts, and {len(told)} were acknowledged")
    return found


def limits(answers: Sequence[Answered], most: int, shared: str, together: int) -> list[str]:
    """No session has deleted more than `most` files, nor all sessions of the agent `shared` `together`; each
    denial came after as many. A moved file counts.
    """
    done, denied = Counter[str](), set[str]()
    for answer in answers:
        if answer.tool in ("delete_file", "move_file"):
            who = shared if answer.agent == shared else answer.session
            done[who] += answer.code == "ok"
            if answer.code == "limit_exceeded":
                denied.add(who)
    allowed = {who: together if who == shared else most for who in done}
    found = [f"{who} deleted {n} files of {allowed[who]}" for who, n in done.items() if n > allowed[who]]
    early = [who for who in denied if done[who] < allowed[who]]
    return found + [f"{who} was denied a deletion after {done[who]} of {allowed[who]}" for who in early]

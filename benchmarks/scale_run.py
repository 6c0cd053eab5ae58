"""Claim: 64 agents on four processes, one PostgreSQL and one bucket lose nothing, and their record is true.

Starts a PostgreSQL, a SeaweedFS and four `ringfence serve http`. The agents work for a third of the time at
the pace of agents, then without a pause; most files are their own, some are everybody's. Prints latencies,
requests, the size of the state, processor time and what reaches its limit first, and compares bucket,
history, record and limits with what the agents were answered.

    python benchmarks/scale_run.py [--minutes 10] [--agents 64] [--processes 4]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from _size import not_measured, size

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the tests know how servers are started

try:
    import uvicorn  # noqa: F401
    from pytest import skip
except ModuleNotFoundError as error:
    sys.exit(not_measured(f"{error.name}; install the extra `test`"))

import _scale_checks as checks
from _scale_agents import SHARED, Agent, Answered, Clock, Person
from _scale_parts import CONNECTIONS, Parts, Watch, megabytes, running, tables

from ringfence.policy import Policy
from ringfence.toolkit import Session

AGENTS, PROCESSES = size((64, 4), (6, 2))
MINUTES = size(10.0, 0.1)
CALM = 1 / 3  # of the time
PAUSE = size(5.0, 0.5)  # seconds that an agent thinks between two calls then, on average
BUCKET, PREFIX = "workspace", "team/"
TEAM = "cleaner"  # the name of one agent on each process: a limit counts them together
POLICY = """\
version: 1
rules:
  read: {{"*": allow, "secret/**": deny}}
  write: allow
  delete: {{"*": allow, "kept/**": ask}}
limits:
  delete: {{max_files: {most}, per: session, over: deny}}
agents:
  agent-*: {{}}
  cleaner:
    limits: {{delete: {{max_files: {together}, per: hour, over: deny}}}}
"""


@dataclass
class Part:
    """What one part of the run has used: seconds of the clock, processor seconds, requests, the lock."""

    took: float
    seconds: dict[str, float]
    requests: Counter[str]
    watch: Watch


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fill(parts: Parts) -> dict[str, str]:
    """Write what is there from the start; gives the digest of each file."""
    start = dict.fromkeys(SHARED, b"# Notes\n") | {"secret/key": b"not for agents\n"}
    for path, data in start.items():
        parts.fs.pipe_file(f"{BUCKET}/{PREFIX}{path}", data)
    return {path: digest(data) for path, data in start.items()}


def measure(parts: Parts, clock: Clock, name: str, pause: float, seconds: float) -> Part:
    """Let the agents work for a while, and return what was used meanwhile."""
    watch, over = Watch(), threading.Event()
    watching = threading.Thread(target=watch.run, args=(parts.database, over))
    before, asked, began = parts.seconds(), parts.requests(), time.perf_counter()
    clock.part, clock.pause = name, pause
    watching.start()
    time.sleep(seconds)
    took = time.perf_counter() - began
    after, answered = parts.seconds(), parts.requests()
    over.set()
    watching.join()
    used = {part: after[part] - before[part] for part in before}
    return Part(took, used, answered - asked, watch)


def work(parts: Parts, agents: Sequence[Agent], person: Person, minutes: float) -> dict[str, Part]:
    """Let all of them work; gives what was used, by part of the run."""
    clock = agents[0].clock
    threads = [threading.Thread(target=agent.run) for agent in agents]
    threads.append(threading.Thread(target=person.run))
    for thread in threads:
        thread.start()
    try:
        while not all(agent.answers or agent.failed for agent in agents):
            time.sleep(0.1)  # each opens its session with its first call
        return {
            "calm": measure(parts, clock, "calm", PAUSE, minutes * 60 * CALM),
            "full": measure(parts, clock, "full", 0.0, minutes * 60 * (1 - CALM)),
        }
    finally:
        clock.over.set()
        for thread in threads:
            thread.join()


def show(name: str, part: Part, answers: Sequence[Answered]) -> None:
    """Print what one part of the run has used, and how long its calls took."""
    mine = [answer for answer in answers if answer.part == name]
    by: dict[str, list[float]] = defaultdict(list)
    for answer in mine:
        by[answer.tool].append(answer.seconds * 1e3)
    print(f"\n{name}: {len(mine):,} calls in {part.took:.0f} s, {len(mine) / part.took:.1f} a second")
    print(f"{'ms':>16} {'calls':>7} {'median':>8} {'95%':>8} {'99%':>8} {'longest':>8}")
    for tool, times in sorted(by.items()):
        found = sorted(times)
        picked = [found[min(int(len(found) * share), len(found) - 1)] for share in (0.5, 0.95, 0.99, 1.0)]
        print(f"{tool:>16} {len(found):7,} " + " ".join(f"{value:8.0f}" for value in picked))
    print("answers: " + said(Counter(answer.code for answer in mine)))
    print(f"requests to the bucket: {part.requests.total() / len(mine):.2f} a call; {said(part.requests)}")
    for what, seconds in part.seconds.items():
        print(f"{what:>16} {seconds:7.1f} processor s, {seconds / len(mine) * 1e3:6.2f} ms a call")
    limits = reached(part)
    for what, share in limits.items():
        print(
            f"{share:7.0%} of {what}; it would be full at {len(mine) / part.took / share:,.0f} calls a second"
        )
    watch = part.watch
    print(f"what the process with the state's lock waits for: {said(watch.held)} of {watch.looks} looks;")
    print(f"{watch.waiting / max(watch.looks, 1):.2f} wait for it on average")


def reached(part: Part) -> dict[str, float]:
    """Return the share that was used of each thing of which there is only so much, the largest first."""
    watch, cores = part.watch, os.cpu_count() or 1
    used = {
        f"the {cores} processors": sum(part.seconds.values()) / part.took / cores,
        "the state's lock": watch.held.total() / max(watch.looks, 1),
        f"PostgreSQL's {CONNECTIONS} connections": watch.connections / CONNECTIONS,
    }
    return dict(sorted(((what, max(share, 1e-9)) for what, share in used.items()), key=lambda one: -one[1]))


def said(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.most_common())


def state(parts: Parts, calls: int) -> None:
    found = tables(parts.database)
    whole = sum(size for _, _, size in found)
    print(f"\nstate: {whole / 1e6:.1f} MB, {whole / calls / 1e3:.2f} kB a call")
    for name, rows, size_ in found:
        if rows:
            print(f"{name:>16} {rows:9,} rows {size_ / 1e6:8.2f} MB")


def run(folder: Path, minutes: float, count: int, processes: int) -> list[str]:
    """Run it all; gives what is wrong."""
    most, together = max(2, int(5 * minutes)), max(4, int(10 * minutes))
    names = [TEAM if number % 16 == 15 else f"agent-{number}" for number in range(count)]
    given = [(name, f"s-{number}") for number, name in enumerate(names)]
    policy = POLICY.format(most=most, together=together)
    with running(folder, policy, processes, given) as parts:
        start = fill(parts)
        with Session(
            f"s3://{BUCKET}/{PREFIX}", Policy.loads(policy), state=parts.database, session="ann"
        ) as ann:
            clock = Clock()
            agents = [
                Agent(name, session, token, server.port, number * processes + at, clock, ann.undo)
                for at, server in enumerate(parts.servers)
                for number, (token, (name, session)) in enumerate(server.agents.items())
            ]
            person = Person(parts.person, [server.port for server in parts.servers], clock.over)
            used = work(parts, agents, person, minutes)
            answers = [answer for agent in agents for answer in agent.answers]
            memory = [megabytes(server.process.pid) for server in parts.servers]
            for name, part in used.items():
                show(name, part, answers)
            state(parts, len(answers))
            print(f"{person.granted} requests granted; memory of each server {max(memory):.0f} MB at most")
            wrong = [*person.failed, *(fault for agent in agents for fault in agent.failed)]
            wrong += [said for server in parts.servers if (said := server.stop())]
            began = time.perf_counter()
            wrong += checks.verified(parts.words)
            wrong += checks.record(ann, answers)
            bucket = checks.contents(parts.fs, BUCKET, PREFIX)
            wrong += checks.history(ann, start, {path: digest(data) for path, data in bucket.items()})
    wrong += checks.updates(agents, bucket) + checks.limits(answers, most, TEAM, together)
    odd = Counter(f"{a.tool} was answered {a.code}" for a in answers if a.code not in checks.FITTING)
    wrong += [f"{count} times {what}" for what, count in odd.items()]
    print(f"checked in {time.perf_counter() - began:.1f} s: {len(bucket)} files, {len(wrong)} faults")
    return wrong


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--minutes", type=float, default=MINUTES)
    options.add_argument("--agents", type=int, default=AGENTS)
    options.add_argument("--processes", type=int, default=PROCESSES)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            wrong = run(Path(folder), given.minutes, given.agents, given.processes)
        except skip.Exception as missing:
            return not_measured(str(missing))
    for fault in wrong:
        print(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Claim: answered with the folder's rule, a day of 200 requests asks at most a fifth of the questions.

    python benchmarks/questions.py

The day is recorded in questions_day.txt: the last 200 changes of files in this repository's history, as calls
of one agent. The policy asks about every write and deletion. A person says yes to each question, in one of
these ways: once; with the narrowest rule; with the rule for the folder; with the rule for this kind of file.
Where the rule is not offered, the next narrower one counts, and else yes, once. Every rule is proved and
written as `ringfence approvals grant --always` does. Deterministic: no time is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from _size import size

from ringfence.policy import Effect, Need, Policy
from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.rule_offers.candidates import FOLDER, WIDTHS
from ringfence.toolkit.rule_offers.offers import Names, PolicyText, offers

DAY = Path(__file__).with_name("questions_day.txt")
POLICY = b"version: 1\nextends: [baseline]\nrules: {read: allow, write: ask, delete: ask}\n"
NOW, UNTIL = 1_800_000_000.0, 1_800_604_800
FEWER = 0.8  # of the questions that a `once` for each would have asked


def day() -> list[list[str]]:
    """Return the recorded calls: a tool and its paths."""
    lines = DAY.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")][: size(200, 20)]


def needs(tool: str, paths: list[str]) -> Iterator[Need]:
    """Yield what a recorded call needs."""
    if tool == "create_file":
        yield Need("write", paths[0], kind="create")
    elif tool == "delete_file":
        yield Need("delete", paths[0])
    elif tool == "move_file":
        yield from (Need("read", paths[0]), Need("delete", paths[0]), Need("write", paths[1], kind="create"))
    else:
        yield from (Need("read", paths[0]), Need("write", paths[0], kind="edit"))


def loaded(data: bytes) -> Policy:
    """Return the policy of a text."""
    return Policy.loads(data, file="ringfence.yaml", base="/")


def request(policy: Policy, number: int, tool: str, wanted: list[Need]) -> Request | None:
    """Return the request that a call makes; None if nobody is asked."""
    decision = policy.decide("coder", tool, wanted)
    if decision.effect is not Effect.ASK:
        return None
    rows = []
    rules = []
    for need in wanted:
        effect, rule = policy.verdict(
            "coder", tool, need.name if policy.has_kinds else need.action, need.path
        )
        rules += [rule.to_json() if rule else {}] if effect is Effect.ASK else []
        rows.append(
            {
                "action": need.action,
                "path": need.path,
                "directory": False,
                "on_the_way": False,
                "asks": effect is Effect.ASK,
                "kind": need.kind,
            }
        )
    return Request(
        id=f"a-{number:08x}",
        agent="coder",
        session="day",
        tool=tool,
        arguments={},
        digest=str(number),
        revision=policy.revision,
        title=tool,
        preview="",
        decision=decision.to_json(),
        needs=tuple(rows),
        asks=tuple(rules),
        changes=True,
    )


def questions(width: str | None) -> tuple[int, int]:
    """Return the day's questions with rules of a width (None: yes, once), and the number of rules."""
    data, asked, rules = POLICY, 0, 0
    policy = loaded(data)
    for number, (tool, *paths) in enumerate(day()):
        made = request(policy, number, tool, list(needs(tool, paths)))
        if made is None:
            continue
        asked += 1
        if width is None:
            continue
        widths = WIDTHS[: WIDTHS.index(width) + 1]
        text = PolicyText("ringfence.yaml", data)
        for each in reversed(widths):
            found = offers(made, policy, text, loaded, Names(()), now=NOW, until=UNTIL, widths=(each,)).offers
            if found:
                data, policy, rules = found[0].data, found[0].after, rules + 1
                break
    return asked, rules


def main() -> int:
    """Print the table, and return 1 if the claim does not hold."""
    once, _ = questions(None)
    print(f"{len(day())} requests; answered once each: {once} questions")
    claimed = 0.0
    for width in WIDTHS:
        asked, rules = questions(width)
        fewer = 1 - asked / once
        claimed = fewer if width == FOLDER else claimed
        print(f"always, {width}: {asked} questions, {rules} rules, {fewer:.0%} fewer")
    print(f"at least {FEWER:.0%} fewer with the folder's rule: {'yes' if claimed >= FEWER else 'no'}")
    return 0 if claimed >= FEWER else 1


if __name__ == "__main__":
    sys.exit(main())

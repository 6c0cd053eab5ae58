"""Proposals of rules from answers: of which time, and never what was refused, however long ago."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from ringfence.policy import Need
from ringfence.policy.patterns.syntax import Folding
from ringfence.toolkit.approvals.requests import REFUSED, USED, Request
from ringfence.toolkit.rule_offers.proposals import proposals
from tests.rule_offers.making import NOW, loaded, offered, request

POLICY = loaded("version: 1\nrules: {read: allow, delete: ask}\n")
TEXT = b"version: 1\nrules: {read: allow, delete: ask}\n"


def answered(names: Iterable[str], state: str, days_ago: float) -> list[Request]:
    return [
        replace(
            request(POLICY, "coder", "delete_file", [Need("delete", f"src/{name}.py")]),
            state=state,
            decided=NOW - days_ago * 86_400,
        )
        for name in names
    ]


@pytest.mark.parametrize(
    ("found", "since_days", "expected"),
    [
        (answered("abc", USED, 1), 7, [("src", 3, 3)]),
        (answered("abc", USED, 8), 7, []),
        (answered("ab", USED, 1) + answered("c", USED, 8), 7, []),
        (answered("abc", USED, 8), 30, [("src", 3, 3)]),
        (answered("abc", USED, 1) + answered("d", REFUSED, 1), 7, []),
        (answered("abc", USED, 1) + answered("d", REFUSED, 300), 7, []),
    ],
)
def test_which_answers_count(
    found: list[Request], since_days: float, expected: list[tuple[str, int, int]]
) -> None:
    made = proposals(
        found,
        lambda one: offered(TEXT, one),
        POLICY,
        NOW,
        Folding.NONE,
        since=NOW - since_days * 86_400,
    )
    assert [(each.folder, each.yes, each.answered) for each in made] == expected

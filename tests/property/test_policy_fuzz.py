"""Malformed policies: always PolicyError with known codes, or a policy; never anything else."""

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringfence import policy
from ringfence.policy import Policy, PolicyError, loads
from ringfence.policy.evaluation.cases import check
from ringfence.policy.loading.problem_codes import PROBLEMS
from ringfence.policy.patterns.matcher import matches
from ringfence.policy.patterns.syntax import PatternError, parse

RULES = [policy.ready_made(name).read_bytes() for name in policy.READY_MADE]
TABLE = Path(__file__).parent.parent / "evaluation" / "decisions.yaml"
BITS = [
    b"*", b"&a ", b"*a", b"!!x ", b"<<: ", b"{", b"}", b"[", b"]", b"'", b'"', b"\t", b"\n", b"- ", b"? ",
    b": ", b"|\n",
    b"\xff", b"\xc2\x85", b"\xe2\x80\xa8", b"\0", b"\r", b"---\n", b"...\n", b"%YAML 1.1\n", b"#", b"0500",
    b"~", b"\\",
    b"\xef\xbb\xbf", b"allow", b"deny: ", b"version: 1\n", b"extends: baseline\n", b"{a,b}", b"[!a]",
    b"..", b"/",
    b"  ", b"1:30", b".inf", b"\"\\ud800\"", b"\"\\0\"", b">-\n", b"@", b"`", b"\x7f", b"\xf0\x9f\x98\x80",
]  # fmt: skip


def survives(data: bytes | str) -> None:
    try:
        found = loads(data)
    except PolicyError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.code in PROBLEMS
            assert problem.message
            assert problem.format().isprintable() or "\n" in problem.format()
            assert all(line.isprintable() for line in problem.format().split("\n"))
        return
    assert isinstance(found, Policy)
    check(found)
    found.effect("coder", "delete_file", "delete", "a/b")


def mutated(chance: random.Random, data: bytes) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        kind = chance.randint(0, 3)
        if kind == 0:
            data = data[:at] + chance.choice(BITS) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + chance.randint(1, 20) :]
        elif kind == 2:
            data = data[:at] + bytes([chance.randint(0, 255)]) + data[at + 1 :]
        else:
            start = chance.randint(0, len(data))
            data = data[:at] + data[start : start + chance.randint(1, 60)] + data[at:]
    return data


@pytest.mark.parametrize("seed", range(4))
def test_mutated_policies(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2_000):
        data = chance.choice(RULES)
        start = chance.randint(0, len(data) // 2) if chance.random() < 0.5 else 0
        end = len(data) if start == 0 and chance.random() < 0.2 else start + chance.randint(1, 900)
        survives(mutated(chance, b"version: 1\n"[: 11 * (start > 0)] + data[start:end]))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(BITS), max_size=12).map(b"".join))
@example(b"version: 1\nrules: {? : deny}")
@example(b"- " * 200)
@example(b"[" * 100_000)
@example(b"{a: " * 5_000)
@example(b"version: 1\nrules: {read: {? [a] : deny}}")
@example(b"version: 1\nagents: {? {a: b} : {}}")
@example(b"version: 1\nextends: ['a\\0.yaml', \"\\0.yaml\", 'x.yaml']")
def test_odd_bytes(data: bytes) -> None:
    survives(data)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_odd_text(text: str) -> None:
    survives(text)
    survives(f"version: 1\nrules:\n  read:\n    '{text.replace(chr(39), '')}': deny\n")


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="ab*?[]!^-{},/.\\é ", max_size=14), st.text(alphabet="ab/.é", min_size=1, max_size=8))
def test_odd_patterns(pattern: str, path: str) -> None:
    try:
        branches = parse(pattern).branches
    except PatternError as error:
        assert error.code in PROBLEMS
        assert 0 <= error.offset <= len(pattern)
        return
    assert [len(branch.segments) for branch in branches] == [
        len(b.segments) for b in parse(pattern, True).branches
    ]
    assert matches(pattern, path) <= matches(pattern, path, True)
    assert matches(pattern, path, True) <= matches(pattern, f"{path}/below") or path == "." or "//" in path

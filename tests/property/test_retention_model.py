"""What retention lets go is what the plainest reading of its rule says, for any history.

A second, slow one here reads the tables itself, takes calls away one by one, and says what has to be left.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.toolkit.history import retention
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.history.records import Item, Operation
from ringfence.toolkit.history.retention import CallContents, Rule, forgettable
from ringfence.toolkit.session.session import Session

POLICY = Policy.loads(
    'version: 1\nrules: {"*": allow, insert_at_line: ask}\ndurable: false\n'
    "retention: {days: unlimited, max_bytes: unlimited}\n"
)
NAMES = ("a", "b", "d/c", "large")

# ------------------------------------------------------------------------ the rule


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[CallContents], dict[str, int], Rule]:
    count = draw(st.integers(0, 9))
    sizes = {f"content {n}": draw(st.integers(0, 9)) for n in range(5)}
    starts = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))  # clocks may be put back
    calls = [
        CallContents(
            f"c{n}",
            starts[n],
            draw(st.frozensets(st.sampled_from(sorted(sizes)), max_size=3)),
            frozenset(f"c{m}" for m in draw(st.sets(st.integers(0, count), max_size=2)) if m != n),
            draw(st.integers(0, 5)) == 0,
            draw(st.integers(0, 3)),
        )
        for n in range(count)
    ]
    bound = st.none() | st.integers(0, 10)
    return calls, sizes, Rule(draw(bound), draw(st.none() | st.integers(0, 40)), draw(st.integers(0, 12)))


def gone(calls: list[CallContents], sizes: dict[str, int], rule: Rule) -> set[str]:
    """The calls that go, one by one."""
    place = {one.call: n for n, one in enumerate(calls)}
    newest = {one.call for one in calls[max(len(calls) - rule.keep, 0) :]}

    def may(one: CallContents, out: set[str]) -> bool:
        later = calls[place[one.call] + 1 :]
        by = [other for other in later if one.call in other.undoes]
        return not one.spared and one.call not in newest and all(other.call in out for other in by)

    out: set[str] = set()
    if rule.before is not None or rule.max_bytes is None:
        for one in reversed(calls):
            if may(one, out) and (rule.before is None or one.started < rule.before):
                out.add(one.call)
    while rule.max_bytes is not None:
        left = [one for one in calls if one.call not in out]
        held = {name for one in left for name in one.contents}
        free = [one for one in left if may(one, out)]
        if sum(sizes[name] for name in held) <= rule.max_bytes or not free:
            break
        out.add(free[0].call)
    while rule.max_bytes is not None:
        left = [one for one in calls if one.call not in out]
        free = [one for one in left if may(one, out)]
        if sum(one.changes for one in left) <= max(retention.CHANGES, rule.max_bytes // 4096) or not free:
            break
        out.add(free[0].call)
    return out


@given(histories(), st.sampled_from((0, 3, 6, 20_000)))
@settings(max_examples=600)
def test_the_rule_is_what_it_says(
    made: tuple[list[CallContents], dict[str, int], Rule], changes: int
) -> None:
    with few(changes):
        assert forgettable(*made) == gone(*made)


# ------------------------------------------------------------------ a whole history


STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.sampled_from(("a", "b", "d", "large"))),
    st.tuples(st.just("undo"), st.integers(0, 9)),
    st.tuples(st.just("restore"), st.sampled_from(NAMES)),
    st.tuples(st.just("ask"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("open"), st.integers(0, 3)),
    st.tuples(st.just("age")),
)
RULES = st.builds(
    Rule,
    st.none() | st.sampled_from((50.0, 150.0, 250.0)),
    st.none() | st.sampled_from((0, 10, LARGE, 2 * LARGE + 20)),
    st.integers(0, 9),
)
CHANGES = st.sampled_from((0, 2, 5, 20_000))


@contextmanager
def few(changes: int) -> Iterator[None]:
    """As if only so many changes were to stay known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "CHANGES", changes)
        yield


def carry_out(session: Session, work: list[tuple[Any, ...]]) -> None:
    done: list[str] = []
    for n, step in enumerate(work):
        result = None
        match step:
            case ("write", path, which):
                text = f"{which}" * (LARGE + 1 if path == "large" else 5)
                result = call(session, "create_file", path=path, content=text, allow_overwrite=True)
            case ("delete", path):
                result = call(session, "delete", path=path)
            case ("restore", path):
                result = session.restore(path, "v1", force=True)
            case ("undo", which) if done:
                result = session.undo(done[which % len(done)], force=True)
            case ("ask", path, expired):
                call(session, "insert_at_line", path=path, line=0, content=f"{n}")
                if expired:
                    at(session, "UPDATE approval SET asked = asked - 100000")
            case ("open", which):
                item = Item(
                    "delete", f"o{n}", "file", before=f"{which}".encode() * 5, temporary=".ringfence-0"
                )
                session.history.begin(Operation(f"open{n}", None, "s", "a", "t"), [item], {}, lambda: None)
            case ("age",):
                at(session, "UPDATE op SET started = started - 100")
        if result is not None and result.ok:
            done.append(result.data["call_id"])


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def at(session: Session, sql: str) -> None:
    with session.state.transaction() as db:
        db.execute(sql)


def told(
    session: Session, before: float | None
) -> tuple[list[CallContents], dict[str, int], dict[str, set[str]]]:
    """The calls with what they need, the sizes, and the digests that each call names, from the tables."""
    rows = session.state.rows
    sizes = {str(digest): int(size) for digest, size in rows("SELECT hash, size FROM blob")}
    trees = {str(name): int(op) for name, op in rows("SELECT name, op FROM caught")}
    items = rows("SELECT op, path, path2, before, after, temporary, size FROM item ORDER BY op, n")
    for name in trees:
        sizes[name] = sum(row[6] for row in items if row[5] == name)
    now = time.time()
    asked = [
        path
        for request in session.approvals.listing()
        if request.state == "pending"
        for path in request.paths
    ]
    ops = rows("SELECT call, max(id), max(started), undoes FROM op GROUP BY call, undoes ORDER BY max(id)")
    found, named = [], {}
    for name, _, started, undoes in ops:
        own = [int(row[0]) for row in rows("SELECT id FROM op WHERE call = ?", (name,))]
        mine = [row for row in items if row[0] in own]
        named[name] = {digest for row in mine for digest in (row[3], row[4]) if digest is not None}
        contents = {digest for digest in named[name] if digest in sizes}
        contents |= {row[5] for row in mine if row[5] in trees}
        is_open = bool(rows("SELECT 1 FROM op WHERE call = ? AND state = 'pending'", (name,)))
        last = {path: row[0] for row in items for path in row[1:3]}  # the last operation at each path
        spared = is_open or any(last[path] in own for path in asked if path in last)
        found.append(
            CallContents(
                name,
                0.0 if before is not None and started < now - before else 1.0,
                frozenset(contents),
                frozenset([undoes] if undoes else ()),
                spared,
                len(mine),
            )
        )
    return found, sizes, named


def known(
    session: Session, out: set[str], trees: set[str], most: int | None, mark: int
) -> tuple[set[int], dict[str, int], int]:
    """The operations that are to stay known, how many files of each tool count, and up to which operation
    nothing is kept, as up to `mark`; from the tables."""
    rows = session.state.rows
    ops = [(int(op), str(name)) for op, name in rows("SELECT id, call FROM op ORDER BY id")]
    items = Counter(int(op) for (op,) in rows("SELECT op FROM item"))
    fixed = {int(op) for name, op in rows("SELECT name, op FROM caught") if name in trees}
    for op, name in ops:
        if op > mark and (name not in out or op in fixed):
            break
        mark = max(mark, op)
    count = Counter[str]()
    for table in ("usage JOIN op ON op.id = usage.op", "spent"):
        for tool, files in rows(f"SELECT tool, files FROM {table}"):
            count[str(tool)] += int(files)
    cut = 0  # up to this place they go
    for end in range(1, len(ops)):
        first, rest = ops[:end], ops[end:]
        if first[-1][0] > mark or most is None or sum(items[op] for op, _ in ops[cut:]) <= most:
            break
        if not {name for _, name in first} & {name for _, name in rest}:
            cut = end
    # A tool of which no file counts may have a row or none.
    return {op for op, _ in ops[cut:]}, dict(+count), mark


def check(session: Session, work: list[tuple[Any, ...]], rules: list[Rule]) -> None:
    carry_out(session, work)
    mark = 0
    for given_rule in rules:  # what the first leaves is a history as well
        before = given_rule.before
        calls, sizes, named = told(session, before)
        of_late = {str(row[0]) for row in session.state.rows("SELECT call FROM op WHERE id > ?", (mark,))}
        calls = [one for one in calls if one.call in of_late]
        rule = Rule(None if before is None else 0.5, given_rule.max_bytes, given_rule.keep)
        out = gone(calls, sizes, rule)
        stay = {name for one in calls if one.call not in out for name in one.contents}
        left_known, files, mark = known(session, out, stay, rule.changes, mark)
        result = session.prune(before, rule.keep, max_bytes=rule.max_bytes)
        assert result.ok, result.content
        left = session.state.rows("SELECT hash FROM blob UNION ALL SELECT name FROM caught")
        assert {str(row[0]) for row in left} == stay
        assert known(session, set(), stay, None, 0)[:2] == (left_known, files)
        rows = session.state.rows
        assert {row[0] for row in rows("SELECT op FROM item UNION SELECT op FROM usage")} <= left_known
        assert result.data["bytes"] == sum(size for name, size in sizes.items() if name not in stay)
        for one in calls:
            if one.call not in out and not one.call.startswith("open"):
                for digest in named[one.call] if one.contents else ():
                    if digest in stay:
                        session.history.content(digest)


@given(st.lists(STEPS, min_size=1, max_size=14), st.lists(RULES, min_size=1, max_size=2), CHANGES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_history_loses_exactly_what_may_go(
    tmp_path_factory: pytest.TempPathFactory, work: list[tuple[Any, ...]], rules: list[Rule], changes: int
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    (folder / "ws").mkdir()
    with Session(folder / "ws", POLICY, state=folder / "state", session="s") as session, few(changes):
        check(session, work, rules)
    names = {file.name for file in (folder / "state").rglob("content/*")}
    with Session(folder / "ws", POLICY, state=folder / "state", session="s") as session:
        filed = {str(row[0]) for row in session.state.rows("SELECT hash FROM blob WHERE packed = 2")}
    assert names == filed


@given(st.lists(STEPS, min_size=1, max_size=10), st.lists(RULES, min_size=1, max_size=2), CHANGES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_shared_history_loses_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_url: str,
    work: list[tuple[Any, ...]],
    rules: list[Rule],
    changes: int,
) -> None:
    folder = tmp_path_factory.mktemp("shared")
    with Session(folder, POLICY, state=postgres_url, session="s", place=folder.name) as session, few(changes):
        check(session, work, rules)

"""What a fault run calls false: each lie that an answer, a history or an audit can tell, and no truth."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.toolkit.call import Result, failed
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import ItemRow
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.testing.faults import KINDS, Cell, Fault, Run, Seen, Table, report, verdict
from ringfence.toolkit.testing.faults.run import sample, selected_cells

OK = Result("1", "ok", "", {})
BEFORE = {"a": b"old", "d": {"dir": True}}
AFTER = {"a": b"new", "d": {"dir": True}}
EXPECTED = verdict.Expected(BEFORE, AFTER)


def error(code: str) -> Result:
    result = failed(None, CallError("io_error", "no"))
    assert result.error is not None
    result.error["code"] = code
    return result


@pytest.mark.parametrize(
    ("now", "truth"),
    [(AFTER, "done"), (BEFORE, "not done"), ({}, "partly done"), ({"a": b"x"}, "partly done")],
)
def test_the_truth_is_what_the_store_holds(now: dict[str, Any], truth: str) -> None:
    assert EXPECTED.truth(now) == truth
    assert verdict.Expected(BEFORE, None).truth(now) == ("not done" if now == BEFORE else "changed")


def test_a_call_that_restores_what_is_there_is_done() -> None:
    assert verdict.Expected(BEFORE, BEFORE).truth(BEFORE) == "done"


@pytest.mark.parametrize(
    ("result", "right"),
    [
        (OK, {"done"}),
        (error("already_exists"), {"not done"}),
        (error("io_error"), {"not done"}),
        (error("partial_failure"), {"partly done"}),
        (error("no_reply"), {"done", "not done", "partly done"}),
        (error("outcome_unknown"), {"done", "not done", "partly done"}),
        (error("internal_error"), set()),
    ],
    ids=lambda value: str(getattr(value, "error", "")),
)
def test_an_answer(result: Result, right: set[str]) -> None:
    truths = ("done", "not done", "partly done")
    assert {truth for truth in truths if not list(verdict.of_answer(result, truth))} == right


def test_a_change_that_depends_is_done_or_partly_done() -> None:
    assert not list(verdict.of_answer(OK, "changed"))
    assert not list(verdict.of_answer(error("partial_failure"), "changed"))
    assert list(verdict.of_answer(error("io_error"), "changed"))


def test_what_a_tree_does_not_show_may_be_what_is_not_done() -> None:
    partial = error("partial_failure")
    assert not list(verdict.of_answer(partial, "done", lenient=True))
    assert list(verdict.of_answer(partial, "not done", lenient=True))
    assert list(verdict.of_answer(error("io_error"), "done", lenient=True))
    assert not list(verdict.of_audit({"outcome": "partial"}, "done", 0, lenient=True))


def test_a_temporary_is_no_content_and_does_not_stay() -> None:
    found = {"d/.ringfence-12": b"new", "a": b"old", ".ringfence/x": b""}
    assert verdict.visible(found) == {"a": b"old", "d": {"dir": True}}
    assert verdict.visible({**found, "d/b": b""}) == {"a": b"old", "d/b": b""}
    del found[".ringfence/x"]
    assert list(verdict.of_temporaries(found)) == ["'d' has a temporary file that is never removed"]


def item(kind: str, state: str, path: str = "a", **more: Any) -> ItemRow:
    values: dict[str, Any] = {
        "op": 1, "n": 0, "path2": None, "type": "file", "before": sha256(b"old"), "after": sha256(b"new"),
        "mode": None, "target": None, "size": 0, "grown": 0, "identity": "", "temporary": None, "call": "c",
        "session": "s", "agent": "a", "tool": "t", "started": 0.0, "undoes": None,
        "metadata": None,
    }  # fmt: skip
    return ItemRow(kind=kind, state=state, path=path, **{**values, **more})


HISTORIES = [
    # item, the trees in which it is true that it is done, and those in which it is not
    (("write", {}), [{"a": b"new"}], [{"a": b"old"}, {}, {"a": {"dir": True}}]),
    (("delete", {}), [{}, {"ab": b""}], [{"a": b"old"}, {"a/b": b""}]),
    (("move", {"path2": "b"}), [{"b": b"old"}], [{"a": b"old"}, {"a": b"old", "b": b"old"}, {}]),
    (("directory", {"after": None, "before": "x"}), [{"a": {"dir": True}}, {"a/b": b""}], [{}, {"ab": b""}]),
]


@pytest.mark.parametrize(("given", "done", "undone"), HISTORIES, ids=[row[0][0] for row in HISTORIES])
def test_a_history(given: tuple[str, Any], done: list[Any], undone: list[Any]) -> None:
    kind, more = given

    def false(state: str, now: Any, *, settled: bool = True) -> list[str]:
        return list(verdict.of_history([item(kind, state, **more)], now, "done", settled=settled))

    for now in done:
        assert not false("done", now)
        assert false("aborted", now) == ["the history says that 'a' is not done, and it is"]
    for now in undone:
        assert false("done", now) == ["the history says that 'a' is done, and it is not"]
        assert not false("aborted", now)
    for now in done + undone:
        assert not false("unknown", now)
        assert not false("pending", now, settled=False)
        assert false("pending", now) == ["'a' is still open after the restart"]


def test_what_nobody_knows_is_open() -> None:
    assert verdict.is_open([item("write", "done"), item("write", "pending")])
    assert verdict.is_open([item("write", "unknown")])
    assert not verdict.is_open([item("write", "done"), item("write", "aborted")])


def test_a_history_that_is_empty() -> None:
    assert not list(verdict.of_history([], BEFORE, "not done", settled=True))
    assert len(list(verdict.of_history([], AFTER, "done", settled=True))) == 1


@pytest.mark.parametrize(
    ("record", "truth", "faults", "lies"),
    [
        ({"outcome": "done"}, "done", 0, 0),
        ({"outcome": "done"}, "not done", 0, 1),
        ({"outcome": "already_exists"}, "not done", 0, 0),
        ({"outcome": "already_exists"}, "done", 0, 1),
        ({"outcome": "partial"}, "partly done", 0, 0),
        ({"outcome": "partial"}, "done", 0, 1),
        ({"outcome": "aborted"}, "not done", 0, 0),
        ({"outcome": "unknown"}, "done", 0, 0),
        ({"outcome": "no_reply"}, "done", 0, 0),
        ({"outcome": "done"}, "done", 2, 1),
        (None, "not done", 0, 1),
    ],
)
def test_an_audit(record: dict[str, Any] | None, truth: str, faults: int, lies: int) -> None:
    assert len(list(verdict.of_audit(record, truth, faults))) == lies


def test_a_content_that_is_nowhere() -> None:
    before = {"a": b"1", "b": b"2", "c": b"3", "d": {"dir": True}}
    lost = list(verdict.of_contents(before, {"z": b"1"}, lambda digest: digest == sha256(b"2")))
    assert lost == ["LOST: the content of 'c'"]


@pytest.mark.parametrize("kinds", [frozenset(KINDS), frozenset(KINDS) - {"stale"}])
def test_a_sample_has_a_lost_reply_of_every_call_and_every_fault(kinds: frozenset[str]) -> None:
    table = Table.load()
    chosen = sample(table, kinds)
    faults = {str(cell.fault) for cell in chosen if not cell.exact}  # the others are runs that were found
    assert faults == {str(f) for f in table.faults if f.kind in kinds}
    assert {cell.case["name"] for cell in chosen if str(cell.fault) == "drop after"} == {
        case["name"] for case in table.calls
    }


def test_the_requests_that_a_fault_meets() -> None:
    [cell, *_] = [cell for cell in sample(Table.load()) if str(cell.fault) == "drop after"]
    seen = tuple(Seen(n, method, "", "", "", False, "") for n, method in enumerate(("GET", "PUT"), 1))
    assert numbers(cell, seen) == [2]
    assert numbers(cell, seen[:1]) == []
    [cell, *_] = Table.load().cells()
    assert numbers(cell, seen) == [1, 2]


def test_a_run_that_was_found_meets_the_request_that_fits() -> None:
    seen = tuple(Seen(n, "PUT", target, "", "", False, "") for n, target in enumerate(("/a", "/b"), 1))
    cell = Cell({"name": "c"}, Fault("cut", methods=("PUT",), target="/b"), exact=True)
    assert cell.runs(seen, ()) == [cell.fault]
    assert cell.runs(seen[:1], ()) == []


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_the_parts_of_the_table_have_each_run_once_and_each_class(parts: int) -> None:
    seen = tuple(Seen(n, "PUT", "", "", "", False, "") for n in range(1, 12))
    every = [
        (row.case["name"], str(row.fault), n) for row in selected_cells("all") for n in numbers(row, seen)
    ]
    found: list[tuple[str, str, int]] = []
    for part in range(1, parts + 1):
        rows = selected_cells(f"{part}/{parts}")
        assert all(numbers(row, seen) for row in rows)
        found += [(row.case["name"], str(row.fault), n) for row in rows for n in numbers(row, seen)]
    assert sorted(found) == sorted(every)
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("wanted", ["some", "0/8", "9/8", "1/", "/8", "1/0"])
def test_a_part_that_there_is_not(wanted: str) -> None:
    with pytest.raises(ValueError, match="a part such as '1/8'"):
        selected_cells(wanted)


def numbers(cell: Cell, seen: tuple[Seen, ...]) -> list[int]:
    return [fault.nth for fault in cell.runs(seen, {"GET"})]


def test_a_report_counts_and_shows_what_is_false() -> None:
    seen = (Seen(1, "PUT", "/a?x", "drop after", "200", True, "dropped"),)
    false = ("the answer says not done (already_exists), the store done",)
    runs = [
        Run("create", None, "ok", "done", (), ()),
        Run("create", Fault("drop after"), "already_exists", "done", false, seen),
        Run("create", Fault("drop after", nth=2), "ok", "done", (), seen),
    ]
    text = report(runs)
    assert "1/2" in text and "3 runs, 2 right, 1 false" in text
    assert text.endswith(
        "create, drop after at request 1, PUT /a: already_exists, done;"
        " the answer says not done (already_exists), the store done"
    )

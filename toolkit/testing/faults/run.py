"""Fault run: each call of a table meets each fault at each of its requests, and the results are compared.

Changes only workspaces of the store under test, and writes states only into the given directory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Protocol

import yaml

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import DONE, UNKNOWN
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.faults import verdict
from ringfence.toolkit.testing.faults.model import KINDS, Fault, Seen

FILE = Path(__file__).parent / "stores.yaml"  # a link to `tests/faults` in a checkout
_SAMPLE_FAULTS = 2  # faults of each call in a sample, besides a lost reply
POLICY = 'version: 1\nrules: {"*": allow}\ndurable: false\n'


class Proxy(Protocol):
    """The proxy between client library and store: HttpProxy or SftpProxy."""

    kinds: frozenset[str]  # of the faults that the proxy supports
    reads: frozenset[str]  # methods that change nothing
    attributes: frozenset[str]  # methods that change only what a tree does not contain

    def arm(self, fault: Fault | None) -> None:
        """Count requests from here, and cause the fault; None lets everything pass."""

    def seen(self) -> tuple[Seen, ...]:
        """Return the finished requests since the proxy was armed."""

    def wait(self, seconds: float = 30.0) -> None:
        """Wait until no request is in progress, at most these seconds. TimeoutError."""


class RawTree(Protocol):
    """A workspace that is filled and read without the proxy; each `Tree` of the backend contract is one."""

    def put(self, path: str, what: Any) -> None:
        """Create one entry, as in `backend_contract.Tree.put`."""

    def tree(self) -> dict[str, Any]:
        """Return all entries, as in `backend_contract.Tree.tree`."""


@dataclass(frozen=True, slots=True)
class Faulty:
    """A store behind a proxy. `fresh` returns an empty workspace, without the proxy.

    `open` opens a session in it through the proxy, with the given policy and state directory, and with a
    working client: a connection that an earlier fault ended is replaced. Requests that a session sends only
    once are best sent there; otherwise each fault meets them too.
    """

    proxy: Proxy
    fresh: Callable[[], Any]
    open: Callable[[Any, Policy, Path], Session]


@dataclass(frozen=True, slots=True)
class Table:
    """The calls, the faults, and runs that once found an error (`found`); `stores.yaml` has them."""

    calls: tuple[dict[str, Any], ...]
    faults: tuple[Fault, ...]
    found: tuple[Cell, ...] = ()

    @classmethod
    def load(cls, file: Path = FILE) -> Table:
        """Return the table in a YAML file."""
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        faults = tuple(Fault.of(row) for row in data["faults"])
        calls = {case["name"]: case for case in data["calls"]}
        rows = ((calls[row["call"]], Fault.of(row["fault"])) for row in data.get("found", ()))
        found = tuple(Cell(case, fault, exact=True) for case, fault in rows)
        return cls(tuple(calls.values()), faults, found)

    def cells(self, kinds: Collection[str] = KINDS, part: int = 1, parts: int = 1) -> Iterator[Cell]:
        """Yield each call with each fault of these kinds, at each request, or one part of `parts` of them.

        Each part has every call with every fault; the parts differ in the requests.
        """
        rows = itertools.product(self.calls, self.faults)
        for n, (case, fault) in enumerate(rows):
            if fault.kind in kinds and (fault.kind != "stale" or "theirs" in case):
                yield Cell(case, fault, every=parts, begin=(n + part - 1) % parts)


@dataclass(frozen=True, slots=True)
class Cell:
    """A call and a fault, which occurs at each of the call's requests.

    Or at one request that changes something (`turn`), at the request that the fault names (`exact`), or at
    number `begin` (from 0) and every `every`-th one after it.
    """

    case: dict[str, Any]
    fault: Fault
    turn: int | None = None
    exact: bool = False
    every: int = 1
    begin: int = 0

    def runs(self, seen: tuple[Seen, ...], reads: Collection[str]) -> list[Fault]:
        """Return the fault at each selected request, among the requests of the call without a fault."""
        if self.exact:
            fitting = [one for one in seen if self.fault.fits(one.method, one.target)]
            return [self.fault] if len(fitting) >= self.fault.nth else []
        wanted = [one.number for one in seen][self.begin :: self.every]
        if self.turn is not None:
            wanted = [one.number for one in seen if (one.method in reads) == (self.fault.kind == "stale")]
            wanted = wanted[self.turn % len(wanted) :][:1] if wanted else []
        return [replace(self.fault, nth=n) for n in wanted]


def sample(table: Table, kinds: Collection[str] = KINDS) -> list[Cell]:
    """Return a lost reply for each call, the other faults in turn at one request, and the runs in `found`."""
    others = [fault for fault in table.faults if fault.kind in kinds and str(fault) != "drop after"]
    found = []
    for n, case in enumerate(table.calls):
        lost = [fault for fault in table.faults if str(fault) == "drop after"]
        turns = [others[(n * _SAMPLE_FAULTS + k) % len(others)] for k in range(_SAMPLE_FAULTS)]
        found += [
            Cell(case, fault, n) for fault in (*lost, *turns) if fault.kind != "stale" or "theirs" in case
        ]
    return found + [cell for cell in table.found if cell.fault.kind in kinds]


def selected_cells(wanted: str | None, kinds: Collection[str] = KINDS) -> list[Cell]:
    """Return the cells of `all`, of a part (`1/8`), or of the sample. ValueError for any other text."""
    table = Table.load()
    if not wanted:
        return sample(table, kinds)
    if wanted == "all":
        return list(table.cells(kinds))
    part, _, parts = wanted.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ValueError(f"FAULTS is 'all' or a part such as '1/8', not {wanted!r}")
    return list(table.cells(kinds, int(part), int(parts)))


@dataclass(frozen=True, slots=True)
class Run:
    """One call with one fault: its answer, the truth, and the errors found."""

    case: str
    fault: Fault | None
    answer: str
    truth: str
    false: tuple[str, ...]
    seen: tuple[Seen, ...]

    @property
    def met(self) -> bool:
        """Whether the fault occurred."""
        return any(seen.fault for seen in self.seen)

    def __str__(self) -> str:
        at = next((seen for seen in self.seen if seen.fault), None)
        where = f" at request {at.number}, {at.method} {at.target.partition('?')[0]}" if at else ""
        found = "; ".join(self.false) or "right"
        return f"{self.case}, {self.fault or 'no fault'}{where}: {self.answer}, {self.truth}; {found}"


def check_faults(store: Faulty, folder: Path, cells: Iterable[Cell] | None = None) -> list[Run]:
    """Make the runs of `cells` (default: of the whole table), after each call once without a fault.

    The states are written into the directory `folder`.
    """
    runs: list[Run] = []
    plain: dict[str, Run] = {}
    for cell in Table.load().cells(store.proxy.kinds) if cells is None else cells:
        name = cell.case["name"]
        if name not in plain:
            plain[name] = _CallRuns(store, cell.case, folder).run(None)
            runs.append(plain[name])
        one = _CallRuns(store, cell.case, folder, plain[name].seen)
        runs += map(one.run, cell.runs(one.plain, store.proxy.reads))
    return runs


def report(runs: Iterable[Run]) -> str:
    """Return the runs as a table, correct ones of all for each call and fault, and each error in a line."""
    rows: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        rows.setdefault(run.case, {}).setdefault(str(run.fault or "none"), []).append(run)
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [f"{n}: {name}" for n, name in enumerate(columns, 1)]
    lines.append(f"{'':28}" + "".join(f"{n:>8}" for n in range(1, len(columns) + 1)))
    for case, row in rows.items():
        cells = [row.get(name, []) for name in columns]
        shown = [f"{sum(not run.false for run in cell)}/{len(cell)}" if cell else "-" for cell in cells]
        lines.append(f"{case:28}" + "".join(f"{text:>8}" for text in shown))
    every = [run for row in rows.values() for cell in row.values() for run in cell]
    false = [run for run in every if run.false]
    lines.append(f"{len(every)} runs, {len(every) - len(false)} right, {len(false)} false")
    return "\n".join([*lines, *map(str, false)])


@dataclass
class _CallRuns:
    """The runs of one call; `plain` are its requests without a fault."""

    store: Faulty
    case: dict[str, Any]
    folder: Path
    plain: tuple[Seen, ...] = ()
    _policy: Policy = field(default_factory=lambda: Policy.loads(POLICY))

    def run(self, fault: Fault | None) -> Run:
        """Make the call in a new workspace with the fault; compare, restart, compare, undo."""
        proxy, raw = self.store.proxy, self.store.fresh()
        proxy.arm(None)
        for path, what in self.case.get("files", {}).items():
            raw.put(path, what)
        state = Path(mkdtemp(dir=self.folder))
        with self.store.open(raw, self._policy, state) as session:
            calls = self._prepare(session)
            if fault is not None and fault.kind == "stale":
                self._change_meanwhile(raw, state, calls)
            want = self._expected(verdict.visible(raw.tree()), fault)
            proxy.wait()
            proxy.arm(fault)
            result = self._make_call(session, calls)
            proxy.wait()
            now, seen = verdict.visible(raw.tree()), proxy.seen()
            truth = want.truth(now)
            attributes = self._concerns_attributes(seen)
            call = str(result.data.get("call_id"))
            items = list(session.history.items("op.call = ?", (call,)))
            lenient = attributes or verdict.is_open(items)
            false = list(verdict.of_answer(result, truth, lenient=lenient))
            false += verdict.of_history(items, now, truth, settled=False)
        proxy.arm(None)
        false += self._restart_errors(raw, state, call, want, attributes)
        answer = str(result.error["code"]) if result.error is not None else result.status
        return Run(self.case["name"], fault, answer, truth, tuple(dict.fromkeys(false)), seen)

    def _concerns_attributes(self, seen: tuple[Seen, ...]) -> bool:
        """Whether the failed request, or each change after it, sets only attributes, which a tree has not."""
        proxy, met = self.store.proxy, [one for one in seen if one.fault]
        if any(one.method in proxy.attributes for one in met):
            return True
        left = [one.method for one in self.plain if met and one.number >= met[0].number]
        changes = set(left) - proxy.reads
        return bool(changes) and changes <= proxy.attributes

    def _prepare(self, session: Session) -> list[str]:
        """Make the calls before the tested one; returns their ids."""
        made = [self._successful(session.call(call)) for call in self.case.get("first", ())]
        return [str(result.data["call_id"]) for result in made]

    def _successful(self, result: Result) -> Result:
        if not result.ok:
            raise AssertionError(f"{self.case['name']}: a call without a fault: {result.to_line()}")
        return result

    def _change_meanwhile(self, raw: RawTree, state: Path, calls: list[str]) -> None:
        """Record the present replies to the call's reads, then change the store as somebody else would."""
        with self.store.open(raw, self._policy, state) as session:
            session.context = replace(session.context, dry_run=True)
            self._make_call(session, calls)
        for path, what in self.case["theirs"].items():
            raw.put(path, what)

    def _expected(self, before: verdict.Tree, fault: Fault | None) -> verdict.Expected:
        if fault is not None and fault.kind == "stale":
            return verdict.Expected(before, None)
        after = {
            path.rstrip("/"): what if isinstance(what, dict) else what.encode()
            for path, what in self.case["after"].items()
        }
        return verdict.Expected(before, after)

    def _make_call(self, session: Session, calls: list[str]) -> Result:
        if "undo" in self.case:
            return session.undo(calls[-1], session=None)
        if "restore" in self.case:
            return session.restore(**self.case["restore"])
        return session.call(self.case["call"])

    def _restart_errors(
        self, raw: RawTree, state: Path, call: str, want: verdict.Expected, attributes: bool
    ) -> Iterator[str]:
        """Open a new session, which recovers open intents; it must have every content, and undo the call."""
        with self.store.open(raw, self._policy, state) as session:
            found = raw.tree()
            yield from verdict.of_temporaries(found)
            now = verdict.visible(found)
            truth = want.truth(now)
            items = list(session.history.items("op.call = ?", (call,)))
            yield from verdict.of_history(items, now, truth, settled=True)
            records = [record for record in audit.records(session.state) if record.get("call") == call]
            faults = len(audit.verify(session.state))
            record = records[-1] if records else None
            yield from verdict.of_audit(record, truth, faults, lenient=attributes)
            yield from verdict.of_contents(want.before, now, lambda digest: _has_content(session, digest))
            states = {item.state for item in items}
            if UNKNOWN in states:
                return  # the outcome is unknown, and nothing is undone on a guess
            if DONE in states:
                undone = session.undo(call)
                if not undone.ok:
                    yield f"the call cannot be undone: {undone.content.splitlines()[0]}"
            if verdict.visible(raw.tree()) != want.before and (DONE in states or truth != verdict.NOT_DONE):
                yield "the undo does not restore the tree from before the call"


def _has_content(session: Session, digest: str) -> bool:
    try:
        session.history.content(digest)
    except CallError:
        return False
    return True

"""Requests, grants of each scope, refusals, reopenings and time in any order, against a small model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state.open import open_state

PATHS = ("build/a.o", "build/b.o", "src/a.c")
RULES = ({"key": "delete", "pattern": "/*/a.*"}, {"key": "write", "pattern": "/src/"})
# A call is one or two paths, each asked about by one of the rules; what it changes is named by its digest.
CALLS = st.builds(
    lambda agent, session, paths, rules: (agent, session, tuple(paths), tuple(sorted(rules))),
    st.sampled_from(("coder", "coder/sub", "other")),
    st.sampled_from(("s", "s/sub", "t")),
    st.lists(st.sampled_from(PATHS), min_size=1, max_size=2, unique=True),
    st.sets(st.integers(0, 1), min_size=1),
)
SCOPES = st.sampled_from([("once", None), ("session", None), ("pattern", "build/*"), ("pattern", "*/a.*")])
Call = tuple[str, str, tuple[str, ...], tuple[int, ...]]


@dataclass
class Model:
    """What people said, as plain facts; `now` in seconds."""

    now: float = 1_000.0
    refused: set[tuple[str, str, tuple[str, ...]]] = field(default_factory=set)
    once: set[Call] = field(default_factory=set)
    wide: list[tuple[Call, str, str | None, float]] = field(default_factory=list)

    def is_refused(self, call: Call) -> bool:
        return any(
            _is_in(call[0], agent) and _is_in(call[1], session) and call[2] == paths
            for agent, session, paths in self.refused
        )

    def covered(self, call: Call) -> bool:
        return any(self._covers(call, *grant) for grant in self.wide)

    def _covers(self, call: Call, given: Call, scope: str, pattern: str | None, until: float) -> bool:
        if until <= self.now or call[0] != given[0] or not set(call[3]) <= set(given[3]):
            return False
        return call[1] == given[1] if scope == "session" else _all(pattern, call[2])


def _is_in(name: str, parent: str) -> bool:
    return name == parent or name.startswith(parent + "/")


def _all(pattern: str | None, paths: tuple[str, ...]) -> bool:
    return all(fnmatchcase(path, pattern or "") for path in paths)


class Grants(RuleBasedStateMachine):
    asked = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.state = open_state(":memory:")
        self.approvals = Approvals(self.state, lambda: self.model.now)
        self.number = 0
        self.calls: dict[str, Call] = {}

    def teardown(self) -> None:
        self.state.close()

    def request(self, call: Call) -> Request:
        agent, session, paths, rules = call
        self.number += 1
        return Request(
            id=f"a-{self.number}",
            agent=agent,
            session=session,
            tool="delete",
            arguments={"paths": list(paths), "rules": list(rules)},
            digest=" ".join(paths),
            revision="r",
            title="",
            preview="",
            decision={"rule": RULES[rules[0]]},
            paths=("made/on/the/way", *paths),
            asking=paths,
            asks=tuple(RULES[n] for n in rules),
            changes=True,
            asked=self.model.now,
        )

    @rule(target=asked, call=CALLS)
    def call(self, call: Call) -> str:
        """What an agent does: it runs if it may, and asks if not."""
        model, request = self.model, self.request(call)
        try:
            granted = self.approvals.permits(request)
        except CallError as error:
            assert error.code == "approval_refused"
            assert model.is_refused(call), "refused, and nobody refused it"
            return ""
        assert not model.is_refused(call), "a refused change never runs unless it is reopened"
        assert (granted is not None) == (model.covered(call) or call in model.once)
        if granted is not None:
            if not model.covered(call):
                model.once.discard(call)
            return ""
        filed, _ = self.approvals.ask(request)
        self.calls[filed.id] = call
        return filed.id

    @rule(name=asked, scope=SCOPES, lasts=st.integers(1, 100))
    def grant(self, name: str, scope: tuple[str, str | None], lasts: int) -> None:
        kind, pattern = scope
        until = None if kind == "once" else self.model.now + lasts
        answered = self.answered(name, Answer(True, kind, pattern=pattern, until=until))
        if answered and kind == "once":
            self.model.once.add(self.calls[name])
        elif answered:
            assert kind == "session" or _all(pattern, self.calls[name][2])
            self.model.wide.append((self.calls[name], kind, pattern, until or 0.0))

    @rule(name=asked)
    def refuse(self, name: str) -> None:
        if self.answered(name, Answer(False)):
            self.model.refused.add(self.calls[name][:3])

    def answered(self, name: str, answer: Answer) -> bool:
        if not name:
            return False
        before = self.approvals.get(name).state
        with suppress(CallError):
            self.approvals.answer(name, answer)
            assert before == "pending", "only what waits is answered"
            return True
        return False

    @rule(name=asked)
    def reopen(self, name: str) -> None:
        if not name or self.approvals.get(name).state != "refused":
            return
        self.approvals.reopen(name)
        call = self.calls[name]
        still = {self.calls[one.id][:3] for one in self.approvals.refused(1000)}
        if call[:3] not in still:  # another request for the same change may have been refused, too
            self.model.refused.discard(call[:3])

    @rule(name=consumes(asked))
    def forget(self, name: str) -> None:
        """Nothing: the machine answers other requests from then on."""

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.model.now += seconds

    @invariant()
    def no_grant_is_left_for_a_refused_change(self) -> None:
        for call in list(self.model.once):
            if self.model.is_refused(call):
                with suppress(CallError):
                    assert self.approvals.permits(self.request(call)) is None


def test_answers_bind() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Grants, settings=settings(max_examples=100, stateful_step_count=40, deadline=None)
    )  # type: ignore[no-untyped-call]

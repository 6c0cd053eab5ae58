"""Test helpers: assertions about a policy, and an agent's session in a workspace in memory.

Touches no file of this machine. OBSERVERS are called with each rule that decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ringfence.policy import ACTIONS, Case, Decision, Effect, Policy, Rule
from ringfence.policy.errors import nearest
from ringfence.policy.evaluation.cases import needs_of
from ringfence.policy.model import RUN, WRITE_KINDS, names_action
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.session import Session

__all__ = ["Script", "Trial", "assert_allowed", "assert_asks", "assert_denied"]

# Called with every rule that decided something, and its policy.
OBSERVERS: list[Callable[[Policy, Rule], None]] = []
ROOT = "/workspace"


def assert_allowed(  # noqa: PLR0913  one call in a test, written in one line
    policy: Policy, agent: str, what: str, path: str, to: str | None = None, *, reason: str = ""
) -> Decision:
    """Fail unless the policy allows an action or tool on a path.

    A path with `/` at its end is a directory.
    """
    return _assert(Effect.ALLOW, policy, agent, what, path, to, reason)


def assert_asks(  # noqa: PLR0913  one call in a test, written in one line
    policy: Policy, agent: str, what: str, path: str, to: str | None = None, *, reason: str = ""
) -> Decision:
    """Fail unless the policy asks a person. `reason` is a text that the decision's reason must contain."""
    return _assert(Effect.ASK, policy, agent, what, path, to, reason)


def assert_denied(  # noqa: PLR0913  one call in a test, written in one line
    policy: Policy, agent: str, what: str, path: str, to: str | None = None, *, reason: str = ""
) -> Decision:
    """Fail unless the policy denies it. `to` is the destination of a move or a copy."""
    return _assert(Effect.DENY, policy, agent, what, path, to, reason)


def _assert(  # noqa: PLR0913  the parameters of the three above
    want: Effect, policy: Policy, agent: str, what: str, path: str, to: str | None, reason: str
) -> Decision:
    __tracebackhide__ = True
    if not names_action(what) and what != RUN and what not in policy.tools:
        similar = nearest(what, (*ACTIONS, *WRITE_KINDS, RUN, *policy.tools))
        question = f"; did you mean {similar}?" if similar else ""
        raise ValueError(f"{what!r} is neither an action nor a tool{question}")
    plain = path.rstrip("/") or "."
    if what == RUN:
        case = Case(RUN, path, want, agent=agent, command=True)
    else:
        case = Case(what, plain, want, directory=path.endswith("/"), agent=agent, to=to)
    needs = needs_of(policy, case)
    decision = policy.decide(agent, what, needs)
    for need in needs if OBSERVERS else ():
        name = need.name if policy.has_kinds else need.action
        effect, rule = policy.verdict(agent, what, name, need.path, need.directory)
        if not need.incidental or effect is Effect.DENY:
            observe(policy, rule)
    shown = f"{what} {path}" + (f" to {to}" if to else "") + f" for agent {agent}"
    if decision.effect is not want:
        raise AssertionError(f"{shown}: {decision.effect}, not {want}\n{_explanation(decision)}")
    if reason not in decision.reason:
        found = f"{decision.effect}, but not because of {reason!r}"
        raise AssertionError(f"{shown}: {found}\n{_explanation(decision)}")
    return decision


def _explanation(decision: Decision) -> str:
    rule = f"\n  {decision.rule}" if decision.rule and decision.rule.reason else ""
    return f"  {decision.action} {decision.path}: {decision.reason}{rule}"


def observe(policy: Policy, rule: Rule | None) -> None:
    """Call every observer with a rule that decided."""
    if rule is not None:
        for observer in OBSERVERS:
            observer(policy, rule)


class _Observed(Policy):
    """The same policy, which reports each rule that decides."""

    def verdict(self, *args: Any, **options: Any) -> Any:
        found = super().verdict(*args, **options)
        observe(self, found[1])
        return found


class Script:
    """An approver with these answers, one for each question; True and False are enough.

    A further question is refused and kept in `unexpected`.
    """

    def __init__(self, answers: Iterable[bool | Answer]) -> None:
        self.left = list(answers)
        self.asked: list[Request] = []
        self.unexpected: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        """Return the next answer."""
        self.asked.append(request)
        if not self.left:
            self.unexpected.append(request)
            return Answer(False, reason="the script has no answer for this")
        answer = self.left.pop(0)
        return answer if isinstance(answer, Answer) else Answer(answer, by="script")

    def check(self) -> None:
        """Fail if a question had no answer in the script, or an answer is left."""
        if self.unexpected:
            titles = "; ".join(request.title for request in self.unexpected)
            raise AssertionError(f"asked without an answer in the script: {titles}")
        if self.left:
            raise AssertionError(f"{len(self.left)} of the script's answers were never asked for")


@dataclass(slots=True)
class Trial:
    """One agent's session in a workspace in memory, or in the file system `fake` (pyfakefs).

    Without `answers` a call that needs approval is answered `approval_required`. As a context manager it
    checks the script at its end.
    """

    policy: Policy | str | os.PathLike[str]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    agent: str = "default"
    answers: Iterable[bool | Answer] | None = None
    fake: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    session: Session = field(init=False)
    script: Script = field(init=False)
    _fs: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        rules = self.policy if isinstance(self.policy, Policy) else Policy.load(os.fspath(self.policy))
        if OBSERVERS:
            rules = _Observed(rules.content, revision=rules.revision, files=rules.files, tools=rules.tools)
        self.script = Script(self.answers or ())
        options: dict[str, Any] = {"state": ":memory:", "agent": self.agent} | self.options
        if self.answers is not None:
            options["approver"] = self.script
        if self.fake is None:
            from ringfence.toolkit.storage.open import private_memory

            self._fs = options["fs"] = private_memory()
            self._fs.makedirs(ROOT, exist_ok=True)
        else:
            self.fake.create_dir(ROOT)
        for path, content in self.files.items():
            self.put(path, content)
        self.session = Session(ROOT, rules, **options)

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.close()
        if kind is None:
            self.script.check()

    def call(self, tool: str, /, **arguments: Any) -> Result:
        """Make one call as the agent."""
        return self.session.call({"tool": tool, "arguments": arguments})

    @property
    def asked(self) -> list[Request]:
        """The questions asked so far."""
        return self.script.asked

    def put(self, path: str, content: str | bytes) -> None:
        """Write a file without the policy, as somebody else would."""
        data = content.encode() if isinstance(content, str) else content
        place = f"{ROOT}/{path}"
        if self.fake is not None:
            self.fake.create_file(place, contents=data)
        else:
            self._fs.makedirs(place.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(place, data)

    def read(self, path: str) -> str | None:
        """Return a file's text as it is now; None without the file."""
        place = f"{ROOT}/{path}"
        if self.fake is not None:
            return str(self.fake.get_object(place).contents) if self.fake.isfile(place) else None
        return bytes(self._fs.cat_file(place)).decode() if self._fs.isfile(place) else None

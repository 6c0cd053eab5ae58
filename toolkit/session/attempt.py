"""Context of a session's calls, and the state of one call on its way through the stages. Values only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringfence.policy import Amount, Decision, Effect, Need, Policy
from ringfence.policy.model import GRAVITY, Counting, kinds_of
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit import paths
from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.outcome import Outcome
from ringfence.toolkit.history.records import DONE, Position
from ringfence.toolkit.history.store import History
from ringfence.toolkit.plan.changes import Place, Plan
from ringfence.toolkit.plan.command_run import CommandRun
from ringfence.toolkit.plan.impact import Step, steps, without_files
from ringfence.toolkit.session.content_finds import ContentFinds
from ringfence.toolkit.state.protocol import State
from ringfence.toolkit.storage.first_look import MAX_CONTENT
from ringfence.toolkit.text import plural
from ringfence.toolkit.tools import Tool
from ringfence.toolkit.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ringfence.toolkit.commands.scratches import Scratch
    from ringfence.toolkit.session.secret_marks import SecretMarks


# The verdict by the rules, without and with those on trial; both are None where there are none.
Trial = tuple[Decision | None, Decision | None]


def stricter(known: Decision | None, found: Decision) -> Decision:
    """Return the decision that represents a call: the stricter one, else that of the greater action."""
    if known is None:
        return found
    return max(known, found, key=lambda each: (each.effect, GRAVITY.get(each.action, -1)))


@dataclass(frozen=True, slots=True)
class Context:
    """What all calls of a session share; made once. `session` is its name, `ask` as `Session` takes it."""

    agent: str
    session: str
    workspace: Workspace
    state: State
    history: History
    approvals: Approvals
    ask: str
    dry_run: bool
    clock: Callable[[], float] = time.time  # in POSIX seconds


@dataclass(slots=True)
class Attempt:
    """One call and what the stages have found so far. `name` is Ringfence's own id for it."""

    context: Context
    policy: Policy  # read once: the policy at the call's start, without what has ended, judges it to its end
    call: ToolCall
    name: str = field(default_factory=lambda: f"c-{os.urandom(6).hex()}")
    started: float = field(init=False)
    tool: Tool | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)
    places: dict[str, tuple[Place, Any]] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)  # what first looks brought, by canonical path
    decision: Decision | None = None
    refused: Decision | None = None  # the strictest on paths of a list that were left out
    failed: dict[str, CallError] = field(default_factory=dict)  # paths of a list without a place, by its key
    needs: list[Need] = field(default_factory=list)  # every need that was judged
    planned: Position | None = None  # the history's position before the plan was made
    plan: Plan | None = None
    usage: dict[str, Amount] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None
    approval: str | None = None
    grant: Request | None = None  # the granted request that permits the call
    by: str | None = None  # the person, if it is a person's own act
    trial: Trial = (None, None)
    lost: tuple[str, ...] = ()
    once: str = ""  # why a person is asked whatever the rules say; a grant for that is for one call
    upstream: dict[str, Any] | None = None  # of a call to another server, the fields of its record
    left_out: int = 0  # entries of a store that no path can name
    cwd: str = paths.ROOT  # the directory that a command runs in
    commands: tuple[str, ...] = ()  # what `run` is judged on: the simple commands of a command line
    scratch: Scratch | None = None  # what a command changed, until that is applied
    ran: CommandRun | None = None
    content: ContentFinds | None = None  # what detectors found, once they were asked
    marks: SecretMarks | None = None  # in the place of what was found, once there was any
    in_session: str | None = None  # the session in whose history it is recorded, if that is another one
    task_ids: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    enforcing: bool = field(init=False)
    fold: Fold = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.context.clock()
        self.policy = self.policy.at(self.started)
        self.enforcing = self.policy.mode != "monitor"
        self.fold = self.context.workspace.fold

    def release(self) -> None:
        """Release every handle that the backend gave for the path arguments."""
        for _, spot in self.places.values():
            self.context.workspace.backend.release(spot)

    @property
    def has_much_content(self) -> bool:
        """Whether first looks have brought so much that later ones should bring no content."""
        return sum(map(len, self.contents.values())) >= MAX_CONTENT

    @property
    def known_tool(self) -> Tool:
        """The call's tool. Only for stages after the tool was found."""
        assert self.tool is not None, "the tool is found before anything else is asked"
        return self.tool

    @property
    def decided(self) -> Decision:
        """The decision so far. Only for stages after the first judgement."""
        assert self.decision is not None, "every call is judged before it gets here"
        return self.decision

    def try_out(self, needs: list[Need], decision: Decision) -> None:
        """Judge needs also with the rules on trial, for the record alone; `decision` is that without them."""
        if self.policy.has_trials:
            tried = self.policy.with_trials().decide(
                self.context.agent, self.known_tool.name, needs, fold=self.fold
            )
            self.trial = stricter(self.trial[0], decision), stricter(self.trial[1], tried)

    @property
    def edits(self) -> bool:
        """Whether the tool writes a part of a file, and never all of it."""
        return kinds_of(self.known_tool.name) == ("edit",)

    def judge(self, needs: list[Need]) -> Decision:
        """Return the policy's decision on these needs of the call."""
        return self.policy.decide(self.context.agent, self.known_tool.name, needs, fold=self.fold)

    def refuses(self, action: str, path: str, directory: bool = False, kind: str = "") -> bool:
        """Whether the policy denies an action, or this kind of writing, in a mode that enforces it."""
        name = f"{action}.{kind}" if kind and self.policy.has_kinds else action
        return self.effect(name, path, directory) is Effect.DENY

    def denies(self, action: str, path: str) -> bool:
        """Whether a path is denied by its name, whatever is there, in a mode that enforces it."""
        return self.enforcing and self.policy.denies(
            self.context.agent, self.known_tool.name, action, path, fold=self.fold
        )

    def effect(self, action: str, path: str, directory: bool) -> Effect:
        """Return the enforced effect of an action on a path; in monitor mode it is always allow."""
        return self.judged_effect(action, path, directory) if self.enforcing else Effect.ALLOW

    def opens_below(self, path: str) -> bool:
        """Whether the policy may allow or ask about reading something below a directory."""
        return self.policy.opens_below(self.context.agent, self.known_tool.name, "read", path, fold=self.fold)

    def within(self, path: str) -> Callable[[str, bool], Effect]:
        """Return `effect` of reading as a function of a name below the path and whether it is a directory."""
        return self.judged_within(path) if self.enforcing else lambda *_: Effect.ALLOW

    def judged_effect(self, action: str, path: str, directory: bool) -> Effect:
        """Return the policy's effect of an action on a path, whether or not the mode enforces it."""
        return self.policy.effect(
            self.context.agent, self.known_tool.name, action, path, directory, fold=self.fold
        )

    def judged_within(self, path: str) -> Callable[[str, bool], Effect]:
        """Return `judged_effect` of reading, as a function like that of `within`."""
        return self.policy.within(self.context.agent, self.known_tool.name, "read", path, fold=self.fold)

    def allows_files(self, path: str, names: Collection[str]) -> bool:
        """Whether reading every file with one of these names directly below the path is allowed."""
        return not self.enforcing or self.policy.allows_files(
            self.context.agent, self.known_tool.name, "read", path, names, fold=self.fold
        )

    def spots(self) -> dict[str, Any]:
        """Return the handles of the judged places, by canonical path."""
        return {spot.path: spot for _, spot in self.places.values()}

    def digest(self, plan: Plan) -> str:
        """Return the digest of what a person would grant: the plan's, with the finds in contents that ask."""
        return plan.digest() if self.content is None else self.content.digest(plan.digest())

    @property
    def counting(self) -> Counting:
        """What the limits count of the call. Only for stages after the tool was found."""
        return self.policy.counting(self.context.agent, self.known_tool.name)

    @property
    def counted(self) -> dict[str, Amount]:
        """The amounts that limits count; `max_tasks` counts tasks, so their files are left out."""
        return self.usage if not self.known_tool.tasks else without_files(self.usage)

    def stands(self, *more: str) -> Iterator[Step]:
        """Yield the steps that are done and not rolled back, and those in one of the states `more`."""
        if self.plan is None or self.outcome is None:
            return
        states, wanted = self.outcome.stands, (DONE, *more)
        for n, step in enumerate(steps(self.plan.changes)):
            if states.get(n) in wanted:
                yield step

    def title(self, plan: Plan) -> str:
        """Return what the call would do, in one line for a person."""
        title = plan.title or f"{self.known_tool.title}: {', '.join(self.named)}"
        if not self.lost:
            return title
        return f"{title}; {plural(len(self.lost), 'file')} CANNOT BE RESTORED afterwards"

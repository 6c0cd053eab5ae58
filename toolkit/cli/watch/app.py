"""The terminal program: requests, answers and changes in one list, the selected entry, the log.

An answer always goes to the request whose text is on the screen, never to where a list has moved meanwhile.
What has just appeared takes no answer.
"""

from __future__ import annotations

import asyncio
import pydoc
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Footer, Header, OptionList, RichLog, Static
from textual.widgets.option_list import Option

from ringfence.toolkit.approvals.requests import GRANTED, PENDING, REFUSED, Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.cli.watch import answers, rule_answers, undoing
from ringfence.toolkit.cli.watch import rendering as drawing
from ringfence.toolkit.cli.watch.dialogs import Question
from ringfence.toolkit.cli.watch.entries import ORDERS, Bundle, Entry, Ran, Shown, entries, key
from ringfence.toolkit.cli.watch.key_hold import TOO_EARLY, KeyHold
from ringfence.toolkit.cli.watch.program import ActAs
from ringfence.toolkit.cli.watch.weekly_proposals import waits_for, weekly
from ringfence.toolkit.errors import UNCHANGED, CallError
from ringfence.toolkit.granting.confirmations import confirmation
from ringfence.toolkit.history.session_diff import changed
from ringfence.toolkit.monitoring.dashboard import Board, Work
from ringfence.toolkit.rule_offers.marks import AnsweredRule
from ringfence.toolkit.rule_offers.proposals import Proposal
from ringfence.toolkit.text import escape

EVERY = 1.0  # seconds between looks
HOLD = 1.0  # seconds for which what has just come onto the screen takes no answer
AGES = 20.0  # seconds after which the ages on the screen are drawn anew
PROPOSALS = 3600.0  # seconds between looks for rules to propose
WIDE = 110  # columns from which the list stands beside the selected entry
TALL = 32  # lines from which there is room for a longer log
_NOTHING = "Nothing waits for an answer.\n\nTo be seen here, agents use the same --root and --state."


class Watch(App[None]):
    """`act_as` opens a session of an agent, under its policy; `source` is the file of that policy.

    `clock` is for the hold on keys, in seconds.
    """

    TITLE = "ringfence"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012  Textual declares it so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012  as above
    CSS_PATH = "watch.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "grant", "approve once"),
        Binding("r", "refuse", "refuse"),
        Binding("m", "more", "more"),
        Binding("c", "rule", "a rule"),
        Binding("e", "edit", "edit"),
        Binding("u", "undo", "undo"),
        Binding("b", "restore", "a version"),
        Binding("x", "take_back", "take back"),
        Binding("g", "order", "order"),
        Binding("v", "pager", "all"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(  # noqa: PLR0913  what it shows and acts through, and times by keyword
        self,
        board: Board,
        act_as: ActAs,
        source: Path | None = None,
        *,
        every: float = EVERY,
        hold: float = HOLD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.board, self.act_as, self.source = board, act_as, source
        self._every, self._hold_for, self._clock = every, hold, clock
        self._hold = self.hold()
        self._entries: list[Entry] = []
        self._shown: Shown = None
        self._last: Request | None = None  # the last answer, which x takes back
        self._order = ORDERS[0]
        self._rules = rule_answers.PolicyRules(source)
        self._proposed: list[Proposal] = []
        self._written = 0
        self._drawn = 0.0
        self._looking = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """The widgets of the screen."""
        yield Header()
        yield Static(id="said", markup=False)
        with Container(id="panes"):
            yield OptionList(id="list")
            with VerticalScroll(id="scroll"):
                yield Static(_NOTHING, id="detail", markup=False)
        yield RichLog(id="log", max_lines=500, wrap=True, markup=False)
        yield Footer(compact=True, show_command_palette=False)

    async def on_mount(self) -> None:
        """Fill the list, and start to poll the state."""
        self.sub_title = escape(self.board.session.workspace.url)
        self.query_one(OptionList).focus()
        self.call_after_refresh(
            self.update_board
        )  # the log wraps its lines to a width that is known only then
        self.set_interval(self._every, self.update_board)
        self.call_after_refresh(self.propose)
        self.set_interval(PROPOSALS, self.propose)

    async def update_board(self) -> None:
        """Bring everything up to date; what cannot be read now is said and looked at again."""
        if self._looking.locked():
            return
        async with self._looking:
            try:
                fresh = await asyncio.to_thread(self.board.refresh)
                fresh = await asyncio.to_thread(self._rules.refresh) or fresh
            except CallError as error:
                self.fail(error)
                return
            if fresh or time.time() - self._drawn >= AGES:
                self._redraw()

    async def propose(self) -> None:
        """Look for rules that the answers of the last week speak for."""
        self._proposed = await asyncio.to_thread(weekly, self)
        if self._proposed:
            self._redraw()

    # ------------------------------------------------------------------ drawing

    def _redraw(self) -> None:
        board, log = self.board, self.query_one(RichLog)
        new = board.logged - self._written
        if new:
            for record in list(board.log)[-new:]:
                if record.get("outcome") != "asked":  # the call's own record says the same
                    log.write(drawing.logged(record), expand=True)
        self._written, self._drawn = board.logged, time.time()
        if isinstance(self._shown, Request):
            self._check_shown(self._shown)
        found = entries(board, self._rules.found, self._proposed, order=self._order, now=self._drawn)
        self._fill(found)
        if self._shown is None:
            first = next((entry.what for entry in found if isinstance(entry.what, Request)), None)
            if first is not None:
                self._show(first)
                self._select(first)

    def _fill(self, found: list[Entry]) -> None:
        """Put the entries into the list; what is selected and where the list stands do not move."""
        listed = self.query_one(OptionList)
        at = listed.highlighted
        chosen = key(self._entries[at].what) if at is not None and at < len(self._entries) else None
        top = listed.scroll_y
        self._entries = found
        listed.set_options([Option(entry.text, disabled=entry.what is None) for entry in found])
        for number, entry in enumerate(found):
            if chosen is not None and key(entry.what) == chosen:
                listed.highlighted = number
                listed.scroll_to(y=top, animate=False)
                return

    def _select(self, what: Shown) -> None:
        for number, entry in enumerate(self._entries):
            if key(entry.what) == key(what):
                self.query_one(OptionList).highlighted = number

    def _check_shown(self, request: Request) -> None:
        now = self.board.session.approvals.get(request.id)
        if now.state == request.state:
            return
        notice = Text(f"This is {now.state} by now.\n\n", style="bold yellow")
        self.query_one("#detail", Static).update(notice.append_text(drawing.asked(now, time.time())))
        self._shown = now
        self.refresh_bindings()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the selected entry."""
        if event.option_list.id != "list" or event.option_index >= len(self._entries):
            return
        what = self._entries[event.option_index].what
        if what is not None and key(what) != key(self._shown):
            self._show(what)

    def _show(self, what: Shown) -> None:
        self._shown = what
        self._hold.begin()
        self.query_one("#detail", Static).update(self._drawing_of(what))
        self.query_one("#scroll", VerticalScroll).scroll_home(animate=False)
        self.refresh_bindings()

    def _drawing_of(self, what: Shown) -> Text | str:
        now = time.time()
        match what:
            case Request():
                return drawing.asked(what, now, self.board.last_call.get(what.session))
            case Bundle():
                return drawing.bundle(what.requests, now)
            case AnsweredRule():
                return drawing.rule(what)
            case Proposal():
                return drawing.proposal(what)
            case Ran():
                return drawing.command(what.record, self._diff_of(what))
            case Work():
                return Text(f"Session {escape(what.session)}\n\nu takes back all it changed.", style="bold")
            case tuple():
                return drawing.changed(what[1], what[0].session)
        return _NOTHING

    def _diff_of(self, what: Ran) -> str:
        """Return the diff of what a command changed; "" where the history has none."""
        return "".join(one.diff for one in changed(self.board.session.history, what.session, call=what.call))

    # ------------------------------------------------- what the parts of it need

    @property
    def approvals(self) -> Approvals:
        """The store of the requests."""
        return self.board.session.approvals

    def hold(self) -> KeyHold:
        """Return a new hold on keys, for a dialog."""
        return KeyHold(self._clock, self._hold_for)

    async def ask(self, question: Question) -> Any:
        """Show a dialog, and return its result; None if it was closed without one."""
        return await self.push_screen_wait(question)

    def confirm(self, request: Request, *more: str) -> None:
        """Show what was answered and how to reverse it."""
        notice = confirmation(request)
        self._last = request if notice.command else None
        text = Text(notice.what, style="bold yellow" if request.state == REFUSED else "bold green")
        for each in more:
            text.append(f"\n  {each}", style="not bold")
        text.append(f"\n  {notice.next}", style="not bold default")
        if notice.command:
            text.append(f"  x: {notice.reversal.removeprefix('to ')}", style="bold default")
        self._say(text)
        if isinstance(self._shown, Request | Bundle):
            self._shown = None  # the next request is shown
            self._show(None)

    def tell(self, text: str) -> None:
        """Show a confirmation that nothing reverses."""
        self._last = None
        self._say(Text(text, style="bold green"))

    def _say(self, text: Text) -> None:
        self.query_one("#said", Static).update(text)
        self.query_one("#said", Static).display = True

    def warn(self, text: str) -> None:
        """Show why nothing was done."""
        self.notify(text, severity="warning", markup=False)

    def fail(self, error: CallError) -> None:
        """Show an error with its advice."""
        text = error.message.removesuffix(UNCHANGED) + (f" ({error.advice})" if error.advice else "")
        self.notify(text, severity="error", markup=False)

    # --------------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  Textual's
        """Whether a key means something for what is on the screen; others are not shown."""
        what = self._shown
        waits = isinstance(what, Request) and what.state == PENDING
        match action:
            case "grant":
                return waits or isinstance(what, Bundle)
            case "refuse" | "more" | "edit":
                return waits
            case "rule":
                return waits or isinstance(what, Proposal)
            case "undo":
                return isinstance(what, Work | Ran | tuple)
            case "restore":
                return isinstance(what, tuple)
            case "take_back":
                return self._last is not None or self._answered() is not None
            case "pager":
                return isinstance(what, Request | Ran | tuple)
        return True

    def _answered(self) -> Request | AnsweredRule | None:
        what = self._shown
        if isinstance(what, AnsweredRule) or (isinstance(what, Request) and what.state in (GRANTED, REFUSED)):
            return what
        return None

    def _answer(self, what: type[Any], act: Callable[[Any, Any], Coroutine[Any, Any, None]]) -> None:
        """Let a part of the program answer what is on the screen, if it was there for long enough."""
        shown = self._shown
        if not isinstance(shown, what) or (isinstance(shown, Request) and shown.state != PENDING):
            return
        if self._hold.is_over():
            self.run_worker(act(self, shown), exclusive=False)
        else:
            self.warn(TOO_EARLY)

    def action_grant(self) -> None:
        """Permit the change on the screen, once."""
        bundle = isinstance(self._shown, Bundle)
        self._answer(Bundle if bundle else Request, answers.approve_together if bundle else answers.approve)

    def action_refuse(self) -> None:
        """Ask for the reason, and refuse the selected request."""
        self._answer(Request, answers.refuse)

    def action_more(self) -> None:
        """Permit more than this change; what that opens is shown first."""
        self._answer(Request, answers.approve_more)

    def action_edit(self) -> None:
        """Change the arguments and permit that."""
        self._answer(Request, answers.edit)

    def action_rule(self) -> None:
        """Offer rules of the policy that answer the selected request for good."""
        if isinstance(self._shown, Proposal):
            waiting = waits_for(self._shown, self.board.pending)
            if waiting is None:
                self.warn("No request waits there now. The next one can be answered with this rule.")
            else:
                self.run_worker(rule_answers.answer_by_rule(self, waiting, self._shown.offer.width))
            return
        self._answer(Request, rule_answers.answer_by_rule)

    def action_take_back(self) -> None:
        """Take back the selected answer, or else the last one."""
        what = self._answered() or self._last
        if isinstance(what, AnsweredRule):
            self.run_worker(rule_answers.revoke_rule(self, what.id))
        elif what is not None:
            self.run_worker(answers.take_back(self, what))

    def action_undo(self) -> None:
        """Take back what the selected session did to the selected file, what a command did, or all it did."""
        self.run_worker(undoing.undo(self, self._shown))

    def action_restore(self) -> None:
        """Bring the selected file back to one of its versions."""
        self.run_worker(undoing.restore(self, self._shown))

    def action_order(self) -> None:
        """List the requests in another order."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._redraw()

    def action_pager(self) -> None:
        """All of what the pane shows, in the pager."""
        what = self._shown
        if isinstance(what, Request | Ran | tuple):
            text = what.preview if isinstance(what, Request) else ""
            text = self._diff_of(what) if isinstance(what, Ran) else text or what[1].diff  # type: ignore[index]
            with self.suspend():
                pydoc.pager(escape(text, newlines=True))

"""The terminal program: what is pending and changed on the left, the selected one right, the log below.

An answer always goes to the request whose text is on the screen, never to where a list has moved meanwhile.
"""

from __future__ import annotations

import asyncio
import pydoc
import time
from collections.abc import Callable
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Header, RichLog, Static, Tree
from textual.widgets.tree import TreeNode

from ringfence.toolkit.approvals.requests import ONCE, PATTERN, SESSION, Answer, Request
from ringfence.toolkit.cli.approval_prompt import whoami
from ringfence.toolkit.cli.watch import rendering as drawing
from ringfence.toolkit.cli.watch.dialogs import Arguments, Choice, Reason, Sure
from ringfence.toolkit.cli.watch.listing import LISTED, Ran, Shown, and_more, by_agent, key, nodes
from ringfence.toolkit.errors import UNCHANGED, CallError
from ringfence.toolkit.granting.effects import effects
from ringfence.toolkit.granting.scopes import Scope, scopes
from ringfence.toolkit.history.session_diff import changed
from ringfence.toolkit.monitoring.dashboard import Board, Work
from ringfence.toolkit.session.amend import amend, amended
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import escape, plural

ActAs = Callable[[str, str], Session]
EVERY = 1.0  # seconds between looks
HOLD = 1.5  # seconds for which what has just come onto the screen cannot be approved
_NOTHING = "Nothing waits for an answer.\n\nTo be seen here, agents use the same --root and --state."


class Watch(App[None]):
    """`act_as` opens a session of an agent, under its policy, to try a call or to take something back."""

    TITLE = "ringfence"
    CSS = """
    #list { width: 40%; min-width: 24; border-right: solid $primary; }
    #detail { padding: 0 1; }
    #log { height: 9; border-top: solid $primary; }
    .box { width: 80%; height: auto; max-height: 80%; padding: 1 2; }
    .box { border: thick $primary; background: $surface; }
    .tall { height: 80%; }
    .box VerticalScroll, .box TextArea { height: 1fr; }
    Question, Reason, Arguments, Choice, Sure { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "grant", "approve"),
        Binding("p", "grant_paths", "these paths"),
        Binding("s", "grant_session", "this session"),
        Binding("r", "refuse", "refuse"),
        Binding("o", "reopen", "reopen"),
        Binding("e", "edit", "change"),
        Binding("u", "undo", "undo"),
        Binding("b", "restore", "a version"),
        Binding("v", "pager", "all of it"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(
        self,
        board: Board,
        act_as: ActAs,
        *,
        every: float = EVERY,
        hold: float = HOLD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._board = board
        self._act_as = act_as
        self._every = every
        self._hold, self._clock = hold, clock
        self._shown: Shown = None
        self._since = clock()  # when what is on the screen came there
        self._written = 0
        self._looking = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """The widgets of the screen."""
        yield Header()
        with Horizontal():
            yield Tree[Shown]("workspace", id="list")
            with VerticalScroll(id="scroll"):
                yield Static(_NOTHING, id="detail", markup=False)
        yield RichLog(id="log", max_lines=500, wrap=True, markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        """Fill the tree, and start to poll the state."""
        tree = self.query_one(Tree)
        tree.show_root = False
        tree.root.expand()
        self.sub_title = escape(self._board.session.workspace.url)
        tree.focus()
        self.call_after_refresh(self.look)  # the log wraps its lines to a width that is known only then
        self.set_interval(self._every, self.look)

    async def look(self) -> None:
        """Bring everything up to date; what cannot be read now is said and looked at again."""
        if self._looking.locked():
            return
        async with self._looking:
            try:
                fresh = await asyncio.to_thread(self._board.look)
            except CallError as error:
                self.notify(error.message, severity="error")
                return
            if fresh:
                self._redraw()

    # ------------------------------------------------------------------ drawing

    def _redraw(self) -> None:
        board, log = self._board, self.query_one(RichLog)
        new = board.logged - self._written
        if new:
            for record in list(board.log)[-new:]:
                log.write(drawing.logged(record))
        self._written = board.logged
        tree = self.query_one(Tree)
        chosen = key(tree.cursor_node.data) if tree.cursor_node is not None else None
        tree.root.remove_children()
        self._list_pending(tree.root)
        self._list_refused(tree.root)
        self._list_work(tree.root)
        self._keep_cursor(tree, chosen)
        if isinstance(self._shown, Request):
            self._check_shown(self._shown)
        if self._shown is None and board.pending:
            self._show(board.pending[0])

    def _list_pending(self, root: TreeNode[Shown]) -> None:
        pending = self._board.pending
        node = root.add(Text(f"Approvals ({len(pending):,})", style="bold yellow"), expand=True)
        for request in pending[:LISTED]:
            who = f"{request.agent}: " if request.agent != "default" else ""
            node.add_leaf(Text(escape(who + request.title)), data=request)
        and_more(node, len(pending))
        for what in self._board.running:
            node.add_leaf(Text(escape(what), style="italic cyan"))

    def _list_refused(self, root: TreeNode[Shown]) -> None:
        if self._board.refused:
            node = root.add(Text("Refused, o reopens", style="bold"), expand=True)
            for request in self._board.refused:
                node.add_leaf(Text(escape(request.title), style="dim"), data=request)

    def _list_work(self, root: TreeNode[Shown]) -> None:
        for one in self._board.work:
            count = plural(len(one.files), "file") + (", earlier ones not counted" if one.earlier else "")
            title = Text(f"{escape(one.session)} ({count})", style="bold")
            node = root.add(title, data=one, expand=True)
            for record in one.commands[-LISTED:]:
                node.add_leaf(drawing.command_line(record), data=Ran(one.session, record))
            for agent, files in by_agent(one).items():
                below = node if agent == "" else node.add(Text(escape(agent), style="cyan"), expand=True)
                for file in files[:LISTED]:
                    below.add_leaf(drawing.counts(file), data=(one, file))
                and_more(below, len(files))

    def _keep_cursor(self, tree: Tree[Shown], chosen: object) -> None:
        if chosen is None:
            return
        for node in nodes(tree.root):
            if key(node.data) == chosen:
                self.call_after_refresh(tree.move_cursor, node)
                return

    def _check_shown(self, request: Request) -> None:
        if any(one.id == request.id for one in self._board.pending):
            return
        now = self._board.session.approvals.get(request.id)
        said = Text(f"This is {now.state} by now.\n\n", style="bold red")
        self.query_one("#detail", Static).update(said.append_text(drawing.asked(now)))
        self._shown = now

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Shown]) -> None:
        """Show the selected entry on the right."""
        if event.node.data is not None and key(event.node.data) != key(self._shown):
            self._show(event.node.data)

    def _show(self, what: Shown) -> None:
        self._shown, self._since = what, self._clock()
        text: Text | str = _NOTHING
        if isinstance(what, Request):
            text = drawing.asked(what)
        elif isinstance(what, Ran):
            text = drawing.command(what.record, self._diff_of(what))
        elif isinstance(what, Work):
            text = Text(f"Session {escape(what.session)}\n\nu takes back all it changed.", style="bold")
        elif what is not None:
            text = drawing.changed(what[1], what[0].session)
        self.query_one("#detail", Static).update(text)
        self.query_one("#scroll", VerticalScroll).scroll_home(animate=False)

    def _diff_of(self, what: Ran) -> str:
        """Return the diff of what a command changed; "" where the history has none."""
        return "".join(one.diff for one in changed(self._board.session.history, what.session, call=what.call))

    # ---------------------------------------------------------------- answering

    @work
    async def action_grant(self) -> None:
        """Permit the change on the screen, once."""
        request = self._asked()
        if request is not None and self._was_seen():
            await self._answer(request, Answer(True, ONCE, by=whoami()))

    @work
    async def action_grant_paths(self) -> None:
        """Permit what the rule asks on paths, the narrowest first; what that opens is shown first."""
        request = self._asked()
        if request is None:
            return
        found = [scope for scope in scopes(request) if scope.name == PATTERN]
        if not found:
            self.notify("No pattern for these paths can be granted.", severity="warning")
            return
        chosen = await self.push_screen_wait(
            Choice(f"Approve more: {escape(request.title)}", [scope.words for scope in found])
        )
        if chosen is not None:
            await self._grant_more(request, found[chosen])

    @work
    async def action_grant_session(self) -> None:
        """Permit all that the rule asks in this session; what that opens is shown first."""
        request = self._asked()
        if request is None:
            return
        found = [scope for scope in scopes(request) if scope.name == SESSION]
        if not found:
            self.notify("A limit is lifted once, and so is a loss.", severity="warning")
            return
        await self._grant_more(request, found[0])

    async def _grant_more(self, request: Request, scope: Scope) -> None:
        until = None if scope.lasts is None else time.time() + scope.lasts
        answer = Answer(True, scope.name, "", whoami(), scope.pattern, until, confirmed=True)
        try:
            session = await asyncio.to_thread(self._act_as, request.agent, request.session)
            with session:
                lines = await asyncio.to_thread(effects, session, request, answer)
        except CallError as error:
            self._say(error)
            return
        if await self.push_screen_wait(
            Sure(f"More than {escape(request.title)}: approve all of that?", "\n".join(lines))
        ):
            await self._answer(request, answer)

    @work
    async def action_reopen(self) -> None:
        """Let what was refused be answered again."""
        request = self._asked()
        if request is None:
            return
        try:
            await asyncio.to_thread(lambda: self._board.session.approvals.reopen(request.id, by=whoami()))
        except CallError as error:
            self._say(error)
        else:
            self.notify(f"Reopened: {escape(request.title)}", markup=False)
        await self.look()

    def _was_seen(self) -> bool:
        """Whether what is on the screen was there long enough to be what the key is meant for."""
        seen = self._clock() - self._since >= self._hold
        if not seen:
            self.notify("This has just come onto the screen: read it, then press again.", severity="warning")
        return seen

    @work
    async def action_refuse(self) -> None:
        """Ask for the reason, and refuse the selected request."""
        request = self._asked()
        if request is None:
            return
        reason = await self.push_screen_wait(Reason(f"Refuse: {escape(request.title)}"))
        if reason is not None:
            await self._answer(request, Answer(False, reason=reason, by=whoami()))

    @work
    async def action_edit(self) -> None:
        """Change the arguments and permit that; it is planned and judged first, and shown."""
        request = self._asked()
        if request is None:
            return
        given = await self.push_screen_wait(Arguments(f"Change: {escape(request.tool)}", request.arguments))
        if given is None:
            return
        try:
            session = await asyncio.to_thread(self._act_as, request.agent, request.session)
            with session:
                would = await asyncio.to_thread(amended, session, request.id, given)
                title = "The policy allows this without asking" if would is None else escape(would.title)
                preview = "" if would is None else would.preview
                if await self.push_screen_wait(
                    Sure(f"{title}. Tell the agent to send this instead?", preview)
                ):
                    digest = "" if would is None else would.digest
                    await asyncio.to_thread(
                        lambda: amend(session, request.id, given, digest=digest, by=whoami())
                    )
                    self.notify("The agent is told to send the changed call.")
        except CallError as error:
            self._say(error)
        await self.look()

    def _asked(self) -> Request | None:
        if isinstance(self._shown, Request):
            return self._shown
        self.notify("Select something that waits for an answer.", severity="warning")
        return None

    async def _answer(self, request: Request, answer: Answer) -> None:
        try:
            await asyncio.to_thread(self._board.session.approvals.answer, request.id, answer)
        except CallError as error:
            self._say(error)
        else:
            self.notify(
                f"{'Approved' if answer.granted else 'Refused'}: {escape(request.title)}", markup=False
            )
            self._shown = None
            self._show(None)
        await self.look()

    # ------------------------------------------------------------- the way back

    @work
    async def action_undo(self) -> None:
        """Take back what the selected session did to the selected file, what a command did, or all it did."""
        what = self._shown
        if isinstance(what, Work):
            await self._take_back(what.session, lambda session, **more: session.undo_to("initial", **more))
        elif isinstance(what, Ran):
            call = what.call
            await self._take_back(what.session, lambda session, **more: session.undo(call, **more))
        elif isinstance(what, tuple):
            path = what[1].source or what[1].path
            await self._take_back(
                what[0].session, lambda session, **more: session.undo_to("initial", tree=path, **more)
            )
        else:
            self.notify("Select a changed file, a command or a session.", severity="warning")

    @work
    async def action_restore(self) -> None:
        """Bring the selected file back to one of its versions."""
        what = self._shown
        if not isinstance(what, tuple):
            self.notify("Select a changed file.", severity="warning")
            return
        path = what[1].path
        found = await asyncio.to_thread(self._board.session.versions, path)
        names = [f"{one.session}:{one.name}" for one in found]
        chosen = await self.push_screen_wait(Choice(f"Versions of {escape(path)}", names))
        if chosen is not None:
            name = names[chosen]
            await self._take_back(
                what[0].session, lambda session, **more: session.restore(path, name, **more)
            )

    async def _take_back(self, name: str, act: Callable[..., Any]) -> None:
        """Show what would be done, and do exactly that when it is wanted."""
        try:
            session = await asyncio.to_thread(self._act_as, "default", name)
            with session:
                seen = await asyncio.to_thread(lambda: act(session, dry_run=True))
                if seen.ok and await self.push_screen_wait(
                    Sure(seen.content, seen.data.get("preview") or "")
                ):
                    digest = seen.data["digest"]
                    seen = await asyncio.to_thread(lambda: act(session, digest=digest, by=whoami()))
                    self.notify(seen.content, markup=False)
                elif not seen.ok:
                    self.notify(seen.content, severity="error", markup=False)
        except CallError as error:
            self._say(error)
        await self.look()

    def action_pager(self) -> None:
        """All of what the pane shows, in the pager."""
        what = self._shown
        if isinstance(what, Request | Ran | tuple):
            text = what.preview if isinstance(what, Request) else ""
            text = self._diff_of(what) if isinstance(what, Ran) else text or what[1].diff  # type: ignore[index]
            with self.suspend():
                pydoc.pager(escape(text, newlines=True))

    def _say(self, error: CallError) -> None:
        self.notify(
            error.message.removesuffix(UNCHANGED) + (f" ({error.advice})" if error.advice else ""),
            severity="error",
            markup=False,
        )

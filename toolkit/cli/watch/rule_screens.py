"""Dialogs of `watch` about rules: the offers for a request, and the other requests that an answer settles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Label, OptionList, Static
from textual.widgets.option_list import Option

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.cli.watch import rendering as drawing
from ringfence.toolkit.cli.watch.dialogs import Question
from ringfence.toolkit.rule_offers.offers import Offer, Offers
from ringfence.toolkit.rule_offers.rule_ends import ENDS
from ringfence.toolkit.rule_offers.settling import Settled
from ringfence.toolkit.text import escape, plural

ANOTHER_END = "another end"


class RuleOffers(Question):
    """Rules that would answer a request, narrow first, each with what it opens, its proof and its diff.

    The result is the index of a rule, ANOTHER_END, or None.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "away", "back"),
        Binding("e", "end", "another end"),
        Binding("pagedown", "page(1)", "more", priority=True),
        Binding("pageup", "page(-1)", "back", priority=True),
    ]

    def __init__(self, title: str, offers: Offers, settled: Sequence[Settled], end: str, first: int) -> None:
        super().__init__(title)
        self._offers, self._settled = offers, settled
        self._end, self._first = end, first

    def compose(self) -> ComposeResult:
        """The widgets of the dialog."""
        with Vertical(classes="box wide"):
            yield Label(Text(self._title, style="bold"))
            yield OptionList(*(Option(_in_short(one)) for one in self._offers.offers))
            with VerticalScroll():
                yield Static(id="offer")
            yield Label(
                Text(
                    f"enter: choose this rule, it ends {ENDS[self._end]}   e: another end   escape: no rule",
                    style="bold",
                )
            )

    def on_mount(self) -> None:
        """Show the first offer."""
        self.query_one(OptionList).highlighted = self._first

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show what the rule opens."""
        text = drawing.offer(self._offers.offers[event.option_index], self._settled[event.option_index])
        for words, why in self._offers.left_out:
            text.append(f"not offered{f', {words}' if words else ''}: {escape(why)}\n", style="dim")
        self.query_one("#offer", Static).update(text)
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the index of the rule."""
        self.dismiss(event.option_index)

    def action_end(self) -> None:
        """Close the dialog to show the same rules with another end."""
        self.dismiss(ANOTHER_END)

    def action_page(self, by: int) -> None:
        """Scroll what the rule opens."""
        pane = self.query_one(VerticalScroll)
        pane.scroll_relative(y=by * max(pane.size.height - 1, 1), animate=False)


def _in_short(offer: Offer) -> Text:
    text = Text(f"{offer.words}: ", style="bold")
    patterns = ", ".join(map(escape, offer.patterns))
    return text.append(f"{patterns}; {offer.opens.in_words()}", style="not bold")


class Others(Question):
    """Other waiting requests that an answer would settle, none chosen; the result is those to settle."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "away", "none"),
        Binding("space", "choose", "choose"),
        Binding("a", "every", "choose all"),
        Binding("s", "done", "settle the chosen"),
    ]

    def __init__(self, others: Sequence[Request]) -> None:
        super().__init__(f"The same answer settles {plural(len(others), 'other request')}. Settle too?")
        self._others = others
        self._chosen: set[int] = set()

    def compose(self) -> ComposeResult:
        """The widgets of the dialog."""
        with Vertical(classes="box"):
            yield Label(Text(self._title, style="bold"))
            yield OptionList(*(Option(self._row(number)) for number in range(len(self._others))))
            words = "space: choose   a: choose all   s: settle the chosen   escape: settle none"
            yield Label(Text(words, style="bold"))

    def _row(self, number: int) -> Text:
        request, chosen = self._others[number], number in self._chosen
        text = Text("[x] " if chosen else "[ ] ").append_text(drawing.mark(request))
        return text.append(f" {escape(request.title)}").append(f"  {request.id}", style="dim")

    def action_choose(self) -> None:
        """Choose the selected request, or choose it no longer."""
        number = self.query_one(OptionList).highlighted
        if number is not None:
            self._choose({number} ^ self._chosen)

    def action_every(self) -> None:
        """Choose all."""
        self._choose(set(range(len(self._others))))

    def _choose(self, chosen: set[int]) -> None:
        self._chosen = chosen
        listed = self.query_one(OptionList)
        for number in range(len(self._others)):
            listed.replace_option_prompt_at_index(number, self._row(number))

    def action_done(self) -> None:
        """Close the dialog with the chosen requests."""
        self.dismiss([self._others[number] for number in sorted(self._chosen)])

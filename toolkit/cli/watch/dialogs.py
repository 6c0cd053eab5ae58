"""Dialogs of `watch`: a reason, other arguments, a choice, a confirmation.

Each ends with what was answered, or with None when the person turned away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from ringfence.toolkit.cli.watch.key_hold import TOO_EARLY, KeyHold
from ringfence.toolkit.cli.watch.rendering import drawn

_AWAY = Binding("escape", "away", "back")


class Question(ModalScreen[Any]):
    """Dialog with a title; escape closes it with None."""

    BINDINGS: ClassVar[list[BindingType]] = [_AWAY]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def action_away(self) -> None:
        """Close the dialog without a result."""
        self.dismiss(None)


class Reason(Question):
    """Asks for the reason of a refusal, which is reported to the agent; empty: without a reason."""

    def compose(self) -> ComposeResult:
        """The widgets of the dialog."""
        with Vertical(classes="box"):
            yield Label(Text(self._title, style="bold"))
            yield Input(placeholder="the reason, which is reported to the agent")
            yield Label(Text("enter refuses, escape cancels", style="dim"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close the dialog with the reason."""
        self.dismiss(event.value)


class Arguments(Question):
    """Editor for the arguments of a call; the result is an object."""

    BINDINGS: ClassVar[list[BindingType]] = [_AWAY, Binding("ctrl+s", "done", "go on")]

    def __init__(self, title: str, arguments: dict[str, Any]) -> None:
        super().__init__(title)
        self._arguments = arguments

    def compose(self) -> ComposeResult:
        """The widgets of the dialog."""
        with Vertical(classes="box tall"):
            yield Label(Text(self._title, style="bold"))
            yield TextArea(json.dumps(self._arguments, indent=2, ensure_ascii=True))
            yield Label(Text("ctrl+s previews the edited call, escape cancels", style="dim"), id="say")

    def action_done(self) -> None:
        """Close the dialog with the arguments, or show why they are not JSON."""
        try:
            found = json.loads(self.query_one(TextArea).text)
            if not isinstance(found, dict):
                raise ValueError("not an object")
        except ValueError as error:
            self.query_one("#say", Label).update(Text(f"not JSON: {error}", style="bold red"))
            return
        self.dismiss(found)


class Choice(Question):
    """List of choices, each with what it is for; the result is the index of one."""

    def __init__(self, title: str, choices: Sequence[str]) -> None:
        super().__init__(title)
        self._choices = choices

    def compose(self) -> ComposeResult:
        """The widgets of the dialog."""
        with Vertical(classes="box"):
            yield Label(Text(self._title, style="bold"))
            yield OptionList(*(Option(Text(one)) for one in self._choices))
            yield Label(Text("enter chooses, escape cancels", style="dim"))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the index of the choice."""
        self.dismiss(event.option_index)


class Sure(Question):
    """Preview of a change and a confirmation, which says what it does; the result is True or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _AWAY,
        Binding("y", "yes", "yes"),
        Binding("n", "away", "no"),
    ]

    def __init__(self, title: str, preview: Text | str, yes: str, hold: KeyHold) -> None:
        super().__init__(title)
        self._preview = drawn(preview) if isinstance(preview, str) else preview
        self._yes, self._hold = yes, hold

    def compose(self) -> ComposeResult:
        """The widgets of the dialog."""
        with Vertical(classes="box tall"):
            yield Label(Text(self._title, style="bold"))
            with VerticalScroll():
                yield Static(self._preview)
            yield Label(Text(f"y: {self._yes}      n or escape: back", style="bold"))

    def on_mount(self) -> None:
        """Begin the hold, now that the dialog is on the screen."""
        self._hold.begin()

    def action_yes(self) -> None:
        """Close the dialog with True, if it was there long enough to be read."""
        if self._hold.is_over():
            self.dismiss(True)
        else:
            self.notify(TOO_EARLY, severity="warning")

"""What `import` and `export` say of their result: what is left out, where the two disagree, and a last line.

The last line never claims more than was compared: what is left out counts, and so does a bound that was hit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.formats.equivalence import Comparison, Disagreement
from ringfence.toolkit.formats.model import Left

_SHOWN = 40  # disagreements on the screen; JSON has all


@dataclass(slots=True)
class Report:
    """About one result: `what` it is, "policy" or "settings"."""

    what: str
    left: list[Left]
    notes: list[str]
    compared: Comparison = field(default_factory=lambda: Comparison((), ()))
    written: str | None = None
    refused: str | None = None  # the file that was not written

    @property
    def agree(self) -> bool:
        """Whether the settings as they are and the policy say the same."""
        return self.compared.none and not self.left_out

    @property
    def left_out(self) -> int:
        """How many settings about files the result does not have as they are."""
        return sum(not each.harmless for each in self.left)

    @property
    def may_be_looser(self) -> bool:
        """Whether the result lets more through, or nobody knows."""
        return bool(self.compared.undecided) or any(map(self._looser, self.compared.found))

    def to_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "notes": self.notes,
            "agree": self.agree,
            "finished": not self.compared.undecided,
            "written": self.written,
            "left_out": [each.to_json() for each in self.left],
            "disagree": [self._row(each) for each in self.compared.found],
            "disagree_elsewhere": [self._row(each) for each in self.compared.elsewhere],
            "undecided": list(self.compared.undecided),
        }

    def _looser(self, found: Disagreement) -> bool:
        """Whether the result lets through what the other does not."""
        return found.looser is (self.what == "policy")

    def _row(self, found: Disagreement) -> dict[str, Any]:
        row = found.to_json()
        if self.what == "settings":
            row |= {"source": row["result"], "result": row["source"], "looser": not found.looser}
        return row

    def show(self, screen: Screen) -> None:
        """Say all of it, the result itself excepted."""
        for note in self.notes:
            screen.note(f"note: {note}")
        for each in self.left:
            screen.note(f"left out: {each.where}: {each.what}: {each.why}", "yellow")
        rows = self._rows()
        for text, looser in rows[:_SHOWN]:
            screen.note(text, "red" if looser else "yellow")
        if len(rows) > _SHOWN:
            screen.note(f"and {len(rows) - _SHOWN} more, which --json shows")
        for text in self.compared.undecided:
            screen.note(f"undecided: {text}", "red")
        if self.refused is not None:
            why = "may be" if self.compared.undecided else "is"
            screen.note(f"{self.refused} was not written: it {why} looser; --allow-looser writes it", "red")
        screen.note(*self._last_line())

    def _rows(self) -> list[tuple[str, bool]]:
        """One line for each disagreement, those of several tools together, the looser first."""
        tools: dict[tuple[bool, str, str], list[str]] = {}
        for found in self.compared.found:
            subject = found.subject
            who = "" if subject.agent == "default" else f"agent {subject.agent}, "
            because = f" ({found.rule})" if found.rule else ""
            settings, policy = _word(found, found.source), _word(found, found.result)
            text = f"the settings say {settings}, the policy {policy}"
            if self.what == "settings":
                text = f"the policy says {policy}, the settings {settings}"
            looser = self._looser(found)
            rest = f"{found.example}: {text}, which is {'looser' if looser else 'stricter'}{because}"
            tools.setdefault((not looser, who, rest), []).append(subject.tool)
        ordered = sorted(tools.items(), key=lambda row: row[0][0])
        return [
            (f"disagree: {who}{', '.join(dict.fromkeys(named))} {rest}", not stricter)
            for (stricter, who, rest), named in ordered
        ]

    def _last_line(self) -> tuple[str, str]:
        apart = _apart(self.left_out)
        if self.compared.undecided:
            seen = ""
            if self.compared.found:
                seen = f", {len(self._rows())} so far" + (", some looser" if self._any_looser() else "")
            return f"the comparison was not finished{seen}; --seconds gives it more time", "red"
        if self.compared.none:
            return f"the two agree on every path{apart}", "yellow" if apart else "green"
        if not self.compared.elsewhere:
            where = "is below a name that the settings match by itself"
            where += ", where " + ("some of it is looser" if self._any_looser() else "the result is stricter")
            return f"all of it {where}; everywhere else the two agree{apart}", "dim"
        stricter = "" if self._any_looser() else ", nowhere looser"
        return f"the two disagree, with one example for each cause above{stricter}{apart}", "yellow"

    def _any_looser(self) -> bool:
        return any(map(self._looser, self.compared.found))


def _apart(number: int) -> str:
    """What the last line says of the settings that were left out."""
    if not number:
        return ""
    return f", apart from {number} {'setting' if number == 1 else 'settings'} left out or made stricter"


def _word(found: Disagreement, effect: Any) -> str:
    return "no deny" if found.subject.denies_only and str(effect) != "deny" else str(effect)

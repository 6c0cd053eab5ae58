"""Offered rules as text: what each opens, its proof and the policy's diff, the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.rule_offers import rule_ends
from ringfence.toolkit.rule_offers.offers import PROVED, Offer, Offers
from ringfence.toolkit.rule_offers.settling import Settled
from ringfence.toolkit.text import escape, plural

_NAMED = 5


def rule_end(text: str | None, now: float) -> int | None:
    """When a rule ends, in POSIX seconds (None: never). Raises UsageError for what is no end."""
    try:
        return rule_ends.rule_end(text, now)
    except ValueError as error:
        raise UsageError(f"--until {text}: {error}") from None


def offer_lines(offer: Offer, settled: Settled | None = None) -> Iterator[tuple[str, str]]:
    """Yield the lines about an offer, without its diff, each with its style."""
    yield f"{offer.words}: {offer.rule_in_words()}", "bold"
    if offer.keeps:
        yield f"  keeps denied, by entries of its own: {', '.join(map(escape, offer.keeps))}", ""
    yield f"  {offer.opens.in_words()}", ""
    yield f"  {offer.opens.shortest_in_words()}", ""
    yield f"  {PROVED}", "green"
    yield f"  gains something: {gains(offer)}", "dim"
    if settled is not None:
        yield from _settled_lines(settled)


def gains(offer: Offer) -> str:
    """Return which agents gain something, in words."""
    return f"agent {escape(' and '.join(offer.owners))} and its sub-agents, no other"


def _settled_lines(settled: Settled) -> Iterator[tuple[str, str]]:
    if settled.past:
        yield f"  would have answered {plural(settled.past, 'question')} that people answered with yes", "dim"
    if settled.waiting:
        yield f"  also answers what waits: {named(settled.waiting)}", ""
    if settled.refused:
        yield (
            f"  a refusal stays, but another change there would no longer ask: {named(settled.refused)}",
            "yellow",
        )


def named(requests: Iterable[Request]) -> str:
    """Return requests with their ids and titles, the first few of them."""
    found = list(requests)
    text = "; ".join(f"{one.id} {escape(one.title)}" for one in found[:_NAMED])
    return f"{text}; and {len(found) - _NAMED:,} more" if len(found) > _NAMED else text


def show_offer(offer: Offer, settled: Settled | None, screen: Screen) -> None:
    """Print an offer with the policy's diff."""
    for text, style in offer_lines(offer, settled):
        screen.line(text, style)
    screen.diff(offer.diff)


def show_left_out(offers: Offers, screen: Screen) -> None:
    """Print why other rules are not offered."""
    for words, why in offers.left_out:
        screen.line(f"not offered{f', {words}' if words else ''}: {escape(why)}", "dim")

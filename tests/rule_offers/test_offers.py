"""Which rules are offered for a request, and which are not, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Effect, Need
from ringfence.policy.model import WRITE_KINDS
from ringfence.toolkit.rule_offers.candidates import WIDTHS, WORDS, candidates
from ringfence.toolkit.rule_offers.marks import answered_rules, mark, reason, request_of, rule_id
from ringfence.toolkit.rule_offers.offers import answers
from tests.rule_offers.making import LATER, NOW, loaded, offered, request

CASES = yaml.safe_load((Path(__file__).parent / "offers.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_offers(case: dict[str, Any]) -> None:
    text = yaml.safe_dump({"version": 1, **case["policy"]}, sort_keys=False)
    policy = loaded(text)
    agent = case.get("agent", "coder")
    made = request(policy, agent, case["tool"], [Need(**need) for need in case["needs"]])
    found = offered(text, made)
    reasons = "; ".join(why for _, why in found.left_out)
    for width in WIDTHS:
        offer = found.of_width(width)
        if width in case:
            assert offer is not None, reasons
            wanted = {"keeps": [], "owners": ["coder"], **case[width]}
            got = {"key": offer.key, "patterns": list(offer.patterns), "keeps": list(offer.keeps)}
            assert {**got, "owners": list(offer.owners)} == wanted
            assert answers(offer.after.at(NOW), made)
            assert not answers(offer.after.at(LATER + 60), made), "it ends"
            assert [each.id for each in answered_rules(offer.after.whole)] == [offer.id]
        if f"not_{width}" in case:
            assert offer is None
            assert case[f"not_{width}"] in reasons
        if width in case.get("absent", ()):
            assert offer is None
    if "none" in case:
        assert not found.offers and case["none"] in reasons


def test_a_rule_names_the_request_that_it_answered() -> None:
    assert request_of(rule_id("a-00ff")) == "a-00ff"
    assert mark(reason("r-00ff")) == "r-00ff" == mark(reason("r-00ff", "keys never leave"))
    assert mark("rule of thumb") is None is mark(None)


def test_the_kept_deny_has_its_reason() -> None:
    text = yaml.safe_dump({"version": 1, **CASES[1]["policy"]}, sort_keys=False)
    offer = offered(
        text, request(loaded(text), "coder", "create_file", [Need("write", "src/a.py")])
    ).of_width("folder")
    assert offer is not None
    effect, rule = offer.after.verdict("coder", "create_file", "write", "src/x.lock")
    assert effect is Effect.DENY and rule is not None and str(rule.reason).endswith(": the build owns it")


def test_a_limit_and_a_loss_are_never_answered_by_a_rule() -> None:
    text = "version: 1\nrules: {delete: ask}\n"
    made = request(loaded(text), "coder", "delete_file", [Need("delete", "a")])
    for more in ({"limit": {"key": "delete"}}, {"not_recoverable": ["a"]}):
        found = offered(
            text, request(loaded(text), "coder", "delete_file", [Need("delete", "a")], decision=more)
        )
        assert not found.offers and "once" in found.left_out[0][1]
    assert offered(text, made).offers


def test_the_kind_of_writing_is_the_key_where_the_tool_has_several() -> None:
    for kind, key in (("create", "write.create"), ("replace", "write.replace")):
        (first, *_) = candidates("create_file", [Need("write", "a/b", kind=kind)])
        assert first.keys == (key, "create_file") and key in WRITE_KINDS
    (first, *_) = candidates("edit_file", [Need("write", "a/b", kind="edit")])
    assert first.keys == ("edit_file", "write.edit")
    assert set(WORDS) == set(WIDTHS)

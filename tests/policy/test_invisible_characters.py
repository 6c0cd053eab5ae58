"""What cannot be seen is refused in a policy and written out in a text, by one definition."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from ringfence.policy import Policy, PolicyError
from ringfence.policy.errors import visible
from ringfence.policy.invisible_characters import is_invisible
from ringfence.toolkit.text import escape

EVERY = [chr(number) for number in range(sys.maxunicode + 1)]
INVISIBLE = [character for character in EVERY if is_invisible(character)]


def test_whatever_unicode_calls_a_control_or_a_format_is_one() -> None:
    categories = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    missed = [hex(ord(c)) for c in EVERY if unicodedata.category(c) in categories and not is_invisible(c)]
    assert missed == []


def test_no_letter_of_a_usual_script_is_one() -> None:
    usual = "aZ09 é日本ก\u0301я☁👍\u3000"
    assert [character for character in usual if is_invisible(character)] == []


def test_each_is_written_out_in_texts_and_in_messages() -> None:
    shown = [character for character in INVISIBLE if character in escape(character)]
    shown += [character for character in INVISIBLE if character in visible(character) and character != "\t"]
    assert [hex(ord(character)) for character in shown] == []


# One of each kind: a letter by its category, a symbol, a mark, a selector, one that is not assigned.
@pytest.mark.parametrize(
    "character", "\u3164\u115f\u2800\u034f\ufe0f\u17b5\uffa0\u200b\u202e\U000e0101", ids=ascii
)
@pytest.mark.parametrize("rules", ['{delete: {"secrets%s": deny}}', '{"*": {effect: ask, reason: "a%sb"}}'])
def test_a_policy_that_holds_one_does_not_load(character: str, rules: str) -> None:
    text = f"version: 1\nrules: {rules % character}\n"
    if "effect" in rules:
        text = f'version: 1\nrules: {{read: {{"*": {{effect: ask, reason: "a{character}b"}}}}}}\n'
    with pytest.raises(PolicyError) as caught:
        Policy.loads(text)
    assert {problem.code for problem in caught.value.problems} == {"hidden_character"}
    assert f"U+{ord(character):04X}" in str(caught.value)

"""Rules about commands: imports and exports against judges of their own, over commands of a few words."""

import itertools
import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy, loads
from ringfence.policy.commands.words import written
from ringfence.toolkit.formats.command_rules import as_text, spoken
from ringfence.toolkit.formats.exporting import outgoing
from ringfence.toolkit.formats.model import Setting
from ringfence.toolkit.formats.registry import FORMATS
from ringfence.toolkit.formats.yaml_writer import policy_text

NAMED = {"allow": Effect.ALLOW, "ask": Effect.ASK, "deny": Effect.DENY}
NAMES = ("git", "push", "gitk", "-f", "x")
COMMANDS = [words for length in (1, 2, 3) for words in itertools.product(NAMES, repeat=length)]
BODIES = st.sampled_from(
    ["*", "git", "git *", "git push", "git push *", "git*", "git pu*", "git * -f", "* -f", "*", "g*t push",
     "git *sh", "git push | x", "git && x", "git $X", "git > x", "", "? push", "git '*'", "~/x"]
)  # fmt: skip
EFFECTS = st.sampled_from(["allow", "ask", "deny"])
RULES = st.lists(st.tuples(BODIES, EFFECTS), max_size=5)


def fits(body: str, text: str) -> bool:
    """A star is any text, and ` *` at the end also none; nothing else is special but `?`."""
    if body in ("", "*"):
        return True

    def whole(pattern: str) -> bool:
        pieces = re.split(r"([*?])", pattern)
        expression = "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in pieces)
        return re.fullmatch(expression, text, re.DOTALL) is not None

    return whole(body) or (body.endswith(" *") and whole(body[:-2]))


def fits_exactly(body: str, text: str) -> bool:
    """The same where `?` is an ordinary character."""
    return fits(body.replace("?", "\0"), text.replace("?", "\0"))


def claude(rules: list[tuple[str, str]], text: str) -> Effect:
    effects = [NAMED[said] for body, said in rules if fits_exactly(body, text)]
    return max(effects, default=Effect.ASK)


def opencode(rules: list[tuple[str, str]], text: str) -> Effect:
    return next((NAMED[said] for body, said in reversed(rules) if fits(body, text)), Effect.ASK)


def claude_settings(rules: list[tuple[str, str]]) -> str:
    lists: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for body, said in rules:
        lists[said].append(f"Bash({body})" if body else "Bash")
    return json.dumps({"permissions": lists})


def opencode_settings(rules: list[tuple[str, str]]) -> str:
    listed = [{"action": "bash", "resource": body or "*", "effect": said} for body, said in rules]
    return json.dumps({"permissions": listed})


@pytest.mark.parametrize(
    ("name", "settings_of", "judge"),
    [("claude-code", claude_settings, claude), ("opencode", opencode_settings, opencode)],
)
@given(rules=RULES)
@settings(max_examples=60, deadline=None)
def test_an_import_is_never_looser_and_exact_where_nothing_is_said(name, settings_of, judge, rules) -> None:
    found = FORMATS[name].read(settings_of(rules), Setting())
    policy = Policy.loads(policy_text(found, "rules"))
    for words in COMMANDS:
        text = " ".join(words)
        ours, theirs = policy.effect("default", "run", "run", text), judge(rules, text)
        assert ours >= theirs, (rules, text)
        if not found.left:
            assert ours is theirs, (rules, text)


PATTERNS = st.sampled_from(
    ["*", "git", "git *", "git push *", "git * -f", "* push", "* push *", "git 'a b'", "x '*' *"]
)


@pytest.mark.parametrize(("name", "judge"), [("claude-code", claude), ("opencode", opencode)])
@given(
    rules=st.dictionaries(PATTERNS, EFFECTS, max_size=4), floor=st.lists(PATTERNS, max_size=2), how=EFFECTS
)
@settings(max_examples=60, deadline=None)
def test_an_export_is_never_looser(name, judge, rules, floor, how) -> None:
    content = {"version": 1, "rules": {"read": "allow", **({"run": rules} if rules else {})}}
    if floor:
        content["mandatory"] = [{"ask" if how == "allow" else how: "run", "commands": floor}]
    policy = loads(yaml.safe_dump(content, sort_keys=False))
    out = outgoing(policy, FORMATS[name], "default", Setting())
    written_rules = json.loads(out.text)["permissions"]
    if name == "opencode":
        theirs = [(each["resource"], each["effect"]) for each in written_rules if each["action"] == "bash"]
    else:
        theirs = [
            (match[1] or "", said)
            for said, listed in written_rules.items()
            for rule in listed
            if (match := re.fullmatch(r"Bash(?:\((.*)\))?", rule))
        ]
    said = any(left.where == "run" for left in out.left)
    for words in [*COMMANDS, ("git", "a b"), ("x", "*"), ("x", "*", "y")]:
        ours = policy.effect("default", "run", "run", written(words))
        judged = judge(theirs, written(words))
        assert judged >= ours, (rules, floor, words)
        if name == "opencode" and not said and not floor:
            assert judged is ours, (rules, words)


@pytest.mark.parametrize("effect", list(Effect))
def test_a_pattern_for_a_text_and_back(effect: Effect) -> None:
    for pattern in ("*", "git", "git push *", "git push -f"):
        assert as_text(pattern, effect).pattern == pattern
        assert spoken(pattern, effect).pattern == pattern
    assert spoken("x " * 400, effect).pattern in (None, " ".join(["x"] * 63 + ["*"]))


def test_agents_have_their_own() -> None:
    text = json.dumps(
        {
            "permission": {"bash": {"*": "ask", "ls *": "allow"}},
            "agent": {"coder": {"permission": {"bash": "deny"}}},
        }
    )
    policy = Policy.loads(policy_text(FORMATS["opencode"].read(text, Setting()), "agents"))
    assert policy.effect("default", "run", "run", "ls -l") is Effect.ALLOW
    assert policy.effect("coder", "run", "run", "ls -l") is Effect.DENY


def test_what_an_import_starts_from_alone_allows_no_command() -> None:
    found = FORMATS["opencode"].read('{"permission": {"edit": "ask"}}', Setting())
    assert "run" not in found.everybody

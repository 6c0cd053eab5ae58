"""What the package gives to others, and how light it is to import."""

import subprocess
import sys

from ringfence import policy

EXPORTS = [
    "ACTIONS", "READY_MADE", "TOOL_ACTIONS", "Amount", "Case", "Decision", "Effect", "Explanation", "Folding",
    "Invariant", "Limit", "LimitHit", "Need", "Policy", "PolicyError", "Problem", "Rule", "Step", "Where",
    "load", "loads",
    "ready_made",
]  # fmt: skip


def test_the_export_list() -> None:
    assert policy.__all__ == EXPORTS
    assert all(hasattr(policy, name) for name in EXPORTS)


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "{'yaml', 'difflib', 'jsonschema', 'hashlib', 'toolkit', 'asyncio'}"
    code = (
        "import sys, policy; p = policy.Policy.empty(); p.effect('a', 'delete', 'delete', 'x');"
        f"print(*sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_effects_are_ordered_and_named() -> None:
    effects = list(policy.Effect)
    assert [str(effect) for effect in effects] == ["allow", "ask", "deny"]
    assert f"{policy.Effect.ASK}|{policy.Effect.ASK:>5}" == "ask|  ask"
    assert max(effects) is policy.Effect.DENY


def test_a_tool_and_an_action_share_a_name_only_where_they_are_the_same() -> None:
    for action in policy.ACTIONS:
        pairs = policy.TOOL_ACTIONS.get(action)
        assert pairs is None or [name for name, _ in pairs] == [action]

"""Claim: at 1,000 rules a fresh decision is faster than every peer's and a tenth of a loop of expressions.

The same rules and files for all: a loop of compiled expressions, pathspec, wcmatch, cedarpy, pycasbin, and
Rego on regorus and rego-cpp, over the loop's expressions. Cedar and Casbin know no order of rules and their
star crosses slashes, so what is compared is the work of finding the rules that match. Peers that are not
installed are left out (extra `bench`).

    python benchmarks/peers.py [--json FILE]
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _size import size
from decide import engine, expression, rules, tree

COUNTS = size((10, 100, 1_000, 10_000), (10, 1_000))
SECONDS = size(0.5, 0.0)  # for one cell, about
LOOP_AT_MOST = 0.1
CEDAR_AT_MOST = 0.01

Judge = Callable[[str], object]
Rules = dict[str, str]


def ringfence(made: Rules) -> Judge:
    return functools.partial(engine(made).effect, "a", "delete", "delete")


def expressions(made: Rules) -> Judge:
    table = [(expression(pattern), effect) for pattern, effect in reversed(made.items())]
    return lambda path: next((effect for test, effect in table if test.fullmatch(path)), "ask")


def pathspec(made: Rules) -> Judge:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(list(made), backend="simple").check_file


def wcmatch(made: Rules) -> Judge:
    from wcmatch import glob

    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.MATCHBASE
    table = [(glob.compile(pattern, flags=flags), effect) for pattern, effect in reversed(made.items())]
    return lambda path: next((effect for test, effect in table if test.match(path)), "ask")


def cedarpy(made: Rules) -> Judge:
    import cedarpy as cedar

    verbs = {"allow": "permit", "ask": "permit", "deny": "forbid"}
    lines = [
        f"{verbs[effect]}(principal, action, resource) when"
        f" {{ context.path like {json.dumps(pattern.strip('/').replace('**/', '*').replace('**', '*'))} }};"
        for pattern, effect in made.items()
    ]
    policies = cedar.PolicySet.from_str("\n".join(lines))
    asked = {"principal": 'A::"a"', "action": 'Action::"delete"', "resource": 'F::"f"'}
    return lambda path: cedar.is_authorized({**asked, "context": {"path": path}}, policies, [])


def pycasbin(made: Rules) -> Judge:
    import logging

    import casbin

    logging.getLogger("casbin").setLevel(logging.ERROR)
    model = casbin.Model()
    model.load_model_from_text(
        "[request_definition]\nr = sub, obj, act\n[policy_definition]\np = sub, obj, act, eft\n"
        "[policy_effect]\ne = !some(where (p.eft == deny))\n"
        "[matchers]\nm = r.sub == p.sub && globMatch(r.obj, p.obj) && r.act == p.act\n"
    )
    enforcer = casbin.Enforcer(model)
    rows = [
        ["a", pattern, "delete", "deny" if effect == "deny" else "allow"] for pattern, effect in made.items()
    ]
    enforcer.add_policies(rows)
    return lambda path: enforcer.enforce("a", path, "delete")


# The last rule that matches, as whoever has OPA would say it.
REGO = """package paths
import rego.v1
hits contains number if {
    some number, rule in data.rules
    regex.match(rule.pattern, input.path)
}
default effect := "ask"
effect := data.rules[max(hits)].effect
"""


def rego_data(made: Rules) -> dict[str, Any]:
    return {
        "rules": [
            {"pattern": f"^(?:{expression(pattern).pattern})$", "effect": effect}
            for pattern, effect in made.items()
        ]
    }


def regorus(made: Rules) -> Judge:
    from regorus import Engine

    engine = Engine()
    engine.add_policy("paths.rego", REGO)
    engine.add_data_json(json.dumps(rego_data(made)))

    def judge(path: str) -> object:
        engine.set_input_json(json.dumps({"path": path}))
        return engine.eval_rule("data.paths.effect")

    return judge


def rego_cpp(made: Rules) -> Judge:
    from regopy import Interpreter

    interpreter = Interpreter()
    interpreter.add_module("paths", REGO)
    interpreter.add_data(rego_data(made))
    bundle = interpreter.build("effect=data.paths.effect")

    def judge(path: str) -> object:
        interpreter.set_input({"path": path})
        output = interpreter.query_bundle(bundle)  # named, as what it gives does not keep it
        return output.binding("effect").value

    return judge


PEERS: dict[str, Callable[[Rules], Judge]] = {
    "ringfence": ringfence,
    "expressions": expressions,
    "pathspec": pathspec,
    "wcmatch": wcmatch,
    "cedarpy": cedarpy,
    "pycasbin": pycasbin,
    "rego-cpp": rego_cpp,
    "regorus": regorus,
}


def microseconds(judge: Judge, paths: list[str]) -> float:
    """Return processor time a decision, each path seen for the first time, as many as fit the time."""
    gc.collect()
    start = time.process_time()
    for done, path in enumerate(paths, 1):
        judge(path)
        if not done & (done - 1) and time.process_time() - start > SECONDS:
            break
    return (time.process_time() - start) / done * 1e6


def measure() -> dict[str, dict[int, float]]:
    paths, _ = tree(seed=1)
    found: dict[str, dict[int, float]] = {}
    for name, make in PEERS.items():
        try:
            found[name] = {count: microseconds(make(rules(count)), paths) for count in COUNTS}
        except ImportError:
            print(f"{name}: not installed", file=sys.stderr)
    return found


def main(words: list[str]) -> int:
    found = measure()
    if words[:1] == ["--json"]:
        Path(words[1]).write_text(json.dumps(found, indent=1) + "\n")
    print(
        f"{'us a decision':>14} " + " ".join(f"{count:>11,}" for count in COUNTS) + "   decisions/s at 1,000"
    )
    for name, row in found.items():
        cells = " ".join(f"{each:11.2f}" for each in row.values())
        print(f"{name:>14} {cells}   {1e6 / row[1_000]:12,.0f}")
    ours = found["ringfence"][1_000]
    ahead = all(ours < row[1_000] for name, row in found.items() if name != "ringfence")
    loop, cedar = ours / found["expressions"][1_000], ours / found.get("cedarpy", {}).get(1_000, float("inf"))
    print(f"at 1,000 rules {loop:.3f} of the loop; claimed: at most {LOOP_AT_MOST:g}")
    print(f"and {cedar:.4f} of cedarpy; claimed: at most {CEDAR_AT_MOST:g}")
    return int(not ahead or loop > LOOP_AT_MOST or cedar > CEDAR_AT_MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

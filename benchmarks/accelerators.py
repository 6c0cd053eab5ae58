"""Claim: no faster package for JSON or for JSON Schema, with the same answers, makes a call 10% cheaper.

Of a call that comes as text and is answered as text: the steps in which such a package could stand in, ours
beside the fastest. Two are shown and not counted, as the answers differ: of a name that occurs twice they
take the last, where we refuse it, and what they write is not ASCII, as a line of ours is promised to be.
Needs the extra `bench`; processor time, nothing waited for.

    python benchmarks/accelerators.py
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from _calls import POLICY, TOOLS, fill
from _size import not_measured, size

from ringfence.policy import Policy
from ringfence.toolkit import Result, Session
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import parse_call
from ringfence.toolkit.session.validation import arguments
from ringfence.toolkit.tools import TOOLS as KNOWN

CALLS = size(500, 10)
AT_MOST = 0.1
SAME = ("checking", "recording")  # the steps in which the answers are the same
TWICE = b'{"path": "a", "path": "b"}'
Step = Callable[[int], object]
Steps = dict[str, dict[str, Step]]


def microseconds(work: Step) -> float:
    gc.collect()
    start = time.process_time()
    for number in range(CALLS):
        work(number)
    return (time.process_time() - start) / CALLS * 1e6


def steps(tool: str, lines: list[bytes], results: list[Result], records: list[Any]) -> Steps:
    """Return each step with what could do it: ours first."""
    import fastjsonschema
    import jsonschema_rs
    import msgspec
    import orjson

    assert orjson.loads(TWICE) == msgspec.json.decode(TWICE) == {"path": "b"}
    assert not orjson.dumps("é").isascii()
    assert not msgspec.json.encode("é").isascii()
    schema = KNOWN[tool].parameters
    given = [parse_call(line).arguments for line in lines]
    answers = [result.to_json() for result in results]
    compiled, rust = fastjsonschema.compile(dict(schema)), jsonschema_rs.validator_for(dict(schema))
    return {
        "reading": {
            "ours": lambda n: parse_call(lines[n]),
            "orjson": lambda n: orjson.loads(lines[n]),
            "msgspec": lambda n: msgspec.json.decode(lines[n]),
        },
        "checking": {
            "ours": lambda n: arguments(tool, schema, given[n]),
            "fastjsonschema": lambda n: compiled(given[n]),
            "jsonschema-rs": lambda n: rust.is_valid(given[n]),
        },
        "answering": {
            "ours": lambda n: results[n].to_line(),
            "orjson": lambda n: orjson.dumps(answers[n]),
            "msgspec": lambda n: msgspec.json.encode(answers[n]),
        },
        "recording": {
            "ours": lambda n: json.dumps(
                records[n], ensure_ascii=True, separators=(",", ":"), sort_keys=True
            ),
            "orjson": lambda n: orjson.dumps(records[n], option=orjson.OPT_SORT_KEYS),
            "msgspec": lambda n: msgspec.json.encode(records[n], order="sorted"),
        },
    }


def measure(session: Session, tool: str) -> float:
    """Print what a call and its steps cost; gives the part of it that packages could save."""
    given = [{key: value.format(n) for key, value in TOOLS[tool].items()} for n in range(CALLS)]
    lines = [json.dumps({"id": n, "tool": tool, "arguments": each}).encode() for n, each in enumerate(given)]
    results: list[Result] = []

    def whole(number: int) -> None:
        results.append(session.call(lines[number]))
        results[-1].to_line()

    cost = microseconds(whole)
    assert all(result.ok for result in results), results
    records = list(audit.records(session.state))[-CALLS:]
    print(f"{tool}: {cost:.0f} µs")
    saved = by_all = 0.0
    for name, ways in steps(tool, lines, results, records).items():
        taken = {way: microseconds(step) for way, step in ways.items()}
        by_all += taken["ours"] - min(taken.values())
        if name in SAME:
            saved += taken["ours"] - min(taken.values())
        print(f"  {name:<10} " + "   ".join(f"{way} {value:5.1f}" for way, value in taken.items()))
    print(f"  the fastest would save {saved / cost:.1%}, and with other answers {by_all / cost:.1%}")
    return saved / cost


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "root")
        os.makedirs(f"{root}/d")
        with Session(root, Policy.loads(POLICY), state=os.path.join(folder, "s")) as session:
            fill(session)
            most = max(measure(session, tool) for tool in TOOLS)
    print(f"at most {most:.1%} of a call; claimed: at most {AT_MOST:.0%}")
    return int(most > AT_MOST)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ImportError as missing:
        sys.exit(not_measured(f"{missing.name} is not installed (extra `bench`)"))

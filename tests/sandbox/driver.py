"""Driver: runs commands in the sandbox as whoever starts it, without the rest of Ringfence.

Reads one JSON object a line, `{"spec": ..., "stdin": ...}`, and answers each with one line.
"""

from __future__ import annotations

import dataclasses
import json
import sys

sys.path.insert(0, sys.argv[1])

from ringfence.toolkit.sandbox import Limits, SandboxError, Spec, levels, run


def answer(request: dict[str, object]) -> dict[str, object]:
    if request.get("levels"):
        return {"levels": [dataclasses.asdict(report) for report in levels(str(request["levels"]))]}
    spec = dict(request["spec"])  # type: ignore[call-overload] # JSON
    limits = Limits(**spec.pop("limits", {}))
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in spec.items()}
    try:
        ended = run(Spec(limits=limits, **plain))
    except SandboxError as error:
        return {"error": error.code, "message": error.message, "place": error.place}
    return dataclasses.asdict(ended) | {"output": ended.output.decode("utf-8", "surrogateescape")}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)

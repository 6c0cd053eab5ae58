"""Metrics: counters in the Prometheus text format. They name no path and no agent."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.tools import TOOLS

TEXT = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_HELP = {
    "ringfence_calls_total": "Calls answered, by tool and status.",
    "ringfence_decisions_total": "Verdicts of the policy, on calls and on questions to /decide.",
    "ringfence_approvals_total": "Answers given to questions, by what they were.",
    "ringfence_refused_total": "Requests that were not let through, by code.",
    "ringfence_tasks_total": "Tasks named in calls on task folders, by tool and outcome.",
    "ringfence_task_failures_total": "Tasks that failed, by tool and code.",
}
_LATENCY = "ringfence_call_seconds"
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """The counters of one server; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._slots: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def add(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add an amount to a counter."""
        assert name in _HELP, "a metric says what it counts"
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += amount

    def call(self, tool: str, result: Result, seconds: float) -> None:
        """Count one answered call; all unknown tool names count as one."""
        tool = tool if tool in TOOLS else "unknown"
        self.add("ringfence_calls_total", tool=tool, status=result.status)
        if result.decision is not None:
            self.add("ringfence_decisions_total", effect=str(result.decision["effect"]))
        if "succeeded" in result.data and tool in TOOLS and TOOLS[tool].tasks:
            self._tasks(tool, result.data)
        with self._lock:
            slots = self._slots.setdefault(tool, [0] * (len(BUCKETS) + 1))
            slots[sum(seconds > edge for edge in BUCKETS)] += 1
            self._seconds[tool] += seconds  # type: ignore[assignment]

    def _tasks(self, tool: str, data: dict[str, Any]) -> None:
        self.add("ringfence_tasks_total", data["succeeded"], tool=tool, outcome="succeeded")
        self.add("ringfence_tasks_total", data["failed"], tool=tool, outcome="failed")
        for item in data.get("results", ()):
            if item.get("code") is not None:
                self.add("ringfence_task_failures_total", tool=tool, code=str(item["code"]))

    def text(self) -> str:
        """Return all counters in the Prometheus text exposition format."""
        with self._lock:
            lines = [*self._counters(), *self._histogram()]
        return "\n".join(lines) + "\n"

    def _counters(self) -> Iterable[str]:
        for name, what in _HELP.items():
            yield f"# HELP {name} {what}"
            yield f"# TYPE {name} counter"
            for (known, labels), value in sorted(self._counts.items()):
                if known == name:
                    yield f"{name}{_braced(labels)} {value}"

    def _histogram(self) -> Iterable[str]:
        yield f"# HELP {_LATENCY} Seconds from a call's turn to its answer, by tool."
        yield f"# TYPE {_LATENCY} histogram"
        for tool, slots in sorted(self._slots.items()):
            below = 0
            for edge, count in zip((*map(str, BUCKETS), "+Inf"), slots, strict=True):
                below += count
                yield f"{_LATENCY}_bucket{_braced((('tool', tool), ('le', edge)))} {below}"
            yield f"{_LATENCY}_sum{_braced((('tool', tool),))} {float(self._seconds[tool])!r}"
            yield f"{_LATENCY}_count{_braced((('tool', tool),))} {below}"


def _braced(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""

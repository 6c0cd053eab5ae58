"""Task ids in calls: strict ASCII UUIDs, each once. Pure.

Only ids that pass here become part of a path.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ringfence.policy.model import MOST_TASKS
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.text import escape

TASKS = "@tasks"
TRASH = ".trash"
IN_TRASH = f"{TASKS}/{TRASH}"
MOST = 1000  # how many ids a call may name by default
_ID = re.compile(r"\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_SHOWN = 80
_LONGEST = 64 * MOST_TASKS  # characters of ids in one text


def is_id(text: str) -> bool:
    """Whether a folder's name is a task id, in any case, ASCII only."""
    return text.isascii() and _ID.match(text.lower()) is not None


def unwrapped(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `task_ids` as a list if it was JSON text of a list.

    Raises CallError `invalid_arguments` for any other text.
    """
    given = arguments.get("task_ids")
    if not isinstance(given, str):
        return arguments
    if len(given) > _LONGEST:
        message = f"The task_ids is text of {len(given):,} characters; at most {_LONGEST:,} are taken"
        raise CallError("invalid_arguments", message, where="task_ids", hint="send several calls")
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        message = "Invalid JSON in task_ids: it is not an array of task ids"
        raise CallError("invalid_arguments", message, where="task_ids", hint=_HINT)
    return {**arguments, "task_ids": value}


def parse(given: list[Any], most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids in lower case, each once and in order, and the repeated ones.

    Raises CallError `invalid_arguments` (empty, or no UUID) or `limit_exceeded` (more than `most`).
    """
    if not given:
        raise CallError("invalid_arguments", "No task IDs provided", where="task_ids", hint=_HINT)
    wrong = [one for one in given if not isinstance(one, str) or not is_id(one)]
    if wrong:
        shown = ", ".join(f"'{escape(str(one)[:_SHOWN])}'" for one in wrong[:3])
        more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
        message = f"Invalid task ID format: {shown}{more}"
        raise CallError("invalid_arguments", message, where="task_ids", hint=_HINT)
    lower = [str(one).lower() for one in given]
    ids = tuple(dict.fromkeys(lower))
    if len(ids) > most:
        message = f"{len(ids):,} tasks named where at most {most:,} a call are allowed (max_tasks)"
        hint = "name fewer tasks in one call"
        raise CallError("limit_exceeded", message, where="task_ids", hint=hint)
    seen: set[str] = set()
    again = dict.fromkeys(one for one in lower if one in seen or seen.add(one))  # type: ignore[func-returns-value]
    return ids, tuple(again)


_HINT = 'give an array of UUIDs, such as ["a1b2c3d4-e5f6-7890-abcd-ef1234567890"]'

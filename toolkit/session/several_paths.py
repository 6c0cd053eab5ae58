"""Resolution of a list of paths: each is judged by itself, and one that fails does not stop the others.

A path that is denied by its name is denied before the store is read, as one path alone is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.policy import Effect
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session import resolve, responses
from ringfence.toolkit.tools.preconditions import OF_ONE_PATH, all_failed

if TYPE_CHECKING:
    from ringfence.toolkit.session.attempt import Attempt


def resolve_paths(attempt: Attempt) -> None:
    """Resolve the paths of a call: of one with a list of them each by itself."""
    # A store remembers what it has read, and some of that must not be older than a change.
    begin = getattr(attempt.context.workspace.backend, "begin_call", None)
    if begin is not None:
        begin(changes=attempt.known_tool.safety != "safe")
    if attempt.known_tool.several:
        _resolve_each(attempt)
    else:
        resolve.resolve(attempt)


def _resolve_each(attempt: Attempt) -> None:
    """Resolve each path to a place, with the key `paths.<number>`, and keep the errors of the others.

    A path that is given twice is resolved once. Raises the first path's error if no path has a place.
    """
    known = list(attempt.arguments["paths"])
    for number, text in enumerate(known):
        key = f"paths.{number}"
        try:
            _resolve(attempt, key, text, again=text in known[:number])
        except CallError as error:
            if error.code not in OF_ONE_PATH:
                raise
            _, spot = attempt.places.pop(key, (None, None))
            if spot is not None:
                attempt.context.workspace.backend.release(spot)
            attempt.failed[key] = responses.redacted(attempt, error)
    if not attempt.places:
        raise all_failed({known[int(key[6:])]: error for key, error in attempt.failed.items()})


def _resolve(attempt: Attempt, key: str, text: str, *, again: bool) -> None:
    if again:
        return
    names = resolve.split(attempt, text, "path")
    path = paths.lexical(names)
    if not paths.names_directory(text) and any(path == each.named for each, _ in attempt.places.values()):
        return  # the same path in another spelling
    attempt.named.append(path)
    resolve.guard(attempt.context.workspace, path, "read")
    if attempt.denies("read", path):
        raise resolve.denied(attempt, resolve.by_name("read", path))
    place, _ = attempt.places[key] = resolve.place_of(attempt, text, names, path, "paths")
    needs = resolve.needs_at(attempt, "read", place)
    if attempt.enforcing and attempt.judge(needs).effect is Effect.DENY:
        raise resolve.denied(attempt, needs)
    resolve.check_slash(attempt, place, "path")


def parts(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of each file of an answer; of an answer about one file all of them."""
    found = data.get("files")
    return found if isinstance(found, list) else [data]

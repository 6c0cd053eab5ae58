"""Resolution of path arguments to places: first by name, then by the real path; both are judged.

A path that is denied by its name or its real path is denied in the same way whether or not it exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.policy import Effect, Need
from ringfence.policy.model import kind_at
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Place, Stat
from ringfence.toolkit.plan.entries import LooksFor
from ringfence.toolkit.session import responses
from ringfence.toolkit.session.attempt import stricter
from ringfence.toolkit.storage.first_look import look
from ringfence.toolkit.text import escape
from ringfence.toolkit.tools.preconditions import shown

if TYPE_CHECKING:
    from ringfence.toolkit.session.attempt import Attempt
    from ringfence.toolkit.workspace.workspace import Workspace

_UNANSWERED = ("cancelled", "io_error", "no_reply")  # these errors reveal nothing about what exists


def resolve(attempt: Attempt) -> None:
    """Resolve each path argument to a place; a path denied by its name is denied before the store is read."""
    workspace, tool = attempt.context.workspace, attempt.known_tool
    if tool.tasks:
        _resolve_tasks(attempt)
        return
    if tool.runs:
        _resolve_command(attempt)
        return
    given: dict[str, tuple[str, tuple[str, ...], str]] = {}
    for action, parameter in tool.needs:
        text = attempt.arguments[parameter] if parameter else paths.ROOT
        names = split(attempt, text, parameter)
        path = paths.lexical(names)
        given[parameter] = text, names, path
        attempt.named.append(path)
        guard(workspace, path, action)
        _deny_by_name(attempt, action, path)
    for parameter, (text, names, path) in given.items():
        try:
            attempt.places[parameter] = place_of(attempt, text, names, path, parameter)
        except CallError as error:
            raise _denied_instead(attempt, error, path) from None


def needs(attempt: Attempt) -> list[Need]:
    """Return the call's needs on its path arguments, by their names and their real paths."""
    tool = attempt.known_tool
    if tool.tasks:
        # A task is judged as one folder, not file by file.
        written = kind_at(tool.name, False)
        return [
            Need(action, path, True, kind=written if action == "write" else "")
            for action, _ in tool.needs
            for path in attempt.named
        ]
    if tool.runs:
        above = [] if attempt.cwd == paths.ROOT else [Need("read", attempt.cwd, True)]
        return [*above, *(Need("run", command) for command in attempt.commands)]
    if tool.several:
        return [need for place, _ in attempt.places.values() for need in needs_at(attempt, "read", place)]
    return [
        need
        for action, parameter in tool.needs
        for need in needs_at(attempt, action, attempt.places[parameter][0])
    ]


def needs_at(attempt: Attempt, action: str, place: Place) -> list[Need]:
    """Return the needs of an action on a place, by its name and its real path."""
    found: list[Need] = []
    names: tuple[str, ...] = (place.named,)
    if place.real != place.named:
        guard(attempt.context.workspace, place.real, action)
        names = (place.named, place.real)
    kinds = _kinds(attempt, action, place)
    for path in names:
        kind = _kind_of_write(attempt, path, place) if action == "write" else ""
        found += [Need(action, path, directory, kind=kind) for directory in kinds]
    return found


def _kind_of_write(attempt: Attempt, path: str, place: Place) -> str:
    """Return the kind of a write, by what is there; "" where every kind is denied, whose answer is then the
    same whatever is there.
    """
    kind = kind_at(attempt.known_tool.name, place.stat is not None)
    return "" if attempt.policy.has_kinds and attempt.denies("write", path) else kind


def check_slashes(attempt: Attempt) -> None:
    """Refuse a path that ends in a slash if it neither is nor becomes a directory.

    Runs after the verdict, so that it reveals nothing about denied paths.
    """
    if attempt.known_tool.several:
        return  # checked with each path
    for parameter, (place, _) in attempt.places.items():
        check_slash(attempt, place, parameter)


def check_slash(attempt: Attempt, place: Place, parameter: str) -> None:
    """Refuse one path that ends in a slash if it neither is nor becomes a directory."""
    if not paths.names_directory(place.argument) or place.kind == DIRECTORY:
        return
    if place.stat is not None:
        raise _no_directory(place, parameter)
    needed = [action for action, name in attempt.known_tool.needs if name == parameter]
    if needed == ["write"] and not _becomes_directory(attempt):
        message = f"'{shown(place)}' names a directory, and a file would be made"
        hint = "add the file's name, or leave out the slash at the end"
        raise CallError("is_directory", message, where=parameter, hint=hint)


def _no_directory(place: Place, parameter: str) -> CallError:
    link = place.kind == LINK
    message = f"'{shown(place)}' is {'a link, ' if link else ''}not a directory"
    hint = f"leave out the slash at the end to name the {'link itself' if link else 'file'}"
    return CallError("not_a_directory", message, where=parameter, hint=hint)


def _becomes_directory(attempt: Attempt) -> bool:
    """Whether the call makes a directory at a free name."""
    creates = attempt.known_tool.creates
    return creates == "directory" or (
        creates == "as source" and attempt.places["source"][0].kind == DIRECTORY
    )


def _resolve_tasks(attempt: Attempt) -> None:
    from ringfence.toolkit.task_ids import MOST, TASKS, parse

    attempt.named.append(TASKS)
    if "task_ids" not in attempt.arguments:
        return
    setting = attempt.policy.tasks
    most = setting.max_tasks if setting is not None and setting.max_tasks is not None else MOST
    attempt.task_ids = parse(attempt.arguments["task_ids"], most)
    attempt.named[:] = [f"{TASKS}/{task}" for task in attempt.task_ids[0]]


def _resolve_command(attempt: Attempt) -> None:
    """Find the simple commands of a command line, and the directory that it runs in."""
    from ringfence.policy.commands.needs import run_needs

    text = attempt.arguments["cwd"]
    names = split(attempt, text, "cwd")
    path = paths.lexical(names)
    attempt.commands = tuple(need.path for need in run_needs(attempt.arguments["command"]))
    guard(attempt.context.workspace, path, "read")
    if path != paths.ROOT:
        attempt.named.append(path)
        _deny_by_name(attempt, "read", path)
    place, spot = place_of(attempt, text, names, path)
    attempt.places["cwd"] = place, spot
    attempt.cwd = place.real
    if place.kind != DIRECTORY:
        code = "not_found" if place.stat is None else "not_a_directory"
        what = "does not exist" if place.stat is None else "is not a directory"
        raise CallError(code, f"'{shown(place)}' {what}, so nothing can run in it", where="cwd")


def guard(workspace: Workspace, path: str, action: str, *, tasks: bool = False) -> None:
    """Refuse paths that no policy can permit. Raises CallError `protected_path`, `root_protected` or
    `path_invalid`.
    """
    if path == paths.ROOT and action != "read":
        raise CallError("root_protected", "The project root itself cannot be changed", where=path)
    workspace.guard(path, reading=action == "read", tasks=tasks)
    if not paths.is_unicode(path):
        # A name of a store that the history could not record; names on a disk always have a text form.
        raise CallError("path_invalid", "A name in the directory is not valid Unicode")


def split(attempt: Attempt, text: str, parameter: str) -> tuple[str, ...]:
    try:
        return attempt.context.workspace.split(text, parameter or "path")
    except CallError as error:
        raise _outside(attempt, error, text) from None


def _outside(attempt: Attempt, error: CallError, text: str) -> CallError:
    if error.code != "outside_root":
        return error
    own = attempt.known_tool.outside_message
    message = own.format(path=escape(text)) if own else error.message
    return CallError("outside_root", message, where=error.where)


def _deny_by_name(attempt: Attempt, action: str, path: str) -> None:
    # The kind is not known yet, so a path is denied here only if it is denied as a file and as a directory.
    if not attempt.denies(action, path):
        return
    if not (attempt.known_tool.walks and attempt.opens_below(path)):
        raise _denied(attempt, action, path)


def by_name(action: str, path: str) -> list[Need]:
    """Return the need to judge for a path that is denied by its name, whether or not it exists."""
    return [Need(action, path)]


def _denied_instead(attempt: Attempt, error: CallError, path: str) -> CallError:
    """Return a denial instead of an error at a path that is denied by its name: the error would reveal what
    exists.
    """
    if error.code in _UNANSWERED or not (attempt.known_tool.walks and attempt.denies("read", path)):
        return error
    return _denied(attempt, "read", path)


def _denied(attempt: Attempt, action: str, path: str) -> CallError:
    return denied(attempt, by_name(action, path))


def denied(attempt: Attempt, needs: list[Need]) -> CallError:
    """Return the denial of needs that the policy denies, and keep that decision for the record."""
    decision = attempt.judge(needs)
    attempt.try_out(needs, decision)
    if attempt.known_tool.several:
        attempt.refused = stricter(attempt.refused, decision)
    else:
        attempt.decision = decision
    return responses.denied(attempt, decision)


def place_of(
    attempt: Attempt, text: str, names: tuple[str, ...], named: str, parameter: str = ""
) -> tuple[Place, Any]:
    """Resolve the argument `parameter` and look at it; what the call needs of it comes with that look if the
    policy allows it.
    """
    backend = attempt.context.workspace.backend
    follow = attempt.known_tool.follow
    try:
        spot = backend.resolve(names, follow=follow)
    except CallError as error:
        raise _unresolved(attempt, error, text) from None
    try:
        if backend.traits.race_free:  # a disk, where a look of its own costs nothing
            stat = backend.stat(spot)
        else:
            wanted = _wanted(attempt, text, spot.path, named, parameter)
            beside = [other for _, other in attempt.places.values()]
            stat, content = look(backend, spot, wanted, beside)
            if content is not None:
                attempt.contents[spot.path] = content
        link = stat is not None and stat.kind == LINK
        if follow and not link and spot.path != named:
            link = backend.is_link(names)
    except BaseException:
        backend.release(spot)
        raise
    return Place(text, named, spot.path, stat, link), spot


def _wanted(attempt: Attempt, text: str, path: str, named: str, parameter: str) -> LooksFor:
    """Return what the first look at a path may bring: nothing is opened or listed before it is judged."""
    tool = attempt.known_tool
    wanted = tool.looks_for.get(parameter, "")
    actions = [action for action, name in tool.needs if name == parameter]
    replaces = "write" not in actions or attempt.arguments.get("allow_overwrite", True)
    if not wanted or not actions or path != named or not replaces:
        return ""
    if wanted == "content" and (paths.names_directory(text) or attempt.has_much_content):
        return ""
    kinds = {"content": (FILE,), "tree": (FILE, DIRECTORY)}.get(wanted, (DIRECTORY,))
    places = [Place(text, named, path, Stat(kind)) for kind in kinds]
    judged = [need for action in actions for place in places for need in needs_at(attempt, action, place)]
    return wanted if attempt.judge(judged).effect is Effect.ALLOW else ""


def _unresolved(attempt: Attempt, error: CallError, text: str) -> CallError:
    """Return the error of resolving a path, or a denial if it names a path that the agent may not read."""
    # Of a list of paths, another one must not show what exists behind a link.
    named = attempt.named[-1:] if attempt.known_tool.several else attempt.named
    if error.where and error.where not in ("path", *named):
        for action, _ in attempt.known_tool.needs:
            names = attempt.policy.names(attempt.known_tool.name, action)
            if all(attempt.refuses(name, error.where) for name in names):
                return _denied(attempt, action, error.where)
    return _outside(attempt, error, text)


def _kinds(attempt: Attempt, action: str, place: Place) -> tuple[bool, ...]:
    """Return whether to judge as a directory, a file, or both if the kind is unknown."""
    if place.kind == DIRECTORY or (place.link and _leads_to_directory(attempt, place)):
        return (True,)
    if place.stat is not None:
        return (False,)
    if action == "write":
        return (_becomes_directory(attempt),)
    return (False, True)


def _leads_to_directory(attempt: Attempt, place: Place) -> bool:
    backend = attempt.context.workspace.backend
    try:
        spot = backend.resolve(paths.parts(place.real), follow=True)
    except CallError:
        return False
    try:
        stat = backend.stat(spot)
    finally:
        backend.release(spot)
    return stat is not None and stat.kind == DIRECTORY

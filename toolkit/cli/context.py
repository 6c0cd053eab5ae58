"""Root, policy and session of a command, from its options and the current directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ringfence.policy import READY_MADE, Policy, ready_made
from ringfence.toolkit import program_files, project_root
from ringfence.toolkit.cli.output import Screen, is_terminal
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.errors import CODES, CallError
from ringfence.toolkit.locations import shown
from ringfence.toolkit.storage.local_roots import local_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from pathlib import Path
    from typing import Any

    from ringfence.toolkit.approvals.requests import Request
    from ringfence.toolkit.cli.approval_channel import ApprovalChannel
    from ringfence.toolkit.cli.approval_prompt import Terminal
    from ringfence.toolkit.session.call_handler import Approver
    from ringfence.toolkit.session.session import Session


def root_of(arguments: argparse.Namespace) -> tuple[str, str]:
    """The root, as a path or a store's URL, and how it was found: `--root`, or the mark of a project upwards.

    Nothing is imported from the root after this call. Raises UsageError for a directory that does not exist.
    """
    if arguments.root is None:
        path, found_by = project_root.find_root(os.getcwd())
    else:
        with _known_store(arguments.root):
            local = local_path(arguments.root)
        if local is None:
            return arguments.root, "--root"
        if not os.path.isdir(local) and not _path(local).is_dir():
            raise UsageError(f"--root {shown(arguments.root)}: no such directory")
        path, found_by = local, "--root"
    program_files.leave(path)
    return path, found_by


def refuse_chained(root: str) -> None:
    """Fail for a chained URL that leads to the local disk, as opening a session there does."""
    from ringfence.toolkit.storage.local_roots import refuse_local
    from ringfence.toolkit.storage.open import open_store

    with _known_store(root):
        refuse_local(open_store(root, {})[0])


def options_of(arguments: argparse.Namespace) -> str:
    """`--root`, `--place` and `--state` for a command that is run elsewhere on this workspace, as shell text.

    Only for output to a person: results for an agent have no path of this machine.
    """
    import shlex
    from pathlib import Path

    found = ""
    for name in ("root", "place", "state"):
        given = getattr(arguments, name, None)
        if given is not None and shown(given) != given:
            given = name.upper()  # there is a user in it, perhaps a password
        elif given is not None and name != "place" and "://" not in given:
            given = str(Path(given).absolute())
        found += f" --{name} {shlex.quote(given)}" if given is not None else ""
    return found


def policy_of(arguments: argparse.Namespace, root: str) -> Policy:
    """The policy of `--policy`, else of the root, else the empty one, which asks for everything.

    Raises PolicyError if it does not load.
    """
    source = _source(arguments, root)
    return Policy.load(source) if source else Policy.empty()


def source_of(arguments: argparse.Namespace, root: str) -> Path | None:
    """The file of the policy in force, or None without a policy; of a workspace elsewhere only `--policy`."""
    return _as_path(_source(arguments, root))


def _source(arguments: argparse.Namespace, root: str) -> str | None:
    state = getattr(arguments, "state", None)
    if arguments.policy is None and state is not None:
        from ringfence.toolkit.state.open import names_schema  # most commands open no state

        if names_schema(state):
            return None
    named = arguments.policy
    return policy_path_in(arguments, root) if named is None else policy_path(named)


def policy_in(arguments: argparse.Namespace, root: str) -> Path | None:
    """The policy file of a root on this machine, or None. A root given with `--root` is trusted."""
    return _as_path(policy_path_in(arguments, root))


def policy_path_in(arguments: argparse.Namespace, root: str) -> str | None:
    """The same as text: importing `pathlib` takes as long as a verdict."""
    if "://" in root:
        return None
    place = project_root.policy_in(root, found=arguments.root is None)
    return None if place is None else _without_dots(place)


def policy_file(named: str) -> Path:
    """The file of a policy, by path or ready-made name. A ready-made name wins over a file of that name."""
    return _path(policy_path(named))


def policy_path(named: str) -> str:
    """The same as text."""
    if named in READY_MADE:
        return str(ready_made(named))
    if not os.path.isfile(named) and not _path(named).is_file():
        raise UsageError(f"{named}: neither a policy file nor one of the ready-made {', '.join(READY_MADE)}")
    return _without_dots(named)


def _path(place: str) -> Path:
    """A path of `pathlib`, which raises OSError for a name that `os.path` takes for a free one."""
    from pathlib import Path

    return Path(place)


def _as_path(place: str | None) -> Path | None:
    return None if place is None else _path(place)


def _without_dots(path: str) -> str:
    """A path as `pathlib` writes it: without empty names and `.`; `..` stays, as it may follow a link."""
    start = path[: len(path) - len(path.lstrip("/"))]
    names = "/".join(name for name in path.split("/") if name not in ("", "."))
    return f"{start if start == '//' else start[:1]}{names}" or "."


def open_session(
    arguments: argparse.Namespace, screen: Screen, channel: ApprovalChannel | None = None
) -> Session:
    """The session for a command's options; requests go to the channel if there is one."""
    if channel is not None:
        session = _opened(arguments, "prompt", channel)
        connect(channel, session)
        return session
    from ringfence.toolkit.cli.approval_prompt import AtTerminal, terminal_at_hand

    ask = getattr(arguments, "ask", "deny")  # taking back is a person's own act: nobody is asked
    if ask == "prompt" and not terminal_at_hand():
        raise UsageError("--ask prompt: there is no terminal to ask at")
    if ask is None:
        ask = "prompt" if is_terminal(screen.stderr) and terminal_at_hand() else "queue"
    terminal = AtTerminal()
    session = _opened(arguments, ask, terminal if ask == "prompt" else None)
    terminal.session = session
    source = source_of(arguments, root_of(arguments)[0])
    if source is not None:
        terminal.by_rule = _offering(session, source)
    return session


def _offering(session: Session, source: Path) -> Callable[[Request, Terminal], bool]:
    """The function that offers rules at the terminal; whether one was written into the policy."""

    def offer(request: Request, terminal: Terminal) -> bool:
        from ringfence.toolkit.cli.rule_dialog import answer_by_rule  # the analysis is slow to import

        return answer_by_rule(session, source, request, terminal)

    return offer


def connect(channel: ApprovalChannel, session: Session) -> None:
    """Let the channel answer the requests of the session."""
    from ringfence.toolkit.approvals.requests import Answer
    from ringfence.toolkit.granting.effects import reach_of

    channel.approvals = session.approvals
    channel.reach = lambda request, scope: reach_of(
        session, request, Answer(True, scope.name, pattern=scope.pattern)
    )


def approval_channel(
    arguments: argparse.Namespace, screen: Screen
) -> AbstractContextManager[ApprovalChannel | None]:
    """The approvals channel of the options; None without such an option."""
    if (arguments.approvals_fd, arguments.approvals_socket, arguments.approvals_timeout) == (None,) * 3:
        return nullcontext()
    from ringfence.toolkit.cli.approval_streams import (
        channel_of,  # sockets are slow to import, and seldom needed
    )

    return channel_of(arguments, screen)


def _opened(arguments: argparse.Namespace, ask: str, approver: Approver | None) -> Session:
    from ringfence.toolkit.session.session import Session

    root, found_by = root_of(arguments)
    with _known_store(root):
        return Session(
            root,
            policy_of(arguments, root),
            agent=arguments.agent,
            session=arguments.session,
            state=arguments.state,
            ask=ask,
            approver=approver,
            dry_run=arguments.dry_run,
            found_by=found_by,
            policy_file=source_of(arguments, root),
            options=_options(arguments, root),
            tasks=getattr(arguments, "tasks", None),
            task=getattr(arguments, "task", None),
            place=arguments.place,
            **auditing(arguments),
        )


def open_in(
    arguments: argparse.Namespace, root: str, session: str, ask: str, approver: Approver | None
) -> Session:
    """The session of this name in a root of its own, which the caller has found and trusts."""
    program_files.leave(root)
    own = type(arguments)(**{"dry_run": False, **vars(arguments), "root": root, "session": session})
    return _opened(own, ask, approver)


def open_as(arguments: argparse.Namespace, agent: str, name: str | None) -> Session:
    """A session of an agent with the policy in force, in which a person tries or undoes something."""
    from ringfence.toolkit.session.session import Session

    root, found_by = root_of(arguments)
    with _known_store(root):
        return Session(
            root,
            policy_of(arguments, root),
            agent=agent,
            session=name,
            state=arguments.state,
            found_by=found_by,
            policy_file=source_of(arguments, root),
            options=_options(arguments, root),
            tasks=getattr(arguments, "tasks", None),
        )


def open_for(arguments: argparse.Namespace, person: str) -> Session:
    """A session for a person's own changes to task folders: recorded, but not judged by agents' rules."""
    from ringfence.toolkit.session.open import tasks_of
    from ringfence.toolkit.session.session import Session

    root, _ = root_of(arguments)
    tasks = arguments.tasks or tasks_of(policy_of(arguments, root), root)
    rules = Policy.loads('version: 1\nrules: {"*": allow}\n')
    return Session(
        root,
        rules,
        agent=person,
        state=arguments.state,
        tasks=tasks,
        place=arguments.place,
        **auditing(arguments),
    )


def open_under_policy(arguments: argparse.Namespace) -> Session:
    """A session that makes no call, with the policy in force."""
    from ringfence.toolkit.session.session import Session

    root, _ = root_of(arguments)
    with _known_store(root):
        return Session(
            root,
            policy_of(arguments, root),
            state=arguments.state,
            options=_options(arguments, root),
            place=arguments.place,
            **auditing(arguments),
        )


def open_to_look(arguments: argparse.Namespace, *, read_only: bool = False) -> Session:
    """A session that makes no call, without a policy, to use the state of the workspace."""
    from ringfence.toolkit.session.session import Session

    root, _ = root_of(arguments)
    with _known_store(root):
        return Session(
            root,
            Policy.empty(),
            state=arguments.state,
            options=_options(arguments, root),
            place=arguments.place,
            read_only=read_only,
            **auditing(arguments),
        )


def open_record(arguments: argparse.Namespace) -> Session:
    """The same, read-only. Raises CallError if there is no state, and creates none."""
    return open_to_look(arguments, read_only=True)


def open_to_answer(arguments: argparse.Namespace) -> Session:
    """The same, to answer requests. Raises CallError if there is no state, and creates none."""
    open_record(arguments).close()
    return open_to_look(arguments)


def place_of(arguments: argparse.Namespace) -> str:
    """The directory or URL of the workspace's state, even if it cannot be used."""
    from ringfence.toolkit.state.open import default_place
    from ringfence.toolkit.workspace.workspace import Workspace

    root, found_by = root_of(arguments)
    with _known_store(root):
        workspace = Workspace(
            root, found_by=found_by, options=_options(arguments, root), place=arguments.place
        )
        try:
            return default_place(workspace.place, arguments.state)
        finally:
            workspace.close()


def auditing(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of Session for the audit log: the options, else the environment."""
    log = getattr(arguments, "audit_log", None) or os.environ.get("RINGFENCE_AUDIT_LOG")
    rotate = getattr(arguments, "audit_log_rotate", None) or os.environ.get("RINGFENCE_AUDIT_LOG_ROTATE")
    if rotate:
        from ringfence.toolkit.audit.jsonl_mirror import Rotation

        try:
            Rotation.of(rotate)
        except ValueError:
            raise UsageError(
                f"--audit-log-rotate {rotate}: not a size and how many to keep, such as 100MiB:10"
            ) from None
    return {"audit_log": log or None, "audit_log_rotate": rotate or None, "audit_key": audit_key(arguments)}


def audit_key(arguments: argparse.Namespace) -> str | None:
    """The file of the key that seals audit records, or None."""
    return getattr(arguments, "audit_key", None) or os.environ.get("RINGFENCE_AUDIT_KEY") or None


def _options(arguments: argparse.Namespace, root: str) -> dict[str, Any]:
    """fsspec options for the store; credentials come from the places that its own tools use."""
    endpoint = getattr(arguments, "endpoint", None)
    if endpoint is None:
        return {}
    if not root.startswith(("s3://", "s3a://")):
        raise UsageError("--endpoint: only for a root that begins with s3://")
    if not endpoint.startswith(("http://", "https://")):
        raise UsageError(f"--endpoint {shown(endpoint)}: not a URL that begins with http:// or https://")
    return {"endpoint_url": endpoint, "config_kwargs": {"s3": {"addressing_style": "path"}}}


@contextmanager
def _known_store(root: str) -> Iterator[None]:
    """Turn errors of opening a store into a UsageError that names the root."""
    try:
        yield
    except (ValueError, ImportError, CallError) as error:
        code = getattr(error, "code", "")
        if ("://" not in root and code != "path_invalid") or code in ("history_unavailable", "not_found"):
            raise
        if code in ("not_confined", "path_invalid"):
            raise UsageError(f"--root {shown(root)}: {error}; {getattr(error, 'hint', '')}") from None
        helps = isinstance(error, CallError) and error.hint != CODES[error.code].hint
        advice = f"; {getattr(error, 'advice', '')}" if helps else ""
        raise UsageError(f"--root {shown(root)}: {error}{advice}") from None

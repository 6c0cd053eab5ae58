"""What a command and its arguments are, and the options that mean the same wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """One argument of a command, as argparse takes it; `completes` is "file", "directory" or ""."""

    flags: tuple[str, ...]
    help: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    completes: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `run` is "module:function" below ringfence.toolkit.cli, imported only when it is used."""

    name: str
    run: str
    summary: str
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    about: str = ""


PATHS_FROM_HERE = (
    "A path or a `--path` pattern on the command line starts at the current directory if that is in the"
    " workspace; with a workspace elsewhere it starts at the workspace's root. An absolute path must be"
    " inside the workspace. Paths in a call's JSON, in a policy and in all output start at the root."
)


def opt(*flags: str, says: str, completes: str = "", **settings: Any) -> Option:
    return Option(flags, says, settings, completes)


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:  # more digits are no count of anything
        raise ValueError
    return int(text)


def positive(text: str) -> int:
    found = count(text)
    if not found:
        from argparse import ArgumentTypeError  # slow to import, and some ways in need no parser

        raise ArgumentTypeError("at least 1 is needed, as 0 would let nothing through")
    return found


def port(text: str) -> int:
    found = count(text)
    if found > 65535:
        raise ValueError
    return found


count.__name__ = "number"  # what argparse calls it in its message
positive.__name__ = "number"
port.__name__ = "port"
ROOT = opt(
    "--root",
    metavar="DIR",
    completes="directory",
    says="the workspace, a directory or a URL (default: the nearest folder upwards with a ringfence.yaml"
    " or a VCS folder, else this one)",
)
ENDPOINT = opt(
    "--endpoint",
    metavar="URL",
    says="the server of an s3:// root (default: AWS_ENDPOINT_URL, else Amazon's)",
)
PLACE = opt(
    "--place",
    metavar="NAME",
    says="the name of the machine, server or account that the root is on, by which its history is found"
    " (default: what the root tells by itself)",
)
LANDLOCK = opt(
    "--landlock",
    action="store_true",
    says="let the kernel hold this process to the workspace and its state as well, and keep it from ports and"
    " other processes (Linux); says on stderr what is open",
)
POLICY = opt(
    "--policy",
    metavar="FILE",
    completes="file",
    says="a policy file, or a ready-made policy's name (default: ringfence.yaml in the root; none:"
    " everything asks)",
)
AGENT = opt("--agent", metavar="NAME", default="default", says="whose rules apply (default: default)")
SESSION = opt("--session", metavar="ID", says="the session (default: a new one)")
ONE_SESSION = opt("--session", metavar="ID", says="the session (default: one for all single calls)")
THAT_SESSION = opt("--session", metavar="ID", says="only this session (default: all)")
LAST_SESSION = opt("--session", metavar="ID", says="which session (default: the last that changed something)")
STATE = opt(
    "--state",
    metavar="DIR",
    completes="directory",
    says="where history, approvals and audit are kept: a directory, or a postgresql:// URL (default: the"
    " user's state directory)",
)
ASK = opt(
    "--ask",
    choices=("prompt", "deny", "queue"),
    says="where the policy asks: prompt on the terminal, deny, or queue the request and answer"
    " approval_required (default: prompt at a terminal, queue elsewhere; a job in the background queues)",
)
APPROVALS_FD = opt(
    "--approvals-fd",
    metavar="N",
    says="put what the policy asks to a person on the inherited descriptor N (a stream socket), or on two"
    " pipes IN,OUT, as lines of JSON that the agent does not see; instead of --ask",
)
APPROVALS_SOCKET = opt(
    "--approvals-socket",
    metavar="PATH",
    completes="file",
    says="the same over a UNIX socket that a program of yours listens on",
)
APPROVALS_TIMEOUT = opt(
    "--approvals-timeout",
    metavar="SPAN",
    says="how long the channel waits for one answer, as 90s or 10m; then the request stays in the queue"
    " (default: until the request expires, a day)",
)
CHANNEL = (APPROVALS_FD, APPROVALS_SOCKET, APPROVALS_TIMEOUT)
JSON = opt("--json", action="store_true", says="print JSON")
IGNORE_CASE = opt(
    "--ignore-case",
    action="store_true",
    says="answer for a workspace that ignores case (default: as the workspace does, where one is known)",
)
DEADLINE = opt(
    "--deadline",
    type=count,
    metavar="SECONDS",
    says="leave what is not answered after so long: it is undecided, with exit status 1 (default: a bound on"
    " the work, about a minute)",
)
PATH = opt("path", metavar="PATH", completes="file", says="a path in the workspace")
DRY_RUN = opt("--dry-run", action="store_true", says="judge and plan, but change nothing")
YES = opt("-y", "--yes", action="store_true", says="do not ask for confirmation")
FORCE = opt("--force", action="store_true", says="also replace content that is newer")

TASKS = opt(
    "--tasks",
    metavar="DIR",
    completes="directory",
    says="the folder or URL of the task folders (default: what the policy's `tasks` says)",
)
TASK = opt("--task", metavar="ID", says="the task that the agent runs in, which it may not delete")

SERVING_ASK = opt(
    "--ask",
    choices=("client", "queue", "deny"),
    says="where the policy asks: put it to the client's user where the client can, else queue the request;"
    " always queue; or deny (default: client over stdin and stdout; queue over HTTP, where the token that"
    " asks would carry the answer, too)",
)

AUDIT_LOG = opt(
    "--audit-log",
    metavar="FILE",
    completes="file",
    says="also add every audit record to FILE, as a line of JSON (default: RINGFENCE_AUDIT_LOG, else none)",
)
AUDIT_KEY = opt(
    "--audit-key",
    metavar="FILE",
    completes="file",
    says="the key that audit records are sealed with (default: the file that RINGFENCE_AUDIT_KEY names, else"
    " none)",
)
AUDIT_LOG_ROTATE = opt(
    "--audit-log-rotate",
    metavar="SIZE:KEEP",
    says="put the audit log aside as FILE.1, FILE.2, … where it has this size, and keep so many of them:"
    " 100MiB:10 (default: RINGFENCE_AUDIT_LOG_ROTATE, else it grows)",
)
AUDITED = (AUDIT_LOG, AUDIT_LOG_ROTATE, AUDIT_KEY)

_CALL = (STATE, PLACE, ASK, TASKS, TASK, *AUDITED, JSON, DRY_RUN)
CALLING = (ROOT, ENDPOINT, POLICY, AGENT, SESSION, *_CALL)
CALLING_ONCE = (ROOT, ENDPOINT, POLICY, AGENT, ONE_SESSION, *_CALL)
LOOKING = (ROOT, ENDPOINT, THAT_SESSION, STATE, PLACE, JSON)
BRINGING_BACK = (
    *(YES, FORCE, ROOT, ENDPOINT, POLICY, AGENT, SESSION, STATE, PLACE, TASKS),
    *(*AUDITED, JSON, DRY_RUN),
)
ON_TASKS = (TASKS, ROOT, POLICY, STATE, PLACE, *AUDITED, JSON)
APPROVING = (ROOT, ENDPOINT, STATE, PLACE, *AUDITED, JSON)
PICKING = (
    opt("--agent", dest="by_agent", metavar="NAME", says="only this agent and its sub-agents"),
    opt("--tool", metavar="TOOL", says="only this tool"),
    opt(
        "--path",
        metavar="PATTERN",
        completes="file",
        says="only calls on paths that match this pattern, written as in a policy",
    ),
    opt("--effect", choices=("allow", "ask", "deny"), says="only calls with this verdict"),
    opt("--outcome", metavar="OUTCOME", says="only with this outcome: done, denied_by_policy, granted, …"),
    opt(
        "--by",
        metavar="NAME",
        says="only what this person did or answered, and the calls that this let through",
    ),
    opt("--approved", action="store_true", says="only calls that a person's grant let through"),
    opt("--since", metavar="WHEN", says="only since then: a span such as 2h, or an RFC 3339 time"),
    opt("--until", metavar="WHEN", says="only before then: a span such as 2h, or an RFC 3339 time"),
)
# For answers that may be long, at a terminal.
SHOWING = (
    opt(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        says="colour: auto is at a terminal, without NO_COLOR (default: auto)",
    ),
    opt("--no-pager", action="store_true", says="do not use $RINGFENCE_PAGER, $PAGER or less"),
)

"""Values Option and Command, and the options that several commands share with one meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringfence.policy.value_classes import dataclass, field


@dataclass(frozen=True, slots=True)
class Option:
    """One argument of a command: `settings` are argparse's; `completes` is "file", "directory", "command" or
    "".
    """

    flags: tuple[str, ...]
    help: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    completes: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `run` is "module:function" below ringfence.toolkit.cli, imported only to run it."""

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
    """An Option; `says` is its help, a phrase in lower case without a final period."""
    return Option(flags, says, settings, completes)


def count(text: str) -> int:
    """The number in a word of at most 18 digits. Raises ValueError."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError
    return int(text)


def positive(text: str) -> int:
    """The number in a word, at least 1. Raises ValueError, or ArgumentTypeError for 0."""
    found = count(text)
    if not found:
        from argparse import ArgumentTypeError  # slow to import, and a hook needs no parser

        raise ArgumentTypeError("at least 1 is needed")
    return found


def tool_prefix(text: str) -> str:
    """The text, which begins names of tools. Raises ArgumentTypeError for what no client accepts in them."""
    if len(text) > 20 or not all(each in "_-" or (each.isascii() and each.isalnum()) for each in text):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError("up to 20 letters, digits, - and _ are possible")
    return text


def upstream(text: str) -> object:
    """Another MCP server in `NAME=COMMAND` or `NAME=URL`. Raises ArgumentTypeError for anything else."""
    from ringfence.toolkit.upstream.specification import parse  # only behind a gateway

    try:
        return parse(text)
    except ValueError as error:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(str(error)) from None


def port(text: str) -> int:
    """The port number in a word, 0 to 65535. Raises ValueError."""
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
    says="the workspace, a directory or a URL (default: the nearest directory upwards with a ringfence.yaml"
    " or a VCS directory, else the current directory)",
)
ENDPOINT = opt(
    "--endpoint",
    metavar="URL",
    says="the server of an s3:// root (default: AWS_ENDPOINT_URL, else Amazon's)",
)
PLACE = opt(
    "--place",
    metavar="NAME",
    says="a name for the machine, server or account of the root, under which its state is found (default:"
    " derived from the root)",
)
LANDLOCK = opt(
    "--landlock",
    action="store_true",
    says="also confine this process with Landlock to the workspace and its state, without network ports and"
    " other processes (Linux); prints on stderr what it can reach",
)
POLICY = opt(
    "--policy",
    metavar="FILE",
    completes="file",
    says="a policy file, or the name of a ready-made policy (default: ringfence.yaml in the root; without"
    " one, every call needs approval)",
)
AGENT = opt(
    "--agent", metavar="NAME", default="default", says="the agent whose rules apply (default: default)"
)
SESSION = opt("--session", metavar="ID", says="the session (default: a new one)")
ONE_SESSION = opt("--session", metavar="ID", says="the session (default: one that all calls of `call` share)")
THAT_SESSION = opt("--session", metavar="ID", says="only this session (default: all)")
LAST_SESSION = opt("--session", metavar="ID", says="the session (default: the last one with a change)")
STATE = opt(
    "--state",
    metavar="DIR",
    completes="directory",
    says="the place of history, approvals and audit: a directory, or a postgresql:// URL (default: the"
    " user's state directory)",
)
ASK = opt(
    "--ask",
    choices=("prompt", "deny", "queue"),
    says="if the policy asks: prompt at the terminal, deny, or queue the request and answer"
    " approval_required (default: prompt at a terminal, queue elsewhere and in a background job)",
)
APPROVALS_FD = opt(
    "--approvals-fd",
    metavar="N",
    says="send requests for approval as JSON lines over the inherited file descriptor N (a stream socket), or"
    " over two pipes IN,OUT, which the agent does not see; instead of --ask",
)
APPROVALS_SOCKET = opt(
    "--approvals-socket",
    metavar="PATH",
    completes="file",
    says="like --approvals-fd, over a UNIX socket on which your program listens",
)
APPROVALS_TIMEOUT = opt(
    "--approvals-timeout",
    metavar="SPAN",
    says="how long to wait for an answer, such as 90s or 10m; then the request stays in the queue (default:"
    " until the request expires after a day)",
)
CHANNEL = (APPROVALS_FD, APPROVALS_SOCKET, APPROVALS_TIMEOUT)
JSON = opt("--json", action="store_true", says="print JSON")
IGNORE_CASE = opt(
    "--ignore-case",
    action="store_true",
    says="treat paths as case-insensitive (default: as the file system of the workspace does)",
)
DEADLINE = opt(
    "--deadline",
    type=count,
    metavar="SECONDS",
    says="stop after this time: the rest is undecided, with exit status 1 (default: a bound on the work,"
    " about a minute)",
)
AT = opt(
    "--at",
    metavar="TIME",
    says="answer for this time, a date or an RFC 3339 time, as entries of a policy can end (default: now)",
)
EACH_TIME = opt(
    "--at",
    metavar="TIME",
    says="answer for this time alone, a date or an RFC 3339 time (default: now, and after each later end of"
    " an entry)",
)
PATH = opt("path", metavar="PATH", completes="file", says="a path in the workspace")
DRY_RUN = opt("--dry-run", action="store_true", says="print the plan and its verdict, change nothing")
YES = opt("-y", "--yes", action="store_true", says="do not ask for confirmation")
FORCE = opt("--force", action="store_true", says="also overwrite newer content")

TASKS = opt(
    "--tasks",
    metavar="DIR",
    completes="directory",
    says="the directory or URL of the task folders (default: `tasks` of the policy)",
)
TASK = opt("--task", metavar="ID", says="the task in which the agent runs; the agent cannot delete it")

SERVING_ASK = opt(
    "--ask",
    choices=("client", "queue", "deny"),
    says="if the policy asks: client asks the user of the client if it supports that and otherwise queues the"
    " request, queue always queues, deny denies (default: client over stdin and stdout, queue over HTTP)",
)

AUDIT_LOG = opt(
    "--audit-log",
    metavar="FILE",
    completes="file",
    says="also append every audit record to FILE, as a JSON line (default: RINGFENCE_AUDIT_LOG, else none)",
)
AUDIT_KEY = opt(
    "--audit-key",
    metavar="FILE",
    completes="file",
    says="the file of the key that seals audit records (default: RINGFENCE_AUDIT_KEY, else none)",
)
AUDIT_LOG_ROTATE = opt(
    "--audit-log-rotate",
    metavar="SIZE:KEEP",
    says="rotate the file of --audit-log to FILE.1, FILE.2, … at this size, and keep this many, such as"
    " 100MiB:10 (default: RINGFENCE_AUDIT_LOG_ROTATE, else no rotation)",
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
STATE_ELSEWHERE = opt(
    "--state",
    metavar="DIR",
    completes="directory",
    says="the place of the requests: a directory, or a postgresql:// URL, with #ringfence_… for a workspace"
    " on another machine (default: the user's state directory)",
)
APPROVING = (ROOT, ENDPOINT, STATE_ELSEWHERE, PLACE, *AUDITED, JSON)
PICKING = (
    opt("--agent", dest="by_agent", metavar="NAME", says="only calls of this agent and its sub-agents"),
    opt("--tool", metavar="TOOL", says="only calls of this tool"),
    opt(
        "--path",
        metavar="PATTERN",
        completes="file",
        says="only calls on paths that match this pattern, written as in a policy",
    ),
    opt(
        "--command",
        dest="command_words",
        metavar="WORDS",
        says="only calls about a command that these words match, written as below `run` in a policy, such as"
        " 'git push *'",
    ),
    opt("--effect", choices=("allow", "ask", "deny"), says="only calls with this verdict"),
    opt(
        "--would",
        choices=("allow", "ask", "deny"),
        says="only calls whose verdict would have been another one, and this one, with the rules on trial",
    ),
    opt(
        "--outcome",
        metavar="OUTCOME",
        says="only records with this outcome: done, denied_by_policy, granted, …",
    ),
    opt(
        "--by",
        metavar="NAME",
        says="only commands and answers of this person, and the calls that these answers permitted",
    ),
    opt("--approved", action="store_true", says="only calls that a person's grant permitted"),
    opt(
        "--since",
        metavar="WHEN",
        says="only records since then: a duration before now such as 2h, or an RFC 3339 time",
    ),
    opt(
        "--until",
        metavar="WHEN",
        says="only records before then: a duration before now such as 2h, or an RFC 3339 time",
    ),
)
# For output that may be long.
SHOWING = (
    opt(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        says="whether to use colour; auto: at a terminal, unless NO_COLOR is set (default: auto)",
    ),
    opt("--no-pager", action="store_true", says="do not use $RINGFENCE_PAGER, $PAGER or less"),
)

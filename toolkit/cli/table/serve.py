"""The commands that serve clients, as a part of the table of commands."""

from __future__ import annotations

from ringfence.toolkit.cli.table.options import (
    AGENT,
    AUDITED,
    CHANNEL,
    DRY_RUN,
    ENDPOINT,
    LANDLOCK,
    PLACE,
    POLICY,
    ROOT,
    SERVING_ASK,
    SESSION,
    STATE,
    TASK,
    TASKS,
    Command,
    opt,
    port,
    positive,
)

HTTP_ASK = opt(
    "--ask",
    choices=("queue", "deny"),
    default="queue",
    says="where the policy asks: queue the request and answer approval_required, or deny (default: queue)",
)
TOKENS = opt(
    "--tokens",
    metavar="FILE",
    completes="file",
    says="who may call: lines of `agent NAME TOKEN [SESSION]`, `person NAME TOKEN` or `service NAME TOKEN`,"
    " in a file that only you can read (default: on this machine everybody is --agent)",
)
PEOPLE = opt(
    "--people",
    metavar="FILE",
    completes="file",
    says="who may come in: lines of `look|decide|administer NAME TOKEN`, the token - for who comes through a"
    " proxy, in a file that only you can read (default: one token, printed at the start)",
)
USER_HEADER = opt(
    "--user-header",
    metavar="NAME",
    says="the header in which a proxy on this machine says who somebody is; needs --proxy-secret",
)
PROXY_SECRET = opt(
    "--proxy-secret",
    metavar="FILE",
    completes="file",
    says="what that proxy proves itself with, which it sends in X-Ringfence-Proxy: at least 24 characters, in"
    " a file that only you can read",
)
READ_TIMEOUT = opt(
    "--read-timeout",
    metavar="SECONDS",
    type=positive,
    default=30,
    says="how long the head of a request, and then its body, may take to come in (default: 30)",
)
LISTENING = (
    opt("--host", metavar="ADDRESS", default="127.0.0.1", says="where to listen (default: 127.0.0.1)"),
    opt(
        "--port",
        metavar="NUMBER",
        type=port,
        default=8722,
        says="which port; 0: a free one (default: 8722)",
    ),
    TOKENS,
    opt(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        says="a name the server is called by, beside loopback's; may be repeated",
    ),
    opt(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        says="a web page's origin that may call it, as https://example.org; may be repeated",
    ),
    opt(
        "--max-body",
        metavar="BYTES",
        type=positive,
        default=(16 << 20) + (1 << 16),
        says="the largest body that is read (default: 16842752)",
    ),
    opt(
        "--max-requests",
        metavar="NUMBER",
        type=positive,
        default=32,
        says="how many requests of each token may be under way at once (default: 32)",
    ),
    READ_TIMEOUT,
)
REVIEWING = (
    *(one for one in LISTENING[:5] if one is not TOKENS),
    READ_TIMEOUT,
    PEOPLE,
    USER_HEADER,
    PROXY_SECRET,
)


SERVING = (
    Command(
        "serve mcp",
        "commands.serve_mcp:mcp",
        "serve the tools to MCP clients, over stdin and stdout or over HTTP",
        (
            *(ROOT, ENDPOINT, POLICY, AGENT, SESSION, STATE, PLACE, SERVING_ASK, TASKS, TASK),
            *(*CHANNEL, *AUDITED, DRY_RUN, LANDLOCK),
            opt("--http", action="store_true", says="serve many clients at /mcp (streamable HTTP)"),
            *LISTENING,
        ),
        (
            "ringfence serve mcp --root ~/project --agent coder",
            "claude mcp add ringfence -- ringfence serve mcp --root ~/project",
            "ringfence serve mcp --http --tokens tokens.txt",
        ),
        "Over stdin and stdout: one session for as long as the client is connected; stdout carries the"
        " protocol and nothing else. With --http: one agent and one session for each token; needs the extra"
        " `serve`, and the options from --host on are for it alone. Offers the tools that the agent's policy"
        " can ever allow.",
    ),
    Command(
        "serve http",
        "commands.serve_http:http",
        "serve calls, decisions and approvals over HTTP",
        (
            *LISTENING,
            ROOT,
            ENDPOINT,
            POLICY,
            AGENT,
            SESSION,
            STATE,
            PLACE,
            HTTP_ASK,
            TASKS,
            TASK,
            *AUDITED,
            DRY_RUN,
            LANDLOCK,
        ),
        (
            "ringfence serve http --root ~/project --agent coder",
            "ringfence serve http --tokens tokens.txt --host 0.0.0.0 --allow-host box.example",
        ),
        "One agent and one session for each token. Needs the extra `serve`. SIGTERM ends it once what has"
        " begun is finished. It speaks plain HTTP: put TLS in front of it where others can listen.",
    ),
    Command(
        "serve review",
        "commands.serve_http:review",
        "serve the web page for people: approvals, changes, history, audit, policy",
        (*REVIEWING, ROOT, ENDPOINT, POLICY, STATE, PLACE, TASKS),
        (
            "ringfence serve review --root ~/project",
            "ringfence serve review --people people.txt --user-header X-User --proxy-secret proxy.txt"
            " --allow-host review.example",
        ),
        "Prints a token to sign in with; with --people everybody has their own, or comes through a proxy on"
        " this machine that says who they are. Roles: look, decide, administer. Needs the extra `review`.",
    ),
)

"""Rows of the table of commands: the servers."""

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
    tool_prefix,
    upstream,
)

HTTP_ASK = opt(
    "--ask",
    choices=("queue", "deny"),
    default="queue",
    says="if the policy asks: queue the request and answer approval_required, or deny (default: queue)",
)
ACP_ASK = opt(
    "--ask",
    choices=("client", "queue", "deny"),
    says="if the policy asks: client asks the editor's person, queue queues the request and refuses, deny"
    " denies (default: client)",
)
TOKENS = opt(
    "--tokens",
    metavar="FILE",
    completes="file",
    says="the callers: lines of `agent NAME TOKEN [SESSION]`, `person NAME TOKEN` or `service NAME TOKEN`, in"
    " a file that only you can read (default: every caller on this machine is --agent)",
)
PEOPLE = opt(
    "--people",
    metavar="FILE",
    completes="file",
    says="the accounts: lines of `look|decide|administer NAME TOKEN`, with - as the token of somebody who"
    " signs in through a proxy, in a file that only you can read (default: one token, printed at the start)",
)
USER_HEADER = opt(
    "--user-header",
    metavar="NAME",
    says="the header with which a proxy on this machine names the user; needs --proxy-secret",
)
PROXY_SECRET = opt(
    "--proxy-secret",
    metavar="FILE",
    completes="file",
    says="the secret that the proxy sends in X-Ringfence-Proxy: at least 24 characters, in a file that only"
    " you can read",
)
READ_TIMEOUT = opt(
    "--read-timeout",
    metavar="SECONDS",
    type=positive,
    default=30,
    says="time limit for the headers of a request, and again for its body (default: 30)",
)
LISTENING = (
    opt(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        says="the address to listen on (default: 127.0.0.1)",
    ),
    opt(
        "--port",
        metavar="NUMBER",
        type=port,
        default=8722,
        says="the port to listen on; 0: a free one (default: 8722)",
    ),
    TOKENS,
    opt(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        says="a host name that clients may use, besides localhost; may be repeated",
    ),
    opt(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        says="an origin whose web pages may send requests, such as https://example.org; may be repeated",
    ),
    opt(
        "--max-body",
        metavar="BYTES",
        type=positive,
        default=(16 << 20) + (1 << 16),
        says="the largest request body (default: 16842752)",
    ),
    opt(
        "--max-requests",
        metavar="NUMBER",
        type=positive,
        default=32,
        says="the number of concurrent requests of each token (default: 32)",
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


UPSTREAM = (
    opt(
        "--upstream",
        metavar="NAME=COMMAND|URL",
        action="append",
        default=[],
        type=upstream,
        says="another MCP server: its tools are offered too, under the policy, as NAME_tool; may be repeated",
    ),
    opt("--only-upstream", action="store_true", says="offer the tools of the other servers alone"),
    opt(
        "--upstream-sandbox",
        choices=("landlock", "none"),
        default="landlock",
        says="the sandbox of these servers: landlock (default; without it none is started), or none: they may"
        " do all that you may",
    ),
    opt(
        "--upstream-network",
        metavar="NAME",
        action="append",
        default=[],
        says="a server that has the network in its sandbox; may be repeated",
    ),
    opt(
        "--upstream-env",
        metavar="VARIABLE",
        action="append",
        default=[],
        says="a variable that the servers get although it may be secret, such as API_TOKEN; may be repeated",
    ),
    opt(
        "--upstream-token",
        metavar="NAME=VARIABLE",
        action="append",
        default=[],
        says="the variable with the bearer token for a server at a URL; may be repeated",
    ),
    opt(
        "--upstream-timeout",
        metavar="SECONDS",
        type=positive,
        default=120,
        says="how long a call waits for an answer or for progress (default: 120)",
    ),
)


SERVING = (
    Command(
        "serve mcp",
        "commands.serve_mcp:mcp",
        "serve the tools to MCP clients, over stdin and stdout or over HTTP",
        (
            *(ROOT, ENDPOINT, POLICY, AGENT, SESSION, STATE, PLACE, SERVING_ASK, TASKS, TASK),
            *(*CHANNEL, *AUDITED, DRY_RUN, LANDLOCK),
            opt(
                "--answers",
                choices=("text", "structured", "both"),
                default="both",
                says="what a result has: text, the same as fields, or both (default)",
            ),
            opt(
                "--prefix",
                metavar="TEXT",
                type=tool_prefix,
                default="",
                says="text before the name of each tool, such as rf_, if names of other servers are the same",
            ),
            *UPSTREAM,
            opt("--http", action="store_true", says="serve many clients at /mcp (Streamable HTTP)"),
            *LISTENING,
        ),
        (
            "ringfence serve mcp --root ~/project --agent coder",
            "claude mcp add ringfence -- ringfence serve mcp --root ~/project",
            "ringfence serve mcp --answers text --prefix rf_",
            "ringfence serve mcp --http --tokens tokens.txt",
            "ringfence serve mcp --upstream files='mcp-server-filesystem .'",
            "ringfence serve mcp --only-upstream --upstream docs=https://docs.example/mcp",
        ),
        "Over stdin and stdout there is one session while the client is connected. With --http there are one"
        " agent and one session for each token; it needs the extra `serve`, and the options from --host on"
        " are only for --http. Offers the tools that the agent's policy can allow.",
    ),
    Command(
        "serve acp",
        "commands.serve_acp:acp",
        "stand between an editor and an agent that speaks the Agent Client Protocol",
        (
            *(ROOT, POLICY, AGENT, SESSION, STATE, PLACE, ACP_ASK, *AUDITED),
            opt(
                "--print-config",
                choices=("zed", "jetbrains", "emacs"),
                says="print the settings with which this editor starts the agent in Ringfence, and exit",
            ),
            opt("words", nargs="...", metavar="AGENT", says="the agent and its arguments, after --"),
        ),
        (
            "ringfence serve acp -- gemini --acp",
            "ringfence serve acp --root ~/project --agent coder -- npx @zed-industries/claude-code-acp",
            "ringfence serve acp --print-config zed -- gemini --acp",
        ),
        "The editor starts this command in the place of the agent. The agent's file calls and terminals are"
        " carried out here: judged, asked about, recorded, and undone with `undo`. Its permission requests"
        " are answered by the policy; where that asks, the editor's person is asked. What an agent does"
        " without asking is not prevented. Each session has the project of its directory as root.",
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
        "There are one agent and one session for each token. Needs the extra `serve`. On SIGTERM it finishes"
        " the running requests and exits. It serves plain HTTP: on a network, put a proxy with TLS in front.",
    ),
    Command(
        "serve review",
        "commands.serve_http:review",
        "serve the review pages: approvals, changes, history, audit, policy",
        (*REVIEWING, ROOT, ENDPOINT, POLICY, STATE, PLACE, TASKS),
        (
            "ringfence serve review --root ~/project",
            "ringfence serve review --people people.txt --user-header X-User --proxy-secret proxy.txt"
            " --allow-host review.example",
        ),
        "Prints a token for sign-in. With --people each person has a token, or signs in through a proxy on"
        " this machine. Roles: look, decide, administer. Needs the extra `review`.",
    ),
)

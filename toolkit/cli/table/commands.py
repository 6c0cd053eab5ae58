"""Table of all commands: name, summary, options, examples, and the function that runs it.

The parser, the help, the completions, the reference page and the manual page are made from it; nothing here
runs a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ringfence.toolkit.cli.table.approvals import APPROVALS
from ringfence.toolkit.cli.table.audit import AUDITS
from ringfence.toolkit.cli.table.authoring import AUTHORING
from ringfence.toolkit.cli.table.bridge import BRIDGES
from ringfence.toolkit.cli.table.execute import EXECUTING
from ringfence.toolkit.cli.table.history import HISTORY
from ringfence.toolkit.cli.table.hook import HOOKS
from ringfence.toolkit.cli.table.options import AGENT, JSON, POLICY, ROOT, Command, opt, port
from ringfence.toolkit.cli.table.policy import POLICIES
from ringfence.toolkit.cli.table.run_call import CALLS
from ringfence.toolkit.cli.table.serve import SERVING
from ringfence.toolkit.cli.table.state import STATES
from ringfence.toolkit.cli.table.tasks import ON_TASK_FOLDERS

PURPOSE = (
    "Judges each file tool call of an AI agent by a policy, asks a person where the policy says ask, and"
    " keeps what is needed to undo the call."
)

_ALL = (
    *CALLS,
    *EXECUTING,
    *POLICIES,
    *HISTORY,
    *APPROVALS,
    *AUDITS,
    *STATES,
    Command(
        "doctor",
        "commands.doctor:doctor",
        "check what this machine offers: confinement, extras, installed hooks",
        (ROOT, JSON),
        ("ringfence doctor", "ringfence doctor --json"),
        "Changes nothing.",
    ),
    Command(
        "lsp",
        "commands.lsp:lsp",
        "serve an editor while somebody writes a policy (Language Server Protocol)",
        (
            opt(
                "--tcp",
                metavar="PORT",
                type=port,
                default=None,
                says="wait for one connection on this port of 127.0.0.1 (default: use stdin and stdout)",
            ),
        ),
        ("ringfence lsp", "ringfence lsp --tcp 8723"),
        "An editor starts it and sends the policies that are open. It shows problems, findings, what rules"
        " decide and who may do what, completes words and paths, renames sets, and offers fixes. Changes no"
        " file. Needs the extra `lsp`. docs/how-to/edit-policies.md has the settings of editors.",
    ),
    Command(
        "schema policy",
        "commands.schema:policy",
        "print the JSON Schema of policy files, for editors",
        examples=("ringfence schema policy > ringfence.schema.json",),
    ),
    Command(
        "schema approvals",
        "commands.schema:approvals",
        "print the JSON Schema of the messages of the approvals channel",
        examples=("ringfence schema approvals | jq '.[\"$defs\"].answer'",),
        about="`run --approvals-fd` writes `asked` and `closed`, and reads `answer`; one JSON object a line.",
    ),
    Command(
        "schema tools",
        "commands.schema:tools",
        "print the tools that an agent is offered, with the JSON Schemas of their arguments",
        (
            opt(
                "--format",
                choices=("ringfence", "mcp", "openai", "openai-responses", "anthropic", "gemini"),
                default="ringfence",
                says="the format of the definitions (default: ringfence)",
            ),
            ROOT,
            POLICY,
            AGENT,
        ),
        ("ringfence schema tools --format openai --agent coder",),
        "Lists only tools that the agent's policy can allow, and marks those for which it asks; without a"
        " policy, every tool. Each format is the `tools` field of a request: strict functions for OpenAI,"
        " declarations in Gemini's subset of JSON Schema for Gemini.",
    ),
    Command(
        "prompt",
        "commands.schema:prompt",
        "print text for an agent's instructions, made from its policy",
        (ROOT, POLICY, AGENT, JSON),
        ("ringfence prompt --agent coder >> AGENTS.md",),
        "The text names the tools to use, the cases in which a person is asked, and what is denied. `serve"
        " mcp` sends the same text to its client.",
    ),
    *ON_TASK_FOLDERS,
    *AUTHORING,
    *HOOKS,
    *SERVING,
    *BRIDGES,
    Command(
        "help",
        "commands.help:show_help",
        "print the help of a command",
        (
            opt(
                "words",
                nargs="*",
                metavar="COMMAND",
                says="a command or a group of commands, such as undo, approvals or approvals grant (default:"
                " the list of all commands)",
                completes="command",
            ),
            opt("--man", action="store_true", says="print the manual page of all commands instead, as roff"),
        ),
        ("ringfence help undo", "ringfence help approvals grant", "ringfence help --man | man -l -"),
        "Prints the same text as COMMAND --help.",
    ),
    Command(
        "completion",
        "commands.schema:completion",
        "print a completion script for the shell",
        (
            opt(
                "shell",
                choices=("bash", "zsh", "fish", "tcsh"),
                metavar="SHELL",
                says="bash, zsh, fish or tcsh",
            ),
        ),
        (
            "ringfence completion bash > ~/.local/share/bash-completion/completions/ringfence",
            "ringfence completion fish > ~/.config/fish/completions/ringfence.fish",
        ),
    ),
)

COMMANDS: Mapping[str, Command] = MappingProxyType({command.name: command for command in _ALL})

GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "hook": "judge the file tools of other agents' programs",
        "bridge": "report the changes of agents to an editor",
        "approvals": "list, grant and refuse requests for approval",
        "audit": "query, verify and export the audit log",
        "schema": "print the JSON Schemas of policies, tools and messages",
        "state": "check and repair the state: history, approvals, audit",
        "serve": "serve the tools over MCP or HTTP, and the review pages",
        "tasks": "list, delete and restore the folders of tasks",
    }
)

# The list of `ringfence --help`: each command or group stands in one section.
SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "start": ("demo", "init", "doctor", "completion", "help"),
        "policy": (
            *("check", "explain", "prove", "diff", "matrix", "replay", "suggest"),
            *("fmt", "lsp", "import", "export", "schema", "prompt"),
        ),
        "work": ("run", "call", "exec", "shell", "undo", "restore", "tasks"),
        "look back": ("log", "sessions", "history", "changes", "audit", "reveal", "prune", "state"),
        "approvals": ("approvals", "watch"),
        "serve": ("serve", "hook", "bridge"),
    }
)

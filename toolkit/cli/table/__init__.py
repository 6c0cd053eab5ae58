"""The commands as one table: name, what it does, options, examples, and where its function is.

The parser, the completions and the reference page are all made from it; nothing here runs a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ringfence.toolkit.cli.table.approvals import APPROVALS
from ringfence.toolkit.cli.table.audit import AUDITS
from ringfence.toolkit.cli.table.authoring import AUTHORING
from ringfence.toolkit.cli.table.bridge import BRIDGES
from ringfence.toolkit.cli.table.history import HISTORY
from ringfence.toolkit.cli.table.hook import HOOKS
from ringfence.toolkit.cli.table.options import AGENT, JSON, POLICY, ROOT, Command, opt
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
    *POLICIES,
    *HISTORY,
    *APPROVALS,
    *AUDITS,
    *STATES,
    Command(
        "doctor",
        "commands.doctor:doctor",
        "what this machine has that confines, and which stores can be used",
        (ROOT, JSON),
        ("ringfence doctor", "ringfence doctor --json"),
        "Looks and changes nothing.",
    ),
    Command(
        "schema policy",
        "commands.schema:policy",
        "the JSON Schema of policy files, for editors",
        examples=("ringfence schema policy > ringfence.schema.json",),
    ),
    Command(
        "schema approvals",
        "commands.schema:approvals",
        "the JSON Schema of the lines of the approvals channel",
        examples=("ringfence schema approvals | jq '.[\"$defs\"].answer'",),
        about="What `run --approvals-fd` writes (`asked`, `closed`) and takes (`answer`).",
    ),
    Command(
        "schema tools",
        "commands.schema:tools",
        "the tools an agent is offered, with the JSON Schemas of their arguments",
        (
            opt(
                "--format",
                choices=("ringfence", "mcp", "openai", "anthropic", "gemini"),
                default="ringfence",
                says="whose shape (default: ringfence)",
            ),
            ROOT,
            POLICY,
            AGENT,
        ),
        ("ringfence schema tools --format openai --agent coder",),
        "Only what the agent's policy can ever allow, marked where a person is asked; every tool where there"
        " is no policy. Each shape is the `tools` of a request: strict functions for OpenAI, declarations"
        " within Gemini's subset of schemas.",
    ),
    Command(
        "prompt",
        "commands.schema:prompt",
        "the text for an agent's instructions, made from its policy",
        (ROOT, POLICY, AGENT, JSON),
        ("ringfence prompt --agent coder >> AGENTS.md",),
        "Which tools to use and not to go round them, when to ask, what is denied. `serve mcp` gives the same"
        " text to its client.",
    ),
    *ON_TASK_FOLDERS,
    *AUTHORING,
    *HOOKS,
    *SERVING,
    *BRIDGES,
    Command(
        "help",
        "commands.help:show_help",
        "the help of a command",
        (
            opt(
                "words",
                nargs="*",
                metavar="COMMAND",
                says="a command or a group of commands, such as undo, approvals or approvals grant (default:"
                " the list of all commands)",
            ),
            opt("--man", action="store_true", says="print the manual page of all commands instead, as roff"),
        ),
        ("ringfence help undo", "ringfence help approvals grant", "ringfence help --man | man -l -"),
        "The same text as COMMAND --help.",
    ),
    Command(
        "completion",
        "commands.schema:completion",
        "a completion script for the shell",
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
        "hook": "verdicts on the file tools of other programs",
        "bridge": "what agents change, for editors",
        "approvals": "what waits for a person's answer",
        "audit": "the record of every call",
        "schema": "the JSON Schemas of policies and tools",
        "state": "the state itself: whether it is sound, and how it is mended",
        "serve": "the tools for clients of a protocol",
        "tasks": "task folders in a store of their own",
    }
)

# The list of `ringfence --help`: each command or group stands in one section.
SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "start": ("demo", "init", "doctor", "completion", "help"),
        "policy": (
            *("check", "explain", "prove", "diff", "matrix", "replay", "suggest"),
            *("fmt", "import", "export", "schema", "prompt"),
        ),
        "work": ("run", "call", "undo", "restore", "tasks"),
        "look back": ("log", "sessions", "history", "changes", "audit", "prune", "state"),
        "approvals": ("approvals", "watch"),
        "serve": ("serve", "hook", "bridge"),
    }
)

"""Commands `schema`, `prompt` and `completion`: input for editors, agents and shells."""

from __future__ import annotations

import argparse
import json
import time
from importlib.resources import files

from ringfence.toolkit.catalog.offers import Offer, offers
from ringfence.toolkit.cli.context import policy_in, policy_of, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE
from ringfence.toolkit.tools import TOOLS


def policy(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the JSON Schema of policy files."""
    from ringfence.toolkit.catalog.policy_schema import policy_schema

    text = files("ringfence.policy").joinpath("schema.json").read_text(encoding="utf-8")
    screen.json(policy_schema(json.loads(text)))
    return DONE


def approvals(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the JSON Schema of the approvals channel's lines."""
    from ringfence.toolkit.cli.approval_messages import SCHEMA

    screen.json(SCHEMA)
    return DONE


def tools(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the tools that an agent is offered with their schemas, in the format of the option."""
    from ringfence.toolkit.catalog.vendor_formats import definitions

    screen.json(definitions(arguments.format, _offered(arguments)))
    return DONE


def prompt(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the text for an agent's instructions, made from its policy."""
    from ringfence.toolkit.catalog.instructions import instructions

    root, _ = root_of(arguments)
    rules = policy_of(arguments, root).at(time.time())
    text = instructions(rules, arguments.agent, tasks=rules.tasks is not None, exact=True)
    if screen.as_json:
        screen.json({"agent": arguments.agent, "instructions": text})
    else:
        screen.line(text)
    return DONE


def _offered(arguments: argparse.Namespace) -> tuple[Offer, ...]:
    """What the policy can ever allow; without a policy every tool, as nothing is known of where it asks."""
    root, _ = root_of(arguments)
    if arguments.policy is None and policy_in(arguments, root) is None:
        return tuple(Offer(tool, "unknown") for tool in TOOLS.values())
    rules = policy_of(arguments, root).at(time.time())
    return offers(rules, arguments.agent, tasks=rules.tasks is not None, exact=True)


def completion(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the completion script; made from the parser, so that it cannot lag behind."""
    if arguments.shell == "fish":
        from ringfence.toolkit.cli.fish_completion import script
        from ringfence.toolkit.cli.table import COMMANDS, GROUPS

        print(script(COMMANDS.values(), GROUPS), end="", file=screen.stdout)
        return DONE
    import shtab

    from ringfence.toolkit.cli.parser import build

    parser = build(completions={"file": shtab.FILE, "directory": shtab.DIRECTORY})
    print(shtab.complete(parser, arguments.shell), file=screen.stdout)
    return DONE

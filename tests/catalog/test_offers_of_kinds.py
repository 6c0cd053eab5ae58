"""Tools offered under a policy that tells kinds of writing apart: those of which some call can pass."""

from __future__ import annotations

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.mcp.server import Server
from ringfence.toolkit.session.session import Session

WRITING = {"create_file", "edit_file", "insert_at_line", "move_file", "copy_file", "create_directory"}


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        ("write.create: deny", {"create_file", "edit_file", "insert_at_line", "move_file", "copy_file"}),
        ("write.replace: deny", WRITING),
        ("write.edit: deny", WRITING - {"edit_file", "insert_at_line"}),
        ("write.create: deny, write.replace: deny", {"edit_file", "insert_at_line"}),
        ("write.create: deny, write.replace: deny, write.edit: deny", set()),
        ("write.create: deny, write.replace: {'*': deny, 'a/b': ask}", WRITING - {"create_directory"}),
        ("write.create: deny, write.replace: {'*': deny, '[!a]*/q?': allow}", WRITING - {"create_directory"}),
        ("write: deny, write.create: allow", set()),
        ("write.create: allow, create_directory: deny", WRITING - {"create_directory"}),
        (
            "write.replace: {'*': {effect: deny, trial: true}}, write.create: deny",
            WRITING - {"create_directory"},
        ),
        ("write.create: {'*': {effect: deny, until: 2001-01-01}}", WRITING),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_a_tool_is_offered_if_one_kind_of_its_writes_can_pass(
    rules: str, want: set[str], exact: bool
) -> None:
    policy = Policy.loads(f"version: 1\nrules: {{'*': allow, {rules}}}\n").at(1_800_000_000)
    assert {offer.tool.name for offer in offers(policy, "a", exact=exact)} & WRITING == want


def test_a_tool_asks_sometimes_if_one_kind_of_its_writes_asks() -> None:
    policy = Policy.loads("version: 1\nrules: {'*': allow, write.replace: ask, write.edit: ask}\n")
    asks = {offer.tool.name: offer.asks for offer in offers(policy, "a", exact=True)}
    assert {name: asks[name] for name in ("create_file", "edit_file", "create_directory", "delete")} == {
        "create_file": "sometimes",
        "edit_file": "always",
        "create_directory": "never",
        "delete": "never",
    }


def test_a_server_lists_again_once_something_has_ended() -> None:
    now = [1_700_000_000.0]
    rules = "{'*': allow, delete: {'*': {effect: deny, until: '2023-12-31T00:00:00Z'}}}"
    policy = Policy.loads(f"version: 1\nrules: {rules}\n")
    with Session("memory://ends", policy, state=":memory:", clock=lambda: now[0]) as session:
        server = Server(session)
        before = server.tools()
        assert server.tools() is before
        now[0] += 10_000_000
        assert {tool["name"] for tool in server.tools()} - {tool["name"] for tool in before} == {
            *("delete", "delete_file", "move_file")
        }

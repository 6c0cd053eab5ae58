"""Names and definitions of upstream tools: what clients accept, unique, bounded, and pinned by a digest."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import loads
from ringfence.policy.loading import upstream_tables
from ringfence.policy.upstreams.rows import BELOW, SELECTOR, Row, split_key
from ringfence.toolkit.catalog.upstream_definitions import offered_with, upstream_definition
from ringfence.toolkit.upstream.definitions import MOST_DESCRIPTION, UpstreamTool, defined, offered_name
from ringfence.toolkit.upstream.specification import parse
from tests.upstream.answering import tool

ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
NAMES = st.from_regex(r"[A-Za-z0-9_./-]{1,128}", fullmatch=True)


def one(**entry: Any) -> UpstreamTool:
    (found,), refused = defined("s", [entry], set())
    assert refused == 0
    return found


@given(st.lists(NAMES, unique=True, max_size=20), st.from_regex(r"[A-Za-z0-9_-]{0,20}", fullmatch=True))
def test_names_are_accepted_unique_and_stable(listed: list[str], prefix: str) -> None:
    entries = [tool(name) for name in listed]
    found, _ = defined("server-name", entries, set())
    offered = [offered_with(prefix, each) for each in found]
    assert all(ACCEPTED.match(name) for name in offered)
    assert len({each.offered for each in found}) == len(found)
    assert [each.offered for each in defined("server-name", entries, set())[0]] == [e.offered for e in found]


def test_a_name_that_is_taken_gets_a_mark() -> None:
    assert offered_name("get", "file_info", {"get_file_info"}) != "get_file_info"
    assert offered_name("get", "file_info") == "get_file_info"
    assert offered_name("s", "a.b") == offered_name("s", "a_b") == "s_a_b"
    names = [each.offered for each in defined("s", [tool("a.b"), tool("a_b")], set())[0]]
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "x"},
        {"name": 3, "inputSchema": {"type": "object"}},
        {"name": "", "inputSchema": {"type": "object"}},
        {"name": "x y", "inputSchema": {"type": "object"}},
        {"name": "x", "inputSchema": {"type": "array"}},
        {"name": "x", "inputSchema": {"type": "object", "description": "x" * 70_000}},
    ],
)
def test_what_is_no_tool_is_refused(entry: dict[str, Any]) -> None:
    assert defined("s", [entry], set()) == ([], 1)


def test_the_first_of_two_with_one_name_counts() -> None:
    found, refused = defined("s", [tool("x", description="1"), tool("x", description="2")], set())
    assert ([each.description for each in found], refused) == (["1"], 1)


def test_texts_are_bounded_and_hide_nothing() -> None:
    found = one(**tool("x", description="a\u202eb" + "c" * 10_000, title="t\nt"))
    assert len(found.description) == MOST_DESCRIPTION
    assert "\u202e" not in found.description
    assert "\\u202e" in found.description


def test_the_digest_changes_with_all_that_a_server_says() -> None:
    said = [
        tool("x"),
        tool("x", description="other"),
        tool("x", annotations={"readOnlyHint": True}),
        {"name": "x", "inputSchema": {"type": "object", "properties": {}}},
        tool("x", outputSchema={"type": "object"}),
    ]
    assert len({one(**each).digest for each in said}) == len(said)


POLICIES = {
    "hidden where every call is denied": ("s.x: deny", None),
    "asks always": ("read: allow", "A person is asked before this is done."),
    "never asks": ("s.x: allow", ""),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_tool_is_offered_as_the_policy_can_allow_it(name: str) -> None:
    rules, mark = POLICIES[name]
    policy = loads(f"version: 1\nupstreams: {{s: {{}}}}\nrules: {{{rules}}}\n")
    found = upstream_definition(one(**tool("x")), Row(), policy, "default", answers="both", prefix="")
    if mark is None:
        assert found is None
        return
    assert found is not None
    assert found["description"].endswith(mark or "cannot be undone.")


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [("write: deny", True), ('write: {"*": deny, "a/b": ask}', False), ("read: deny", False)],
)
def test_a_tool_with_paths_is_hidden_only_if_no_path_is_allowed(rules: str, hidden: bool) -> None:
    row = upstream_tables.table("server-filesystem")["write_file"]
    policy = loads(f"version: 1\nrules: {{{rules}}}\n")
    put = one(**tool("write_file"))
    assert (upstream_definition(put, row, policy, "default", answers="both", prefix="") is None) is hidden


@pytest.mark.parametrize("name", upstream_tables.names())
def test_the_ready_made_tables_are_well_formed(name: str) -> None:
    table = upstream_tables.table(name)
    assert table
    for each, row in table.items():
        assert split_key(f"s.{each}")
        for argument in row.arguments:
            assert re.match(SELECTOR, argument.selector)
            assert set(argument.actions) <= {"read", "write", "delete"}
            assert argument.below in ("", *BELOW)
            assert argument.mirrors in ("", *(other.selector for other in row.arguments))


@pytest.mark.parametrize(
    ("words", "table"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem .", "server-filesystem"),
        ("npx @modelcontextprotocol/server-memory@2026.8.31", "server-memory"),
        ("mcp-server-memory", "server-memory"),
        ("/x/node_modules/.bin/mcp-server-everything", "server-everything"),
        ("node /x/node_modules/@cyanheads/git-mcp-server/dist/index.js", "git-mcp-server"),
        ("npx @someone/server-filesystem", ""),
        ("my-mcp-server-filesystem", ""),
        ("server --about @modelcontextprotocol/server-filesystem-more", ""),
    ],
)
def test_a_table_is_chosen_by_the_package(words: str, table: str) -> None:
    assert upstream_tables.table_for(words.split()) == table


@pytest.mark.parametrize("text", ["", "x", "x=", "=x", "read=x", "X=y", "a_b=c", "a=b 'c", "run=x"])
def test_a_specification_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse(text)


def test_a_specification() -> None:
    assert parse("s=a 'b c'").words == ("a", "b c")
    assert parse("s=https://x/y").url == "https://x/y"
    assert parse("s=env A=b c").words == ("env", "A=b", "c")

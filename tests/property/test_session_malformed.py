"""Thousands of damaged calls and policies: always a documented answer, never an exception, never a change."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence import policy
from ringfence.policy import Policy
from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.errors import CODES
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.tools import TOOLS

POLICIES = {
    "allow": 'version: 1\ndurable: false\nrules: {"*": allow}\n',
    "ask": "version: 1\ndurable: false\n",
    "mixed": "version: 1\ndurable: false\n"
    "rules: {read: allow, write: {'*': allow, 'd/*': deny}, delete: deny}\n",
}
CALLS: list[dict[str, Any]] = [
    {
        "id": "1",
        "tool": "create_file",
        "arguments": {"path": "new.txt", "content": "x", "description": "why"},
    },
    {"id": 2, "tool": "create_file", "arguments": {"path": "a.txt", "content": "x", "allow_overwrite": True}},
    {"name": "delete_file", "arguments": {"path": "a.txt"}},
    {"tool": "delete", "arguments": {"path": "d", "description": "tidy"}},
    {"tool": "get_file_info", "arguments": {"path": "a.txt"}},
    {"tool": "read_file", "arguments": {"path": "a.txt", "start_line": 1, "max_lines": 2}},
    {"tool": "list_directory", "arguments": {"path": ".", "show_hidden": True, "sort_by": "size"}},
    {"tool": "directory_tree", "arguments": {"path": ".", "exclude_patterns": ["*.o"]}},
    {"tool": "search_files", "arguments": {"pattern": "*.txt", "path": ".", "exclude_patterns": ["d"]}},
    {"tool": "search_text", "arguments": {"query": "on.", "path": ".", "pattern": "*", "regex": True}},
    {"tool": "edit_file", "arguments": {"path": "a.txt", "old_str": "one", "new_str": "two"}},
    {"tool": "insert_at_line", "arguments": {"path": "a.txt", "content": "x\n", "line": 1}},
    {
        "tool": "move_file",
        "arguments": {"source": "a.txt", "destination": "n/a.txt", "allow_overwrite": True},
    },
    {
        "tool": "copy_file",
        "arguments": {"source": "a.txt", "destination": "n/a.txt", "create_parents": False},
    },
    {"tool": "create_directory", "arguments": {"path": "n/m"}},
    {"tool": "get_project_root", "arguments": {}},
    {"tool": "list_tasks", "arguments": {}},
    {"tool": "delete_tasks", "arguments": {"task_ids": ["0f8fad5b-d9cb-469f-a165-70867728950e"]}},
    {"tool": "restore_tasks", "arguments": {"task_ids": ["0f8fad5b-d9cb-469f-a165-70867728950e"]}},
]
PATHS = [
    "", ".", "..", "/", "//", "./", "a.txt/", "a.txt/.", "a.txt/..", "d/../a.txt", "d/../../a.txt",
    "../a.txt",
    "/etc/passwd", "~", "~/x", "~root/x", "{ws}", "{ws}/", "{ws}/a.txt", "{ws}/../a.txt", "{ws}x/a.txt",
    "//{ws}/a.txt",
    "file:///etc/passwd", "s3://b/k", "memory://x", "http://h/x", "local::file://x", "a::b", "C:\\x",
    "a\\b", "\\\\h\\s",
    "a\0b", "a\nb", "a\tb", "\x7f", "\x85", "\u202ea.txt", "\u200b", "a\u2028b", "\ud800", "\udcff", "é",
    "e\u0301", "😀",
    "l/x", "l/../a.txt", "out/x", "out", "dangling", "loop", "loop/x", "fifo", "fifo/x", "ro",
    "ringfence.yaml",
    "RINGFENCE.YAML", ".ringfence", ".ringfence/x", ".ringfence-1", "d/ringfence.yaml", "x" * 255,
    "x" * 256, "é" * 128,
    "d/" * 300 + "x", "../" * 50 + "etc/passwd", "*", "?", "[a]", "**/*", "$(id)", "%2e%2e/x", "..%2fx",
    "...", ". .",
    " ", "-rf", "@tasks", "@tasks/x", "a.txt:stream", "CON", "a.txt ", "a.txt.", "/proc/self/root/etc/passwd",
    "/dev/stdin", "d/b.txt/c", "d/./b.txt", "d//b.txt", "n/" * 120 + "x",
]  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**64), 10**300, 1.5, -0.0, 1e308, "", " ", "0", "true",
    [], {}, [[]],
    [None], {"": ""}, {"$ref": "#"}, {"__proto__": 1}, "a\0b", "\ud800", "\udfff\ud800", "\u202e",
     "x" * 5000, ["x"] * 500,
    "\x1b[2J", "(a+)+$", "(?P<n>", "[", "a{99999}", "\\", {"path": "a.txt"}, ["a.txt"], "../a.txt",
]  # fmt: skip
NAMES = [
    "", "write_file", "Create_file", "create_file ", "createfile", "delete_files", "rm", "undo", "restore",
    "read",
    "write", "*", "__class__", "plan", "../create_file", "create_file\0", "\ud800", "é", "list_tasks",
    "delete_tasks",
    "x" * 4000, "\x1b[31m", "ringfence.toolkit.tools.delete",
]  # fmt: skip
BITS = [
    b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\0", b"\n", b"NaN", b"Infinity", b"-Infinity",
    b"1e999", b"1" * 5000,
    b'"path":"a.txt",', b'"tool":"delete",', b'"arguments":{},', b'"id":[],', b"null", b"true", b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800", b"\\u0000", b"\\u202e", b"/*x*/", b"'", b"\xef\xbb\xbf", b"{" * 70, b"[" * 2000,
    b'{"a":' * 70, b"-", b"0",
    b"..", b"/", b"~/", b"://",
]  # fmt: skip


def plant(root: Path) -> None:
    """A workspace with one of everything that can be in the way."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("SECRET")
    (root / "d" / "e").mkdir(parents=True)
    (root / "a.txt").write_text("one\nthree\n")
    (root / "d" / "b.txt").write_text("two")
    (root / "d" / "bin").write_bytes(b"\0\xff")
    (root / "d" / "ringfence.yaml").write_text("version: 1\n")
    (root / "ro").write_text("r")
    (root / "ro").chmod(0o444)
    for name, target in (("l", "d"), ("out", outside), ("dangling", "nothing"), ("loop", "loop")):
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")


def look(folder: Path) -> dict[str, Any]:
    """Everything below a folder, by lstat and bytes; Ringfence's own folder left out."""
    found: dict[str, Any] = {}
    open_ = [os.fspath(folder)]  # texts: this is done after each of thousands of calls
    while open_:
        with os.scandir(open_.pop()) as entries:
            for entry in entries:
                if entry.name == ".ringfence":
                    continue
                held: Any = None
                if entry.is_symlink():
                    held = os.readlink(entry.path)
                elif entry.is_dir():
                    open_.append(entry.path)
                elif entry.is_file():
                    held = Path(entry.path).read_bytes()
                found[entry.path] = (entry.stat(follow_symlinks=False).st_mode, held)
    return found


class Judge:
    """Sends calls to a session and looks at the whole folder around it after each."""

    def __init__(self, folder: Path, rules: str) -> None:
        self.folder = folder
        self.root = folder / "ws"
        self.root.mkdir()
        plant(self.root)
        self.session = Session(self.root, Policy.loads(rules), state=":memory:")
        self.before = look(folder)

    def send(self, call: Any) -> None:
        result = self.session.call(call)
        shown = result.to_line()
        assert shown.isascii()
        assert json.loads(shown)["status"] == result.status
        assert result.data["call_id"]
        if result.ok:
            # A damaged call may still be a good one; then it does what it says and is taken back.
            assert result.error is None
            if look(self.folder) != self.before:
                assert self.session.undo(result.data["call_id"]).ok
        else:
            assert result.error is not None
            code = CODES[result.error["code"]]
            assert result.error["code"] != "internal_error", shown
            assert result.status in (code.status, "approval_required"), shown
            assert result.content == f"Error: {result.error['message']}"
            assert result.error["hint"]
        assert look(self.folder) == self.before, (call, shown)
        assert "SECRET" not in shown
        assert str(self.root.parent / "outside") not in shown


@pytest.fixture(params=list(POLICIES))
def judge(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Judge]:
    found = Judge(tmp_path, POLICIES[request.param])
    yield found
    found.session.close()


def test_every_path_spelling_in_every_path_argument(judge: Judge) -> None:
    for call in CALLS:
        for parameter in ("path", "source", "destination"):
            for path in PATHS if parameter in call["arguments"] else ():
                damaged = copy.deepcopy(call)
                damaged["arguments"][parameter] = path.replace("{ws}", str(judge.root))
                judge.send(damaged)


def test_every_odd_value_in_every_argument(judge: Judge) -> None:
    for call in CALLS:
        for parameter in TOOLS[call.get("tool") or call["name"]].parameters["properties"]:
            for value in ODD:
                judge.send({**call, "arguments": {**call["arguments"], parameter: value}})
        for value in ODD:
            judge.send({**call, "arguments": value})
            judge.send({**call, "id": value})


def test_odd_names_and_fields(judge: Judge) -> None:
    for name in NAMES:
        judge.send({"tool": name, "arguments": {"path": "a.txt"}})
        judge.send({"tool": "get_file_info", "arguments": {"path": "a.txt", name: 1}})
        judge.send({"tool": "get_file_info", "arguments": {"path": "a.txt"}, name: 1})
    for value in ODD:
        judge.send({"tool": value, "arguments": {}})
        judge.send(json.dumps(value))


def mutated(chance: random.Random, data: bytes) -> bytes:
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(0, len(data))
        match chance.randint(0, 3):
            case 0:
                data = data[:at] + chance.choice(BITS) + data[at:]
            case 1:
                data = data[:at] + data[at + chance.randint(1, 12) :]
            case 2:
                data = data[:at] + bytes([chance.randint(0, 255)]) + data[at + 1 :]
            case 3:
                start = chance.randint(0, len(data))
                data = data[:at] + data[start : start + chance.randint(1, 40)] + data[at:]
    return data


def test_mutated_text(judge: Judge) -> None:
    chance = random.Random(4)
    texts = [json.dumps(call).encode() for call in CALLS]
    for _ in range(1500):
        data = mutated(chance, chance.choice(texts))
        judge.send(data if chance.random() < 0.7 else data.decode("utf-8", "surrogateescape"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
parameters = st.sampled_from(
    ["path", "content", "source", "destination", "line", "query", "pattern", "old_str", "x"]
)


@given(tool=st.sampled_from([*TOOLS, "x"]), arguments=st.dictionaries(parameters, json_values, max_size=4))
def test_any_json_for_arguments(tmp_path_factory: pytest.TempPathFactory, tool: str, arguments: Any) -> None:
    root = tmp_path_factory.mktemp("ws")
    with Session(root, Policy.loads(POLICIES["allow"]), state=":memory:") as session:
        for call in (
            {"tool": tool, "arguments": arguments},
            json.dumps({"tool": tool, "arguments": arguments}),
        ):
            result = session.call(call)
            assert json.loads(result.to_line())["status"] == result.status
            if result.error is not None:
                assert result.error["code"] in set(CODES) - {"internal_error"}, result


@pytest.mark.parametrize(
    "call",
    [None, 5, [], "", b"", "[]", "null", b"\xff", {}, {1: 2}, {"tool": "delete", "arguments": {1: 2}},
     bytearray(b"{}"),
     {"tool": "delete", "arguments": {"path": b"a.txt"}}, {"tool": "delete",
     "arguments": {"path": Path("a.txt")}},
     {"tool": "create_file", "arguments": {"path": "n", "content": float("nan")}}, {"tool": "delete",
     "id": float("nan")},
     ToolCall("delete", {"path": ["a.txt"]}), ToolCall("delete", {"path": "a.txt", "x": {1}}), ToolCall(5,
     {}, []),
     ToolCall("delete", None), ToolCall([], {}), ToolCall("delete", {"path": {}}, {}), ToolCall("\ud800", {}),
     ToolCall("delete", {"path": "\ud800"}), ToolCall("delete", {"\ud800": "a"}),
     ToolCall("delete", {}, "\ud800"), frozenset()],
    ids=repr,
)  # fmt: skip
def test_what_only_a_program_can_send(judge: Judge, call: Any) -> None:
    judge.send(call)


@pytest.mark.parametrize("levels", [60, 65, 1_000, 100_000])
def test_deep_nesting(judge: Judge, levels: int) -> None:
    judge.send('{"tool": "delete", "arguments": ' + '{"a":' * levels + "1" + "}" * levels + "}")
    judge.send('{"tool": "delete", "arguments": {"path": ' + "[" * levels + "]" * levels + "}}")
    judge.send("[" * levels)


def test_mutated_policies_deny_everything_or_hold(tmp_path: Path) -> None:
    """A policy that does not load denies every call of an embedded session; none is ever half in force."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("one")
    file = tmp_path / "policy.yaml"
    chance = random.Random(7)
    sources = [policy.ready_made(name).read_bytes() for name in policy.READY_MADE]
    refused = 0
    for _ in range(150):
        file.write_bytes(mutated(chance, chance.choice(sources)))
        try:
            Policy.load(file)
            loads = True
        except policy.PolicyError:
            loads = False
        with Session(root, file, state=":memory:") as session:
            for tool in ("get_file_info", "delete_file"):
                result = session.call({"tool": tool, "arguments": {"path": "a.txt"}})
                code = result.error["code"] if result.error else None
                assert code != "internal_error"
                assert (code == "policy_invalid") != loads, result
                assert loads or result.status == "denied"
        if not (root / "a.txt").exists():
            (root / "a.txt").write_text("one")
        refused += not loads
    assert refused > 30

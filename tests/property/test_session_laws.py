"""The laws of a session on random trees, against the raw file system: what is undone was never done."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from ringfence.policy import Policy
from ringfence.policy.model import WRITE_KINDS
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory

ALLOW = Policy.loads('version: 1\ndurable: false\nrules: {"*": allow}\nlimits: {delete: {max_files: 9999}}\n')
CHANGING = (
    "create_file", "delete_file", "delete", "edit_file", "insert_at_line", "move_file", "copy_file",
    "create_directory",
)  # fmt: skip
Tree = dict[str, tuple[Any, ...]]
NOW = 1_800_000_000.0  # between the two ends below
ENDED, ENDS = "2026-12-31T00:00:00Z", "2027-12-31T00:00:00Z"

names = st.sampled_from(
    ["a", "b", "c", "a b", " ", "*", "a*", "?", "[a]", "a[1]", "#", "%41", "%", "é", "😀", "-rf", "--", ".a",
     "...", "~", "~x", "$a", "a;b", "'", '"', "{a,b}", "!a", "@", "a:b", "&", "x" * 200]
)  # fmt: skip
# Names that a call cannot spell, and that go along when their directory is moved or deleted.
unspeakable = st.sampled_from(["a\nb", "a\\b", "\x1b[2K", "\u202ea", os.fsdecode(b"\xff"), "a::b"])
contents = st.one_of(
    st.sampled_from(
        [b"", b"\n", b"one\ntwo\nthree", b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\n", b"\0\xff", b"\xe9\n"]
    ),
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"one", b"two", b"", b"\r"]), max_size=4).map(b"\n".join),
)
file_modes = st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o4755])
folder_modes = st.sampled_from([0o755, 0o700, 0o500, 0o2775])
links = st.sampled_from(["a", "b/a", "a b", ".", "nowhere", "a/nowhere", "*", "-rf", os.fsdecode(b"\xfe")])


@st.composite
def trees(draw: st.DrawFn, *, disk: bool, depth: int = 2) -> dict[str, Any]:
    """A folder as a dict: files as (bytes, mode), links as text, folders as dicts with "" for their mode."""
    found: dict[str, Any] = {"": draw(folder_modes)} if disk else {}
    named = names | unspeakable if disk else names
    for name in draw(st.lists(named, max_size=4, unique=True)):
        kinds = ["file", "file"] + ["folder"] * (depth > 0) + ["link"] * disk
        match draw(st.sampled_from(kinds)):
            case "file":
                found[name] = (draw(contents), draw(file_modes))
            case "folder":
                found[name] = draw(trees(disk=disk, depth=depth - 1))
            case "link":
                found[name] = draw(links)
    return found


def listed(tree: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, what in tree.items():
        if name:
            yield above + name
            if isinstance(what, dict):
                yield from listed(what, f"{above}{name}/")


@st.composite
def calls(draw: st.DrawFn, tree: dict[str, Any]) -> dict[str, Any]:
    """A call of a changing tool, mostly on what is there or was."""
    known = [path for path in listed(tree) if all(c.isprintable() and c != "\\" for c in path)]
    fresh = st.lists(names, min_size=1, max_size=3).map("/".join)
    path = st.one_of(st.sampled_from(known), st.sampled_from(known), fresh) if known else fresh
    path = path | st.builds("{}/{}".format, path, names)
    text = st.sampled_from(["", "one", "two", "one\n", "three\r\n", "😀\n", "\0", "x" * 30])
    tool = draw(st.sampled_from(CHANGING))
    arguments: dict[str, Any] = {}
    if tool in ("move_file", "copy_file"):
        arguments = {"source": draw(path), "destination": draw(path)}
    else:
        arguments["path"] = draw(path)
    if tool in ("move_file", "copy_file", "create_file"):
        arguments |= {"allow_overwrite": draw(st.booleans()), "create_parents": draw(st.booleans())}
    if tool in ("create_file", "insert_at_line"):
        arguments["content"] = draw(text)
    if tool == "insert_at_line":
        arguments["line"] = draw(st.integers(-1, 3))
    if tool == "edit_file":
        arguments |= {"old_str": draw(st.sampled_from(["one", "two", "t", "e\nt"])), "new_str": draw(text)}
    return {"tool": tool, "arguments": arguments}


class Disk:
    """A folder of this machine, looked at with nothing but os."""

    def __init__(self, folder: str) -> None:
        self.root = folder

    def open(self, **options: Any) -> Session:
        return Session(self.root, ALLOW, state=":memory:", **options)

    def put(self, tree: dict[str, Any], above: str = "") -> None:
        for name, what in tree.items():
            place = f"{self.root}/{above}{name}"
            if isinstance(what, dict):
                os.mkdir(place)
                self.put(what, f"{above}{name}/")
                os.chmod(place, what[""])
            elif isinstance(what, str):
                os.symlink(what, place)
            elif isinstance(what, tuple):
                Path(place).write_bytes(what[0])
                os.chmod(place, what[1])

    def look(self) -> Tree:
        found: Tree = {}
        for folder, folders, files in os.walk(self.root):
            for name in folders + files:
                place = os.path.join(folder, name)
                info = os.lstat(place)
                # As plans and answers spell a name that is not valid UTF-8.
                path = os.fsencode(place[len(self.root) + 1 :]).decode("utf-8", "backslashreplace")
                if stat.S_ISLNK(info.st_mode):
                    found[path] = ("link", os.readlink(place))
                elif stat.S_ISDIR(info.st_mode):
                    found[path] = ("folder", stat.S_IMODE(info.st_mode))
                else:
                    found[path] = ("file", stat.S_IMODE(info.st_mode), Path(place).read_bytes())
        return {path: what for path, what in found.items() if path.split("/")[0] != ".ringfence"}


class Memory:
    """A private memory file system, looked at by its own store."""

    def __init__(self) -> None:
        self.fs = private_memory()
        self.fs.makedirs("/w")

    def open(self, **options: Any) -> Session:
        return Session("/w", ALLOW, fs=self.fs, state=":memory:", **options)

    def put(self, tree: dict[str, Any], above: str = "/w/") -> None:
        for name, what in tree.items():
            if isinstance(what, dict):
                self.fs.mkdir(above + name)
                self.put(what, f"{above}{name}/")
            else:
                self.fs.pipe_file(above + name, what[0])

    def look(self) -> Tree:
        found: Tree = {path[3:]: ("file", held.getvalue()) for path, held in self.fs.store.items()}
        for path in list(found):
            for end in (at for at, c in enumerate(path) if c == "/"):
                found[path[:end]] = ("folder",)
        found |= {path[3:]: ("folder",) for path in self.fs.pseudo_dirs if path.startswith("/w/")}
        return found


@contextmanager
def disk() -> Iterator[Disk]:
    with tempfile.TemporaryDirectory() as folder:
        yield Disk(os.path.realpath(folder))


def promised(plan: list[dict[str, Any]]) -> set[str]:
    """Every path that a dry run says would change."""
    found: set[str] = set()
    for row in plan:
        found.add(row["path"])
        if row["change"] == "delete":
            found.update(row["entries"])
        if row["change"] == "move":
            found.add(row["destination"])
    return found


def moved(plan: list[dict[str, Any]], path: str) -> bool:
    ends = [row[end] for row in plan if row["change"] == "move" for end in ("path", "destination")]
    return any(path.startswith(end + "/") for end in ends)


def differing(one: Tree, other: Tree) -> set[str]:
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def obey(place: Disk | Memory, calls: list[dict[str, Any]]) -> None:
    """Run calls one after another, each undone and done again; then take all of them back."""
    first = place.look()
    done: list[str] = []
    with place.open() as session:
        for call in calls:
            before = place.look()
            with place.open(dry_run=True) as dry:
                rehearsal = dry.call(call)
            assert place.look() == before, "a dry run changed something"
            result = session.call(call)
            after = place.look()
            assert result.error is None or result.error["code"] != "internal_error", result
            if not result.ok:
                assert after == before, (result, "a call that failed changed something")
                continue
            assert rehearsal.ok, (rehearsal, result)
            changed = differing(before, after)
            plan = rehearsal.data["plan"]
            assert all(path in promised(plan) or moved(plan, path) for path in changed), (plan, changed)
            if not plan:
                continue
            undone = session.undo(result.data["call_id"])
            assert (undone.status, differing(place.look(), before)) == ("ok", set()), undone
            again = session.undo(undone.data["call_id"])
            assert (again.status, differing(place.look(), after)) == ("ok", set()), again
            done.append(again.data["call_id"])
        for call_id in reversed(done):
            session.undo(call_id)
        assert differing(place.look(), first) == set()


@given(st.data())
def test_undo_gives_back_the_tree_on_disk(data: st.DataObject) -> None:
    tree = data.draw(trees(disk=True))
    with disk() as place:
        place.put(tree)
        obey(place, data.draw(st.lists(calls(tree), min_size=1, max_size=4)))


def test_a_parent_made_behind_a_link_is_planned_as_it_is_spelled() -> None:
    create = {"path": "a/a", "content": "", "allow_overwrite": False, "create_parents": True}
    with disk() as place:
        place.put({"": 0o755, "a": os.fsdecode(b"\xfe")})
        obey(place, [{"tool": "create_file", "arguments": create}])


@given(st.data())
def test_undo_gives_back_the_tree_in_memory(data: st.DataObject) -> None:
    tree = data.draw(trees(disk=False))
    place = Memory()
    place.put(tree)
    obey(place, data.draw(st.lists(calls(tree), min_size=1, max_size=4)))


effects = st.sampled_from(["allow", "ask", "deny"])
patterns = st.one_of(names.filter(lambda name: name[0] != "!"), st.sampled_from(["*", "a/*", "b/**", "a/"]))
rules = st.dictionaries(
    st.sampled_from(
        ["*", "read", "write", "delete", "delete_file", "move_file", "create_file", *WRITE_KINDS]
    ),
    effects | st.dictionaries(patterns, effects, min_size=1, max_size=3),
    max_size=3,
)
floors = st.lists(
    st.builds(
        lambda effect, actions, found: {effect: actions, "paths": found},
        st.sampled_from(["deny", "ask"]),
        st.lists(
            st.sampled_from(["read", "write", "delete", "move_file", "*", *WRITE_KINDS]),
            min_size=1,
            max_size=2,
        ),
        st.lists(patterns, min_size=1, max_size=2),
    ),
    max_size=2,
)
limits = st.dictionaries(
    st.sampled_from(["delete", "write", "create_file", "read", "read_file", "*"]),
    st.fixed_dictionaries(
        {"max_files": st.integers(0, 2), "over": st.sampled_from(["ask", "deny"])},
        optional={
            "max_bytes": st.integers(0, 20),
            "per": st.sampled_from(["call", "session", "hour", "day"]),
        },
    ),
    max_size=2,
)
# What a stricter policy may answer to a call that was answered so before.
NOT_LOOSER = {
    "ok": {"ok", "approval_required", "denied", "error"},
    "approval_required": {"approval_required", "denied"},
    "error": {"error", "denied"},
    "denied": {"denied"},
}


def answer(tree: dict[str, Any], policy: dict[str, Any], call: dict[str, Any]) -> str:
    return str(sent(tree, policy, call)["status"])


def sent(
    tree: dict[str, Any], policy: dict[str, Any], call: dict[str, Any], agent: str = "default"
) -> dict[str, Any]:
    """What an agent is sent, without the ids that differ at each call."""
    place = Memory()
    place.put(tree)
    before = place.look()
    judged = Policy.loads(json.dumps(policy, ensure_ascii=False))
    with Session("/w", judged, fs=place.fs, state=":memory:", agent=agent, clock=lambda: NOW) as session:
        result = session.call(call)
    assert result.ok or place.look() == before
    result.data.pop("call_id", None)
    if "approval" in result.data:
        result.data["approval"].pop("id")
    if result.error is not None:
        result.error.pop("hint", None)
        result.error.pop("data", None)
    return result.to_json()


@given(st.data(), rules, floors, limits)
def test_a_floor_and_a_limit_never_loosen_an_answer(
    data: st.DataObject, rules: Any, floor: Any, limit: Any
) -> None:
    tree = data.draw(trees(disk=False))
    call = data.draw(calls(tree))
    loose = {"version": 1, "rules": rules}
    before = answer(tree, loose, call)
    for stricter in ({"mandatory": floor}, {"limits": limit}, {"mandatory": floor, "limits": limit}):
        assert answer(tree, {**loose, **stricter}, call) in NOT_LOOSER[before], stricter


def with_fields(rules: Any, **fields: Any) -> Any:
    """The rules with these fields in each of them."""
    return {
        key: {
            pattern: {"effect": effect, **fields}
            for pattern, effect in (found.items() if isinstance(found, dict) else [("*", found)])
        }
        for key, found in rules.items()
    }


def merged(one: Any, other: Any) -> Any:
    """One tier with the entries of another after its own, where both are patterns."""
    found = {key: rules if isinstance(rules, dict) else {"*": rules} for key, rules in one.items()}
    for key, rules in other.items():
        more = {pattern: rule for pattern, rule in rules.items() if pattern not in found.get(key, {})}
        found[key] = {**found.get(key, {}), **more}
    return found


@given(st.data(), rules, rules, floors)
def test_what_is_on_trial_or_has_ended_changes_no_answer(
    data: st.DataObject, rules: Any, more: Any, floor: Any
) -> None:
    tree = data.draw(trees(disk=False))
    call = data.draw(calls(tree))
    plain = {"version": 1, "rules": merged(rules, {})}
    before = sent(tree, plain, call)
    for fields in ({"trial": True}, {"until": ENDED}):
        special = {
            "version": 1,
            "rules": merged(rules, with_fields(more, **fields)),
            "mandatory": [{**item, **fields} for item in floor],
        }
        assert sent(tree, special, call) == before, fields


@given(st.data(), rules, floors)
def test_what_has_not_ended_and_excepts_no_agent_answers_as_without_these_fields(
    data: st.DataObject, rules: Any, floor: Any
) -> None:
    tree = data.draw(trees(disk=False))
    call = data.draw(calls(tree))
    before = sent(tree, {"version": 1, "rules": with_fields(rules), "mandatory": floor}, call)
    for fields in ({"until": ENDS}, {"except_agents": ["nobody", "default/*"]}):
        ends = {name: value for name, value in fields.items() if name == "until"}
        items = [{**item, **fields} for item in floor]
        again = {"version": 1, "rules": with_fields(rules, **ends), "mandatory": items}
        assert sent(tree, again, call) == before, fields
    excepted = [{**item, "except_agents": ["default"]} for item in floor]
    without = sent(tree, {"version": 1, "rules": with_fields(rules)}, call)
    assert sent(tree, {"version": 1, "rules": with_fields(rules), "mandatory": excepted}, call) == without


@given(st.data(), rules, floors)
def test_a_rule_for_every_kind_of_write_is_one_for_writing(
    data: st.DataObject, rules: Any, floor: Any
) -> None:
    tree = data.draw(trees(disk=False))
    call = data.draw(calls(tree))
    plain = {key: found for key, found in rules.items() if key not in WRITE_KINDS}
    floor = [
        {**item, _effect(item): [k for k in item[_effect(item)] if k not in WRITE_KINDS]} for item in floor
    ]
    floor = [item for item in floor if item[_effect(item)]]
    spelled = {key: found for key, found in plain.items() if key != "write"}
    if "write" in plain:
        spelled |= dict.fromkeys(WRITE_KINDS, plain["write"])
    items = [
        {
            **item,
            _effect(item): [
                name for key in item[_effect(item)] for name in (WRITE_KINDS if key == "write" else (key,))
            ],
        }
        for item in floor
    ]
    before = sent(tree, {"version": 1, "rules": plain, "mandatory": floor}, call)
    assert sent(tree, {"version": 1, "rules": spelled, "mandatory": items}, call) == before


def _effect(item: dict[str, Any]) -> str:
    return "deny" if "deny" in item else "ask"


@given(st.data(), rules, floors, names)
def test_where_each_kind_of_write_is_denied_the_answer_is_the_same_whatever_is_there(
    data: st.DataObject, rules: Any, floor: Any, name: str
) -> None:
    tree = data.draw(trees(disk=False))
    tool = data.draw(st.sampled_from(["create_file", "copy_file", "move_file", "create_directory"]))
    source = data.draw(st.sampled_from(sorted(tree) or ["a"]))
    ends = {"source": source, "destination": name}
    named = ends if tool in ("copy_file", "move_file") else {"path": name}
    more = {"content": "x"} if tool == "create_file" else {}
    overwrites = {} if tool == "create_directory" else {"allow_overwrite": data.draw(st.booleans())}
    call = {"tool": tool, "arguments": {**named, **more, **overwrites}}
    policy: dict[str, Any] = {
        "version": 1,
        "rules": {**rules, "write.create": "deny", "write.replace": "deny"},
    }
    policy["mandatory"] = floor
    assume(source != name)
    there, missing = {**tree, name: (b"m", 0o644)}, {each: of for each, of in tree.items() if each != name}
    found = sent(there, policy, call)
    assert found == sent(missing, policy, call)
    assert found["status"] != "ok"

"""A search finds what may be read and names the way to it, nothing else; held against every path there is."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.policy import Effect, Policy
from ringfence.toolkit.call import Result
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory
from tests.property.test_policy_judge import AGENTS, TOOLS, policies

Tree = dict[str, bool]  # whether a path is a directory

NAMES = ["a", "b", "c.md"]
DENY, ASK, ALLOW = Effect.DENY, Effect.ASK, Effect.ALLOW


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    found: Tree = {}
    for names in draw(st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), max_size=6)):
        above = ["/".join(names[:n]) for n in range(1, len(names))]
        path = "/".join(names)
        if path not in found and all(found.get(each, True) for each in above):
            found |= dict.fromkeys(above, True)
            found[path] = draw(st.sampled_from([False, False, True]))
    return dict(sorted(found.items()))


PATTERNS = st.sampled_from(
    [
        "a",
        "b",
        "a/",
        "/a/",
        "b/",
        "a/**",
        "a/b",
        "a/b/",
        "a/b/**",
        "*.md",
        "/*.md",
        "a/*/a",
        "**/b/**",
        "**/a/b",
    ]
)
EFFECTS = st.sampled_from(["allow", "allow", "deny", "deny", "deny", "ask"])
ITEMS = st.builds(
    lambda paths, out: {"deny": ["read"], "paths": paths, **({"except": out} if out else {})},
    st.lists(PATTERNS, min_size=1, max_size=2),
    st.lists(PATTERNS, max_size=1),
)


@st.composite
def reading(draw: st.DrawFn) -> Policy:
    rules = draw(st.dictionaries(PATTERNS, EFFECTS, max_size=4))
    read = {"*": draw(st.sampled_from(["allow", "deny", "deny"])), **rules}
    floor = draw(st.lists(ITEMS, max_size=1))
    return Policy.loads(json.dumps({"version": 1, "rules": {"read": read}, "mandatory": floor}))


class Seen:
    """What the policy says of each path of a tree by itself, and what follows for a search of it."""

    def __init__(self, tree: Tree, policy: Policy) -> None:
        self.tree = tree
        self.effect = {p: policy.effect("default", "read", "read", p, d) for p, d in tree.items()}
        self.effect["."] = policy.effect("default", "read", "read", ".", True)

    def below(self, start: str) -> list[str]:
        return [path for path in self.tree if start == "." or path.startswith(start + "/")]

    def leads(self, path: str) -> Effect:
        """The loosest verdict below a directory."""
        return min((self.effect[each] for each in self.below(path)), default=DENY)

    def shown(self, path: str) -> bool:
        return self.effect[path] is not DENY or (self.tree[path] and self.leads(path) is not DENY)

    def at(self, start: str) -> Effect:
        """The verdict on beginning at a directory."""
        return self.effect[start] if self.effect[start] is not DENY else self.leads(start)


def made(kind: str, folder: str, tree: Tree, policy: Policy) -> Session:
    if kind == "disk":
        for path, directory in tree.items():
            if directory:
                Path(folder, path).mkdir(parents=True, exist_ok=True)
            else:
                Path(folder, path).write_text("one\n")
        return Session(folder, policy, state=":memory:")
    fs = private_memory()
    fs.makedirs("/ws", exist_ok=True)
    for path, directory in tree.items():
        if directory:
            fs.makedirs(f"/ws/{path}", exist_ok=True)
        else:
            fs.pipe_file(f"/ws/{path}", b"one\n")
    return Session("/ws", policy, state=":memory:", fs=fs)


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def check_start(session: Session, seen: Seen, start: str) -> None:
    below, at = seen.below(start), seen.at(start)
    found = call(session, "search_files", path=start, pattern="**")
    drawn = call(session, "directory_tree", path=start)
    lines = call(session, "search_text", path=start, query="one")
    listed = call(session, "list_directory", path=start, show_hidden=True)
    every = (found, drawn, lines, listed)
    if at is DENY:
        assert {(answer.status, code(answer)) for answer in every} == {("denied", "denied_by_policy")}
        assert all(answer.data.keys() == {"call_id"} for answer in every)
        return
    if ASK in (at, *(seen.effect[path] for path in below)):
        assert {answer.status for answer in (found, drawn, lines)} == {"approval_required"}
    else:
        shown = [path for path in below if seen.shown(path)]
        assert sorted(row["path"] for row in found.data["matches"]) == shown
        assert sorted(row["path"] for row in drawn.data["entries"]) == shown
        files = [path for path in below if seen.effect[path] is ALLOW and not seen.tree[path]]
        assert sorted(row["path"] for row in lines.data["matches"]) == files
        assert "not_entered" not in found.data
    prefix = "" if start == "." else start + "/"
    direct = [path for path in below if "/" not in path[len(prefix) :] and seen.shown(path)]
    if ASK in (at, *(seen.at(path) if seen.tree[path] else seen.effect[path] for path in direct)):
        assert listed.status == "approval_required"
    else:
        assert sorted(prefix + row["name"] for row in listed.data["entries"]) == direct


def code(answer: Result) -> str | None:
    return None if answer.error is None else answer.error["code"]


def told(kind: str, tree: Tree, policy: Policy, start: str) -> list[Any]:
    """What each search from a directory tells, but for the call's own name."""
    with tempfile.TemporaryDirectory() as folder, made(kind, folder, tree, policy) as session:
        return [
            (answer.status, answer.content, answer.decision, answer.error)
            for answer in (
                call(session, "search_files", path=start, pattern="**"),
                call(session, "directory_tree", path=start),
                call(session, "search_text", path=start, query="one"),
                call(session, "list_directory", path=start),
            )
        ]


@settings(deadline=None, max_examples=40)
@given(tree=trees(), policy=reading())
def test_what_leads_to_nothing_is_as_if_it_were_not_there(tree: Tree, policy: Policy) -> None:
    seen = Seen(tree, policy)
    for start in (path for path, directory in tree.items() if directory and seen.at(path) is DENY):
        without = {
            path: kind for path, kind in tree.items() if path != start and path not in seen.below(start)
        }
        file = {**without, start: False}
        if policy.effect("default", "read", "read", start, False) is not DENY:
            file = without  # a file there may be read
        for other in (without, file):
            assert told("memory", other, policy, start) == told("memory", tree, policy, start)


@pytest.mark.parametrize("kind", ["disk", "memory"])
@settings(deadline=None, max_examples=60)
@given(tree=trees(), policy=reading())
def test_every_start_shows_what_may_be_read_and_the_way_to_it(kind: str, tree: Tree, policy: Policy) -> None:
    seen = Seen(tree, policy)
    with tempfile.TemporaryDirectory() as folder, made(kind, folder, tree, policy) as session:
        for path, directory in tree.items():
            if not directory and seen.effect[path] is ALLOW:
                assert call(session, "read_file", path=path).ok
        for start in (".", *(path for path, directory in tree.items() if directory)):
            check_start(session, seen, start)


DEEPER = [f"{one}{two}" for one in ("/a", "/b", "/ab", "/ba", "/c") for two in ("", "/a", "/b/c", "/ab/a")]


@settings(deadline=None, max_examples=150)
@given(
    drawn=policies,
    agent=st.sampled_from(AGENTS),
    tool=st.sampled_from(sorted(TOOLS)),
    names=st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3),
)
def test_what_is_wholly_denied_has_nothing_open_below(
    drawn: dict[str, Any], agent: str, tool: str, names: list[str]
) -> None:
    policy = Policy.loads(json.dumps({"version": 1, **drawn}))
    path = "/".join(names) or "."
    for action in TOOLS[tool]:
        opens = policy.opens_below(agent, tool, action, path)
        for more in DEEPER:
            below = (path + more).removeprefix("./")
            for directory in (False, True):
                effect = policy.effect(agent, tool, action, below, directory)
                assert effect is DENY or opens, below


OPENING = [
    ("{'*': allow, 'secrets/': deny}", "secrets", False),
    ("{'*': allow, '.env': deny, '*.pem': deny, 'secrets/': deny}", "secrets", False),
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': allow}", "secrets", True),
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': allow}", "secrets/more", False),
    ("{'*': allow, 'secrets/': deny, 'secrets/public/': ask}", "secrets", True),
    ("{'*': allow, 'secrets/': deny, 'public/': allow}", "secrets/more", True),
    ("{'*': allow, 'secrets/public/': allow, 'secrets/': deny}", "secrets", False),
    ("{'*': deny, 'src/**': allow}", ".", True),
    ("{'*': deny, 'src/**': allow}", "src", True),
    ("{'*': deny, 'src/**': allow}", "lib", False),
    ("{'*': deny, 'src/**': allow, 'src/': deny}", "src", False),
    ("{'*': deny, '/src/*/a.py': allow}", "src", True),
    ("{'*': deny, '/src/*/a.py': allow}", "src/x", True),
    ("{'*': deny, '/src/*/a.py': allow}", "src/x/y", False),
    ("{'*': deny, '/src/**/a.py': allow}", "src/x/y", True),
    ("deny", ".", False),
]


@pytest.mark.parametrize(("read", "path", "opens"), OPENING)
def test_a_directory_is_walked_only_where_a_rule_may_open_something_below(
    read: str, path: str, opens: bool
) -> None:
    policy = Policy.loads(f"version: 1\nrules: {{read: {read}}}\n")
    assert policy.opens_below("default", "search_text", "read", path) is opens


def test_where_nothing_opens_again_nothing_is_listed_or_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets/deep").mkdir(parents=True)
    (tmp_path / "a").write_text("one\n")
    policy = Policy.loads("version: 1\nrules: {read: {'*': allow, 'secrets/': deny, '*.pem': deny}}\n")
    with Session(tmp_path, policy, state=":memory:") as session:
        entered: list[str] = []
        folder = session.workspace.backend.folder

        def noted(spot: Any) -> Any:
            entered.append(spot.path)
            return folder(spot)

        monkeypatch.setattr(session.workspace.backend, "folder", noted)
        monkeypatch.setattr(
            "ringfence.policy.patterns.matcher.Matcher.ahead", lambda *_: pytest.fail("worked out")
        )
        assert call(session, "list_directory", path=".").data["directories"] == 0
        assert call(session, "search_text", query="one").data["count"] == 1
    assert entered == [".", "."]


def test_a_monitored_start_is_recorded_as_it_would_be_answered(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a").write_text("one\n")
    (tmp_path / "lib").mkdir()
    policy = Policy.loads("version: 1\nmode: monitor\nrules: {read: {'*': deny, 'src/**': allow}}\n")
    with Session(tmp_path, policy, state=":memory:") as session:
        found = {path: call(session, "list_directory", path=path) for path in (".", "lib")}
    assert [row["name"] for row in found["."].data["entries"]] == ["lib", "src"]
    assert {path: (answer.status, answer.decision["effect"]) for path, answer in found.items()} == {
        ".": ("ok", "allow"),
        "lib": ("ok", "deny"),
    }


def test_looking_for_what_may_be_read_can_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / "k").mkdir()
    for number in range(3):
        (tmp_path / f"k/{number}").mkdir()
    policy = Policy.loads("version: 1\nrules: {read: {'*': deny, '*.md': allow}}\n")
    entered: list[str] = []
    progress = Progress(cancelled=lambda: bool(entered))
    with Session(tmp_path, policy, state=":memory:") as session:
        folder = session.workspace.backend.folder

        def cancels(spot: Any) -> Any:
            entered.append(spot.path)
            return folder(spot)

        session.workspace.backend.folder = cancels  # type: ignore[method-assign]
        answer = session.call({"tool": "list_directory", "arguments": {"path": "k"}}, progress=progress)
    assert (code(answer), entered) == ("cancelled", ["k"])

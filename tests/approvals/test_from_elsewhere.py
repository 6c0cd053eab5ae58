"""Requests answered from another machine, which has the URL of the state and none of the workspace's files.

Another machine is another folder, and another directory for what this machine keeps.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from tests.cli.conftest import Done, Ringfence, ringfence, workspace
from tests.history.test_shared import settled, stop_in

__all__ = ["ringfence", "workspace"]

pytestmark = pytest.mark.slow
psycopg = pytest.importorskip("psycopg", reason="no psycopg: pip install 'ringfence[postgres]'")
POLICY = 'version: 1\nrules: {read: allow, write: {"*": ask, "*.lock": deny}, delete: ask}\n'


class Agent:
    """The machine with the workspace: an agent asks there."""

    def __init__(self, root: Path, url: str, home: Path, patch: pytest.MonkeyPatch) -> None:
        root.mkdir()
        for name in ("a.md", "b.md"):
            (root / name).write_text("the content of a file\n")
        (root / "ringfence.yaml").write_text(POLICY)
        self.root, self._url, self._home, self._patch = root, url, home, patch

    @contextmanager
    def session(self, policy: str) -> Iterator[Session]:
        with self._patch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(self._home))
            loaded = Policy.loads(policy, file="ringfence.yaml")
            opened = Session(self.root, loaded, agent="coder", session="s", state=self._url)
        with opened:
            yield opened

    def call(self, tool: str, **arguments: str) -> str:
        """Make a call, and return the id of its request; "" if nobody was asked."""
        with self.session((self.root / "ringfence.yaml").read_text()) as session:
            done = session.call({"tool": tool, "arguments": arguments})
        if done.status != "approval_required":
            return ""
        return str(done.data["approval"]["id"])


@pytest.fixture
def agent(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, workspace: Path) -> Agent:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))
    return Agent(tmp_path / "there", postgres_url, tmp_path / "their home", monkeypatch)


@pytest.fixture
def schema(agent: Agent, ringfence: Ringfence, postgres_url: str) -> str:
    """The state's name, found as a person finds it: from what `list` says."""
    first = agent.call("delete_file", path="b.md")
    (name,) = (
        each for each, waits in found_in(ringfence("approvals", "list", "--state", postgres_url)) if waits
    )
    with psycopg.connect(postgres_url) as db:
        assert db.execute(f"SELECT id FROM {name}.approval").fetchall() == [(first,)]
    return name


def found_in(done: Done) -> list[tuple[str, int]]:
    assert done.status == 1
    assert "append its name to the URL: --state 'URL#ringfence_" in done.err
    listed = re.findall(r"(ringfence_[0-9a-f]{16}) \((\d+) pending", done.err)
    return [(name, int(number)) for name, number in listed]


@pytest.fixture(autouse=True)
def emptied(postgres_url: str) -> Iterator[None]:
    """Other tests share the server: their requests are theirs, and ours are gone afterwards."""

    def names() -> set[str]:
        with psycopg.connect(postgres_url) as db:
            return {name for (name,) in db.execute("SELECT nspname FROM pg_namespace").fetchall()}

    before = names()
    with psycopg.connect(postgres_url, autocommit=True) as db:
        for name in before:
            if name.startswith("ringfence_") and name.count("_") == 1:
                db.execute(f"DELETE FROM {name}.approval")
    yield
    with psycopg.connect(postgres_url, autocommit=True) as db:
        for name in names() - before:
            db.execute(f'DROP SCHEMA "{name}" CASCADE')


def test_a_request_is_listed_shown_granted_and_refused(
    agent: Agent, ringfence: Ringfence, postgres_url: str, schema: str, workspace: Path
) -> None:
    asked = agent.call("create_file", path="c.md", content="new")
    there = ["--state", f"{postgres_url}#{schema}"]
    listed = ringfence("approvals", "list", "--json", *there).json
    assert [(one["tool"], one["paths"]) for one in listed] == [
        ("delete_file", ["b.md"]),
        ("create_file", ["c.md"]),
    ]
    shown = ringfence("approvals", "show", asked, *there)
    assert shown.status == 0 and "+new" in shown.out and "give a copy of the policy's file" in shown.out
    assert "opens" not in shown.out, "nobody knows how many paths there are"
    assert ringfence("approvals", "grant", asked, "--reason", "fine", *there).status == 0
    assert agent.call("create_file", path="c.md", content="new") == ""
    assert (agent.root / "c.md").read_text() == "new"
    (first,) = (one["id"] for one in listed if one["id"] != asked)
    assert ringfence("approvals", "refuse", first, *there).status == 0
    assert agent.call("delete_file", path="b.md") == "" and (agent.root / "b.md").exists()
    assert ringfence("approvals", "reopen", first, *there).status == 0
    wide = ringfence("approvals", "grant", first, "--pattern", "*.md", "--until", "1h", *there)
    assert wide.status == 0 and "how many paths it opens is not known" in wide.out
    assert agent.call("delete_file", path="a.md") == "" and not (agent.root / "a.md").exists()
    assert ringfence("approvals", "revoke", first, *there).status == 0
    assert agent.call("delete_file", path="b.md") != ""
    assert list(workspace.iterdir()) == [], "nothing is left on this machine's folder"


def test_a_rule_is_written_into_a_copy_of_the_policy(
    agent: Agent, ringfence: Ringfence, postgres_url: str, schema: str, tmp_path: Path
) -> None:
    asked = agent.call("create_file", path="c.md", content="new")
    there = ["--state", f"{postgres_url}#{schema}"]
    without = ringfence("approvals", "grant", asked, "--always", "--yes", *there)
    assert without.status == 2 and "with --policy" in without.err
    copy = tmp_path / "checkout.yaml"
    shutil.copy(agent.root / "ringfence.yaml", copy)
    there += ["--policy", str(copy)]
    shown = ringfence("approvals", "show", asked, *there)
    assert "how many paths it opens now is not known" in shown.out and "proved" in shown.out
    done = ringfence("approvals", "grant", asked, "--always", "--yes", "--json", *there)
    rule = done.json["rule"]
    assert (rule["key"], rule["patterns"], rule["opens"]["whole"]) == ("create_file", ["/c.md"], False)
    assert "it counts once the workspace has it" in done.err
    assert [each["id"] for each in ringfence("approvals", "rules", "--json", *there).json] == [rule["id"]]
    assert agent.call("create_file", path="c.md", content="new") != "", "not yet"
    shutil.copy(copy, agent.root / "ringfence.yaml")
    assert agent.call("create_file", path="c.md", content="new") == ""
    gone = ringfence("approvals", "revoke-rule", rule["id"], *there)
    assert gone.status == 0 and rule["id"] not in copy.read_text()


def test_a_stray_policy_of_this_machine_is_not_the_policy_there(
    agent: Agent, ringfence: Ringfence, postgres_url: str, schema: str, workspace: Path
) -> None:
    stray = workspace / "ringfence.yaml"
    stray.write_text(POLICY)
    asked = agent.call("create_file", path="c.md", content="new")
    there = ["--state", f"{postgres_url}#{schema}"]
    assert ringfence("approvals", "grant", asked, "--always", "--yes", *there).status == 2
    assert stray.read_text() == POLICY


def test_what_needs_the_workspace_says_so(
    agent: Agent, ringfence: Ringfence, postgres_url: str, schema: str
) -> None:
    there = ["--state", f"{postgres_url}#{schema}"]
    for words in (["log"], ["call", "read_file", json.dumps({"path": "a.md"})], ["undo", "c-1"]):
        done = ringfence(*words, *there)
        assert done.status != 0 and "only `ringfence approvals` takes" in done.err + done.out
    assert ringfence("approvals", "list", "--root", ".", *there).status == 2
    with pytest.raises(CallError, match="only `ringfence approvals`"):
        Session(agent.root, state=there[1])
    other = ringfence("approvals", "list", "--state", f"{postgres_url}#ringfence_{'0' * 16}")
    assert other.status == 1 and "Traceback" not in other.err


def test_an_open_change_is_left_to_the_machine_with_the_files(
    agent: Agent, ringfence: Ringfence, postgres_url: str, schema: str
) -> None:
    """Recovery compares with the files; where there are none, every change would look undone."""
    asked = agent.call("create_file", path="c.md", content="new")
    with agent.session('version: 1\nrules: {"*": allow}\n') as stopped:
        stop_in(stopped, "delete_file", "remove", path="a.md")
        with psycopg.connect(postgres_url, autocommit=True) as db:
            db.execute(f"UPDATE {schema}.owner SET beat = beat - interval '1 hour'")
            before = db.execute(f"SELECT id, state FROM {schema}.op ORDER BY id").fetchall()
            assert before
            there = ["--state", f"{postgres_url}#{schema}"]
            assert ringfence("approvals", "list", *there).status == 0
            assert ringfence("approvals", "refuse", asked, *there).status == 0
            assert db.execute(f"SELECT id, state FROM {schema}.op ORDER BY id").fetchall() == before
        assert settled(stopped) == []

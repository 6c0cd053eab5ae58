"""`audit verify`, `audit anchor` and `audit export` from the outside, and the options that go with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringfence.toolkit.audit import file_verifier as runs
from ringfence.toolkit.cli import main
from ringfence.toolkit.cli.commands import log as past
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.state.open import default_place, open_state
from tests.audit.lines import chained
from tests.cli.conftest import Ringfence

POLICY = 'version: 1\nrules: {"*": allow, delete: {"*": ask, "keep/": {effect: deny, reason: ours}}}\n'


@pytest.fixture
def log(ringfence: Ringfence, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (workspace / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    (workspace / "old").write_text("1", encoding="utf-8")
    monkeypatch.setenv("RINGFENCE_AUDIT_LOG", str(tmp_path / "log"))
    ringfence("call", "create_file", '{"path": "a", "content": "SECRET", "description": "why"}')
    ringfence("call", "delete_file", '{"path": "keep/it"}')
    asked = ringfence("call", "delete_file", '{"path": "old"}', "--ask", "queue", "--json")
    ringfence("approvals", "grant", asked.json["data"]["approval"]["id"])
    return tmp_path / "log"


def test_the_log_has_every_record_of_every_command(ringfence: Ringfence, log: Path) -> None:
    told = [json.loads(one) for one in log.read_text().splitlines()]
    assert [one["event"] for one in told] == ["call", "call", "approval", "call", "approval"]
    done = ringfence("audit", "verify", str(log))
    assert (done.status, done.out) == (0, "the audit chain is intact: 5 records\n")
    assert "SECRET" not in log.read_text()


def test_verify_of_a_file_that_was_changed_and_is_torn(ringfence: Ringfence, log: Path) -> None:
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([lines[0], lines[2].replace("asked", "wrong"), lines[3], lines[4][:90]]))
    done = ringfence("audit", "verify", str(log))
    assert done.status == 1
    assert "2       missing" in done.out
    assert "3       altered" in done.out
    assert "record 5 is incomplete" in done.err
    assert ringfence("audit", "verify", str(log), "--json").json["torn"] == [5]
    assert ringfence("audit", "verify", str(log) + "-not").status == 2


def test_an_anchor_holds_a_log_to_what_it_was(ringfence: Ringfence, log: Path) -> None:
    anchor = ringfence("audit", "anchor").out.strip()
    assert anchor == f"5:{json.loads(log.read_text().splitlines()[-1])['hash']}"
    for where in ([], [str(log)]):
        assert ringfence("audit", "verify", *where, "--anchor", anchor).status == 0
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:4]))
    assert ringfence("audit", "verify", str(log)).status == 0
    done = ringfence("audit", "verify", str(log), "--anchor", anchor)
    assert (done.status, "5       differs from the anchor" in done.out) == (1, True)
    assert ringfence("audit", "verify", "--anchor", "5:what").status == 2


def test_a_part_of_a_log_is_verified_from_where_the_one_before_it_ends(
    ringfence: Ringfence, log: Path
) -> None:
    before = log.rename(f"{log}.1")
    ringfence("call", "get_project_root", "{}")
    ringfence("call", "get_project_root", "{}")
    last = json.loads(before.read_text().splitlines()[-1])
    after = f"{last['seq']}:{last['hash']}"
    assert ringfence("audit", "verify", str(log)).status == 1
    done = ringfence("audit", "verify", str(log), "--after", after)
    assert (done.status, done.out) == (0, "the audit chain is intact: 2 records\n")
    for wrong in (f"5:{'0' * 64}", f"4:{last['hash']}", f"0:{'0' * 64}"):
        assert ringfence("audit", "verify", str(log), "--after", wrong).status == 1
    assert ringfence("audit", "verify", str(log), "--after", "5").status == 2
    # The audit that is kept is never one that begins later.
    assert ringfence("audit", "verify", "--after", after).status == 2


def test_a_key_from_the_environment_seals_what_every_command_records(
    ringfence: Ringfence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("a key of more than sixteen bytes\n")
    monkeypatch.setenv("RINGFENCE_AUDIT_KEY", str(tmp_path / "key"))
    ringfence("call", "get_project_root")
    ringfence("undo", "c-nothing")
    assert ringfence("audit", "verify").status == 0
    monkeypatch.delenv("RINGFENCE_AUDIT_KEY")
    done = ringfence("audit", "verify")
    assert (done.status, "holds" in done.out) == (1, False), "what was not checked is no success"
    assert "not checked: 3 of 3 records" in done.out and "--audit-key" in done.out
    told = ringfence("audit", "verify", "--json")
    assert (told.status, told.json["unchecked"], told.json["whole"]) == (1, 3, False)
    ringfence("call", "get_project_root")
    assert "sealed without the key" in ringfence("audit", "verify", "--audit-key", str(tmp_path / "key")).out


@pytest.mark.parametrize("kept", [0, 1])
def test_calls_of_the_history_whose_records_are_gone(
    ringfence: Ringfence, workspace: Path, kept: int
) -> None:
    """A log cut short fits together, but the history beside it has calls that it does not."""
    (workspace / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    ringfence("call", "create_file", '{"path": "a", "content": "1"}')
    ringfence("call", "create_file", '{"path": "b", "content": "1"}')
    ringfence("call", "create_file", '{"path": "c", "content": "1"}')
    last = ringfence("log", "--json").lines[-1]["call"]
    assert ringfence("undo", last).status == 0
    assert ringfence("audit", "verify").status == 0
    state = open_state(default_place(local_place(str(workspace)), None))
    with state.transaction() as db:
        db.execute("DELETE FROM audit WHERE seq > ?", (kept,))
    state.close()
    done = ringfence("audit", "verify")
    assert done.status == 1
    assert "the history has" in done.out and "the audit chain is broken" in done.out
    told = ringfence("audit", "verify", "--json").json
    assert told["whole"] is False and told["unrecorded"] == 4 - kept


def test_opa_events_have_the_decision_and_no_content(ringfence: Ringfence, log: Path) -> None:
    done = ringfence("audit", "export", "--format", "opa")
    events = [json.loads(one) for one in done.out.splitlines()]
    assert [event["result"]["effect"] for event in events] == ["allow", "deny", "ask"]
    first, denied = events[0], events[1]
    assert first["input"] == {
        "agent": "default",
        "session": first["labels"]["id"],
        "id": None,
        "tool": "create_file",
        "paths": ["a"],
        "reason": "why",
        "plan": first["input"]["plan"],
        "arguments": {},
    }
    assert first["erased"] == ["/input/arguments/content"]
    assert first["timestamp"].endswith("Z")
    assert first["decision_id"].startswith("c-")
    assert denied["result"]["rule"]["reason"] == "ours"
    assert len(ringfence("audit", "export", "--format", "opa", "--effect", "deny").out.splitlines()) == 1


def test_otel_events_are_what_its_own_parser_takes(ringfence: Ringfence, log: Path) -> None:
    logs = pytest.importorskip(
        "opentelemetry.proto.logs.v1.logs_pb2", reason="pip install opentelemetry-proto"
    )
    from google.protobuf.json_format import Parse

    done = ringfence("audit", "export", "--format", "otel")
    assert len(done.out.splitlines()) == 5
    for one in done.out.splitlines():
        (resource,) = Parse(one, logs.LogsData()).resource_logs
        (row,) = resource.scope_logs[0].log_records
        assert row.event_name in ("ringfence.call", "ringfence.approval")
        assert row.time_unix_nano > 1e18
        assert {a.key for a in row.attributes} >= {"ringfence.record", "ringfence.agent", "session.id"}
    assert "SECRET" not in done.out


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], ["created", "denied", "asked", "queued", "granted"]),
        (["--agent", "default"], ["created", "denied", "asked", "queued", "granted"]),
        (["--agent", "def"], []),
        (["--tool", "create_file"], ["created"]),
        (["--path", "keep/"], ["denied"]),
        (["--path", "*"], ["created", "denied", "asked", "queued", "granted"]),
        (["--effect", "ask"], ["queued"]),
        (["--effect", "allow", "--effect", "deny"], ["denied"]),
        (["--since", "2000-01-01T00:00:00Z"], ["created", "denied", "asked", "queued", "granted"]),
        (["--since", "2999-01-01"], []),
        (["--session", "another"], []),
        (["-n", "2"], ["queued", "granted"]),
        (["-n", "0", "--tool", "delete_file"], ["denied", "asked", "queued", "granted"]),
    ],
)
def test_each_option_of_log_picks_what_it_says(
    ringfence: Ringfence, log: Path, options: list[str], found: list[str]
) -> None:
    names = {
        "done": "created",
        "denied_by_policy": "denied",
        "asked": "asked",
        "approval_required": "queued",
        "granted": "granted",
    }
    rows = ringfence("log", "--json", *options).lines
    assert [names[row["outcome"]] for row in rows] == found
    text = ringfence("log", *options)
    assert len(text.out.splitlines()) == (len(found) + 1 if found else 0)
    assert ("no records" in text.err) is not bool(found)


def test_follow_goes_on_with_what_comes_and_fits(
    ringfence: Ringfence, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt
        # What another process does meanwhile.
        main(["call", "create_file", json.dumps({"path": f"late{len(looks)}", "content": ""})])
        main(["call", "get_project_root"])

    monkeypatch.setattr(past, "sleep", sleep)
    done = ringfence("log", "--follow", "--json", "--tool", "create_file")
    told = [json.loads(row) for row in done.out.splitlines() if row.startswith('{"')]
    assert [row["paths"] for row in told] == [["a"], ["late1"], ["late2"]]


def test_every_field_of_a_record_and_an_event_is_in_the_reference(ringfence: Ringfence, log: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    records = ringfence("log", "--json").lines
    events = ringfence("audit", "export", "--format", "opa").lines
    names = {key for record in records for key in record}
    names |= {key for event in events for part in (event, event["input"], event["result"]) for key in part}
    assert [name for name in sorted(names) if f"`{name}" not in page] == []
    otel = ringfence("audit", "export", "--format", "otel").lines
    rows = [log for line in otel for log in line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]
    attributes = {
        attribute["key"].removeprefix("ringfence.") for row in rows for attribute in row["attributes"]
    }
    assert [name for name in sorted(attributes) if f"`{name}`" not in page] == []


def test_what_is_too_much_to_tell_is_counted(
    ringfence: Ringfence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "long"
    lines = list(chained(1500))
    log.write_text("".join(lines[2:] + lines[:2]))
    done = ringfence("audit", "verify", str(log))
    assert done.status == 1
    assert "and 498 more directly after these" in done.out
    assert json.loads(ringfence("audit", "verify", str(log), "--json").out)["more"] == 498
    monkeypatch.setattr(runs, "MOST_RUNS", 3)
    log.write_text("\n" * 10)
    done = ringfence("audit", "verify", str(log))
    assert done.status == 1
    assert "stopped at line 4" in done.err
    assert "the audit chain is broken" in done.out
    found = json.loads(ringfence("audit", "verify", str(log), "--json").out)
    assert (found["whole"], found["stopped"]) == (False, 4)
    monkeypatch.setattr(runs, "MOST_BYTES", 50)
    log.write_text(lines[0])
    assert "a line of more than" in ringfence("audit", "verify", str(log)).out

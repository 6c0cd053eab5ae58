"""A rule written into a policy's file: only where it may be, all at once, and recorded with the answer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.policy import Need, Policy
from ringfence.policy.loading.ready_made import ready_made
from ringfence.toolkit.approvals.requests import PENDING, REVOKED, RULE, SESSION, SETTLED, Answer, Request
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.rule_offers import answering, policy_file
from ringfence.toolkit.rule_offers.marks import answered_rules
from ringfence.toolkit.rule_offers.offers import Offer
from ringfence.toolkit.rule_offers.settling import by_grant, by_rule, together
from ringfence.toolkit.session.session import Session
from tests.rule_offers.making import LATER, NOW, request

TEXT = "version: 1\n# ours\nrules: {read: allow, delete: ask}  # all\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "src").mkdir(parents=True)
    for name in ("a", "b", "c"):
        (tmp_path / "ws" / "src" / f"{name}.py").write_text("x")
    policy = tmp_path / "ws" / "ringfence.yaml"
    policy.write_text(TEXT)
    return policy


@pytest.fixture
def session(place: Path, tmp_path: Path) -> Iterator[Session]:
    with Session(
        str(place.parent), place, agent="coder", session="s", state=str(tmp_path / "state")
    ) as opened:
        yield opened


def ask(session: Session, path: str, number: int) -> Request:
    made = request(
        session.policy,
        "coder",
        "delete_file",
        [Need("delete", path)],
        id=f"a-{number:016x}",
        digest=path,
    )
    return session.approvals.ask(replace(made, asked=time.time(), arguments={"path": path}))[0]


def offer_of(
    session: Session, place: Path, made: Request, width: str = "narrow"
) -> tuple[Offer, policy_file.PolicyFile]:
    found, file = answering.offers_for(session.workspace, session.policy, place, made, now=NOW, until=LATER)
    offer = found.of_width(width)
    assert offer is not None
    return offer, file


def test_the_rule_and_the_answer(session: Session, place: Path) -> None:
    made, other, third = (ask(session, f"src/{name}.py", n) for n, name in enumerate("abc"))
    offer, file = offer_of(session, place, made, "folder")
    assert offer.opens.first == ("src/b.py", "src/c.py")
    session.approvals.answer(third.id, Answer(False))
    settled = by_rule(session.approvals, made, session.policy, offer.after.at(NOW), session.fold)
    assert [one.id for one in settled.waiting] == [other.id]
    assert [one.id for one in settled.refused] == [third.id]
    done = answering.write(session.approvals, made, offer, file, by="ann")
    assert (done.state, done.scope, done.settled_by, done.by) == (SETTLED, RULE, offer.id, "ann")
    assert place.read_bytes() == offer.data and b"# ours" in offer.data and b"# all" in offer.data
    (also,) = answering.settle_others(session.approvals, settled.waiting, offer.id, RULE, by="ann")
    assert also.settled_by == offer.id
    assert session.call({"tool": "delete_file", "arguments": {"path": "src/b.py"}}).ok
    with pytest.raises(CallError, match="settled"):
        session.approvals.answer(made.id, Answer(True))
    file, data = answering.without(Policy.load(place), place, offer.id)
    gone = session.approvals.revoke_rule(offer.id, by="ann", first=lambda: policy_file.replace(file, data))
    assert {one.state for one in gone} == {REVOKED} and len(gone) == 2
    assert place.read_text() == TEXT
    assert not session.call({"tool": "delete_file", "arguments": {"path": "src/a.py"}}).ok


def test_a_refused_change_is_answered_by_no_rule(session: Session, place: Path) -> None:
    made = ask(session, "src/a.py", 1)
    offer, file = offer_of(session, place, made)
    session.approvals.answer(made.id, Answer(False))
    with pytest.raises(CallError, match="refused"):
        answering.write(session.approvals, made, offer, file, by="ann")
    assert place.read_text() == TEXT


def test_no_answer_of_a_channel_can_be_a_rule(session: Session) -> None:
    made = ask(session, "src/a.py", 1)
    with pytest.raises(CallError) as caught:
        session.approvals.answer(made.id, Answer(True, RULE, pattern="r-1", until=LATER, confirmed=True))
    assert caught.value.code == "invalid_arguments"
    assert session.approvals.get(made.id).state == PENDING


def test_a_policy_that_changed_since_is_not_written(session: Session, place: Path) -> None:
    made = ask(session, "src/a.py", 1)
    offer, file = offer_of(session, place, made)
    place.write_text(TEXT + "mode: monitor\n")
    with pytest.raises(CallError) as caught:
        answering.write(session.approvals, made, offer, file, by="ann")
    assert caught.value.code == "approval_stale"
    assert session.approvals.get(made.id).state == PENDING
    assert place.read_text() == TEXT + "mode: monitor\n" and len(os.listdir(place.parent)) == 2


def test_of_racing_writers_one_writes_and_the_others_are_told(
    session: Session, place: Path, tmp_path: Path
) -> None:
    """Nothing but the file itself keeps them apart."""
    made = [ask(session, f"src/{name}.py", n) for n, name in enumerate("abc")]
    offers = [offer_of(session, place, one) for one in made]
    start = threading.Barrier(len(offers))
    ends: list[str] = []

    def write(offer: Offer, file: policy_file.PolicyFile) -> None:
        start.wait(30)
        try:
            policy_file.replace(file, offer.data)
            ends.append(offer.id)
        except CallError as error:
            ends.append(error.code)

    threads = [threading.Thread(target=write, args=each) for each in offers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends)[:2] == ["approval_stale", "approval_stale"]
    (won,) = answered_rules(Policy.load(place).whole)
    assert won.id == sorted(ends)[2]


KILLED = """
import os, sys
from pathlib import Path
from ringfence.toolkit.rule_offers import answering, policy_file
from ringfence.toolkit.session.session import Session
from tests.rule_offers.making import LATER, NOW
place, step = Path(sys.argv[1]), sys.argv[2]
session = Session(str(place.parent), place, agent="coder", session="s", state=sys.argv[3])
made = session.approvals.get(sys.argv[4])
found, file = answering.offers_for(session.workspace, session.policy, place, made, now=NOW, until=LATER)
original = policy_file.replace
def replaced(*given):
    if step == "after":
        original(*given)
    os._exit(9)
policy_file.replace = replaced
answering.write(session.approvals, made, found.offers[0], file, by="ann")
"""


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_kill_between_the_rule_and_the_answer(
    session: Session, place: Path, tmp_path: Path, step: str
) -> None:
    made = ask(session, "src/a.py", 1)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(place), step, str(tmp_path / "state"), made.id],
        cwd=Path(__file__).parents[2],
        check=False,
        timeout=120,
    )
    assert done.returncode == 9
    assert session.approvals.get(made.id).state == PENDING
    policy = Policy.load(place)
    finished = answering.complete(session.approvals, policy, made.id, by="ann")
    if step == "before":
        assert place.read_text() == TEXT and finished is None
    else:
        assert finished is not None and finished.settled_by == answered_rules(policy.whole)[0].id
        assert answering.complete(session.approvals, policy, made.id, by="ann") is None
    assert session.call({"tool": "delete_file", "arguments": {"path": "src/a.py"}}).ok is (step == "after")


def test_where_a_rule_is_written(place: Path, tmp_path: Path) -> None:
    assert policy_file.file_for_rules(place, Policy.load(place)).place == place
    shared = place.parent / "shared.yaml"
    shared.write_text("version: 1\n")
    place.write_text("version: 1\nextends: [baseline, shared.yaml]\nrules: {delete: ask}\n")
    elsewhere = tmp_path / "elsewhere.yaml"
    place.rename(elsewhere)
    elsewhere.write_text("version: 1\nrules: {delete: ask}\n")
    place.symlink_to(elsewhere)
    with pytest.raises(CallError) as caught:
        policy_file.file_for_rules(place, Policy.load(place))
    assert "link to another folder" in caught.value.message and "extends:" in (caught.value.hint or "")
    place.unlink()
    place.write_text("version: 1\nextends: [baseline, shared.yaml]\nrules: {delete: ask}\n")
    place.chmod(0o666)
    assert policy_file.file_for_rules(place, Policy.load(place)).place == shared
    base = ready_made("baseline")
    with pytest.raises(CallError, match="ready-made"):
        policy_file.file_for_rules(base, Policy.load(base))


def test_a_rule_in_a_file_that_the_policy_extends(session: Session, place: Path) -> None:
    shared = place.parent / "shared.yaml"
    shared.write_text("version: 1  # rules by people\nagents: {coder: {rules: {read: allow}}}\n")
    place.write_text("version: 1\nextends: [shared.yaml]\nrules: {delete: ask}\n")
    place.chmod(0o666)
    policy = Policy.load(place)
    made = request(policy, "coder", "delete_file", [Need("delete", "src/a.py")])
    found, file = answering.offers_for(session.workspace, policy, place, made, now=NOW, until=None)
    assert file.name == "shared.yaml"
    policy_file.replace(file, found.offers[0].data)
    assert str(Policy.load(place).effect("coder", "delete_file", "delete", "src/a.py")) == "allow"
    back, data = answering.without(Policy.load(place), place, found.offers[0].id)
    policy_file.replace(back, data)
    assert "# rules by people" in shared.read_text() and "rule r-" not in shared.read_text()


def test_what_one_answer_could_settle_is_together(session: Session) -> None:
    one, two = (ask(session, f"src/{name}.py", n) for n, name in enumerate("ab"))
    assert [[each.id for each in group] for group in together(session.approvals.waiting())] == [
        [one.id, two.id]
    ]
    granted = Answer(True, SESSION, confirmed=True)
    assert [each.id for each in by_grant(session.approvals, one, granted)] == [two.id]
    assert by_grant(session.approvals, one, Answer(True)) == []

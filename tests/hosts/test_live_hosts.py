"""Each case of `cases/` in each host and through each door that it names, against a scripted model.

Checked is what the model received, what is in the project, and what `ringfence log` and `approvals` say.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import pytest
import yaml

from tests.hosts.dialects.common import Call, text_of
from tests.hosts.hosts import Place
from tests.hosts.model import Script
from tests.hosts.play import Run, lay, play, ringfence
from tests.hosts.programs import HOSTS, Missing, program
from tests.hosts.vocabulary import WORDS

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
DOORS = ("mcp", "hook")
# All cases, or those marked `quick`: reading, editing, asking, granting, refusing, commands.
ALL = os.environ.get("HOST_CASES", "quick") == "all"
_WAIT = 30.0  # seconds for a condition of a step
_WORDS = {word for words in WORDS.values() for word in words}


class Case(NamedTuple):
    """A case file in one host through one door."""

    name: str
    host: str
    door: str
    given: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The host and the door, as the case files name them."""
        return f"{self.host}/{self.door}"

    def steps(self) -> list[Mapping[str, Any]]:
        """The steps of the file for this host and door."""
        return [step for step in self.given["steps"] if self.is_meant(step.get("only", "*"))]

    def is_meant(self, patterns: str | Sequence[str]) -> bool:
        """Whether one of the patterns is of this host and door."""
        listed = [patterns] if isinstance(patterns, str) else patterns
        return any(fnmatch.fnmatch(self.place, pattern) for pattern in listed)

    def of(self, value: Any) -> Any:
        """Return a value that may be given by host and door: that of the first pattern that fits."""
        if not isinstance(value, Mapping):
            return value
        return next((each for pattern, each in value.items() if self.is_meant(pattern)), None)


def _cases() -> list[Case]:
    found = []
    for file in CASES:
        given = yaml.safe_load(file.read_text(encoding="utf-8"))
        for host in HOSTS:
            for door in DOORS:
                case = Case(file.stem, host, door, given)
                if (host, door) in WORDS and case.is_meant(given.get("doors", "*/*")):
                    found.append(case)
    return [case for case in found if ALL or case.given.get("quick")]


def _texts(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())  # type: ignore[call-overload]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: f"{case.name}-{case.host}-{case.door}")
def test_host(case: Case, tmp_path: Path) -> None:
    """What the model is shown, what is written, and what is recorded are as the case file says."""
    try:
        program(case.host)
    except Missing as missing:
        pytest.skip(str(missing))
    policy = yaml.safe_dump(case.given["policy"], sort_keys=False)
    folders = lay(tmp_path, {"ringfence.yaml": policy, **case.given.get("files", {})})
    steps = case.steps()
    words = case.of(case.given.get("words", {})) or ()
    options = case.given.get("options", ())
    run = play(case.host, case.door, folders, options, _script(case, folders, steps), words)
    shown = [text_of(result).replace(str(folders[1]), "$HOME") for result in run.results]
    assert len(shown) == len(steps), f"the conversation ended early:\n{run.output[-3000:]}\n{shown}"
    for step, text in zip(steps, shown, strict=True):
        for expected in _texts(case.of(step.get("shows"))):
            assert expected in text, step
        for unwanted in _texts(case.of(step.get("lacks"))):
            assert unwanted not in text, step
    _check_after(case, run)


def _script(case: Case, folders: tuple[Path, Path, Path], steps: Sequence[Mapping[str, Any]]) -> Script:
    """Return the model: the next step's call, after what its person does and what it waits for."""
    project, home, state = folders
    place = Place(project, home, state, "", ())
    known = {"HOME": str(home)}

    def next_call(results: list[Any]) -> Call | None:
        at = len(results)
        if at > 0:
            for name, pattern in steps[at - 1].get("take", {}).items():
                known[name] = _found(pattern, text_of(results[-1]))
        if at >= len(steps):
            return None
        step = steps[at]
        if "person" in step:
            (request,) = _waiting(place)
            ringfence(place, "approvals", step["person"], request["id"])
        if "until" in step:
            _wait_for(project / step["until"])
        (word,) = _WORDS & step.keys()
        given = json.loads(Template(json.dumps(step[word])).safe_substitute(known))
        return WORDS[case.host, case.door][word](given, str(project))

    return next_call


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, f"{pattern} is not in {text[:1000]}"
    return found[1]


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + _WAIT
    while not file.exists():
        assert time.monotonic() < deadline, f"{file.name} was not written"
        time.sleep(0.05)


def _waiting(place: Place) -> list[dict[str, Any]]:
    listed = ringfence(place, "approvals", "list")
    return [request for request in listed if request["state"] == "pending"]


def _check_after(case: Case, run: Run) -> None:
    """Check the project, the audit log, the waiting requests, and all that was sent to the model."""
    then = case.given.get("then", {})
    for name, text in then.get("files", {}).items():
        assert _file(run, name).read_text(encoding="utf-8") == text, name
    gone = then.get("gone", ())
    for name in gone:
        if not isinstance(gone, Mapping) or case.is_meant(gone[name]):
            assert not _file(run, name).exists(), name
    sent = json.dumps(run.requests, ensure_ascii=False)
    for secret in then.get("unsent", ()):
        assert secret not in sent
    if (expected := case.of(then.get("log"))) is not None:
        assert [_row(record) for record in ringfence(run.place, "log")] == expected
    if "waiting" in then:
        assert [request["paths"][0] for request in _waiting(run.place)] == then["waiting"]


def _file(run: Run, name: str) -> Path:
    home = name.removeprefix("$HOME/")
    return run.place.project / name if home == name else run.place.home / home


def _row(record: Mapping[str, Any]) -> str:
    name = "approval" if record["event"] == "approval" else record["tool"]
    return " ".join([name, record["outcome"], *(record.get("paths") or ())[:1]])


def test_each_host_has_a_case_for_each_door() -> None:
    """No host or door drops out of the suite unnoticed."""
    assert {(case.host, case.door) for case in _cases()} == set(WORDS)

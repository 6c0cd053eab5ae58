"""Pytest plugin: a workspace for a test, and a report of the rules that no test exercised.

Loaded into every run where Ringfence is installed, so it imports the rest of Ringfence only when a test or an
option needs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ringfence.policy import Policy, Rule
    from ringfence.toolkit.testing.trial import Trial

REPORT = pytest.StashKey["Report"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the ini setting of the report."""
    group = parser.getgroup("ringfence")
    group.addoption(
        "--ringfence-report",
        action="store_true",
        default=False,
        help="list the rules of the policies under test that no test exercised",
    )
    parser.addini("ringfence_report", "as --ringfence-report", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Start collecting exercised rules if the report is on."""
    if config.getoption("ringfence_report") or config.getini("ringfence_report"):
        from ringfence.toolkit.testing.trial import OBSERVERS

        config.stash[REPORT] = report = Report()
        OBSERVERS.append(report.note)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop collecting exercised rules."""
    report = config.stash.get(REPORT, None)
    if report is not None:
        from ringfence.toolkit.testing.trial import OBSERVERS

        OBSERVERS.remove(report.note)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Import a session before a fake file system starts, which patches only loaded modules."""
    if "ringfence" in getattr(item, "fixturenames", ()):
        import ringfence.toolkit.execution.apply
        import ringfence.toolkit.storage.local
        import ringfence.toolkit.testing.trial  # noqa: F401


@pytest.fixture
def ringfence(request: pytest.FixtureRequest) -> Iterator[Callable[..., Trial]]:
    """Return a function that opens trials.

    For example `ringfence(policy, files={...}, agent="coder", answers=[True, False])`. A trial is in memory,
    or in the fake file system of a test that has pyfakefs's `fs`. At the end of the test, each answer of a
    script has to be used, and no question without an answer may have been asked.
    """
    from ringfence.toolkit.testing.trial import Trial

    opened: list[Trial] = []

    def open_trial(policy: Any, files: Any = None, **options: Any) -> Trial:
        """Open one trial, which is checked at the end of the test."""
        known: dict[str, Any] = {key: options.pop(key) for key in ("agent", "answers") if key in options}
        if "fs" in request.fixturenames:
            known["fake"] = request.getfixturevalue("fs")
        opened.append(Trial(policy, files or {}, options=options, **known))
        return opened[-1]

    yield open_trial
    for trial in opened:
        trial.session.close()
    for trial in opened:
        trial.script.check()


class Report:
    """The rules that decided something, by the policy's revision."""

    def __init__(self) -> None:
        self.policies: dict[str, dict[str, Any]] = {}

    def note(self, policy: Policy, rule: Rule) -> None:
        """Note that a rule decided something."""
        counted = self.policies.get(policy.revision)
        if counted is None:
            counted = self.policies[policy.revision] = {
                "name": _name(policy),
                "rules": _rules(policy),
                "used": {},
            }
        counted["used"][str(rule)] = True

    def merge(self, other: dict[str, dict[str, Any]]) -> None:
        """Add what another process collected."""
        for revision, found in other.items():
            self.policies.setdefault(revision, found)["used"].update(found["used"])

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        for counted in self.policies.values():
            missed = [rule for rule in counted["rules"] if rule not in counted["used"]]
            total = len(counted["rules"])
            yield f"{counted['name']}: {total - len(missed)} of {total} rules exercised"
            yield from (f"  never: {rule}" for rule in missed)


def _name(policy: Policy) -> str:
    return policy.files[0] if policy.files else "a policy given as text"


def _rules(policy: Policy) -> list[str]:
    """Return the rules of the policy's own file, as text; files that it extends have their own tests."""
    content = policy.content
    maps = [content.rules, *(agent.rules for agent in content.agents.values())]
    rules = [rule for each in maps for listed in each.values() for rule in listed]
    rules += [rule for item in content.mandatory for rule in item.rules]
    extended = {rule.where.file for rule in rules if rule.where and rule.where.file.startswith("rules/")}
    return [str(rule) for rule in rules if not rule.where or rule.where.file not in extended]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the report."""
    report = config.stash.get(REPORT, None)
    if report is None or hasattr(config, "workerinput"):
        return
    terminalreporter.section("ringfence: rules exercised")
    for line in report.lines() if report.policies else ("no policy was used",):
        terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a pytest-xdist worker's results to the main process."""
    report = session.config.stash.get(REPORT, None)
    if report is not None and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["ringfence"] = json.dumps(report.policies)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the results of a pytest-xdist worker."""
    report = node.config.stash.get(REPORT, None)
    found = getattr(node, "workeroutput", {}).get("ringfence")
    if report is not None and found is not None:
        report.merge(json.loads(found))

"""The pytest plugin, in runs of its own as a user would start them."""

from __future__ import annotations

import os
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.testing.trial import (
    OBSERVERS,
    Script,
    Trial,
    assert_allowed,
    assert_asks,
    assert_denied,
)

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parent.parent.parent
POLICY = Policy.loads(
    'version: 1\nrules: {read: allow, write: {"*": ask, "a/**": allow, "b/": deny}, delete: {"*": deny}}\n'
)
# Where the package is not installed anew, the plugin is named.
INSTALLED = any(point.name == "ringfence" for point in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "ringfence.toolkit.testing.pytest_plugin")

SUITE = """
from ringfence import Policy
from ringfence.toolkit.testing import assert_allowed, assert_denied

P = Policy.loads('''version: 1
rules:
  write: {"*": ask, "src/**": allow}
  delete: {"tmp/**": allow, "*.go": deny}
''')


def test_source():
    assert_allowed(P, "a", "write", "src/x")


def test_go(ringfence):
    trial = ringfence(P, {"main.go": "x", "tmp/a": "y"}, agent="a")
    assert trial.call("delete_file", path="main.go").status == "denied"
"""


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    pytester.plugins = []
    os.environ["PYTHONPATH"] = str(ROOT)
    return pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", "-W", "error", *words)


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:asyncio")


def test_a_suite_and_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    done = run(pytester, "--ringfence-report")
    done.assert_outcomes(passed=2)
    text = done.stdout.str()
    assert "a policy given as text: 2 of 4 rules exercised" in text
    never = re.findall(r'never: .* (\w+): "(.*)" says', text)
    assert never == [("write", "*"), ("delete", "tmp/**")]


def test_the_report_adds_up_over_workers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    done = run(pytester, "--ringfence-report", "-n2")
    done.assert_outcomes(passed=2)
    assert "2 of 4 rules exercised" in done.stdout.str()


def test_the_report_by_ini_and_without_any_policy(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nringfence_report = true\n")
    pytester.makepyfile("def test_nothing(): pass")
    done = run(pytester)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*ringfence: rules exercised*", "no policy was used"])


def test_without_the_option_nothing_is_said_or_brought_in(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n"
        "def test_light():\n"
        "    assert not {'ringfence.policy', 'fsspec', 'yaml', 'sqlite3'} & set(sys.modules)\n"
    )
    done = run(pytester)
    done.assert_outcomes(passed=1)
    text = [line for line in done.stdout.str().splitlines() if not line.startswith("plugins:")]
    assert "ringfence" not in "\n".join(text)


def test_a_script_that_is_not_followed_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from ringfence.policy import Policy

        P = Policy.loads("version: 1\\nrules: {write: ask}")


        def test_asked_more(ringfence):
            ringfence(P, answers=[]).call("create_file", path="a", content="x")


        def test_asked_less(ringfence):
            ringfence(P, answers=[True])


        def test_as_written(ringfence):
            trial = ringfence(P, answers=[True, False])
            assert trial.call("create_file", path="a", content="x").ok
            assert trial.call("create_file", path="b", content="x").error["code"] == "approval_refused"
            assert (trial.read("a"), trial.read("b")) == ("x", None)


        def test_queued(ringfence):
            assert ringfence(P).call("create_file", path="a", content="x").status == "approval_required"
        """
    )
    done = run(pytester)
    done.assert_outcomes(passed=4, errors=2)
    done.stdout.fnmatch_lines(["*asked without an answer in the script: Create*", "*never asked for*"])


def test_under_pyfakefs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os

        from ringfence.policy import Policy

        P = Policy.loads("version: 1\\nrules: {read: allow, write: {'docs/**': allow}, delete: deny}")


        def test_a_link_in_a_fake(fs, ringfence):
            trial = ringfence(P, {"docs/a.md": "old"})
            assert trial.call("create_file", path="docs/b.md", content="new").ok
            assert (fs.get_object("/workspace/docs/b.md").contents, trial.read("docs/b.md")) == ("new", "new")
            os.symlink("/etc", "/workspace/out")
            assert trial.call("read_file", path="out/passwd").error["code"] == "outside_root"
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_example_suite(pytester: pytest.Pytester) -> None:
    done = run(pytester, str(ROOT / "examples" / "policy_tests"), "--ringfence-report", f"--rootdir={ROOT}")
    done.assert_outcomes(passed=8)
    assert "ringfence.yaml: 3 of 3 rules exercised" in done.stdout.str()


@pytest.mark.parametrize(
    ("check", "what", "path", "text"),
    [
        (assert_allowed, "write", "x", "write x for agent me: ask, not allow"),
        (assert_asks, "write", "a/x", "write a/x for agent me: allow, not ask"),
        (assert_denied, "edit_file", "a/x", "edit_file a/x for agent me: allow, not deny"),
    ],
)
def test_a_wrong_expectation_names_the_rule(check: object, what: str, path: str, text: str) -> None:
    with pytest.raises(AssertionError) as failed:
        check(POLICY, "me", what, path)  # type: ignore[operator]
    assert text in str(failed.value) and "says" in str(failed.value)


def test_the_assertions_judge_as_the_policy_does() -> None:
    assert assert_denied(POLICY, "me", "write", "b/").rule is not None
    assert_asks(POLICY, "me", "write", "b")  # a file of that name
    assert_denied(POLICY, "me", "move_file", "a/x", to="a/y", reason="delete")
    with pytest.raises(AssertionError, match="not because of 'nobody'"):
        assert_denied(POLICY, "me", "delete", "x", reason="nobody")
    with pytest.raises(ValueError, match="did you mean delete"):
        assert_denied(POLICY, "me", "delet", "x")
    assert OBSERVERS == [] or INSTALLED


def test_a_trial_without_pytest() -> None:
    with pytest.raises(AssertionError, match="never asked"), Trial(POLICY, answers=[True]) as trial:
        assert trial.call("create_file", path="a/x", content="x").ok
    script = Script([True])
    assert script.left == [True]

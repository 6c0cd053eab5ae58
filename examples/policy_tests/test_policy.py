"""Tests of a policy, as its author would keep them beside it.

pip install ringfence pytest
pytest examples/policy_tests --ringfence-report
"""

from pathlib import Path

import pytest

from ringfence import Policy
from ringfence.toolkit.testing import assert_allowed, assert_asks, assert_denied

POLICY = Policy.load(Path(__file__).with_name("ringfence.yaml"))


@pytest.mark.parametrize("path", ["src/app.py", "src/deep/er/x.py", "src/new/"])
def test_sources_can_be_written(path):
    assert_allowed(POLICY, "coder", "write", path)


def test_what_is_generated_stays():
    assert_denied(POLICY, "coder", "edit_file", "src/generated/api.py", reason="the generator owns these")
    assert_denied(POLICY, "coder", "move_file", "src/app.py", to="src/generated/app.py")


def test_deleting_asks_but_in_build():
    assert_allowed(POLICY, "coder", "delete", "build/out/a.o")
    assert_asks(POLICY, "coder", "delete", "src/app.py")


def test_no_secret_is_read():
    for path in (".env", "deploy/id_rsa", "certs/server.pem"):
        assert_denied(POLICY, "coder", "read", path)


def test_a_person_is_asked_before_a_source_goes(ringfence):
    trial = ringfence(POLICY, {"src/app.py": "print()\n", "build/a.o": "x"}, agent="coder", answers=[False])
    assert trial.call("delete_file", path="build/a.o").ok
    assert trial.call("delete_file", path="src/app.py").status == "denied"
    assert trial.read("src/app.py") == "print()\n"
    assert "src/app.py" in trial.asked[0].title


def test_a_search_shows_no_secret(ringfence):
    trial = ringfence(POLICY, {"src/app.py": "token = 1\n", ".env": "token = s3cr3t\n"})
    found = trial.call("search_text", query="token")
    assert "src/app.py" in found.content
    assert "s3cr3t" not in found.content

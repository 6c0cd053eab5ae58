"""A hook takes no policy that somebody else may have put above the folder that it is called in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.hooks.conftest import Said, event_of

READ = {"event": "PreToolUse", "tool": "Read", "input": {"file_path": "$ROOT/src/app.py"}}


def test_a_policy_that_others_can_write_to_blocks_the_call(
    hook: Callable[..., Said], workspace: Path
) -> None:
    assert hook("claude-code", event_of(READ, workspace)).status == 0
    policy = workspace / "ringfence.yaml"
    policy.chmod(0o666)
    for options in ((), ("--policy", str(policy))):
        said = hook("claude-code", event_of(READ, workspace), *options)
        assert (said.status, said.out) == (2, "")
        assert "'ringfence.yaml' was found above this folder and can be written to by other users" in said.log
        assert str(workspace) not in said.log, "the agent may see it"
    assert hook("claude-code", event_of(READ, workspace), "--root", str(workspace)).status == 0


def test_so_does_a_folder_that_others_can_write_to(hook: Callable[..., Said], workspace: Path) -> None:
    workspace.chmod(0o777)
    said = hook("claude-code", event_of(READ, workspace / "src"))
    assert (said.status, said.out) == (2, "")
    workspace.chmod(0o1777)
    assert hook("claude-code", event_of(READ, workspace)).status == 0

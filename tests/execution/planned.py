"""Puts a plan of the test's own through a session, in place of the one that a tool would make."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.toolkit import tools
from ringfence.toolkit.call import Result
from ringfence.toolkit.plan.changes import Change, Plan
from ringfence.toolkit.session.session import Session


def carried_out(session: Session, *changes: Change, atomic: bool = False) -> Result:
    """Judge, apply and record the changes; the call's tool and its path are of no consequence."""
    with pytest.MonkeyPatch.context() as patch:
        plan = Plan(changes=changes, atomic=atomic)
        patch.setattr(tools, "_planner", lambda _: lambda *_: plan)
        arguments: dict[str, Any] = {"path": "of-no-consequence"}
        return session.call({"tool": "create_directory", "arguments": arguments})

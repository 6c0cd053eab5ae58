"""The workspace of the tests of a state, for those that repair one."""

from tests.state.conftest import do, policy, ringfence, workspace

__all__ = ["do", "policy", "ringfence", "workspace"]

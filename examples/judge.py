"""Ask a policy about paths, without a workspace and without changing anything."""

from ringfence import Need, Policy

POLICY = """
version: 1
rules:
  read: allow
  delete: {"*": ask, "tmp/*": allow, "*.go": {effect: deny, reason: the build owns these}}
agents:
  coder:
    rules: {delete: {"internal/test/*": allow}}
"""

policy = Policy.loads(POLICY)
for agent, path in [
    ("coder", "tmp/a.txt"),
    ("coder", "tmp/x.go"),
    ("coder", "internal/test/a.go"),
    ("other", "internal/test/a.go"),
    ("other", "README"),
]:
    decision = policy.decide(agent, "delete_file", [Need("delete", path)])
    print(f"{agent:6} {path:20} {decision.effect:6} {decision.reason}")

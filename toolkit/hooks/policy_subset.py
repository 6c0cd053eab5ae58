"""Policy subset: a policy with fewer rules, for a process that needs one verdict, because it loads faster."""

from __future__ import annotations

from ringfence.policy import Policy
from ringfence.policy.value_classes import replace


def narrowed(policy: Policy, keys: frozenset[str]) -> Policy:
    """Return a policy with only the rules under these keys: the same verdicts for these keys."""
    content = policy.content
    if sum(map(len, content.rules.values())) < _MANY:
        return policy
    agents = {
        name: replace(agent, rules={key: agent.rules[key] for key in keys & agent.rules.keys()})
        for name, agent in content.agents.items()
    }
    fewer = replace(
        content,
        rules={key: content.rules[key] for key in keys & content.rules.keys()},
        mandatory=tuple(item for item in content.mandatory if keys & set(item.keys)),
        agents=agents,
    )
    return Policy(fewer, revision=policy.revision, files=policy.files, tools=policy.tools)


_MANY = 50  # rules; with fewer it is not worth it

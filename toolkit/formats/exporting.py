"""Export of a policy as another tool's settings, with the settings read back for comparison. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ringfence.policy import Policy
from ringfence.policy.model import DEFAULT_AGENT
from ringfence.toolkit.formats.flatten import changes, flat
from ringfence.toolkit.formats.model import Format, FormatError, Left, Setting, Subject

DELETES = ("opencode", "opencode-fork")  # the formats with a setting for deletions


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The settings, what they cannot express, and their meaning when they are read again."""

    text: str
    left: tuple[Left, ...]
    subjects: tuple[Subject, ...]


def outgoing(policy: Policy, given: Format, agent: str, setting: Setting) -> Outgoing:
    """Export what a policy says about one agent. FormatError."""
    if given.write is None:
        raise FormatError(f"{given.name} is read, and not written")
    written = given.write(flat(policy, agent, setting.root))
    reread = given.read(written.text, setting)
    subjects = [each for each in reread.subjects if each.agent == DEFAULT_AGENT]
    if given.name not in DELETES:
        subjects = [each for each in subjects if each.action != "delete"]
    left = tuple(dict.fromkeys([*written.left, *reread.left]))
    return Outgoing(written.text, left, tuple(_for_tools(subjects, policy, agent)))


def _for_tools(subjects: Sequence[Subject], policy: Policy, agent: str) -> Iterator[Subject]:
    """Return each subject for this agent.

    A subject of an action also for each tool whose rules belong to it.
    """
    named = set(policy.content.rules)
    for entry in policy.content.agents.values():
        named.update(entry.rules)
    for item in policy.content.mandatory:
        named.update(item.keys)
    for subject in subjects:
        yield replace(subject, agent=agent)
        if subject.tool != subject.action:
            continue
        for tool in sorted(named & set(policy.tools) - {subject.action}):
            if subject.action in changes(policy, tool):
                yield replace(subject, agent=agent, tool=tool)

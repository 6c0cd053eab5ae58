"""Places in the tree of a policy: which scalar is under the cursor, and what it is there.

Pure; works on the tree that the policy's own reader makes, also where the policy does not load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.policy.formatting.key_order import POLICY, KeyOrder
from ringfence.policy.loading.pattern_sets import used_set
from ringfence.policy.loading.yaml_tree import Node

ITEM = "-"  # stands for an item of a list in a trail


@dataclass(frozen=True, slots=True)
class Spot:
    """A scalar with the keys that lead to it; of a key the trail is that of its mapping.

    `value` is a key's value. `shape` is that of the mapping or list which the scalar stands in.
    """

    trail: tuple[str, ...]
    node: Node
    shape: KeyOrder
    value: Node | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether a pattern of paths stands here, or a set's name in its place."""
        if self.value is not None:
            return self.shape.has_pattern_keys and self.trail[-1:] != ("run",)
        return self.shape.is_pattern and self.trail[-1:] != ("command",) and "commands" not in self.trail[1:]

    @property
    def used_set(self) -> str | None:
        """The name of the set that stands here in place of a pattern."""
        return used_set(self.node.text) if self.is_pattern else None


def spots(root: Node | None) -> Iterator[Spot]:
    """Yield every scalar of a tree, keys before their values."""
    if root is not None:
        yield from _spots(root, (), POLICY)


def _spots(node: Node, trail: tuple[str, ...], shape: KeyOrder) -> Iterator[Spot]:
    if node.kind == "scalar":
        yield Spot(trail, node, shape)
    for key, value in node.pairs:
        yield Spot(trail, key, shape, value)
        yield from _spots(value, (*trail, key.text), shape.below(key.text))
    for item in node.items:
        yield from _spots(item, (*trail, ITEM), shape.items or shape)


def last_line(node: Node) -> int:
    """Return the last line, from 0, that a node's own scalars reach."""
    return max(
        (spot.node.end.line - (spot.node.end.column == 0) for spot in _spots(node, (), POLICY)), default=0
    )


def section(root: Node | None, *keys: str) -> Node | None:
    """Return the value below these keys, or None."""
    node = root
    for key in keys:
        if node is None:
            return None
        node = next((value for each, value in node.pairs if each.text == key), None)
    return node


def texts(node: Node | None) -> list[Node]:
    """Return the scalars of a list, or a single scalar as a list of one."""
    if node is None:
        return []
    found = [node] if node.kind == "scalar" else list(node.items)
    return [each for each in found if each.kind == "scalar"]
